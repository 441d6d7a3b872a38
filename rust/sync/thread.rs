// SPDX-License-Identifier: GPL-2.0

//! Kernel threads.
//!
//! C header: [`include/linux/kthread.h`](srctree/include/linux/kthread.h)

use super::{
    drop_later,
    new_mutex,
    DropsLater,
    ModuleUse,
    SleepingDrop,
    TimedCompletion,
    UseKind, //
};
use crate::bindings;
use core::panic::Location;
use kernel::{
    error::from_err_ptr,
    fmt,
    prelude::*,
    str::CString,
    sync::{
        Arc,
        Mutex, //
    },
};

/// A kernel thread. Dropping this tells it to stop, and waits for its end.
///
/// It is for long-running or long-sleeping work, which would keep other work of a workqueue from
/// running. The module that started it is not unloaded while the thread runs code of it, even if
/// this is leaked. A thread must not drop its own `Thread`, as it would wait for itself. In atomic context, a work item
/// stops it and waits.
pub struct Thread(SleepingDrop<Started>);

/// A thread that was started. Dropping this waits for its end.
///
/// # Invariants
///
/// A thread completes `over` of `shared` once, as its last action.
struct Started {
    name: CString,
    shared: Pin<KBox<Shared>>,
}

/// State that a thread shares with its [`Thread`].
#[pin_data]
struct Shared {
    /// Has the thread end; `None` when the thread is about to end.
    #[pin]
    stop: Mutex<Option<StopFn>>,
    #[pin]
    over: TimedCompletion,
}

/// Has a thread end. The fields are dropped in their order.
struct StopFn {
    act: KBox<dyn Fn() + Send>,
    /// That of the thread, which may end first.
    _module: Arc<ModuleUse>,
}

/// Argument of a new thread.
struct Start {
    life: KBox<dyn FnMut() + Send>,
    /// Valid until its `over` is completed.
    shared: *const Shared,
    module: Arc<ModuleUse>,
}

impl Thread {
    /// Starts a thread that runs `life`. The kernel shows the first 15 bytes of the name where it
    /// cannot show more. Sleeps. C: `kthread_run()`.
    ///
    /// `stop` must make `life` return soon: set a flag that it reads, and complete what it waits
    /// for. Dropping the `Thread` calls it once, where it may sleep, unless the thread has ended
    /// by itself. So an error that drops a `Thread` which nobody has stopped does not wait without
    /// end. `stop` is dropped when the thread ends.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINTR` if the calling process is killed.
    #[track_caller]
    pub fn spawn<F>(
        name: fmt::Arguments<'_>,
        stop: impl Fn() + Send + 'static,
        life: F,
    ) -> Result<Self>
    where
        F: FnOnce() + Send + 'static,
    {
        let module = ModuleUse::new(UseKind::Thread, Location::caller())?;
        let mut life = Some(life);
        let life = move || {
            if let Some(life) = life.take() {
                life();
            }
        };
        Self::start(
            CString::try_from_fmt(name)?,
            KBox::new(stop, GFP_KERNEL)?,
            KBox::new(life, GFP_KERNEL)?,
            Arc::new(module, GFP_KERNEL)?,
        )
    }

    /// Starts a thread. Not inlined into the module that starts it, so that `main` is of this one.
    #[inline(never)]
    fn start(
        name: CString,
        act: KBox<dyn Fn() + Send>,
        life: KBox<dyn FnMut() + Send>,
        module: Arc<ModuleUse>,
    ) -> Result<Self> {
        let stop = StopFn {
            act,
            _module: module.clone(),
        };
        let shared = KBox::pin_init(
            pin_init!(Shared {
                stop <- new_mutex!(Some(stop), "rrdma::Thread"),
                over <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )?;
        let start = Start {
            life,
            shared: &raw const *shared,
            module,
        };
        let start = KBox::into_raw(KBox::new(start, GFP_KERNEL)?);
        // SAFETY: The name is a C string, which is copied. A thread runs `main` once, because
        // nothing stops it before, and `main` then owns `start`.
        let task =
            unsafe { bindings::kthread_run(Some(Self::main), start.cast(), name.as_char_ptr()) };
        if let Err(error) = from_err_ptr(task) {
            // SAFETY: `start` is from a box, and no thread was started.
            drop(unsafe { KBox::from_raw(start) });
            return Err(error);
        }
        // INVARIANT: The thread was started, and `main` completes `over`.
        Ok(Self(SleepingDrop::new(Started { name, shared })))
    }

    /// Returns whether the thread has ended, so that dropping this does not wait. Any context.
    pub fn is_over(&self) -> bool {
        self.0.shared.over.is_completed()
    }

    /// Main function of the thread. It is of this module: that of the consumer may be unloaded when its use is dropped.
    ///
    /// # Safety
    ///
    /// Called by the thread, with a boxed `Start` that it owns. What it shares is valid until `over`
    /// is completed.
    #[inline(never)]
    unsafe extern "C" fn main(start: *mut c_void) -> c_int {
        // SAFETY: By the safety requirements of this function, `start` is a box that this thread
        // owns.
        let start = unsafe { KBox::from_raw(start.cast::<Start>()) };
        let Start {
            mut life,
            shared,
            module,
        } = KBox::into_inner(start);
        life();
        drop(life);
        // SAFETY: By the safety requirements of this function, `shared` is valid.
        let Shared { stop, over } = unsafe { &*shared };
        let stop = stop.lock().take();
        drop(stop);
        drop(module);
        // SAFETY: `over` is valid. The thread runs no code of this module afterwards.
        unsafe { bindings::kthread_complete_and_exit(over.as_raw(), 0) }
    }
}

impl DropsLater for Started {
    #[inline(never)]
    fn drop_later(self) {
        drop_later("thread", self);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Called without the lock, which the thread takes at its end.
        let stop = self.shared.stop.lock().take();
        if let Some(stop) = stop {
            (stop.act)();
        }
        self.shared.over.wait_or(|| {
            pr_warn!(
                "has waited for 10 s for the end of the thread {}\n",
                &*self.name
            );
        });
    }
}
