// SPDX-License-Identifier: GPL-2.0

//! The thread of a controller, from connect to removal.

use super::{
    aen::AenHandler,
    association::{
        Association, //
        InflightPolicy,
    },
    reconnect::{
        Reconnect,
        Reconnected, //
    },
    scan_lock::ScanGuard,
    scan_lock::ScanWork,
    scan_work::{
        self,
        Progress, //
    },
    serve::{
        self,
        KeepAliveQueues, //
    },
    setup,
    status::ScanRequester,
    Controller,
    IDLE, //
};
use crate::{
    admin::{
        Admin,
        COMMAND, //
    },
    ctrl_error::CtrlError,
    namespace::ScanResult,
    options::Limit,
    uapi::ErrorStage, //
};
use core::ops::ControlFlow;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_proto::{
    format::async_event::AsyncEvent,
    format::changed_namespaces::ChangedNamespaces,
    policy::{
        ctrl_state::CtrlState,
        live_step::{
            LiveInputs,
            LiveStep, //
        },
        rescan_backoff::{
            RescanBackoff,
            ScanStatus, //
        },
    },
};
use rrdma::{
    memory,
    random,
    sync::{
        Deadline,
        Msecs, //
    }, //
};

/// Longest retry delay of a request while its disk is being deleted.
const RETRY: Msecs = Msecs::from_secs(1);

/// Longest wait for the partition table of one namespace before the controller is live.
const PARTITIONS: Msecs = Msecs::from_secs(1);

/// Reason why serving a live controller ends without an error.
enum LiveExit<'a> {
    /// Removal is requested, and the thread holds the scan lock.
    Removal(ScanGuard<'a>),
    Reset,
}

/// Timer for a rescan after an incomplete scan.
struct RescanTimer {
    backoff: RescanBackoff,
    next: Deadline,
}

impl RescanTimer {
    fn new() -> Self {
        Self {
            backoff: RescanBackoff::default(),
            next: Deadline::NEVER,
        }
    }

    /// Sets the timer after scan work has ended with `done`. A failure to change hardware queues
    /// needs no rescan: the next connection retries it.
    fn note(&mut self, done: &Result<(), CtrlError>, controller: &Controller) {
        let outcome = match done {
            Err(failure) if failure.stage == ErrorStage::Queues => return,
            Err(failure) if failure.is_final() => ScanStatus::Permanent,
            Ok(()) if !controller.status.with(|s| s.rejections.is_transient()) => {
                ScanStatus::Complete
            }
            _ => ScanStatus::Transient,
        };
        let pause = self.backoff.next_delay_ms(outcome, random::number());
        self.next = pause.map_or(Deadline::NEVER, |ms| Deadline::after(Msecs::new(ms)));
    }

    /// Whether a rescan is due.
    fn is_due(&self) -> bool {
        self.next.left() == Msecs::new(0)
    }
}

/// The thread of a controller. No other thread sets up or tears down connections.
pub(crate) struct CtrlThread {
    ctrl: Arc<Controller>,
}

impl CtrlThread {
    /// Connects `ctrl`, serves it until removal is requested, and removes it. Only references to
    /// `ctrl` remain then. Sleeps.
    pub(crate) fn run(ctrl: Arc<Controller>) {
        let this = Self { ctrl };
        let ctrl = &*this.ctrl;
        // Held until the first disks exist, so that passthrough commands find them.
        let guard = this.lock_scan();
        ctrl.enter(CtrlState::Connecting, None);
        let progress = Progress::new(ctrl);
        match setup::connect(ctrl) {
            // From here on I/O may wait for this thread, including the I/O of memory reclaim.
            Ok(association) => {
                memory::without_io(|| this.connected(association, guard, &progress));
            }
            Err(error) => ctrl.fail(&error),
        }
        ctrl.enter(CtrlState::Deleting, None);
        let scan_context = ctrl.scan_context.lock().take();
        drop(scan_context);
        ctrl.remove_device();
    }

