// SPDX-License-Identifier: GPL-2.0

//! Work items and operations of a controller: reset, error recovery, reconnect and deletion.
//!
//! The work items allocate without I/O ([`without_io`]): I/O may wait for the controller that they connect or
//! disconnect.

use crate::{
    bindings,
    controller::{
        Controller,
        WorkFns, //
    },
    hw_queue::HwQueue,
    setup::{
        self,
        SetupError,
        TagSets, //
    },
    transport::Transport,
    weak_controller::Losses, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};
use rrdma::{
    memory::without_io,
    sync::Msecs, //
};

/// Functions that nvme-core and its workqueues call for a `Controller<T>`.
pub(crate) struct CtrlOps<T>(PhantomData<T>);

impl<T: Transport> CtrlOps<T> {
    /// Functions of the work items.
    pub(crate) fn works() -> WorkFns {
        WorkFns {
            reset: Some(Self::reset),
            recovery: Some(Self::recovery),
            abort: Some(Self::abort),
            reconnect: Some(Self::reconnect),
        }
    }

    /// Returns the operations of the controllers of a module.
    pub(crate) fn table(
        name: *const c_char,
        module: &'static ThisModule,
    ) -> bindings::nvme_ctrl_ops {
        bindings::nvme_ctrl_ops {
            name,
            module: module.as_ptr(),
            flags: bindings::NVME_F_FABRICS | bindings::NVME_F_METADATA_SUPPORTED,
            reg_read32: Some(bindings::nvmf_reg_read32),
            reg_read64: Some(bindings::nvmf_reg_read64),
            reg_write32: Some(bindings::nvmf_reg_write32),
            subsystem_reset: Some(Self::subsystem_reset),
            free_ctrl: Some(Self::free_ctrl),
            submit_async_event: Some(Self::submit_async_event),
            delete_ctrl: Some(Self::delete_ctrl),
            get_address: Some(bindings::nvmf_get_address),
            stop_ctrl: Some(Self::stop_ctrl),
            get_virt_boundary: Some(bindings::get_virt_boundary),
            supports_pci_p2pdma: Some(Self::supports_pci_p2pdma),
            ..pin_init::zeroed()
        }
    }

    /// Frees a controller.
    ///
    /// # Safety
    ///
    /// `ctrl` is the field of a `Controller<T>` whose last reference was dropped.
    unsafe extern "C" fn free_ctrl(ctrl: *mut bindings::nvme_ctrl) {
        // SAFETY: By the safety requirements of this function.
        unsafe {
            let controller: *const Controller<T> = Controller::from_raw(ctrl);
            Controller::free(controller.cast_mut());
        }
    }

    /// Resets the NVM subsystem (NSSR), and then the controller.
    ///
    /// If nvme-core cannot set NSSR, it leaves the controller in the state RESETTING without a reset. A
    /// target that resets itself at once answers nothing, so this resets the controller then, too. Returns
    /// the error of nvme-core.
    ///
    /// # Safety
    ///
    /// `ctrl` is the field of a `Controller<T>`.
    unsafe extern "C" fn subsystem_reset(ctrl: *mut bindings::nvme_ctrl) -> c_int {
        // SAFETY: By the safety requirements of this function, the controller is initialised.
        let status = unsafe { bindings::nvmf_subsystem_reset(ctrl) };
        if status != 0 {
            // Does nothing unless the state is RESETTING. nvme-core has set it for this call, so no other
            // thread schedules a reset.
            //
            // SAFETY: As above.
            let _scheduled = unsafe { bindings::nvme_try_sched_reset(ctrl) };
        }
        status
    }

    /// Sends an Asynchronous Event Request, if there is an admin queue.
    ///
    /// # Safety
    ///
    /// `ctrl` is the field of a `Controller<T>`.
    unsafe extern "C" fn submit_async_event(ctrl: *mut bindings::nvme_ctrl) {
        // SAFETY: By the safety requirements of this function.
        let controller = unsafe { Controller::<T>::from_raw(ctrl) };
        if let Some(admin) = controller.admin_queue() {
            T::submit_async_event(&admin.data);
        }
    }

    /// Ends an attempt to connect, because the controller is being deleted. The deletion first waits for the work item
    /// of a reset, and then calls [`stop_ctrl`](Self::stop_ctrl), so this cannot wait for a call of nvme-core.
    ///
    /// # Safety
    ///
    /// `entry` is the `state_watch` of a `Controller<T>`.
    unsafe extern "C" fn state_changed(
        entry: *mut bindings::wait_queue_entry,
        _mode: c_uint,
        _flags: c_int,
        _key: *mut c_void,
    ) -> c_int {
        // SAFETY: By the safety requirements of this function. The entry leaves the list before the controller is
        // freed.
        let controller: &Controller<T> = unsafe {
            &*kernel::container_of!(Opaque::cast_from(entry), Controller<T>, state_watch)
        };
        if controller.is_deleted() {
            controller.transport.interrupt();
        }
        0
    }

