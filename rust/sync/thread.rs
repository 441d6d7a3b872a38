// SPDX-License-Identifier: GPL-2.0

//! Kernel threads.
//!
//! C header: [`include/linux/kthread.h`](srctree/include/linux/kthread.h)

use super::TimedCompletion;
use crate::bindings;
use kernel::{error::from_err_ptr, fmt, prelude::*, str::CString};

/// A kernel thread that ends by itself. Dropping this waits for its end.
///
/// It is for long-running or long-sleeping work, which would keep other work of a workqueue from
/// running. After the drop, the thread runs no code of the module. So a module that keeps this
/// until it exits is not unloaded while the thread runs. A thread must not drop its own `Thread`,
/// as it would wait for itself.
///
/// # Invariants
///
/// A thread completes `over` once, as its last action.
pub struct Thread {
    name: CString,
    over: Pin<KBox<TimedCompletion>>,
}

/// Argument of a new thread.
struct Start<F> {
    life: F,
    /// Valid until it is completed.
    over: *mut bindings::completion,
}

impl Thread {
    /// Starts a thread that runs `life`. The kernel shows the first 15 bytes of the name where it
    /// cannot show more. Sleeps. C: `kthread_run()`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINTR` if the calling process is killed.
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
        // SAFETY: The name is a C string, which is copied. A thread runs `main` once, because
        // nothing stops it before, and `main` then owns `start`.
        let task = unsafe {
            bindings::kthread_run(Some(Self::main::<F>), start.cast(), name.as_char_ptr())
        };
        if let Err(error) = from_err_ptr(task) {
            // SAFETY: `start` is from a box, and no thread was started.
            drop(unsafe { KBox::from_raw(start) });
            return Err(error);
        }
        // INVARIANT: The thread was started, and `main` completes `over`.
        Ok(Self { name, over })
    }

    /// Returns whether the thread has ended, so that dropping this does not wait. Any context.
    pub fn is_over(&self) -> bool {
        self.over.is_completed()
    }

    /// Main function of the thread.
    ///
    /// # Safety
    ///
    /// Called by the thread, with a boxed `Start<F>` that it owns. The completion is valid until it
    /// is completed.
    unsafe extern "C" fn main<F: FnOnce()>(start: *mut c_void) -> c_int {
        // SAFETY: By the safety requirements of this function, `start` is a box that this thread
        // owns.
        let start = unsafe { KBox::from_raw(start.cast::<Start<F>>()) };
        let Start { life, over } = KBox::into_inner(start);
        life();
        // SAFETY: By the safety requirements of this function, `over` is valid. The thread runs no
        // code of the module afterwards.
        unsafe { bindings::kthread_complete_and_exit(over, 0) }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.over.wait_or(|| {
            pr_warn!(
                "has waited for 10 s for the end of the thread {}\n",
                &*self.name
            );
        });
    }
}