    /// Adds the first disks, then serves the controller.
    fn connected(
        &self,
        association: KBox<Association>,
        guard: ScanGuard<'_>,
        progress: &Progress<'_>,
    ) {
        self.log_limitations(&association);
        *self.ctrl.scan_context.lock() = Some(association.scan_context.clone());
        match self.make_disks(&association, guard, progress) {
            Ok(()) => self.live(association),
            Err(failure) => {
                association.tear_down(&self.ctrl, InflightPolicy::Fail);
                // No objects are left on the device, so its removal need not wait for the disks.
                self.ctrl.release_device();
                self.end_disks();
                self.ctrl.fail(&failure);
            }
        }
    }

    /// Logs why the connection may fail more often, or be slower, than a user expects.
    fn log_limitations(&self, association: &Association) {
        // With 0 seconds, dm-multipath joins the paths.
        let is_joined = matches!(self.ctrl.settings().fast_io_fail_tmo, Limit::After(0));
        if association.scan_context.identity.has_other_paths() && !is_joined {
            self.ctrl.log(format_args!(
                "the subsystem may have other paths: only this one is used (no multipath)"
            ));
        }
        let device = association.admin.queue_pair().device();
        if device.is_software() {
            let name = device.name();
            self.ctrl.log(format_args!(
                "{name} is a software RDMA device: not for performance measurements"
            ));
        }
    }

    /// Adds the controller to sysfs, and its first disks by scan work. The time-out of the connect
    /// applies to each command and to each disk, so there is time for any number of them.
    fn make_disks(
        &self,
        association: &Association,
        guard: ScanGuard<'_>,
        progress: &Progress<'_>,
    ) -> Result<(), CtrlError> {
        self.ctrl.add_device()?;
        let (context, awaited) = (&association.scan_context, ChangedNamespaces::default());
        let timeout = self.ctrl.settings().connect_timeout;
        let admin = Admin {
            timeout: timeout.min(COMMAND),
            ..self.ctrl.admin(&association.admin, Deadline::NEVER)
        };
        let found = scan_work::scan(progress, &admin, context, awaited)?;
        self.start_scan_work(guard, ScanWork::Follow(found));
        self.await_disks(association.keep_alive_queues(), timeout)?;
        self.await_partitions(association.keep_alive_queues(), progress)
    }

    /// Waits for the first disks. Each must be added within `timeout`.
    fn await_disks(&self, queues: KeepAliveQueues<'_>, timeout: Msecs) -> Result<(), CtrlError> {
        let stage = ErrorStage::Namespaces;
        let (mut added, mut deadline) = (0, Deadline::after(timeout));
        serve::serve(&self.ctrl, queues, Deadline::NEVER, || {
            if self.ctrl.is_deleting() {
                return ControlFlow::Break(Err(CtrlError::cancelled(stage)));
            }
            if let Some(done) = self.ctrl.scan_lock.take_result() {
                return ControlFlow::Break(done);
            }
            let count = self.ctrl.namespaces.count();
            if count != added {
                (added, deadline) = (count, Deadline::after(timeout));
            }
            if deadline.left() == Msecs::new(0) {
                let limit = timeout.get();
                return ControlFlow::Break(Err(CtrlError::new(
                    stage,
                    ETIMEDOUT,
                    format_args!("adding a disk after {added} others timed out after {limit} ms"),
                )));
            }
            ControlFlow::Continue(deadline)
        })?
    }

