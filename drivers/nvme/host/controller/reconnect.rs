// SPDX-License-Identifier: GPL-2.0

//! Reconnecting after a lost connection or a reset.
//!
//! Meanwhile the hardware queues have no queue pair. Requests are held: those that were in flight,
//! and new ones. They are sent once new queues are connected. They fail when `fast_io_fail_tmo`
//! expires, or when reconnecting ends without a connection. Failfast requests fail at once.

use super::{
    association::{
        Association, //
        InflightPolicy,
    },
    scan_work::{
        self,
        Progress, //
    },
    serve,
    setup,
    status::ReconnectStatus,
    Controller,
    CtrlStatus, //
};
use crate::{
    admin::{
        Admin,
        COMMAND, //
    },
    ctrl_error::CtrlError,
    namespace::{
        ScanContext,
        ScanResult, //
    },
    options::Limit, //
    uapi::ErrorStage,
};
use core::ops::ControlFlow;
use kernel::{
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    },
};
use nvme_proto::{
    format::changed_namespaces::ChangedNamespaces,
    policy::{
        ctrl_state::CtrlState,
        reconnect_policy::{
            FlapHistory,
            PauseState,
            ReconnectAction, //
        },
        reconnect_progress::{
            IoState,
            ReconnectProgress, //
        },
    },
};
use rrdma::{
    random,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// Pause before the second scan of a new connection.
const RESCAN: Msecs = Msecs::from_secs(1);

/// A new connection, and the result of a scan on it.
pub(super) struct Reconnected {
    pub(super) association: KBox<Association>,
    pub(super) found: ScanResult,
}

/// The reconnect of a controller, after a lost connection or a reset.
pub(super) struct Reconnect<'a> {
    controller: &'a Controller,
    /// The context of the first connection. All later ones must offer its queue parameters, because
    /// the disks and the tag set were made with them.
    first: &'a ScanContext,
    status: ReconnectStatus,
}

impl<'a> Reconnect<'a> {
    /// Tears down a failed connection and reconnects. Returns `None` when reconnecting is given up
    /// or removal is requested; the disks fail all I/O then. Sleeps.
    pub(super) fn after_loss(
        controller: &'a Controller,
        association: KBox<Association>,
        first: &'a ScanContext,
        failure: CtrlError,
    ) -> Option<Reconnected> {
        controller.enter(CtrlState::Resetting, Some(&failure));
        if matches!(controller.settings().ctrl_loss_tmo, Limit::After(0)) {
            association.tear_down(controller, InflightPolicy::Fail);
            controller.fail(&failure);
            return None;
        }
        controller.warn(format_args!("{}", failure.message()));
        let history = association.history_after_loss();
        let inflight = association.inflight_policy();
        association.tear_down(controller, inflight);
        let reconnected = Self::new(controller, first, history).run(failure);
        Self::resume(controller, first, reconnected)
    }

    /// Resets a connected controller and reconnects: at once, and if that fails, as after a lost
    /// connection. If only a later attempt succeeds, it counts as a reconnect. Returns `None` like
    /// [`after_loss`](Self::after_loss). Sleeps.
    pub(super) fn after_reset(
        controller: &'a Controller,
        association: KBox<Association>,
        first: &'a ScanContext,
    ) -> Option<Reconnected> {
        controller.log(format_args!("resetting controller"));
        // `Controller::request_reset` sent the netlink event.
        controller.queue_uevent(CtrlState::Resetting);
        // The limits count from here: I/O is held from here on.
        let reconnect = Self::new(controller, first, FlapHistory::default());
        association.disable(controller);
        controller.release_connection();
        controller.enter(CtrlState::Connecting, None);
        let reconnected = match controller.is_deleting() {
            true => Err(CtrlError::cancelled(ErrorStage::Connect)),
            false => Self::attempt(controller, first, reconnect.limit_of_reset()),
        };
        if reconnected.is_ok() {
            Self::count(controller, |status| &mut status.resets);
        }
        let reconnected = reconnected.or_else(|failure| {
            if controller.is_deleting() {
                return Err(failure);
            }
            controller.warn(format_args!("reset failed: {}", failure.message()));
            controller.keep_error(&failure);
            reconnect.run(failure)
        });
        Self::resume(controller, first, reconnected)
    }

