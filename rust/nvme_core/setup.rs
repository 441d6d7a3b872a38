// SPDX-License-Identifier: GPL-2.0

//! Sets up and tears down the queues of a controller: the sequences that all transports have.
//!
//! While its queue is connected, a request ends by a response only. [`teardown_io`] and
//! [`teardown_admin`] first disconnect the queue. That waits until the target can no longer access
//! the data of the requests, and then cancels them. `nvme_cancel_tagset()`, which cancels whatever it
//! finds in flight, is never called.
//!
//! Only one thread at a time calls these functions for a controller, see the invariants of
//! [`Controller`]. All functions sleep.

use crate::{
    bindings,
    blk_ops::BlkOps,
    controller::Controller,
    hw_queue::{
        Admits,
        HwQueue, //
    },
    transport::{
        ConnectParams,
        Transport, //
    },
    weak_controller::Losses,
};
use core::ptr;
use kernel::{
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    },
    types::NotThreadSafe, //
};
use rrdma::{
    errno, memory,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// Maximum number of entries of an I/O queue. C: `NVME_RDMA_MAX_QUEUE_SIZE`.
const MAX_ENTRIES: u16 = 256;

/// Whether tag sets are allocated with the queues, and removed with them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TagSets {
    /// First set-up of a controller, or its end.
    Own,
    /// Tag sets and disks outlive the queues.
    Keep,
}

/// Error of a step: a negative `errno`, or a positive NVMe status. Never 0.
#[derive(Clone, Copy)]
pub(crate) struct SetupError(pub(crate) c_int);

impl SetupError {
    /// Returns the `errno` for user space.
    pub(crate) fn errno(self) -> Error {
        if self.0 > 0 {
            return EIO;
        }
        match Error::from_errno(self.0) {
            // A command was cancelled. A program would repeat a write that is interrupted.
            EINTR => errno::ECONNRESET,
            errno => errno,
        }
    }
}

impl From<Error> for SetupError {
    fn from(error: Error) -> Self {
        Self(error.to_errno())
    }
}

/// Converts the result of a function of nvme-core.
fn check(result: c_int) -> Result<(), SetupError> {
    match result {
        0 => Ok(()),
        failure => Err(SetupError(failure)),
    }
}

/// Connects all queues, and makes the controller live. C: `nvme_rdma_setup_ctrl()`.
///
/// # Errors
///
/// [`SetupError`] of the step. All queues are disconnected, and commands of the kernel fail then.
pub(crate) fn setup<T: Transport>(
    controller: &Controller<T>,
    tag_sets: TagSets,
) -> Result<(), SetupError> {
    let ctrl = controller.as_raw();
    // SAFETY: The work item is initialised. Only connected queues queue it, and none is connected.
    unsafe { bindings::cancel_work_sync(controller.abort_work.get()) };
    controller.weak.begin_association();
    if let Some(kept) = KeptTagSet::of(controller, tag_sets) {
        // SAFETY: The controller is initialised, and only this thread changes the fields. nvme-core only
        // lowers them.
        unsafe {
            (*ctrl).sqsize = kept.entries;
            (*ctrl).queue_count = kept.hw_queues.saturating_add(1);
        }
    }
    let result = setup_admin(controller, tag_sets).and_then(|()| {
        setup_after_admin(controller, tag_sets).inspect_err(|_| {
            // SAFETY: The controller is initialised.
            unsafe { bindings::nvme_stop_keep_alive(ctrl) };
            teardown_admin(controller, tag_sets);
        })
    });
    if result.is_err() && tag_sets == TagSets::Keep {
        refuse_admin_commands(controller);
    }
    result
}

