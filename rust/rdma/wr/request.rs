// SPDX-License-Identifier: GPL-2.0

//! One work request of a send queue, as C reads it.

use crate::{
    bindings,
    rdma::mr::State, //
};
use core::{
    cell::Cell,
    ptr, //
};

/// A work request of any kind: each starts with `struct ib_send_wr`, whose
/// `opcode` tells which it is.
#[repr(C)]
union Kind {
    common: bindings::ib_send_wr,
    remote: bindings::ib_rdma_wr,
    atomic: bindings::ib_atomic_wr,
    datagram: bindings::ib_ud_wr,
    register: bindings::ib_reg_wr,
}

/// A work request, and the state of a region that posting it changes.
///
/// # Invariants
///
/// - The request is well-formed, but for its completion entry, and what follows the last of
///   several.
/// - `state` is null, or that of a region which is borrowed for as long as the
///   request is not posted.
#[repr(C)]
pub(super) struct Request {
    kind: Kind,
    state: *const Cell<State>,
}

impl Request {
    #[inline]
    fn new(kind: Kind) -> Self {
        // INVARIANT: Changes no state.
        Self {
            kind,
            state: ptr::null(),
        }
    }

    /// A request that has neither an address nor a key of the peer.
    #[inline]
    pub(super) fn common(common: bindings::ib_send_wr) -> Self {
        Self::new(Kind { common })
    }

    /// A request to read or write memory of the peer.
    #[inline]
    pub(super) fn remote(remote: bindings::ib_rdma_wr) -> Self {
        Self::new(Kind { remote })
    }

    /// A request to change a word of the peer.
    #[inline]
    pub(super) fn atomic(atomic: bindings::ib_atomic_wr) -> Self {
        Self::new(Kind { atomic })
    }

    /// A datagram.
    #[inline]
    pub(super) fn datagram(datagram: bindings::ib_ud_wr) -> Self {
        Self::new(Kind { datagram })
    }

    /// A registration.
    #[inline]
    pub(super) fn register(register: bindings::ib_reg_wr) -> Self {
        Self::new(Kind { register })
    }

    /// Sets a state for the case that the request is posted.
    ///
    /// # Safety
    ///
    /// The state must stay for as long as the request is not posted.
    #[inline]
    pub(super) unsafe fn change(mut self, state: &Cell<State>, to: State) -> Self {
        state.set(to);
        // INVARIANT: By the contract.
        self.state = state;
        self
    }

    /// Sets the state back, as the request is not posted.
    pub(super) fn undo(&mut self) {
        let state = core::mem::replace(&mut self.state, ptr::null());
        // SAFETY: By the type invariant.
        let Some(state) = (unsafe { state.as_ref() }) else {
            return;
        };
        // What each of the two may be asked for only.
        state.set(match self.wr().opcode {
            bindings::ib_wr_opcode_IB_WR_REG_MR => State::Bound,
            _ => State::Valid,
        });
    }

    #[inline]
    fn wr(&self) -> &bindings::ib_send_wr {
        // SAFETY: Every kind starts with it.
        unsafe { &self.kind.common }
    }

    #[inline]
    fn wr_mut(&mut self) -> &mut bindings::ib_send_wr {
        // SAFETY: Every kind starts with it.
        unsafe { &mut self.kind.common }
    }

    /// Where C finds it.
    #[inline]
    pub(super) fn as_raw(&mut self) -> *mut bindings::ib_send_wr {
        ptr::from_mut(self).cast()
    }

    /// Lets `next` follow it.
    #[inline]
    pub(super) fn link(&mut self, next: *mut bindings::ib_send_wr) {
        self.wr_mut().next = next;
    }

    /// The entry that it completes with, if it fails.
    #[inline]
    pub(super) fn complete_failure(&mut self, cqe: *mut bindings::ib_cqe) {
        self.wr_mut().__bindgen_anon_1.wr_cqe = cqe;
    }

    /// The entry that it completes with.
    #[inline]
    pub(super) fn complete(&mut self, cqe: *mut bindings::ib_cqe) {
        let wr = self.wr_mut();
        wr.__bindgen_anon_1.wr_cqe = cqe;
        wr.send_flags |= bindings::ib_send_flags_IB_SEND_SIGNALED;
    }
}