    /// Returns when the first attempt of a reset must end.
    fn limit_of_reset(&self) -> Deadline {
        let settings = self.controller.settings();
        let timeout = settings.connect_timeout.get();
        let limits = settings.limits();
        let within = limits.reset_within_ms(self.status.since_loss_ms(), timeout);
        within.map_or(Deadline::NEVER, |ms| Deadline::after(Msecs::new(ms)))
    }

    /// Sends held I/O on the new connection, or fails it.
    fn resume(
        controller: &Controller,
        first: &ScanContext,
        reconnected: Result<Reconnected, CtrlError>,
    ) -> Option<Reconnected> {
        match &reconnected {
            Ok(reconnected) => reconnected.association.publish(controller),
            Err(_) => controller.held_writes.fail(),
        }
        set_io(controller, first, IoState::Failing);
        controller.status.update(|status| status.reconnect = None);
        match reconnected {
            Ok(reconnected) => return Some(reconnected),
            // Removal is no failure.
            Err(_) if controller.is_deleting() => controller.release_device(),
            Err(failure) => controller.fail(&failure),
        }
        None
    }

    /// One connect attempt, which ends at `limit`. On error it leaves no queues; the caller then releases
    /// the device. The time-out of a connect applies to the connection, and then to each command.
    #[inline(never)]
    fn attempt(
        controller: &Controller,
        first: &ScanContext,
        limit: Deadline,
    ) -> Result<Reconnected, CtrlError> {
        let deadline = Deadline::after(controller.settings().connect_timeout).min(limit);
        let association = setup::reconnect(controller, first, deadline)?;
        match Self::scan(controller, &association, limit) {
            Ok(found) => Ok(Reconnected { association, found }),
            Err(failure) => {
                association.discard(controller);
                Err(failure)
            }
        }
    }