    /// Waits for the work items, before the namespaces are removed.
    ///
    /// # Safety
    ///
    /// `ctrl` is the field of a `Controller<T>`.
    unsafe extern "C" fn stop_ctrl(ctrl: *mut bindings::nvme_ctrl) {
        // SAFETY: By the safety requirements of this function. The work items are initialised.
        unsafe {
            let controller = Controller::<T>::from_raw(ctrl);
            bindings::flush_work(controller.recovery_work.get());
            bindings::cancel_delayed_work_sync(controller.reconnect_work.get());
        }
    }

    /// Returns whether the data of a request may be in memory of PCI devices. nvme-core asks before it adds
    /// a disk. C: `nvme_rdma_supports_pci_p2pdma()`.
    ///
    /// # Safety
    ///
    /// `ctrl` is the field of a `Controller<T>`.
    unsafe extern "C" fn supports_pci_p2pdma(ctrl: *mut bindings::nvme_ctrl) -> bool {
        // SAFETY: By the safety requirements of this function.
        let controller = unsafe { Controller::<T>::from_raw(ctrl) };
        controller.transport.supports_pci_p2pdma()
    }

    /// Disconnects all queues of a controller, and shuts it down. C: `nvme_rdma_delete_ctrl()`.
    ///
    /// # Safety
    ///
    /// `ctrl` is the field of a `Controller<T>` that is being deleted and has no namespaces.
    unsafe extern "C" fn delete_ctrl(ctrl: *mut bindings::nvme_ctrl) {
        // SAFETY: By the safety requirements of this function.
        shut_down(unsafe { Controller::<T>::from_raw(ctrl) }, TagSets::Own);
    }

    /// Disconnects all queues, and connects them again. C: `nvme_rdma_reset_ctrl_work()`.
    ///
    /// # Safety
    ///
    /// `work` is the `reset_work` of a `Controller<T>` in the state RESETTING.
    unsafe extern "C" fn reset(work: *mut bindings::work_struct) {
        // SAFETY: By the safety requirements of this function.
        let controller = unsafe {
            let ctrl = kernel::container_of!(work, bindings::nvme_ctrl, reset_work);
            Controller::<T>::from_raw(ctrl)
        };
        without_io(|| Self::reset_ctrl(controller));
    }

    fn reset_ctrl(controller: &Controller<T>) {
        let ctrl = controller.as_raw();
        controller.lost_at.record();
        // SAFETY: The controller is initialised.
        unsafe {
            bindings::nvme_stop_ctrl(ctrl);
            shut_down(controller, TagSets::Keep);
            if !bindings::nvme_change_ctrl_state(
                ctrl,
                bindings::nvme_ctrl_state_NVME_CTRL_CONNECTING,
            ) {
                // The state is DELETING: the deletion waits for this work item, and then tears down.
                setup::refuse_admin_commands(controller);
                return;
            }
        }
        if let Err(failure) = setup::setup(controller, TagSets::Keep) {
            // SAFETY: Only this work item changes the number.
            unsafe { (*ctrl).nr_reconnects = (*ctrl).nr_reconnects.saturating_add(1) };
            reconnect_or_delete(controller, failure.0);
        }
    }

    /// Disconnects all queues after an error, and schedules the reconnect or deletes the controller.
    ///
    /// # Safety
    ///
    /// `work` is the `recovery_work` of a `Controller<T>` in the state RESETTING.
    unsafe extern "C" fn recovery(work: *mut bindings::work_struct) {
        // SAFETY: By the safety requirements of this function.
        let controller: &Controller<T> = unsafe {
            &*kernel::container_of!(Opaque::cast_from(work), Controller<T>, recovery_work)
        };
        without_io(|| Self::recover(controller));
    }

