// SPDX-License-Identifier: GPL-2.0

//! The life of a controller, in its own thread.

use super::{
    aen::AenHandler,
    association::{
        Association, //
        InflightPolicy,
        KeepAliveQueue,
    },
    scan_lock::ScanGuard,
    scan_work::{
        LockedDisks,
        ScanWork, //
    },
    setup,
    Admin,
    Controller,
    Sender,
    IDLE, //
};
use crate::{
    ctrl_error::CtrlError,
    namespace::{
        self,
        ScanResult, //
    },
    uapi::ErrorStage, //
};
use core::ops::ControlFlow;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_proto::{
    format::changed_namespaces::ChangedNamespaces,
    policy::{
        ctrl_state::CtrlState,
        keep_alive::KeepAlive,
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

/// How often we poll for others.
const POLL: Msecs = Msecs::new(10);

/// The longest that a request waits to be sent again, because the target wants so, while its disk
/// is being deleted.
const RETRY: Msecs = Msecs::from_secs(1);

/// What somebody wants of a controller that is live.
enum LiveExit<'a> {
    /// For which it is our turn.
    Removal(ScanGuard<'a>),
    Reset,
}

/// When the disks are brought in line again with what there is, as something of it is missing.
struct RescanTimer {
    looks: RescanBackoff,
    next: Deadline,
}

impl RescanTimer {
    fn new() -> Self {
        Self {
            looks: RescanBackoff::default(),
            next: Deadline::NEVER,
        }
    }

    /// Takes note of how an errand ended; another attempt at the hardware queues is for the next
    /// connection.
    fn note(&mut self, done: &Result<(), CtrlError>, controller: &Controller) {
        let outcome = match done {
            Err(failure) if failure.stage == ErrorStage::Queues => return,
            Err(failure) if failure.is_final() => ScanStatus::Permanent,
            Ok(()) if !controller.may_refusals_pass() => ScanStatus::Complete,
            _ => ScanStatus::Transient,
        };
        let pause = self.looks.next_delay_ms(outcome, random::number());
        self.next = pause.map_or(Deadline::NEVER, |ms| Deadline::after(Msecs::new(ms)));
    }

    /// Whether a look is due.
    fn is_due(&self) -> bool {
        self.next.left() == Msecs::new(0)
    }
}

impl Controller {
    /// From connecting to when nothing is left of it but references. Sleeps.
    pub(crate) fn run(this: &Arc<Self>) {
        // Users with commands of their own find the first disks made.
        let guard = this.lock_scan();
        this.enter(CtrlState::Connecting, None);
        match setup::connect(this) {
            // From here on I/O may wait for this thread, also that by which memory is made free.
            Ok(association) => memory::without_io(|| this.connected(association, guard)),
            Err(failure) => this.fail(&failure),
        }
        this.enter(CtrlState::Deleting, None);
        let scan_context = this.scan_context.lock().take();
        drop(scan_context);
        this.remove_device();
    }

    /// The queues are ready: the disks are next.
    fn connected(self: &Arc<Self>, association: KBox<Association>, guard: ScanGuard<'_>) {
        *self.scan_context.lock() = Some(association.scan_context.clone());
        match self.make_disks(&association, guard) {
            Ok(()) => self.live(association),
            Err(failure) => {
                association.tear_down(InflightPolicy::Fail);
                // Nothing is left on it, and its removal need not wait for disks.
                self.release_device();
                self.end_disks();
                self.fail(&failure);
            }
        }
    }

    /// Shows the controller in sysfs, and has its first disks made.
    fn make_disks(
        self: &Arc<Self>,
        association: &Association,
        guard: ScanGuard<'_>,
    ) -> Result<(), CtrlError> {
        self.add_device()?;
        let scan_context = &*association.scan_context;
        let admin = Admin {
            sender: Sender::Thread(&association.admin),
            controller: self,
            deadline: scan_context.deadline,
        };
        let found = namespace::find(self, &admin, scan_context, ChangedNamespaces::default())?;
        self.start_scan_work(guard, ScanWork::Follow(found));
        self.serve_until(association, scan_context.deadline, || {
            let stage = ErrorStage::Namespaces;
            if self.is_deleting() {
                return ControlFlow::Break(Err(CtrlError::cancelled(stage)));
            }
            if scan_context.deadline.left() == Msecs::new(0) {
                let limit = scan_context.deadline.span().get();
                return ControlFlow::Break(Err(CtrlError::new(
                    stage,
                    ETIMEDOUT,
                    format_args!("the disks could not be read within {limit} ms"),
                )));
            }
            match self.scan_lock.take_result() {
                Some(done) => ControlFlow::Break(done),
                None => ControlFlow::Continue(scan_context.deadline),
            }
        })?
    }

    /// From the first moment of being connected to removal.
    fn live(self: &Arc<Self>, mut association: KBox<Association>) {
        let first = association.scan_context.clone();
        let (mut found, mut aer) = (None, AenHandler::new());
        loop {
            *self.scan_context.lock() = Some(association.scan_context.clone());
            self.enter(CtrlState::Live, None);
            self.log(format_args!("connected to {}", self.options.subsystem()));
            aer.begin(association.events);
            let ended = match self.serve_disks(&association, &mut found, &mut aer) {
                Ok(LiveExit::Removal(guard)) => return self.remove_live(association, guard),
                Ok(LiveExit::Reset) => Ok(()),
                Err(failure) => Err(failure),
            };
            let rescan = match ended {
                Ok(()) => self.reset(association, &first),
                Err(failure) => self.recover(association, &first, failure),
            };
            match rescan {
                Some((rescan, now)) => (association, found) = (rescan, Some(now)),
                None => break,
            }
        }
        self.await_removal();
        self.enter(CtrlState::Deleting, None);
        self.end_disks();
    }

    /// Removes the disks of a connection that is gone.
    fn end_disks(&self) {
        // The I/O that its holder waits for has ended.
        let guard = self.lock_scan();
        LockedDisks::new(self, &guard).remove_all();
    }

    /// Serves until something is wished for. Meanwhile the disks follow what the connection is
    /// now, what was `found` after connecting again, and what the target then tells.
    fn serve_disks<'a>(
        self: &'a Arc<Self>,
        association: &Association,
        found: &mut Option<ScanResult>,
        aer: &mut AenHandler,
    ) -> Result<LiveExit<'a>, CtrlError> {
        // What does not work once is not tried again before the next connection.
        let mut queues = Some(association.queues());
        let mut rescan = RescanTimer::new();
        if found.is_none() {
            // The first disks are made.
            rescan.note(&Ok(()), self);
        }
        self.serve(association, || {
            if let Some(done) = self.scan_lock.take_result() {
                rescan.note(&done, self);
                if let Err(failure) = done {
                    self.warn(format_args!("{}", failure.message()));
                }
                // The disks may have other hardware queues now.
                association.map_hctxs();
            }
            let queue = association.admin.queue_pair();
            let next = aer.poll(self, queue, |event| self.act(event));
            if self.status.state() == CtrlState::Resetting && !self.is_deleting() {
                return ControlFlow::Break(LiveExit::Reset);
            }
            let Some(guard) = self.scan_lock.try_lock() else {
                // Whoever has it wakes us when it is over.
                return ControlFlow::Continue(next);
            };
            let tag_set = &association.tag_set;
            if let Some(queues) = queues.take().filter(|n| *n != tag_set.queues()) {
                self.start_scan_work(guard, ScanWork::SetQueues(tag_set.clone(), queues));
            } else if let Some(found) = found.take() {
                self.start_scan_work(guard, ScanWork::Follow(found));
            } else if self.is_deleting() {
                return ControlFlow::Break(LiveExit::Removal(guard));
            } else if self.status.with(|status| status.scans.is_due()) || rescan.is_due() {
                rescan.next = Deadline::NEVER;
                self.start_scan_work(guard, ScanWork::Scan(association.scan_context.clone()));
            }
            ControlFlow::Continue(next.min(rescan.next))
        })
    }

    /// Removes a controller whose connection works: its disks write back what
    /// they hold, and the target is told.
    fn remove_live(self: &Arc<Self>, association: KBox<Association>, guard: ScanGuard<'_>) {
        self.enter(CtrlState::Deleting, None);
        self.status.begin_removal();
        self.start_scan_work(guard, ScanWork::DeleteDisks);
        let mut retry = Deadline::after(RETRY);
        let disks = self.serve(&*association, || {
            if let Some(done) = self.scan_lock.take_result() {
                return ControlFlow::Break(done);
            }
            if retry.left() == Msecs::new(0) {
                association.tag_set.kick_requeued();
                retry = Deadline::after(RETRY);
            }
            ControlFlow::Continue(retry)
        });
        match disks {
            Ok(_) => association.shut_down(self),
            Err(failure) => self.warn(format_args!("{}", failure.message())),
        }
        association.tear_down(InflightPolicy::Fail);
        // Nothing is left on it, and its removal need not wait for disks.
        self.release_device();
        // After the errand, whose I/O was ended.
        drop(self.lock_scan());
    }

    /// Keeps a connection alive until `over` breaks, or trouble comes. `over` is asked
    /// whenever the thread is woken, and at the moment that it says.
    pub(super) fn serve<R>(
        &self,
        line: &impl KeepAliveQueue,
        over: impl FnMut() -> ControlFlow<R, Deadline>,
    ) -> Result<R, CtrlError> {
        self.serve_until(line, Deadline::NEVER, over)
    }

    /// The same where it is over by the `deadline`: so long an answer is waited for at most.
    fn serve_until<R>(
        &self,
        line: &impl KeepAliveQueue,
        deadline: Deadline,
        mut over: impl FnMut() -> ControlFlow<R, Deadline>,
    ) -> Result<R, CtrlError> {
        let keep_alive = KeepAlive::new(self.options.keep_alive_ms(), line.keep_alive_mode());
        let period = keep_alive.map_or(IDLE, |k| Msecs::new(k.period_ms()));
        let mut next = Deadline::after(period).min(self.next_keep_alive());
        loop {
            if let Some(trouble) = self.notifier.error() {
                return Err(trouble.into());
            }
            let moment = match over() {
                ControlFlow::Break(answer) => return Ok(answer),
                ControlFlow::Continue(moment) => moment,
            };
            let left = next.left();
            if left > Msecs::new(0) {
                let limit = left.min(moment.left());
                // Who has the turn waits for requests, also of who does not poll.
                let polls = self.scan_lock.is_held() && line.poll();
                self.wait(if polls { limit.min(POLL) } else { limit });
                continue;
            }
            if let Some(keep_alive) = keep_alive {
                if keep_alive.is_due(line.take_traffic()) {
                    let limit = Msecs::new(keep_alive.timeout_ms());
                    self.keep_alive(line.admin(), Deadline::after(limit).min(deadline))?;
                }
            }
            next = Deadline::after(period);
        }
    }

    /// The connection failed, for good.
    pub(super) fn fail(&self, failure: &CtrlError) {
        self.release_device();
        self.enter(CtrlState::Dead, Some(failure));
        let message = failure.message();
        match self.is_deleting() {
            // Whoever wants that knows.
            true => self.log(format_args!("{message}")),
            false => self.log_error(format_args!("{message}")),
        }
    }

    /// Waits for the scan lock. The result of work is forgotten.
    fn lock_scan(&self) -> ScanGuard<'_> {
        loop {
            let _ = self.scan_lock.take_result();
            if let Some(guard) = self.scan_lock.try_lock() {
                return guard;
            }
            self.wait(IDLE);
        }
    }

    /// Queues `work`, which holds the scan lock until its result is taken. Sleeps.
    fn start_scan_work(self: &Arc<Self>, guard: ScanGuard<'_>, work: ScanWork) {
        guard.hand_over(work);
        self.services.queue_scan_work(self.clone());
    }

    fn await_removal(&self) {
        while !self.is_deleting() {
            // Nobody needs to know any more how an errand ended, and others may have the turn.
            let _ = self.scan_lock.take_result();
            self.wait(IDLE);
        }
    }
}
