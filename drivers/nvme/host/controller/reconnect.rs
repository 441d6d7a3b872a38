// SPDX-License-Identifier: GPL-2.0

//! Connecting again, after a loss or a reset.
//!
//! Meanwhile the tag set is quiesced, so requests wait in the block layer; those that were in
//! flight wait with them and come again. They are let through when the queues are there
//! again, or, to fail, when the user's time for them is over or nobody tries any more.

use super::{
    association::{
        Association, //
        InflightPolicy,
    },
    scan_work,
    setup,
    status::ReconnectStatus,
    Controller,
    CtrlStatus, //
    ScanContext,
};
use crate::{
    ctrl_error::CtrlError,
    namespace::ScanResult,
    options::Limit, //
    uapi::ErrorStage,
};
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
            ReconnectAction, //
        },
        reconnect_progress::{
            HeldIo,
            PauseState,
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

/// A new connection, and the namespaces that the target has now.
pub(super) struct Reconnected {
    pub(super) association: KBox<Association>,
    pub(super) found: ScanResult,
}

/// Reconnecting of a controller, after a lost connection or a reset.
pub(super) struct Reconnect<'a> {
    controller: &'a Controller,
    before: &'a ScanContext,
    status: ReconnectStatus,
}

impl<'a> Reconnect<'a> {
    /// Ends a session that failed, and connects again. `None` if that was given up, or the
    /// controller is to be removed: then the disks refuse I/O. Sleeps.
    pub(super) fn after_loss(
        controller: &'a Controller,
        association: KBox<Association>,
        before: &'a ScanContext,
        failure: CtrlError,
    ) -> Option<Reconnected> {
        controller.enter(CtrlState::Resetting, Some(&failure));
        if matches!(controller.settings().give_up, Limit::After(0)) {
            association.tear_down(InflightPolicy::Fail);
            controller.fail(&failure);
            return None;
        }
        controller.warn(format_args!("{}", failure.message()));
        let earlier = association.earlier_losses();
        before.namespaces.tag_set.quiesce();
        association.tear_down(InflightPolicy::Retry);
        let again = Self::new(controller, before, earlier).run(failure);
        Self::resume(controller, before, again)
    }

    /// Ends a session in good order, and connects again: at once, and if that fails, as after
    /// a loss. `None` as with [`after_loss`](Self::after_loss). Sleeps.
    pub(super) fn after_reset(
        controller: &'a Controller,
        association: KBox<Association>,
        before: &'a ScanContext,
    ) -> Option<Reconnected> {
        controller.log(format_args!("reset"));
        // Who asked for it has told the others.
        controller.queue_uevent(CtrlState::Resetting);
        before.namespaces.tag_set.quiesce();
        association.disable(controller);
        controller.reset_connection();
        controller.enter(CtrlState::Connecting, None);
        let deadline = Deadline::after(controller.settings().connect_timeout);
        let again = match controller.is_deleting() {
            true => Err(CtrlError::cancelled(ErrorStage::Connect)),
            false => Self::attempt(controller, before, deadline),
        };
        if again.is_ok() {
            Self::count(controller, |status| &mut status.resets);
        }
        let again = again.or_else(|failure| {
            if controller.is_over(&failure) {
                return Err(failure);
            }
            controller.warn(format_args!("reset: {}", failure.message()));
            controller.keep_error(&failure);
            Self::new(controller, before, FlapHistory::default()).run(failure)
        });
        Self::resume(controller, before, again)
    }

    /// Lets I/O through again, to the new connection or to fail.
    fn resume(
        controller: &Controller,
        before: &ScanContext,
        again: Result<Reconnected, CtrlError>,
    ) -> Option<Reconnected> {
        if let Ok(again) = &again {
            again.association.publish();
        }
        before.namespaces.tag_set.unquiesce();
        controller.status.update(|status| status.reconnect = None);
        match again {
            Ok(again) => return Some(again),
            // Nothing failed: nobody wants it any more.
            Err(_) if controller.is_deleting() => controller.release_device(),
            Err(failure) => controller.fail(&failure),
        }
        None
    }

    /// One attempt, which nothing is left of if it fails.
    #[inline(never)]
    fn attempt(
        controller: &Controller,
        before: &ScanContext,
        deadline: Deadline,
    ) -> Result<Reconnected, CtrlError> {
        let association = setup::reconnect(controller, before, deadline)?;
        let admin = controller.admin(&association.admin, deadline);
        // Scan work makes the other changes: here I/O is quiesced and must not be waited for.
        let context = &association.scan_context;
        let changed = ChangedNamespaces::default();
        let found = scan_work::scan(controller, &admin, context, changed).and_then(|found| {
            found.mark_gone(&controller.namespaces, controller)?;
            Ok(found)
        });
        match found {
            Ok(found) => Ok(Reconnected { association, found }),
            Err(failure) => {
                association.tear_down(InflightPolicy::Fail);
                Err(failure)
            }
        }
    }

    /// Counts that it is connected anew. It is told with the state.
    fn count(controller: &Controller, which: fn(&mut CtrlStatus) -> &mut u32) {
        controller.status.update(|status| {
            let count = which(status);
            *count = count.wrapping_add(1);
        });
    }

    /// Reconnecting that begins now, with I/O quiesced, after `history`.
    fn new(controller: &'a Controller, before: &'a ScanContext, history: FlapHistory) -> Self {
        Self {
            controller,
            before,
            status: ReconnectStatus {
                began: Instant::now(),
                progress: ReconnectProgress::new(history),
                next: None,
            },
        }
    }

    /// Tries until an attempt succeeds, or no other is wanted; then returns the last error. Sleeps.
    fn run(mut self, mut last: CtrlError) -> Result<Reconnected, CtrlError> {
        let controller = self.controller;
        loop {
            controller.reset_connection();
            let Some(limit) = self.pause() else {
                return Err(last);
            };
            self.status.progress.begin_attempt();
            self.show(None);
            controller.enter(CtrlState::Connecting, None);
            let deadline = Deadline::after(controller.settings().connect_timeout).min(limit);
            match Self::attempt(controller, self.before, deadline) {
                Ok(mut again) => {
                    let history = self.status.progress.connected(self.status.since_loss_ms());
                    again.association.after_loss = Some((history, Instant::now()));
                    Self::count(controller, |status| &mut status.reconnects);
                    return Ok(again);
                }
                Err(error) if controller.is_over(&error) => return Err(error),
                Err(error) => last = error,
            }
            controller.warn(format_args!(
                "attempt {} to connect again: {}",
                self.status.attempts(),
                last.message()
            ));
            controller.keep_error(&last);
        }
    }

    /// Sleeps until the next attempt, and returns when that must be over; `None` if there is no
    /// other. Settings that change meanwhile count at once.
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
                self.set_io(io);
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

    /// Holds I/O back, or lets it through to fail.
    fn set_io(&self, io: HeldIo) {
        let (tag_set, controller) = (&self.before.namespaces.tag_set, self.controller);
        match io {
            HeldIo::Quiesced => {
                tag_set.quiesce();
                controller.log(format_args!("I/O is held back again"));
            }
            HeldIo::Failing => {
                tag_set.unquiesce();
                controller.warn(format_args!("I/O is not held back any longer, but fails"));
            }
        }
    }

    /// Shows the progress, and when the next attempt begins.
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
