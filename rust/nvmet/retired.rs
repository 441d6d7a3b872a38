// SPDX-License-Identifier: GPL-2.0

//! Memory of requests that were dropped, which nvmet may still use.

use core::{
    mem,
    ptr::{
        self,
        NonNull, //
    },
    sync::atomic::{
        AtomicPtr,
        Ordering, //
    },
};

/// Link of a [`RetiredRequests`] list, in the memory of a request.
pub(crate) struct RetiredLink {
    next: *mut RetiredLink,
    /// Frees the memory that the link is in.
    free: unsafe fn(NonNull<RetiredLink>),
}

impl RetiredLink {
    /// Creates a link of memory that `free` frees.
    pub(crate) fn new(free: unsafe fn(NonNull<RetiredLink>)) -> Self {
        Self {
            next: ptr::null_mut(),
            free,
        }
    }
}

/// List of the memory of dropped requests of a submission queue.
///
/// A function of nvmet that uses the memory of a request for some instructions after the response, and after it has
/// returned its own reference to the submission queue, would use freed memory. So the memory is freed only after
/// [`SubmissionQueue::destroy`](crate::SubmissionQueue::destroy) has waited.
///
/// While the queue lives, the next command may use the slot of a request at once. So nvmet must end its use of a
/// request before the response: see [`Deferred`](crate::request::Deferred) and `prepared.rs`.
///
/// # Invariants
///
/// The pointer, and `next` of each link, is null or points to a link. This owns the memory of that link, which
/// its `free` may free.
pub(crate) struct RetiredRequests(AtomicPtr<RetiredLink>);

impl RetiredRequests {
    /// Creates an empty list.
    pub(crate) fn new() -> Self {
        // INVARIANT: There is none.
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Adds memory. Any context.
    ///
    /// # Safety
    ///
    /// The caller owns the memory that the link is in, and passes the ownership on. The function of the link
    /// frees this memory, also in another thread.
    pub(crate) unsafe fn push(&self, link: NonNull<RetiredLink>) {
        let link = link.as_ptr();
        let mut first = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: By the safety requirements, the link is owned. It is not yet in the list.
            unsafe { (*link).next = first };
            // INVARIANT: By the safety requirements. The list behind the link is that of `self`.
            let pushed =
                self.0
                    .compare_exchange_weak(first, link, Ordering::Release, Ordering::Relaxed);
            match pushed {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes all of the list; `None` if it is empty.
    pub(crate) fn take(&self) -> Option<Self> {
        let first = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        // INVARIANT: `self` is empty now.
        (!first.is_null()).then(|| Self(AtomicPtr::new(first)))
    }
}

impl Drop for RetiredRequests {
    fn drop(&mut self) {
        let mut first = mem::replace(self.0.get_mut(), ptr::null_mut());
        while let Some(link) = NonNull::new(first) {
            // SAFETY: By the type invariants, the link is owned, and freed once.
            unsafe {
                first = link.as_ref().next;
                let free = link.as_ref().free;
                free(link);
            }
        }
    }
}