    fn recover(controller: &Controller<T>) {
        let ctrl = controller.as_raw();
        controller.lost_at.record();
        // SAFETY: The controller is initialised.
        unsafe {
            bindings::nvme_stop_keep_alive(ctrl);
            bindings::flush_work(&raw mut (*ctrl).async_event_work);
            // Before the I/O queues, whose disconnect may take long. The target receives nothing more.
            if let Some(admin) = controller.admin_queue() {
                admin.stop(controller.weak.association());
            }
            setup::teardown_io(controller, TagSets::Keep);
            setup::teardown_admin(controller, TagSets::Keep);
            setup::refuse_admin_commands(controller);
            bindings::auth_stop(ctrl);
            // Fails if the controller is being deleted.
            if bindings::nvme_change_ctrl_state(
                ctrl,
                bindings::nvme_ctrl_state_NVME_CTRL_CONNECTING,
            ) {
                reconnect_or_delete(controller, 0);
            }
        }
    }

    /// Disconnects all queues, because a connection was lost. Commands for which the set-up or the
    /// shutdown of the controller waits are cancelled, so that it does not wait for their time-out.
    ///
    /// While the controller is deleted, disconnects only the I/O queue that was lost: the others still carry the last
    /// writes of the disks that are removed. If the admin queue was lost, the association has ended, and nobody would
    /// notice that the target does not answer.
    ///
    /// # Safety
    ///
    /// `work` is the `abort_work` of a `Controller<T>`.
    unsafe extern "C" fn abort(work: *mut bindings::work_struct) {
        // SAFETY: By the safety requirements of this function.
        let controller: &Controller<T> =
            unsafe { &*kernel::container_of!(Opaque::cast_from(work), Controller<T>, abort_work) };

        let (losses, is_deleted) = (controller.weak.losses(), controller.is_deleted());
        let must_end = |queue: &&HwQueue<T>| match losses {
            Losses::Queue { qid } => !is_deleted || qid == 0 || queue.qid == qid,
            Losses::None | Losses::Several => true,
        };
        without_io(|| {
            setup::disconnect_all(controller, controller.queues.iter().rev().filter(must_end))
        });
    }

    /// Attempts to connect all queues after a loss. C: `nvme_rdma_reconnect_ctrl_work()`.
    ///
    /// # Safety
    ///
    /// `work` is the `reconnect_work` of a `Controller<T>`.
    unsafe extern "C" fn reconnect(work: *mut bindings::work_struct) {
        // SAFETY: By the safety requirements of this function.
        let controller: &Controller<T> = unsafe {
            let work = kernel::container_of!(work, bindings::delayed_work, work);
            &*kernel::container_of!(Opaque::cast_from(work), Controller<T>, reconnect_work)
        };
        without_io(|| Self::connect_again(controller));
    }

    fn connect_again(controller: &Controller<T>) {
        // SAFETY: The controller is initialised. Only the work item of the caller changes the number.
        let attempts = unsafe {
            let attempts = &raw mut (*controller.as_raw()).nr_reconnects;
            attempts.write(attempts.read().saturating_add(1));
            attempts.read()
        };
        match setup::setup(controller, TagSets::Keep) {
            Ok(()) => dev_info!(
                controller.device(),
                "Successfully reconnected ({} attempts)\n",
                attempts
            ),
            Err(failure) => {
                // SAFETY: The options belong to the controller. Writes to an attribute may change the number.
                let most = unsafe {
                    (&raw const (*controller.options.as_raw()).max_reconnects).read_volatile()
                };
                dev_info!(
                    controller.device(),
                    "Failed reconnect attempt {}/{}\n",
                    attempts,
                    most
                );
                reconnect_or_delete(controller, failure.0);
            }
        }
    }
}

/// Disconnects the I/O queues, disables or shuts down the controller, then disconnects the admin
/// queue. C: `nvme_rdma_shutdown_ctrl()`.
fn shut_down<T: Transport>(controller: &Controller<T>, tag_sets: TagSets) {
    setup::teardown_io(controller, tag_sets);
    // SAFETY: The controller is initialised. Properties are set on a queue that is not quiesced.
    unsafe {
        bindings::nvme_quiesce_admin_queue(controller.as_raw());
        bindings::nvme_disable_ctrl(controller.as_raw(), tag_sets == TagSets::Own);
    }
    setup::teardown_admin(controller, tag_sets);
}

