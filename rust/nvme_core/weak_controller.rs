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

/// A controller and the work item that recovers it.
///
/// # Invariants
///
/// Both are valid until [`WeakController::unbind`].
struct Target {
    ctrl: NonNull<bindings::nvme_ctrl>,
    recovery: NonNull<bindings::work_struct>,
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

    /// Makes this refer to a controller.
    ///
    /// # Safety
    ///
    /// `ctrl` is initialised by `nvme_init_ctrl()` and `recovery` by `INIT_WORK()`. Both stay valid
    /// until [`unbind`](Self::unbind).
    pub(crate) unsafe fn bind(
        &self,
        ctrl: NonNull<bindings::nvme_ctrl>,
        recovery: NonNull<bindings::work_struct>,
    ) {
        // INVARIANT: By the safety requirements of this function.
        *self.target.lock() = Some(Target { ctrl, recovery });
    }

    /// Makes this empty. When it returns, no call uses the controller.
    pub(crate) fn unbind(&self) {
        *self.target.lock() = None;
    }

    /// Reports the loss of a connection, and starts error recovery if the controller is live. Any
    /// context.
    ///
    /// In any other state, the connection belongs to a sequence of this crate, whose next command
    /// fails.
    pub fn report_error(&self, cause: fmt::Arguments<'_>) {
        let target = self.target.lock();
        let Some(target) = target.as_ref() else {
            return;
        };
        let ctrl = target.ctrl.as_ptr();
        // SAFETY: By the invariants of `Target`, both are valid while the lock is held. The
        // functions may be called in any context. The controller has a device since it was
        // initialised.
        unsafe {
            if !bindings::nvme_change_ctrl_state(
                ctrl,
                bindings::nvme_ctrl_state_NVME_CTRL_RESETTING,
            ) {
                return;
            }
            let device: &Device = Device::from_raw((*ctrl).device);
            dev_warn!(device, "{}: starting error recovery\n", cause);
            bindings::queue_recovery(target.recovery.as_ptr());
        }
    }

    /// Passes the response to an Asynchronous Event Request to nvme-core, which asks for another
    /// request. Any context. C: `nvme_complete_async_event()`.
    pub fn complete_async_event(&self, status: u16, result: u64) {
        if let Some(target) = self.target.lock().as_ref() {
            // SAFETY: By the invariants of `Target`, the controller is valid while the lock is
            // held. The function may be called in any context.
            unsafe { bindings::complete_async_event(target.ctrl.as_ptr(), status, result) };
        }
    }
}
