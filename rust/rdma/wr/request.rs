// SPDX-License-Identifier: GPL-2.0

//! Work request of a send queue, in C's layout.

use crate::{
    bindings,
    rdma::mr::{
        RegisterWr,
        State, //
    },
};
use core::{
    cell::Cell,
    mem::offset_of,
    ptr::{
        self,
        NonNull, //
    },
};

/// A work request of any opcode. All variants start with `struct ib_send_wr`, whose `opcode`
/// selects the variant.
#[repr(C)]
pub(super) union Kind {
    pub(super) common: bindings::ib_send_wr,
    /// RDMA read or write.
    pub(super) remote: bindings::ib_rdma_wr,
    pub(super) atomic: bindings::ib_atomic_wr,
    pub(super) datagram: bindings::ib_ud_wr,
    pub(super) register: bindings::ib_reg_wr,
}

/// A work request, and the state of a region that posting it changes.
///
/// # Invariants
///
/// - The work request is well-formed, except for its completion entry and the link of the last one
///   in a list.
/// - `state` is null, or points to the state of a region that is borrowed until the work request is
///   posted.
#[repr(C)]
pub(super) struct Request {
    state: *const Cell<State>,
    kind: Kind,
}

// The work request of a region has `state` at the same distance.
const _: () = {
    assert!(offset_of!(Request, state) == 0 && offset_of!(RegisterWr, state) == 0);
    assert!(offset_of!(Request, kind) == offset_of!(RegisterWr, wr));
};

impl Request {
    #[inline]
    pub(super) fn new(kind: Kind) -> Self {
        // INVARIANT: `state` is null.
        Self {
            kind,
            state: ptr::null(),
        }
    }

    /// Sets the state of a region to `to`, which holds if the work request is posted.
    ///
    /// # Safety
    ///
    /// `state` must be valid until the work request is posted or undone.
    #[inline]
    pub(super) unsafe fn change(mut self, state: &Cell<State>, to: State) -> Self {
        state.set(to);
        // INVARIANT: By the safety requirements of this function.
        self.state = state;
        self
    }

    /// Sets the completion entry, which is used only if the work request fails.
    #[inline]
    pub(super) fn complete_failure(&mut self, cqe: *mut bindings::ib_cqe) {
        // All variants start with `struct ib_send_wr`.
        self.kind.common.__bindgen_anon_1.wr_cqe = cqe;
    }

    /// Sets the completion entry, and requests a completion on success, too.
    ///
    /// # Safety
    ///
    /// `wr` must be that of a `Request`, which nobody else accesses.
    #[inline]
    pub(super) unsafe fn complete(wr: *mut bindings::ib_send_wr, cqe: *mut bindings::ib_cqe) {
        // SAFETY: By the safety requirements.
        unsafe {
            (*wr).__bindgen_anon_1.wr_cqe = cqe;
            (*wr).send_flags |= bindings::ib_send_flags_IB_SEND_SIGNALED;
        }
    }

    /// Returns the part that all work requests have.
    #[inline]
    pub(super) fn wr(&self) -> &bindings::ib_send_wr {
        // SAFETY: All variants start with `struct ib_send_wr`.
        unsafe { &self.kind.common }
    }

    /// Returns the completion entry of the operation, if this is its last work request: the one that is
    /// signalled.
    pub(super) fn completes(&self) -> Option<NonNull<bindings::ib_cqe>> {
        let wr = self.wr();
        if wr.send_flags & bindings::ib_send_flags_IB_SEND_SIGNALED == 0 {
            return None;
        }
        // SAFETY: Work requests of this crate have no number (`wr_id`) in place of the entry.
        NonNull::new(unsafe { wr.__bindgen_anon_1.wr_cqe })
    }

    /// Returns the work request for C.
    #[inline]
    pub(super) fn as_raw(&mut self) -> *mut bindings::ib_send_wr {
        let this = ptr::from_mut(self);
        // SAFETY: `this` is valid. All variants start with `struct ib_send_wr`. The pointer is made
        // from that of the whole object, which `undo` accesses.
        unsafe { (&raw mut (*this).kind).cast() }
    }

    /// Resets the state of the region, because the work request is not posted.
    ///
    /// # Safety
    ///
    /// `wr` must be that of a `Request` or of a [`RegisterWr`], which nobody else accesses.
    pub(super) unsafe fn undo(wr: *mut bindings::ib_send_wr) {
        // SAFETY: By the safety requirements, `state` is at this distance. It is null or valid by the
        // type invariants, as the work request was not posted.
        let (state, opcode) = unsafe {
            let field = wr
                .byte_sub(offset_of!(Request, kind))
                .cast::<*const Cell<State>>();
            (ptr::replace(field, ptr::null()).as_ref(), (*wr).opcode)
        };
        let Some(state) = state else {
            return;
        };
        // A registration requires state `Mapped`, and an invalidation requires state `Valid`.
        state.set(match opcode {
            bindings::ib_wr_opcode_IB_WR_REG_MR => State::Mapped,
            _ => State::Valid,
        });
    }
}
