// SPDX-License-Identifier: GPL-2.0

//! A reference to a controller that does not keep it alive.

use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    device::Device,
    fmt,
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    new_irq_lock,
    sync::IrqLock, //
};

/// Number of an association of a controller with its target. Each set-up of a controller has the next one.
///
/// A thread may be so slow that a controller is set up again meanwhile. Whatever it then does to a connection must
/// not affect the new one, so it names the association.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AssociationNumber(u32);

/// Queues whose connections were lost since the set-up began.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Losses {
    /// None.
    None,
    /// That of one queue.
    Queue {
        /// The queue.
        qid: u16,
    },
    /// Those of several queues, or perhaps of all.
    Several,
}

impl Losses {
    /// Returns the losses with that of `qid`; of all queues, if it is `None`.
    fn and(self, qid: Option<u16>) -> Self {
        match (self, qid) {
            (Self::None, Some(qid)) => Self::Queue { qid },
            (Self::Queue { qid: lost }, Some(qid)) if lost == qid => self,
            _ => Self::Several,
        }
    }
}

/// Returns whether a controller in this state is being deleted.
pub(crate) fn is_deletion(state: bindings::nvme_ctrl_state) -> bool {
    matches!(
        state,
        bindings::nvme_ctrl_state_NVME_CTRL_DELETING
            | bindings::nvme_ctrl_state_NVME_CTRL_DELETING_NOIO
    )
}

/// What becomes of a command that timed out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimedOut {
    /// Error recovery has started.
    Recovers,
    /// The controller is not live: the caller disconnects the queue in this association, then calls
    /// [`WeakController::recover_if_lost`], since the controller may have become live meanwhile.
    Disconnect,
    /// The association has ended, and the command with it.
    Ended,
}

/// A controller and its work items.
///
/// # Invariants
///
/// All are valid until [`WeakController::unbind`].
struct Target {
    ctrl: NonNull<bindings::nvme_ctrl>,
    recovery: NonNull<bindings::work_struct>,
    abort: NonNull<bindings::work_struct>,
    /// The latest association.
    association: AssociationNumber,
    /// Connections of it that were lost while the controller was not live.
    losses: Losses,
}

impl Target {
    /// Starts error recovery if the controller is live; returns whether it has started.
    fn recover(&self, cause: fmt::Arguments<'_>) -> bool {
        let ctrl = self.ctrl.as_ptr();
        // SAFETY: By the type invariants, all are valid. The functions may be called in any
        // context.
        unsafe {
            if !bindings::nvme_change_ctrl_state(
                ctrl,
                bindings::nvme_ctrl_state_NVME_CTRL_RESETTING,
            ) {
                return false;
            }
            dev_warn!(self.device(), "{}: starting error recovery\n", cause);
            bindings::queue_reset_work(self.recovery.as_ptr());
        }
        true
    }

    /// Returns the device of the controller, for messages.
    fn device(&self) -> &Device {
        // SAFETY: By the type invariants, the controller is valid. It has a device since it was
        // initialised.
        unsafe { Device::from_raw((*self.ctrl.as_ptr()).device) }
    }
}

// SAFETY: The C functions that get the pointers may be called from any thread.
unsafe impl Send for Target {}

/// A reference to a controller for the queues of its transport.
///
/// The queues belong to the controller, so a counted reference would be a cycle. This one becomes
/// empty before the controller is freed.
#[pin_data]
pub struct WeakController {
    #[pin]
    target: IrqLock<Option<Target>>,
}