fn setup_after_admin<T: Transport>(
    controller: &Controller<T>,
    tag_sets: TagSets,
) -> Result<(), SetupError> {
    let ctrl = controller.as_raw();
    check_features(controller)?;
    check_kept(controller, tag_sets)?;
    // SAFETY: The controller is initialised; only this thread changes the number of queues.
    if unsafe { (*ctrl).queue_count } > 1 {
        setup_io(controller, tag_sets)?;
    }
    // SAFETY: The controller is initialised, and its queues are connected. The caller is the only work item that
    // changes the number of reconnects.
    unsafe {
        // A loss may follow at once, and its recovery reads the number.
        bindings::add_reconnects(ctrl);
        if !bindings::nvme_change_ctrl_state(ctrl, bindings::nvme_ctrl_state_NVME_CTRL_LIVE) {
            // The controller is being deleted.
            teardown_io(controller, tag_sets);
            return Err(EINVAL.into());
        }
        bindings::nvme_start_ctrl(ctrl);
    }
    controller.weak.recover_if_lost();
    Ok(())
}

/// Connects the admin queue, and identifies the controller. C:
/// `nvme_rdma_configure_admin_queue()`.
fn setup_admin<T: Transport>(
    controller: &Controller<T>,
    tag_sets: TagSets,
) -> Result<(), SetupError> {
    let (entries, requests) = (
        bindings::nvme_core_const_AQ_DEPTH,
        bindings::nvme_core_const_AQ_TAGS,
    );
    let params = controller.connect_params(entries, requests);
    let allocated = connect(controller, &params, controller.admin_queue().into_iter())
        // SAFETY: The controller is initialised, and only this thread changes the field.
        .inspect(|()| unsafe {
            (*controller.as_raw()).numa_node =
                memory::usable_numa_node(controller.transport.numa_node())
        })
        .and_then(|()| match tag_sets {
            // SAFETY: The controller is initialised and has no admin tag set. It stays as long as
            // the tag set, whose private data has the size that `BlkOps` needs.
            TagSets::Own => check(unsafe {
                bindings::nvme_alloc_admin_tag_set(
                    controller.as_raw(),
                    controller.admin_tag_set.get(),
                    BlkOps::<T>::ADMIN,
                    bindings::nvme_core_const_PDU_SIZE,
                )
            }),
            TagSets::Keep => Ok(()),
        });
    if let Err(failure) = allocated {
        // Without a tag set, the queue has no requests.
        disconnect_all(controller, controller.admin_queue().into_iter());
        return Err(failure);
    }
    let started = start_admin(controller);
    if started.is_err() {
        teardown_admin(controller, tag_sets);
    }
    started
}

fn start_admin<T: Transport>(controller: &Controller<T>) -> Result<(), SetupError> {
    let ctrl = controller.as_raw();
    // SAFETY: The controller is initialised. Its admin queue is connected and has a tag set, so
    // nvme-core may send commands on it.
    unsafe {
        check(bindings::nvmf_connect_admin_queue(ctrl)).inspect_err(|failure| {
            log_failure(controller, 0, *failure);
        })?;
        admit_on_admin(controller, Admits::Fabrics);
        check(bindings::nvme_enable_ctrl(ctrl))?;
        admit_on_admin(controller, Admits::All);
        let limits = controller.transport.transfer_limits();
        (*ctrl).max_segments = limits.pages;
        // A page has 8 sectors.
        (*ctrl).max_hw_sectors = limits.pages.saturating_mul(8);
        (*ctrl).max_integrity_segments = 0;
        bindings::nvme_unquiesce_admin_queue(ctrl);
        check(bindings::nvme_init_ctrl_finish(ctrl, false))
    }
}

fn admit_on_admin<T: Transport>(controller: &Controller<T>, admits: Admits) {
    if let Some(admin) = controller.admin_queue() {
        admin.admit(admits);
    }
}

/// Checks what the target must support, and limits the size of I/O queues.
fn check_features<T: Transport>(controller: &Controller<T>) -> Result<(), SetupError> {
    /// Keyed SGL data blocks (SGLS). C: `NVME_CTRL_SGLS_KSDBDS`.
    const KEYED: u32 = 1 << 2;

    let device = controller.device();
    let ctrl = controller.as_raw();
    // SAFETY: The controller is initialised. nvme-core set these fields, and does not change them
    // until the next set-up.
    let (offset, sgls, sqsize, maxcmd) =
        unsafe { ((*ctrl).icdoff, (*ctrl).sgls, (*ctrl).sqsize, (*ctrl).maxcmd) };
    if offset != 0 {
        dev_err!(device, "icdoff is not supported\n");
        return Err(errno::EOPNOTSUPP.into());
    }
    if sgls & KEYED == 0 {
        dev_err!(device, "mandatory keyed SGLs are not supported\n");
        return Err(errno::EOPNOTSUPP.into());
    }
    let wanted = sqsize.saturating_add(1);
    let most = match maxcmd {
        0 => MAX_ENTRIES,
        commands => MAX_ENTRIES.min(commands),
    };
    if wanted > most {
        dev_warn!(device, "queue size {wanted} > {most}, clamping down\n");
        // SAFETY: As above.
        unsafe { (*ctrl).sqsize = most.saturating_sub(1).max(1) };
    }
    Ok(())
}

