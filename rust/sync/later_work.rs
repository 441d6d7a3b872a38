// SPDX-License-Identifier: GPL-2.0

//! Work items for what a caller cannot do, because it must not sleep or wait.

use crate::bindings;
use core::mem::ManuallyDrop;
use kernel::{
    alloc::{
        AllocError,
        Flags, //
    },
    impl_has_work, new_work,
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue::{
        Queue,
        Work,
        WorkItem, //
    },
};

/// A function and the value that it is called with, once. The value leaks if it is not called.
pub(crate) struct LaterFn(KBox<dyn FnMut() + Send>);

impl LaterFn {
    /// Allocates with `flags`.
    ///
    /// # Errors
    ///
    /// `AllocError`: the value leaks.
    pub(crate) fn new<T: Send + 'static>(
        value: T,
        act: impl FnOnce(T) + Send + 'static,
        flags: Flags,
    ) -> Result<Self, AllocError> {
        let mut parts = Some((ManuallyDrop::new(value), act));
        let call = move || {
            if let Some((value, act)) = parts.take() {
                act(ManuallyDrop::into_inner(value));
            }
        };
        Ok(Self(KBox::new(call, flags)?))
    }

    /// Calls the function in a work item, where it may sleep for any time, and then drops `keeps`: code of the caller's
    /// module drops the function before. Any context that `flags` allow.
    ///
    /// `keeps` is what the unload of the function's module waits for. It is dropped by code of the caller's module, so
    /// that one must be this module: a caller is not generic, and not inlined.
    ///
    /// # Errors
    ///
    /// `AllocError`: the value of the function leaks.
    pub(crate) fn queue<K: Send + 'static>(self, keeps: K, flags: Flags) -> Result<(), AllocError> {
        let init = pin_init!(LaterWork {
            work <- new_work!("rrdma::LaterWork"),
            func: self,
            _keeps: keeps,
        });
        let work = KBox::pin_init(init, flags).map_err(|_| AllocError)?;
        // SAFETY: The kernel never destroys this queue. It is unbound: work may take any time.
        let queue = unsafe { Queue::from_raw(bindings::system_dfl_wq()) };
        queue.enqueue(work);
        Ok(())
    }
}

/// A work item that calls a function. The fields are dropped in their order.
#[pin_data]
struct LaterWork<K> {
    #[pin]
    work: Work<LaterWork<K>>,
    func: LaterFn,
    _keeps: K,
}

impl_has_work! {
    impl{K} HasWork<Self> for LaterWork<K> { self.work }
}

impl<K: Send + 'static> WorkItem for LaterWork<K> {
    type Pointer = Pin<KBox<Self>>;

    fn run(mut this: Pin<KBox<Self>>) {
        (this.as_mut().project().func.0)();
    }
}

/// Number of work items of [`later`] that are queued or run.
static PENDING: Atomic<u32> = Atomic::new(0);

/// Counted in [`PENDING`] while it exists.
struct Pending;

impl Pending {
    fn new() -> Self {
        PENDING.fetch_add(1, ordering::Relaxed);
        Self
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Pairs with the load in `wait_for_later`.
        PENDING.fetch_sub(1, ordering::Release);
    }
}

/// Calls `act` with `value` in a work item, which may sleep for any time. Any context.
///
/// Both are of this module, and so is the caller, which is not inlined into others: their unload does not wait for it.
///
/// # Errors
///
/// `AllocError`: without memory, `value` leaks.
pub(crate) fn later<T: Send + 'static>(
    value: T,
    act: impl FnOnce(T) + Send + 'static,
) -> Result<(), AllocError> {
    LaterFn::new(value, act, GFP_ATOMIC)?.queue(Pending::new(), GFP_ATOMIC)
}

/// Waits until all functions of [`later`] have been called. The last work item may not have returned yet.
///
/// The exit of this module calls it, and waits for the return of that work item separately. The drivers are gone by
/// then, so nothing queues another one. May sleep.
pub(crate) fn wait_for_later() {
    while PENDING.load(ordering::Acquire) != 0 {
        fsleep(Delta::from_millis(1));
    }
}