    /// Waits for the partition scans of the first disks, so that partitions exist when a program
    /// sees that the controller is live. Does not wait for a namespace that does not respond.
    fn await_partitions(
        &self,
        queues: KeepAliveQueues<'_>,
        progress: &Progress<'_>,
    ) -> Result<(), CtrlError> {
        let (mut scanning, mut limit) = (None, Deadline::NEVER);
        serve::serve(&self.ctrl, queues, Deadline::NEVER, || {
            progress.report();
            let first = self.ctrl.namespaces.first_scanning();
            let Some(nsid) = first.filter(|_| !self.ctrl.is_deleting()) else {
                return ControlFlow::Break(());
            };
            if first != scanning {
                (scanning, limit) = (first, Deadline::after(PARTITIONS));
            }
            if limit.left() == Msecs::new(0) {
                let limit = limit.span().get();
                self.ctrl.warn(format_args!(
                    "namespace {nsid}: partition table not read within {limit} ms: not waiting for it"
                ));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(limit)
        })
    }

    /// Serves a connected controller, across reconnects and resets, until it is removed.
    fn live(&self, mut association: KBox<Association>) {
        let first = association.scan_context.clone();
        let (mut found, mut aer) = (None, AenHandler::new());
        loop {
            *self.ctrl.scan_context.lock() = Some(association.scan_context.clone());
            self.ctrl.enter(CtrlState::Live, None);
            let subsystem = self.ctrl.options.subsystem();
            self.ctrl.log(format_args!("connected to {subsystem}"));
            aer.begin(association.events);
            let reconnected = match self.serve_disks(&association, &mut found, &mut aer) {
                Ok(LiveExit::Removal(guard)) => return self.remove_live(association, guard),
                Ok(LiveExit::Reset) => Reconnect::after_reset(&self.ctrl, association, &first),
                Err(error) => Reconnect::after_loss(&self.ctrl, association, &first, error),
            };
            match reconnected {
                Some(Reconnected {
                    association: next,
                    found: result,
                }) => (association, found) = (next, Some(result)),
                None => break,
            }
        }
        self.await_removal();
        self.ctrl.enter(CtrlState::Deleting, None);
        self.end_disks();
    }

    /// Removes the disks after the connection was torn down.
    fn end_disks(&self) {
        // The holder of the lock does not block: its I/O has ended.
        let guard = self.lock_scan();
        scan_work::remove_all(&self.ctrl, &guard);
    }

    /// Serves a live controller until a reset or removal is requested. Meanwhile scan work updates
    /// the disks: to the queues of the connection, to the namespaces `found` by a reconnect, and to
    /// later scans.
    fn serve_disks<'a>(
        &'a self,
        association: &Association,
        found: &mut Option<ScanResult>,
        aer: &mut AenHandler,
    ) -> Result<LiveExit<'a>, CtrlError> {
        // The hardware queues are set once per connection; a failure is not retried.
        let mut queues = Some(association.queues());
        let mut rescan = RescanTimer::new();
        if found.is_none() {
            // `make_disks` has scanned already.
            rescan.note(&Ok(()), &self.ctrl);
        }
        let live = association.keep_alive_queues();
        serve::serve(&self.ctrl, live, Deadline::NEVER, || {
            if let Some(done) = self.ctrl.scan_lock.take_result() {
                rescan.note(&done, &self.ctrl);
                if let Err(failure) = done {
                    self.ctrl.warn(format_args!("{}", failure.message()));
                }
                // Scan work may have changed the hardware queues of the disks.
                association.map_hctxs();
            }
            let queue = association.admin.queue_pair();
            let next = aer.poll(&self.ctrl, queue, |event| {
                self.handle_event(association, event);
            });
            let reset_requested = self.ctrl.status.state() == CtrlState::Resetting;
            let removal_requested = self.ctrl.is_deleting();
            let guard = self.ctrl.scan_lock.try_lock();
            let step = LiveInputs {
                reset_requested,
                removal_requested,
                // The holder wakes the thread when it releases the lock.
                scan_locked: guard.is_none(),
                queues_differ: queues.is_some_and(|n| n != association.tag_set.queues()),
                scan_result: found.is_some(),
                scan_due: self.ctrl.status.with(|status| status.scans.is_due()) || rescan.is_due(),
            }
            .step();
            match (step, guard) {
                (LiveStep::Reset, _) => return ControlFlow::Break(LiveExit::Reset),
                (LiveStep::Remove, Some(guard)) => {
                    return ControlFlow::Break(LiveExit::Removal(guard))
                }
                (LiveStep::SetQueues, Some(guard)) => {
                    if let Some(wanted) = queues.take() {
                        let tag_set = association.tag_set.clone();
                        self.start_scan_work(guard, ScanWork::SetQueues(tag_set, wanted));
                    }
                }
                (LiveStep::ApplyScan, Some(guard)) => {
                    if let Some(found) = found.take() {
                        self.start_scan_work(guard, ScanWork::Follow(found));
                    }
                }
                (LiveStep::Scan, Some(guard)) => {
                    rescan.next = Deadline::NEVER;
                    let context = association.scan_context.clone();
                    self.start_scan_work(guard, ScanWork::Scan(context));
                }
                (_, None) => return ControlFlow::Continue(next),
                (LiveStep::Wait, Some(_)) => {}
            }
            ControlFlow::Continue(next.min(rescan.next))
        })
    }

    /// Handles an asynchronous event.
    fn handle_event(&self, association: &Association, event: AsyncEvent) {
        // These requests fail only if the controller is not live. Its next connect then does both.
        let _ = match event {
            AsyncEvent::NamespacesChanged => {
                let requested = self.ctrl.request_scan_for(ScanRequester::Target);
                requested.map(|_| ())
            }
            // Requests that wait after path errors may succeed now, and so may partition scans.
            AsyncEvent::AnaChanged => {
                association.tag_set.kick_requeued();
                let requested = self.ctrl.request_scan_for(ScanRequester::Target);
                requested.map(|_| ())
            }
            AsyncEvent::PersistentError => self.ctrl.request_reset(),
            AsyncEvent::DiscoveryChanged | AsyncEvent::Other { .. } => Ok(()),
        };
    }

    /// Removes a connected controller: deletes the disks, which writes back their page cache, and
    /// shuts the controller down.
    fn remove_live(&self, association: KBox<Association>, guard: ScanGuard<'_>) {
        self.ctrl.enter(CtrlState::Deleting, None);
        self.start_scan_work(guard, ScanWork::DeleteDisks);
        let mut retry = Deadline::after(RETRY);
        let live = association.keep_alive_queues();
        let disks = serve::serve(&self.ctrl, live, Deadline::NEVER, || {
            if let Some(done) = self.ctrl.scan_lock.take_result() {
                return ControlFlow::Break(done);
            }
            if retry.left() == Msecs::new(0) {
                association.tag_set.kick_requeued();
                retry = Deadline::after(RETRY);
            }
            ControlFlow::Continue(retry)
        });
        match disks {
            Ok(_) => association.shut_down(&self.ctrl),
            Err(failure) => {
                self.ctrl.warn(format_args!("{}", failure.message()));
                association.tear_down(&self.ctrl, InflightPolicy::Fail);
            }
        }
        // No objects are left on the device, so its removal need not wait for the disks.
        self.ctrl.release_device();
        // Wait for scan work to end; its I/O has ended.
        drop(self.lock_scan());
    }

    /// Waits for the scan lock, and discards the result of scan work. Sleeps.
    fn lock_scan(&self) -> ScanGuard<'_> {
        loop {
            let _ = self.ctrl.scan_lock.take_result();
            if let Some(guard) = self.ctrl.scan_lock.try_lock() {
                return guard;
            }
            self.ctrl.wait(IDLE);
        }
    }

    /// Queues `work`, which holds the scan lock until its result is taken. Sleeps.
    fn start_scan_work(&self, guard: ScanGuard<'_>, work: ScanWork) {
        guard.hand_over(work);
        self.ctrl.services.enqueue(self.ctrl.clone());
    }

    fn await_removal(&self) {
        while !self.ctrl.is_deleting() {
            // Discard the result of scan work: other waiters may need the scan lock.
            let _ = self.ctrl.scan_lock.take_result();
            self.ctrl.wait(IDLE);
        }
    }
}