/// The size of the I/O tag set of an earlier connect, which the next connect keeps.
struct KeptTagSet {
    /// Number of tags.
    entries: u16,
    /// Number of hardware queues.
    hw_queues: u32,
}

impl KeptTagSet {
    /// Returns the size; `None` if there is no tag set, or it is not kept.
    fn of<T: Transport>(controller: &Controller<T>, tag_sets: TagSets) -> Option<Self> {
        // SAFETY: The controller is initialised, and only this thread allocates, changes and frees tag sets.
        let (depth, hw_queues) = unsafe {
            match (tag_sets, (*controller.as_raw()).tagset.is_null()) {
                (TagSets::Keep, false) => {
                    let tag_set = controller.io_tag_set.get();
                    ((*tag_set).queue_depth, (*tag_set).nr_hw_queues)
                }
                _ => return None,
            }
        };
        let entries = u16::try_from(depth).ok()?;
        Some(Self { entries, hw_queues })
    }
}

/// Checks what the tag set demands that a connect keeps. There must be I/O queues: nvme-core makes an
/// administrative controller (`CNTRLTYPE`) live without any. They must have an entry for each tag, because a
/// slot belongs to a tag. nvme-rdma goes on without I/O queues, and with fewer entries, for which requests wait.
///
/// # Errors
///
/// `EOPNOTSUPP` if there are no I/O queues; `ENOSPC` if there are fewer entries.
fn check_kept<T: Transport>(
    controller: &Controller<T>,
    tag_sets: TagSets,
) -> Result<(), SetupError> {
    let Some(kept) = KeptTagSet::of(controller, tag_sets) else {
        return Ok(());
    };
    let ctrl = controller.as_raw();
    // SAFETY: The controller is initialised. nvme-core does not change the fields until the next set-up.
    let (queues, entries) = unsafe { ((*ctrl).queue_count, (*ctrl).sqsize) };
    if queues <= 1 {
        dev_err!(
            controller.device(),
            "the target no longer has I/O queues: it is an administrative controller\n"
        );
        return Err(errno::EOPNOTSUPP.into());
    }
    if entries < kept.entries {
        dev_err!(
            controller.device(),
            "the target no longer supports queues of {} entries, only {}\n",
            kept.entries.saturating_add(1),
            entries.saturating_add(1)
        );
        return Err(ENOSPC.into());
    }
    Ok(())
}

/// Connects the I/O queues. C: `nvme_rdma_configure_io_queues()`.
fn setup_io<T: Transport>(controller: &Controller<T>, tag_sets: TagSets) -> Result<(), SetupError> {
    let ctrl = controller.as_raw();
    set_queue_counts(controller)?;
    if tag_sets == TagSets::Own {
        // SAFETY: The controller is initialised and has no I/O tag set. It stays as long as the tag
        // set, whose private data has the size that `BlkOps` needs.
        unsafe {
            let polls = (*controller.options.as_raw()).nr_poll_queues != 0;
            check(bindings::nvme_alloc_io_tag_set(
                ctrl,
                controller.io_tag_set.get(),
                BlkOps::<T>::IO,
                if polls { 3 } else { 2 },
                bindings::nvme_core_const_PDU_SIZE,
            ))?;
        }
    }
    let connected = connect_io(controller, tag_sets);
    if connected.is_err() {
        teardown_io(controller, tag_sets);
    }
    connected
}

