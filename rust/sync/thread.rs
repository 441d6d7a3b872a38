// SPDX-License-Identifier: GPL-2.0

//! Kernel threads.
//!
//! C header: [`include/linux/kthread.h`](srctree/include/linux/kthread.h)

use super::TimedCompletion;
use crate::bindings;
use kernel::{error::from_err_ptr, fmt, prelude::*, str::CString};

/// A kernel thread that ends by itself, and is waited for when this is dropped.
///
/// It is for what lasts or sleeps for long, which on a workqueue would keep others from running.
/// When the drop returns, the thread runs nothing of the module that started it any more: one
/// that keeps this until it exits is not unloaded under its own code. A thread must not drop
/// itself, it would wait for itself.
///
/// # Invariants
///
/// There is a thread that completes `over` once, as the last that it does.
pub struct Thread {
    over: Pin<KBox<TimedCompletion>>,
}

/// What a thread starts with.
struct Start<F> {
    life: F,
    /// Valid until it is completed.
    over: *mut bindings::completion,
}

impl Thread {
    /// Starts a thread that runs `life`. The kernel shows the first 15 bytes of the name where
    /// there is no room for more. Sleeps. C: `kthread_run`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINTR` if the process that asks is killed.
    pub fn spawn<F>(name: fmt::Arguments<'_>, life: F) -> Result<Self>
    where
        F: FnOnce() + Send + 'static,
    {
        let name = CString::try_from_fmt(name)?;
        let over = KBox::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let start = Start {
            life,
            over: over.as_raw(),
        };
        let start = KBox::into_raw(KBox::new(start, GFP_KERNEL)?);
        // SAFETY: The name is a C string, which is copied. If there is a thread it runs `main`,
        // once, for nobody stops it; `start` is then its own.
        let task = unsafe {
            bindings::kthread_run(Some(Self::main::<F>), start.cast(), name.as_char_ptr())
        };
        if let Err(error) = from_err_ptr(task) {
            // SAFETY: It is from a box, and there is no thread that would use it.
            drop(unsafe { KBox::from_raw(start) });
            return Err(error);
        }
        // INVARIANT: It was just started, and `main` completes.
        Ok(Self { over })
    }

    /// Whether it has ended, so that to drop it is to wait for nothing. Any context.
    pub fn is_over(&self) -> bool {
        self.over.is_completed()
    }

    /// # Safety
    ///
    /// Called by the thread, with a boxed `Start<F>` that is its own, and whose completion is
    /// valid until it is completed.
    unsafe extern "C" fn main<F: FnOnce()>(start: *mut c_void) -> c_int {
        // SAFETY: By the contract.
        let start = unsafe { KBox::from_raw(start.cast::<Start<F>>()) };
        let Start { life, over } = KBox::into_inner(start);
        life();
        // SAFETY: By the contract. From here on nothing is run but the kernel's own code.
        unsafe { bindings::kthread_complete_and_exit(over, 0) }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.over.wait();
    }
}
