// SPDX-License-Identifier: GPL-2.0

//! A reference to a controller that does not keep it alive.

use crate::bindings;
use core::{
    mem,
    ptr::NonNull, //
};
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

/// A controller and its work items.
///
/// # Invariants
///
/// All are valid until [`WeakController::unbind`].
struct Target {
    ctrl: NonNull<bindings::nvme_ctrl>,
    recovery: NonNull<bindings::work_struct>,
    abort: NonNull<bindings::work_struct>,
    /// A connection was lost while the controller was not live.
    lost: bool,
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
            lost: false,
        });
    }

    /// Makes this empty. When it returns, no call uses the controller. Any context.
    pub(crate) fn unbind(&self) {
        *self.target.lock() = None;
    }

    /// Reports the loss of a connection, and starts error recovery if the controller is live. Any
    /// context.
    ///
    /// In any other state, a sequence of this crate or of nvme-core may wait for a command, which
    /// is cancelled. If the sequence makes the controller live, recovery starts then.
    pub fn report_error(&self, cause: fmt::Arguments<'_>) {
        let mut target = self.target.lock();
        let Some(target) = &mut *target else {
            return;
        };
        if target.recover(cause) {
            return;
        }
        let is_first = !mem::replace(&mut target.lost, true);
        // Also if it is not the first: for a loss that was only noted, the work item was not queued, and another
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

    /// Notes that the caller ends a connection while the controller is not live. The caller disconnects the
    /// queue, then calls [`recover_if_lost`](Self::recover_if_lost): the controller may have become live since.
    /// Any context.
    pub(crate) fn note_loss(&self) {
        if let Some(target) = &mut *self.target.lock() {
            target.lost = true;
        }
    }

    /// Returns whether a connection was lost since [`forget_losses`](Self::forget_losses). Any
    /// context.
    pub(crate) fn is_lost(&self) -> bool {
        self.target
            .lock()
            .as_ref()
            .is_some_and(|target| target.lost)
    }

    /// Forgets the losses of connections that have ended. Called when all queues are disconnected. Any context.
    pub(crate) fn forget_losses(&self) {
        if let Some(target) = &mut *self.target.lock() {
            target.lost = false;
        }
    }

    /// Starts error recovery if a connection was lost before the controller became live. Any
    /// context.
    pub(crate) fn recover_if_lost(&self) {
        if let Some(target) = self.target.lock().as_ref().filter(|target| target.lost) {
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
