// SPDX-License-Identifier: GPL-2.0

//! Partially posted operations: only their first work requests could be posted.
//!
//! The device executes these work requests, so the operation cannot be returned to the caller. But
//! none of them completes the operation, as only the last work request of an operation does. So the
//! operation waits until its queue pair is drained, and then completes as flushed.

use crate::{
    bindings,
    new_irq_lock,
    sync::IrqLock, //
};
use core::{
    cell::Cell,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    prelude::*,
    types::Opaque, //
};

/// Data for the completion function of an operation. The function determines which field is set.
#[derive(Clone, Copy)]
pub(in crate::rdma) union ForCompletion {
    /// Credits of the send queue that the operation returns.
    pub(in crate::rdma) credits: u32,
    /// Set if the RDMA read or write of the operation fails.
    pub(in crate::rdma) failed: *const Cell<bool>,
}

/// Header of an operation's memory. The completion entry is the first member, so it has the address
/// of the whole operation.
#[repr(C)]
pub(in crate::rdma) struct CqeNode {
    cqe: Opaque<bindings::ib_cqe>,
    pub(in crate::rdma) for_completion: ForCompletion,
    /// Next entry, while this one is in a list.
    next: *mut CqeNode,
}

// SAFETY: Only a list uses `next`, and a lock protects the list. `failed` is used only by the completion
// function that is set with it, while the operation owns what it points to.
unsafe impl Send for CqeNode {}

impl CqeNode {
    #[inline]
    pub(in crate::rdma) fn new() -> Self {
        Self {
            cqe: Opaque::zeroed(),
            for_completion: ForCompletion { credits: 0 },
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
/// The list owns its entries, starting with the first one. Each has its `done` function set.
struct List(*mut CqeNode);

// SAFETY: The list owns its entries, and operations are `Send`.
unsafe impl Send for List {}

/// The partially posted operations of a queue pair.
#[pin_data]
pub(in crate::rdma) struct PartiallyPosted {
    #[pin]
    list: IrqLock<List>,
}

impl PartiallyPosted {
    pub(super) fn new() -> impl PinInit<Self> {
        // INVARIANT: The list is empty.
        pin_init!(Self {
            list <- new_irq_lock!(List(ptr::null_mut()), "rrdma::PartiallyPosted"),
        })
    }

    /// Adds an operation to the list. Any context.
    ///
    /// # Safety
    ///
    /// `entry` must be that of a posted operation, which nothing else completes.
    pub(in crate::rdma) unsafe fn add(&self, entry: NonNull<CqeNode>) {
        let mut list = self.list.lock();
        // SAFETY: By the safety requirements nobody else uses the entry.
        unsafe { (*entry.as_ptr()).next = list.0 };
        // INVARIANT: By the safety requirements the list now owns the entry. Posting set its
        // `done`.
        list.0 = entry.as_ptr();
    }

    /// Completes all operations as flushed, in the context of the handlers of their completion
    /// queue. May sleep unless that context is a softirq.
    ///
    /// # Safety
    ///
    /// `qp` must be the queue pair of this list, and no work request of the operations may still be
    /// posted on it.
    pub(super) unsafe fn flush(&self, qp: *mut bindings::ib_qp) {
        // INVARIANT: The list is now empty, and this function owns the entries.
        let mut first = core::mem::replace(&mut self.list.lock().0, ptr::null_mut());
        while let Some(entry) = NonNull::new(first) {
            // SAFETY: This function owns the entry until it completes it, once. The completion is
            // of `qp`, where by the safety requirements no other completion of the operation can
            // follow.
            unsafe {
                first = (*entry.as_ptr()).next;
                bindings::ib_complete_flushed(qp, entry.as_ptr().cast());
            }
        }
    }
}