/// Sets the number of I/O queues to the smaller of what was requested and what the target grants. More processors may
/// be online than at the last connect, and then more queues are asked for. C: `nvme_set_queue_count()`.
fn set_queue_counts<T: Transport>(controller: &Controller<T>) -> Result<(), SetupError> {
    let ctrl = controller.as_raw();
    let most = u32::try_from(controller.queues.len())
        .unwrap_or(u32::MAX)
        .saturating_sub(1);
    // SAFETY: The controller is initialised and its admin queue live. By the invariants of
    // `Controller`, only this thread changes the numbers of queues.
    unsafe {
        let requested = controller.options.queues();
        let requested = requested.for_cpus(bindings::online_cpus());
        *controller.requested_queues.get() = requested;
        let mut count = c_int::try_from(requested.total().min(most)).unwrap_or(c_int::MAX);
        check(bindings::nvme_set_queue_count(ctrl, &mut count))?;
        let count = u32::try_from(count).unwrap_or(0).min(most);
        if count == 0 {
            dev_err!(controller.device(), "unable to set any I/O queues\n");
            return Err(ENOMEM.into());
        }
        (*ctrl).queue_count = count.saturating_add(1);
        dev_info!(controller.device(), "creating {} I/O queues.\n", count);
        *controller.io_queues.get() = requested.divide(count);
    }
    Ok(())
}

/// Connects the queues that the tag set has, adapts it to the number that the target grants, then
/// connects the others. Sets the number of queues to those that are connected.
fn connect_io<T: Transport>(
    controller: &Controller<T>,
    tag_sets: TagSets,
) -> Result<(), SetupError> {
    let ctrl = controller.as_raw();
    // SAFETY: The tag set is allocated.
    let hw_queues = || unsafe { (*controller.io_tag_set.get()).nr_hw_queues };
    // SAFETY: The controller is initialised; only this thread changes the number of queues.
    let granted = unsafe { (*ctrl).queue_count }.saturating_sub(1);
    // There may be fewer queues than before, or more.
    let (before, end) = (hw_queues(), hw_queues().min(granted).saturating_add(1));
    connect_queues(controller, controller.queues(1..end))?;
    if tag_sets == TagSets::Keep && before != granted {
        change_hw_queues(controller, before, granted)?;
    }
    let count = hw_queues().saturating_add(1);
    connect_queues(controller, controller.queues(end..count))?;
    // There may still be fewer than the target grants. The next connect asks for all again. Polled queues are
    // last, so the others are of the same kind then.
    //
    // SAFETY: As above.
    unsafe { (*ctrl).queue_count = count };
    Ok(())
}

/// The scan lock of nvme-core: while this exists, nvme-core adds no disk.
struct ScanLock<'a, T: Transport> {
    controller: &'a Controller<T>,
    _owner: NotThreadSafe,
}

impl<'a, T: Transport> ScanLock<'a, T> {
    /// Takes the lock within `limit`; `None` if another thread has it for longer. Sleeps.
    ///
    /// The owner may wait for I/O, and for admin commands, of the queues that this thread connects. It may also
    /// wait for the owner of the subsystem's lock, which may wait for another controller. So this thread must
    /// not wait without a limit.
    ///
    /// # Errors
    ///
    /// `ENOTCONN` if a connection was lost, or the controller is being deleted.
    fn take(controller: &'a Controller<T>, limit: Msecs) -> Result<Option<Self>, SetupError> {
        let ctrl = controller.as_raw();
        let deadline = Deadline::after(limit);
        // SAFETY: The controller is initialised. The lock is released by this thread, when `Self` is dropped.
        while !unsafe { bindings::trylock_scan(ctrl) } {
            if controller.weak.losses() != Losses::None
                || controller.state() != bindings::nvme_ctrl_state_NVME_CTRL_CONNECTING
            {
                return Err(errno::ENOTCONN.into());
            }
            if deadline.is_over() {
                return Ok(None);
            }
            // The owner may wait for I/O, which the connected queues carry.
            //
            // SAFETY: The controller and its tag set are initialised.
            unsafe { bindings::nvme_unquiesce_io_queues(ctrl) };
            fsleep(Delta::from_millis(10));
        }
        Ok(Some(Self {
            controller,
            _owner: NotThreadSafe,
        }))
    }
}