/// Queues another attempt to connect, or deletes the controller. C: `nvme_rdma_reconnect_or_remove()`, which counts
/// attempts only. Those that a silent target does not answer take long, so that `ctrl_loss_tmo` took several times as
/// long.
fn reconnect_or_delete<T: Transport>(controller: &Controller<T>, status: c_int) {
    let ctrl = controller.as_raw();
    if controller.state() != bindings::nvme_ctrl_state_NVME_CTRL_CONNECTING {
        // A reset or the deletion has begun.
        return;
    }
    // SAFETY: The controller and its work item are initialised, and the options belong to it.
    unsafe {
        let left = controller.ctrl_loss_tmo().left();
        // There is at least one attempt, also if the teardown took long.
        let is_over = left == Some(Msecs::new(0)) && (*ctrl).nr_reconnects > 0;
        if is_over {
            dev_info!(controller.device(), "ctrl_loss_tmo is over\n");
        }
        if !is_over && bindings::nvmf_should_reconnect(ctrl, status) {
            // Writes to an attribute may change the number. The last attempt begins when the time is over.
            let delay = (&raw const (*controller.options.as_raw()).reconnect_delay).read_volatile();
            let delay = left.map_or(delay, |left| delay.min(left.get().div_ceil(1000)));
            dev_info!(
                controller.device(),
                "Reconnecting in {} seconds...\n",
                delay
            );
            bindings::queue_reconnect(controller.reconnect_work.get(), delay);
        } else {
            bindings::nvme_delete_ctrl(ctrl);
        }
    }
}

/// Creates a controller. C: `nvme_rdma_create_ctrl()`.
///
/// # Errors
///
/// `EALREADY` if there is a controller with these options; the `errno` of the step that failed.
///
/// # Safety
///
/// `device` and `options` are those that nvme-fabrics passed to `create_ctrl`, and `ops` is valid
/// until the controller is freed.
pub(crate) unsafe fn create<T: Transport>(
    device: *mut bindings::device,
    ops: *const bindings::nvme_ctrl_ops,
    controller: Pin<KBox<Controller<T>>>,
) -> Result<*mut bindings::nvme_ctrl> {
    let ctrl = controller.as_raw();
    let list = controller.list.clone();
    // SAFETY: The controller leaves the list before it is freed.
    unsafe { list.add(controller.as_non_null())? };
    // SAFETY: The controller is zeroed, but for what transports set. By the safety requirements of
    // this function, the other arguments are valid.
    let status = unsafe { bindings::nvme_init_ctrl(ctrl, device, ops, 0) };
    if let Err(error) = to_result(status) {
        list.free(controller.as_non_null(), || drop(controller));
        return Err(error);
    }
    // SAFETY: nvme-core owns the controller from here on, and frees it by `free_ctrl`. It does not
    // move.
    let controller: &Controller<T> =
        unsafe { &*KBox::into_raw(Pin::into_inner_unchecked(controller)) };
    // SAFETY: The controller and its work items are initialised, and unbound before they are freed. So is the entry.
    unsafe {
        let recovery = NonNull::new_unchecked(controller.recovery_work.get());
        let abort = NonNull::new_unchecked(controller.abort_work.get());
        controller
            .weak
            .bind(controller.as_non_null(), recovery, abort);
        let watch = controller.state_watch.get();
        bindings::watch_state(ctrl, watch, Some(CtrlOps::<T>::state_changed));
    }
    let added = add(controller);
    if let Err(failure) = added {
        // SAFETY: Drops the reference of `nvme_init_ctrl()`, so `controller` is not used any more.
        unsafe { bindings::put_ctrl(ctrl) };
        return Err(failure.errno());
    }
    list.with_lock(|| {
        controller.created.set(true);
        if controller.doomed.get() {
            // SAFETY: The controller is initialised.
            unsafe { bindings::nvme_delete_ctrl(ctrl) };
        }
    });
    Ok(ctrl)
}

fn add<T: Transport>(controller: &Controller<T>) -> Result<(), SetupError> {
    let ctrl = controller.as_raw();
    // SAFETY: The controller is initialised.
    unsafe {
        // Before its attributes exist: a write to `reset_controller` would reset a new controller while this
        // thread sets it up, but not one that connects.
        bindings::nvme_change_ctrl_state(ctrl, bindings::nvme_ctrl_state_NVME_CTRL_CONNECTING);
        let added = bindings::nvme_add_ctrl(ctrl);
        if added != 0 {
            return Err(SetupError(added));
        }
        if let Err(failure) = setup::setup(controller, TagSets::Own) {
            bindings::nvme_uninit_ctrl(ctrl);
            return Err(failure);
        }
        let nqn = CStr::from_char_ptr(bindings::ctrl_subsysnqn(ctrl));
        dev_info!(
            controller.device(),
            "new ctrl: NQN \"{}\", addr {}:{}, hostnqn: {}\n",
            nqn.to_str().unwrap_or_default(),
            text(controller.options.traddr()),
            text(controller.options.trsvcid()),
            text(Some(controller.options.host_nqn()))
        );
    }
    Ok(())
}

fn text(text: Option<&CStr>) -> &str {
    text.and_then(|text| text.to_str().ok()).unwrap_or_default()
}
