// SPDX-License-Identifier: GPL-2.0

//! Work request of a send queue, in C's layout.

use crate::{
    bindings,
    rdma::mr::State, //
};
use core::{
    cell::Cell,
    ptr, //
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
    kind: Kind,
    state: *const Cell<State>,
}

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

    /// Resets the state of the region, because the work request is not posted.
    pub(super) fn undo(&mut self) {
        let state = core::mem::replace(&mut self.state, ptr::null());
        // SAFETY: `state` is null or valid by the type invariants, as the work request was not
        // posted.
        let Some(state) = (unsafe { state.as_ref() }) else {
            return;
        };
        // A registration requires state `Mapped`, and an invalidation requires state `Valid`.
        state.set(match self.wr().opcode {
            bindings::ib_wr_opcode_IB_WR_REG_MR => State::Mapped,
            _ => State::Valid,
        });
    }

    #[inline]
    fn wr(&self) -> &bindings::ib_send_wr {
        // SAFETY: All variants start with `struct ib_send_wr`.
        unsafe { &self.kind.common }
    }

    #[inline]
    fn wr_mut(&mut self) -> &mut bindings::ib_send_wr {
        // SAFETY: All variants start with `struct ib_send_wr`.
        unsafe { &mut self.kind.common }
    }

    /// Returns the work request for C.
    #[inline]
    pub(super) fn as_raw(&mut self) -> *mut bindings::ib_send_wr {
        ptr::from_mut(self).cast()
    }

    /// Links `next` behind this work request.
    #[inline]
    pub(super) fn link(&mut self, next: *mut bindings::ib_send_wr) {
        self.wr_mut().next = next;
    }

    /// Sets the completion entry, which is used only if the work request fails.
    #[inline]
    pub(super) fn complete_failure(&mut self, cqe: *mut bindings::ib_cqe) {
        self.wr_mut().__bindgen_anon_1.wr_cqe = cqe;
    }

    /// Sets the completion entry, and requests a completion on success, too.
    #[inline]
    pub(super) fn complete(&mut self, cqe: *mut bindings::ib_cqe) {
        let wr = self.wr_mut();
        wr.__bindgen_anon_1.wr_cqe = cqe;
        wr.send_flags |= bindings::ib_send_flags_IB_SEND_SIGNALED;
    }
}