impl<T: Transport> Drop for ScanLock<'_, T> {
    fn drop(&mut self) {
        // SAFETY: `take` has taken the lock, in this thread.
        unsafe { bindings::unlock_scan(self.controller.as_raw()) };
    }
}

/// Changes the number of hardware queues from `now` to `granted`, the number of I/O queues that the target
/// grants. If `granted` is larger, the number may also stay until the next connect. Sleeps.
///
/// Meanwhile nvme-core must not add a disk. The disk could find the maps of CPUs to queues empty, and then
/// frees the tags of all disks. nvme-rdma does not prevent that.
///
/// Not called if the number stays: blk-mq would still write the maps again, since the tag set has several.
/// nvme-rdma calls it always.
///
/// # Errors
///
/// Those of [`ScanLock::take`]; `EBUSY` if there must be fewer hardware queues, but nvme-core has its lock;
/// `ENODEV` if I/O does not end.
fn change_hw_queues<T: Transport>(
    controller: &Controller<T>,
    now: u32,
    granted: u32,
) -> Result<(), SetupError> {
    /// Longest wait for the scan lock to add hardware queues. The controller is usable without them.
    const TO_ADD: Msecs = Msecs::from_secs(1);
    /// Longest wait for the scan lock to remove hardware queues, which have no I/O queue any more. Then this
    /// attempt to connect fails.
    const TO_REMOVE: Msecs = Msecs::from_secs(10);

    let ctrl = controller.as_raw();
    let adds = granted > now;
    let Some(_no_scan) = ScanLock::take(controller, if adds { TO_ADD } else { TO_REMOVE })? else {
        dev_warn!(
            controller.device(),
            "cannot change from {} to {} I/O queues: a namespace scan or passthrough command is in progress\n",
            now,
            granted
        );
        return if adds { Ok(()) } else { Err(EBUSY.into()) };
    };
    // SAFETY: The controller and its tag set are initialised. The queues of the disks are frozen while the
    // number changes, and nvme-core adds none.
    unsafe {
        bindings::nvme_start_freeze(ctrl);
        // nvme-core may have quiesced the queues since the teardown.
        bindings::nvme_unquiesce_io_queues(ctrl);
        if bindings::nvme_wait_freeze_timeout(ctrl) == 0 {
            bindings::nvme_unfreeze(ctrl);
            return Err(ENODEV.into());
        }
        bindings::blk_mq_update_nr_hw_queues((*ctrl).tagset, granted as c_int);
        bindings::nvme_unfreeze(ctrl);
    }
    Ok(())
}

fn connect_queues<'a, T: Transport>(
    controller: &Controller<T>,
    queues: impl Iterator<Item = &'a HwQueue<T>> + Clone,
) -> Result<(), SetupError> {
    // SAFETY: The controller is initialised.
    let requests = unsafe { (*controller.as_raw()).sqsize };
    let params = controller.connect_params(requests.saturating_add(1), requests);
    connect(controller, &params, queues.clone())?;
    for queue in queues {
        // SAFETY: The controller is initialised, and the queue connected. The tag set has a
        // hardware queue for it.
        let status = unsafe { bindings::nvmf_connect_io_queue(controller.as_raw(), queue.qid) };
        check(status).inspect_err(|failure| log_failure(controller, queue.qid, *failure))?;
        queue.admit(Admits::All);
    }
    Ok(())
}

/// Connects queues.
///
/// If a connection is lost later, `abort_work` disconnects them all.
fn connect<'a, T: Transport>(
    controller: &Controller<T>,
    params: &ConnectParams<'_>,
    queues: impl Iterator<Item = &'a HwQueue<T>> + Clone,
) -> Result<(), SetupError> {
    let queues = queues.map(|queue| &queue.data);
    controller.transport.connect(params, queues)?;
    match controller.weak.losses() {
        Losses::None => Ok(()),
        // The work item may have run before these queues were connected.
        _ => Err(errno::ENOTCONN.into()),
    }
}

fn log_failure<T: Transport>(controller: &Controller<T>, qid: u16, failure: SetupError) {
    dev_info!(
        controller.device(),
        "failed to connect queue: {} ret={}\n",
        qid,
        failure.0
    );
}