impl WeakController {
    /// Creates a reference that is empty until it is [bound](Self::bind). May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                target <- new_irq_lock!(None, "nvme_core::WeakController"),
            }),
            GFP_KERNEL,
        )
    }

    /// Makes this refer to a controller. Any context.
    ///
    /// # Safety
    ///
    /// `ctrl` is initialised by `nvme_init_ctrl()`, the work items by `INIT_WORK()`. All stay valid
    /// until [`unbind`](Self::unbind).
    pub(crate) unsafe fn bind(
        &self,
        ctrl: NonNull<bindings::nvme_ctrl>,
        recovery: NonNull<bindings::work_struct>,
        abort: NonNull<bindings::work_struct>,
    ) {
        // INVARIANT: By the safety requirements of this function.
        *self.target.lock() = Some(Target {
            ctrl,
            recovery,
            abort,
            association: AssociationNumber::default(),
            losses: Losses::None,
        });
    }

    /// Makes this empty. When it returns, no call uses the controller. Any context.
    pub(crate) fn unbind(&self) {
        *self.target.lock() = None;
    }

    /// Reports the loss of the connection of `qid`, or of all if that is `None`. Starts error recovery if the
    /// controller is live. Any context.
    ///
    /// In any other state, a sequence of this crate or of nvme-core may wait for a command, which
    /// is cancelled. If the sequence makes the controller live, recovery starts then.
    pub fn report_error(&self, qid: Option<u16>, cause: fmt::Arguments<'_>) {
        let mut target = self.target.lock();
        let Some(target) = &mut *target else {
            return;
        };
        if target.recover(cause) {
            return;
        }
        let is_first = target.losses == Losses::None;
        target.losses = target.losses.and(qid);
        // Also if it is not the first: for a command that timed out, the work item was not queued, and another
        // queue may have a command for which a sequence waits.
        //
        // SAFETY: By the invariants of `Target`, all are valid. The functions may be called in any
        // context.
        let state = unsafe {
            bindings::queue_reset_work(target.abort.as_ptr());
            bindings::ctrl_state(target.ctrl.as_ptr())
        };
        // In the state RESETTING, the first cause has been logged.
        if is_first && state != bindings::nvme_ctrl_state_NVME_CTRL_RESETTING {
            dev_warn!(target.device(), "{}\n", cause);
        }
    }

    /// Reports that a command of an association timed out on queue `qid`. Starts error recovery if the controller
    /// is live. Otherwise notes the loss, and calls `refuse`, which lets the queue, and those that are stopped with
    /// it, admit nothing. Any context.
    pub(crate) fn time_out(
        &self,
        association: AssociationNumber,
        qid: u16,
        refuse: impl FnOnce(),
    ) -> TimedOut {
        let mut target = self.target.lock();
        let Some(target) = &mut *target else {
            return TimedOut::Ended;
        };
        if target.association != association {
            return TimedOut::Ended;
        }
        if target.recover(format_args!("command on queue {qid} timed out")) {
            return TimedOut::Recovers;
        }
        target.losses = target.losses.and(Some(qid));
        // With the lock held: the next association has not begun.
        refuse();
        TimedOut::Disconnect
    }

    /// Returns whether the controller is being deleted. Any context.
    pub fn is_deleted(&self) -> bool {
        let target = self.target.lock();
        // SAFETY: By the invariants of `Target`, the controller is valid.
        let state = |target: &Target| unsafe { bindings::ctrl_state(target.ctrl.as_ptr()) };
        target.as_ref().map(state).is_some_and(is_deletion)
    }

    /// Returns the connections that were lost since [`begin_association`](Self::begin_association). Any
    /// context.
    pub(crate) fn losses(&self) -> Losses {
        let target = self.target.lock();
        target.as_ref().map_or(Losses::None, |target| target.losses)
    }

    /// Returns the number of the latest association. Any context.
    pub(crate) fn association(&self) -> AssociationNumber {
        let target = self.target.lock();
        target
            .as_ref()
            .map(|target| target.association)
            .unwrap_or_default()
    }

    /// Begins the next association, and forgets the losses of the last one. Called when all queues are
    /// disconnected. Any context.
    pub(crate) fn begin_association(&self) {
        if let Some(target) = &mut *self.target.lock() {
            target.association.0 = target.association.0.wrapping_add(1);
            target.losses = Losses::None;
        }
    }

    /// Starts error recovery if a connection was lost before the controller became live. Any
    /// context.
    pub(crate) fn recover_if_lost(&self) {
        let target = self.target.lock();
        if let Some(target) = target
            .as_ref()
            .filter(|target| target.losses != Losses::None)
        {
            target.recover(format_args!(
                "a connection was lost before the controller was live"
            ));
        }
    }

    /// Passes the response to an Asynchronous Event Request to nvme-core, which asks for another
    /// request. `status` has 15 bits, without the phase tag; `result` is dwords 0 and 1 of the
    /// entry. Any context. C: `nvme_complete_async_event()`.
    pub fn complete_async_event(&self, status: u16, result: u64) {
        if let Some(target) = self.target.lock().as_ref() {
            // SAFETY: By the invariants of `Target`, the controller is valid while the lock is
            // held. The function may be called in any context.
            unsafe { bindings::complete_async_event(target.ctrl.as_ptr(), status, result) };
        }
    }
}
