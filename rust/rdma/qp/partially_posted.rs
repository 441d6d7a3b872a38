// SPDX-License-Identifier: GPL-2.0

//! Operations of which only the first requests could be posted.
//!
//! The device works on those, so the operation cannot be given back; but no request
//! completes it. It waits until its queue pair is drained, and is then completed as
//! what was flushed is.

use crate::{
    bindings,
    new_irq_lock,
    sync::IrqLock, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    prelude::*,
    types::Opaque, //
};

/// What is ahead of the memory of an operation. The completion entry comes first,
/// so its address is that of the whole.
#[repr(C)]
pub(in crate::rdma) struct CqeNode {
    cqe: Opaque<bindings::ib_cqe>,
    /// The next one of a list, while it is in one.
    next: *mut CqeNode,
}

// SAFETY: The pointer is used by a list only, which is behind a lock.
unsafe impl Send for CqeNode {}

impl CqeNode {
    pub(in crate::rdma) fn new() -> Self {
        Self {
            cqe: Opaque::zeroed(),
            next: ptr::null_mut(),
        }
    }

    #[inline]
    pub(in crate::rdma) fn cqe(&self) -> *mut bindings::ib_cqe {
        self.cqe.get()
    }
}

/// A list of entries.
///
/// # Invariants
///
/// The entries from the first one on belong to the list; each has its `done` set.
struct List(*mut CqeNode);

// SAFETY: The entries belong to the list, and operations are `Send`.
unsafe impl Send for List {}

/// The partially posted operations of a queue pair.
#[pin_data]
pub(in crate::rdma) struct PartiallyPosted {
    #[pin]
    list: IrqLock<List>,
}

impl PartiallyPosted {
    pub(super) fn new() -> impl PinInit<Self> {
        // INVARIANT: An empty list.
        pin_init!(Self {
            list <- new_irq_lock!(List(ptr::null_mut()), "rrdma::PartiallyPosted"),
        })
    }

    /// Takes an operation in. Any context.
    ///
    /// # Safety
    ///
    /// `entry` must be that of a posted operation, which nobody else completes.
    pub(in crate::rdma) unsafe fn add(&self, entry: NonNull<CqeNode>) {
        let mut list = self.list.lock();
        // SAFETY: By the contract the entry is ours.
        unsafe { (*entry.as_ptr()).next = list.0 };
        // INVARIANT: By the contract.
        list.0 = entry.as_ptr();
    }

    /// Completes the operations as flushed, in the context of handlers of their completion
    /// queue. May sleep if these may.
    ///
    /// # Safety
    ///
    /// No request of the operations may be posted on `qp`, which is theirs, any more.
    pub(super) unsafe fn flush(&self, qp: *mut bindings::ib_qp) {
        // INVARIANT: The list is empty, and the entries are ours.
        let mut first = core::mem::replace(&mut self.list.lock().0, ptr::null_mut());
        while let Some(entry) = NonNull::new(first) {
            // SAFETY: The entry is ours until it is completed, once; its completion
            // takes one of `qp`, which by the contract has none left to come.
            unsafe {
                first = (*entry.as_ptr()).next;
                bindings::ib_complete_flushed(qp, entry.as_ptr().cast());
            }
        }
    }
}