    /// Scans the namespaces, and marks the disks whose namespaces are gone. A namespace that is
    /// missing is looked for again once, because the target may be about to list it.
    ///
    /// Only marks disks. Scan work applies the other changes later: they wait for I/O, which is held
    /// now. A disk whose namespace cannot be identified fails the attempt: the namespace may be
    /// another one by now, and I/O must not reach it before this is known.
    fn scan(
        controller: &Controller,
        association: &Association,
        limit: Deadline,
    ) -> Result<ScanResult, CtrlError> {
        let timeout = controller.settings().connect_timeout;
        let admin = Admin {
            timeout: timeout.min(COMMAND),
            ..controller.admin(&association.admin, limit)
        };
        let context = &association.scan_context;
        let progress = Progress::new(controller);
        let scan = || scan_work::scan(&progress, &admin, context, ChangedNamespaces::default());
        let mut found = scan()?;
        if found.misses_namespace(&controller.namespaces) {
            // Leaves most of the time for the second scan.
            let pause = RESCAN.min(Msecs::new(limit.left().min(timeout).get() / 4));
            let rescan = Deadline::after(pause);
            let queues = association.keep_alive_queues();
            serve::serve(controller, queues, limit, || {
                match controller.is_deleting() || rescan.left() == Msecs::new(0) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(rescan),
                }
            })?;
            found = scan()?;
        }
        found.mark_gone(&controller.namespaces, controller)?;
        Ok(found)
    }

    /// Increments a counter of connects. The next change of state notifies user space.
    fn count(controller: &Controller, which: fn(&mut CtrlStatus) -> &mut u32) {
        controller.status.update(|status| {
            let count = which(status);
            *count = count.wrapping_add(1);
        });
    }

    /// Begins to reconnect, with I/O held.
    ///
    /// Attempts and time of `history` count as well: they are those of an unstable connection (see
    /// [`FlapHistory`]). It includes the current loss.
    fn new(controller: &'a Controller, first: &'a ScanContext, history: FlapHistory) -> Self {
        Self {
            controller,
            first,
            status: ReconnectStatus {
                began: Instant::now(),
                progress: ReconnectProgress::new(history),
                next: None,
            },
        }
    }

    /// Attempts to connect until one attempt succeeds, or the limits end the attempts. Sleeps.
    ///
    /// # Errors
    ///
    /// The last error, once no further attempt follows.
    fn run(mut self, mut last: CtrlError) -> Result<Reconnected, CtrlError> {
        let controller = self.controller;
        loop {
            controller.release_connection();
            let Some(limit) = self.pause() else {
                return Err(last);
            };
            self.status.progress.begin_attempt();
            self.show(None);
            controller.enter(CtrlState::Connecting, None);
            match Self::attempt(controller, self.first, limit) {
                Ok(mut reconnected) => {
                    let history = self.status.progress.connected(self.status.since_loss_ms());
                    reconnected.association.flap = Some((history, Instant::now()));
                    Self::count(controller, |status| &mut status.reconnects);
                    return Ok(reconnected);
                }
                Err(error) if controller.is_deleting() => return Err(error),
                // Also if the target refuses permanently: while it starts, it may not have the
                // subsystem yet, or not have noticed that the old connection is lost.
                Err(error) => last = error,
            }
            controller.warn(format_args!(
                "reconnect attempt {} failed: {}",
                self.status.attempts(),
                last.message()
            ));
            controller.keep_error(&last);
        }
    }

    /// Sleeps until the next attempt; `None` if no attempt follows.
    ///
    /// Returns when that attempt must end: at the next limit, `fast_io_fail_tmo` or
    /// `ctrl_loss_tmo`, because only a pause acts on limits. Settings that change during the sleep
    /// apply at once.
    fn pause(&mut self) -> Option<Deadline> {
        let (began, random) = (Instant::<Monotonic>::now(), random::number());
        loop {
            if self.controller.is_deleting() {
                return None;
            }
            let limits = self.controller.settings().limits();
            let pause = PauseState {
                since_loss_ms: self.status.since_loss_ms(),
                since_attempt_ms: Msecs::from(began.elapsed()).get(),
                random,
            };
            let step = self.status.progress.step(&limits, pause);
            if let Some(io) = step.io {
                match io {
                    IoState::Held => self
                        .controller
                        .log(format_args!("fast_io_fail_tmo raised: holding I/O again")),
                    IoState::Failing => self
                        .controller
                        .warn(format_args!("fast_io_fail_tmo expired: failing I/O")),
                }
                set_io(self.controller, self.first, io);
            }
            match step.action {
                ReconnectAction::GiveUp => return None,
                ReconnectAction::Attempt { within_ms } => {
                    return Some(within_ms.map_or(Deadline::NEVER, |ms| {
                        Deadline::after(Msecs::new(ms)) //
                    }));
                }
                ReconnectAction::Wait { ms, attempt_ms } => {
                    self.show(Some(Deadline::after(Msecs::new(attempt_ms))));
                    self.controller.wait(Msecs::new(ms));
                }
            }
        }
    }

    /// Updates the progress in the status; `next` is the time of the next attempt.
    fn show(&self, next: Option<Deadline>) {
        let now = ReconnectStatus {
            next,
            ..self.status
        };
        self.controller
            .status
            .update(|status| status.reconnect = Some(now));
    }
}

/// Sets whether `queue_rq` holds requests. [`IoState::Failing`] requeues those that are held: they reach the
/// published queues, or fail without one. Sleeps, but not for I/O.
fn set_io(controller: &Controller, first: &ScanContext, io: IoState) {
    controller.holds_io.set(io == IoState::Held);
    if io == IoState::Failing {
        // Waits for calls of `queue_rq` that may be about to hold a request, and sends those that are held.
        drop(first.tag_set.pause());
    }
}