/// Stops queues, disconnects them one after the other, and cancels their requests.
pub(crate) fn disconnect_all<'a, T: Transport>(
    controller: &Controller<T>,
    queues: impl Iterator<Item = &'a HwQueue<T>> + Clone,
) {
    let association = controller.weak.association();
    // One grace period for all.
    let all = queues.clone();
    all.for_each(|queue| queue.retract(association));
    // All are stopped first, because to disconnect one may take long.
    queues.clone().for_each(|queue| queue.stop(association));
    queues.for_each(|queue| queue.disconnect(association));
}

/// Disconnects the I/O queues, and cancels their requests. nvme-core decides on requests from here
/// on. C: `nvme_rdma_teardown_io_queues()`.
///
/// Does not quiesce the queues of the disks, unlike C: nvme-core may add a disk at any time, and a
/// queue that is added while the others are quiesced cannot be unquiesced.
pub(crate) fn teardown_io<T: Transport>(controller: &Controller<T>, tag_sets: TagSets) {
    let ctrl = controller.as_raw();
    // SAFETY: The controller is initialised. A controller without an I/O tag set has no namespaces,
    // and its queues are disconnected.
    unsafe {
        if (*ctrl).tagset.is_null() {
            return;
        }
        for queue in controller.queues.iter().skip(1) {
            queue.admit(Admits::Nothing);
        }
        // The controller and its queues are not live, so `BlkOps::is_ready` refuses requests now. Wait for
        // those that it accepted before.
        bindings::blk_mq_wait_quiesce_done((*ctrl).tagset);
        bindings::nvme_sync_io_queues(ctrl);
        disconnect_all(controller, controller.queues.iter().skip(1));
        // Wait for time-outs that began meanwhile. A Connect has a queue of its own.
        bindings::nvme_sync_io_queues(ctrl);
        if !(*ctrl).connect_q.is_null() {
            bindings::blk_sync_queue((*ctrl).connect_q);
        }
        // nvme-core quiesces the queues while firmware is activated, and leaves them to a reset if that
        // takes too long. Does nothing otherwise.
        bindings::nvme_unquiesce_io_queues(ctrl);
        if tag_sets == TagSets::Own {
            bindings::nvme_remove_io_tag_set(ctrl);
            (*ctrl).tagset = ptr::null_mut();
            // nvme-core sets its time-out when somebody writes to `io_timeout`.
            (*ctrl).connect_q = ptr::null_mut();
        }
    }
}

/// Disconnects the admin queue, and cancels its requests. C: `nvme_rdma_teardown_admin_queue()`.
///
/// If the tag set is kept, the admin queue stays quiesced: commands of the kernel wait until [`setup`] has
/// enabled the controller, or [`refuse_admin_commands`] is called.
pub(crate) fn teardown_admin<T: Transport>(controller: &Controller<T>, tag_sets: TagSets) {
    let ctrl = controller.as_raw();
    // SAFETY: The controller is initialised and has an admin tag set.
    unsafe {
        bindings::nvme_quiesce_admin_queue(ctrl);
        bindings::blk_sync_queue((*ctrl).admin_q);
        disconnect_all(controller, controller.admin_queue().into_iter());
        // Wait for time-outs that began meanwhile. A Fabrics command has a queue of its own.
        bindings::blk_sync_queue((*ctrl).admin_q);
        bindings::blk_sync_queue((*ctrl).fabrics_q);
        if tag_sets == TagSets::Own {
            bindings::nvme_unquiesce_admin_queue(ctrl);
            bindings::nvme_remove_admin_tag_set(ctrl);
        }
    }
}

/// Lets admin commands of the kernel fail until the next [`setup`]: nobody connects now, and the deletion of the
/// controller waits for the scan, which may wait for a command. nvme-rdma lets them wait after a failed set-up.
pub(crate) fn refuse_admin_commands<T: Transport>(controller: &Controller<T>) {
    // SAFETY: The controller is initialised, and has an admin tag set, which is kept. Its admin queue is
    // disconnected, so `BlkOps::is_ready` refuses commands.
    unsafe { bindings::nvme_unquiesce_admin_queue(controller.as_raw()) };
}
