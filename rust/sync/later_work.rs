// SPDX-License-Identifier: GPL-2.0

//! Work that this module leaves to a work item.

use crate::bindings;
use kernel::{
    alloc::AllocError,
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

/// Number of work items that are queued or run.
static PENDING: Atomic<u32> = Atomic::new(0);

/// A work item that calls a function of this module.
#[pin_data]
struct LaterWork {
    #[pin]
    work: Work<LaterWork>,
    func: KBox<dyn FnMut() + Send>,
}

impl_has_work! {
    impl HasWork<Self> for LaterWork { self.work }
}

impl WorkItem for LaterWork {
    type Pointer = Pin<KBox<Self>>;

    fn run(mut this: Pin<KBox<Self>>) {
        (this.as_mut().project().func)();
        drop(this);
        // Pairs with the load in `wait_for_later`.
        PENDING.fetch_sub(1, ordering::Release);
    }
}

/// Calls `func` in a work item, which may sleep for any time. Any context.
///
/// The function and its type are of this module, and so is its caller, which is not inlined into others: their unload
/// does not wait for it.
///
/// # Errors
///
/// `AllocError`: without memory, `func` is dropped.
#[inline(never)]
pub(crate) fn later(func: impl FnMut() + Send + 'static) -> Result<(), AllocError> {
    let func: KBox<dyn FnMut() + Send> = KBox::new(func, GFP_ATOMIC)?;
    let init = pin_init!(LaterWork {
        work <- new_work!("rrdma::later"),
        func,
    });
    let work = KBox::pin_init(init, GFP_ATOMIC).map_err(|_| AllocError)?;
    PENDING.fetch_add(1, ordering::Relaxed);
    // SAFETY: The kernel never destroys this queue. It is unbound: work may take any time.
    let queue = unsafe { Queue::from_raw(bindings::system_dfl_wq()) };
    queue.enqueue(work);
    Ok(())
}

/// Waits until all functions have been called. The last work item may not have returned yet.
///
/// The exit of this module calls it, and waits for the return of that work item separately. The drivers are gone by
/// then, so nothing queues another one. May sleep.
pub(crate) fn wait_for_later() {
    while PENDING.load(ordering::Acquire) != 0 {
        fsleep(Delta::from_millis(1));
    }
}
