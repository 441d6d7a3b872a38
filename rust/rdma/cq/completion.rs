// SPDX-License-Identifier: GPL-2.0

//! Completions of work requests.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_wc`
//!
//! The fields of a completion that are valid depend on the status and the opcode. So they are in
//! types of their own: [`WcError`] for a failed work request, [`Received`] for a successful
//! receive.

use super::{
    registrations::{
        CompletedSeq,
        RegSeq,
        Registrations, //
    },
    WcError, //
};
use crate::bindings;
use core::ptr;
use kernel::prelude::*;

/// Operation of a successful work request (`enum ib_wc_opcode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opcode {
    /// Send of a message, with or without immediate data or invalidation.
    Send,
    /// RDMA write.
    Write,
    /// RDMA read.
    Read,
    /// Atomic compare and swap.
    CompareAndSwap,
    /// Atomic fetch and add.
    FetchAndAdd,
    /// Registration of a region.
    Register,
    /// Invalidation of a local key.
    Invalidate,
    /// Receive of a message.
    Receive,
    /// Receive consumed by an RDMA write with immediate data.
    ReceiveWrite,
}

/// Completion of a work request (`struct ib_wc`), passed to its handler.
///
/// # Invariants
///
/// - `wc` is a valid `struct ib_wc` found in `cq`, and its `qp` is alive.
/// - `registrations` are those of that queue pair.
pub struct Completion<'a> {
    cq: *mut bindings::ib_cq,
    wc: &'a bindings::ib_wc,
    registrations: &'a Registrations,
}

impl<'a> Completion<'a> {
    /// Creates a completion from `wc`.
    /// # Safety
    ///
    /// For the lifetime of the result, `wc` must be valid and its `qp` alive. `wc` must have been
    /// found in `cq`, and `registrations` must be those of `qp`.
    #[inline]
    pub(crate) unsafe fn from_raw(
        cq: *mut bindings::ib_cq,
        wc: *const bindings::ib_wc,
        registrations: &'a Registrations,
    ) -> Self {
        // INVARIANT: By the safety requirements of this function.
        Self {
            cq,
            // SAFETY: `wc` is valid by the safety requirements of this function.
            wc: unsafe { &*wc },
            registrations,
        }
    }

    /// Returns whether this is a completion of `cqe` on the queue pair with serial number `queue`.
    /// Another queue pair may have the same address, but none has the same serial number.
    pub(crate) fn is_of(&self, cqe: *const bindings::ib_cqe, queue: u64) -> bool {
        // SAFETY: All work requests of this crate have a completion entry, so `wr_cqe` is valid.
        let own = unsafe { self.wc.__bindgen_anon_1.wr_cqe };
        ptr::eq(own, cqe) && self.registrations.queue() == queue
    }

    /// Returns the failure of a work request that failed.
    #[inline]
    pub fn result(&self) -> Result<(), WcError> {
        match self.wc.status {
            bindings::ib_wc_status_IB_WC_SUCCESS => Ok(()),
            status => Err(WcError::new(status, self.wc.vendor_err)),
        }
    }

    /// Returns whether this is the first completion that one call of `ib_poll_cq()` by the core
    /// returned. Counting these counts the calls. A call returns up to 16 completions.
    ///
    /// Always `false` if the owner polls the queue: it can count its polls.
    #[inline]
    pub fn begins_poll(&self) -> bool {
        // SAFETY: By the type invariant the queue pair is alive. It holds a reference to its
        // completion queue, whose `wc` array is constant.
        ptr::eq(self.wc, unsafe { (*self.cq).wc })
    }

    /// Returns the operation of the work request; `None` if it failed, or if the opcode is unknown.
    pub fn opcode(&self) -> Option<Opcode> {
        self.result().ok()?;
        Some(match self.wc.opcode {
            bindings::ib_wc_opcode_IB_WC_SEND => Opcode::Send,
            bindings::ib_wc_opcode_IB_WC_RDMA_WRITE => Opcode::Write,
            bindings::ib_wc_opcode_IB_WC_RDMA_READ => Opcode::Read,
            bindings::ib_wc_opcode_IB_WC_COMP_SWAP => Opcode::CompareAndSwap,
            bindings::ib_wc_opcode_IB_WC_FETCH_ADD => Opcode::FetchAndAdd,
            bindings::ib_wc_opcode_IB_WC_REG_MR => Opcode::Register,
            bindings::ib_wc_opcode_IB_WC_LOCAL_INV => Opcode::Invalidate,
            bindings::ib_wc_opcode_IB_WC_RECV => Opcode::Receive,
            bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM => Opcode::ReceiveWrite,
            _ => return None,
        })
    }

    /// Returns the length in bytes of a message that was received; `None` if the work request failed, or
    /// is no receive, or if an RDMA write consumed it.
    #[inline]
    pub fn message_len(&self) -> Option<usize> {
        let is_message = self.wc.opcode == bindings::ib_wc_opcode_IB_WC_RECV;
        (self.result().is_ok() && is_message).then_some(self.wc.byte_len as usize)
    }

    /// Returns the message that was received; `None` if the work request failed, or is no receive, or if an
    /// RDMA write consumed it: then the buffer still has what it had before.
    #[inline]
    pub fn message(&self) -> Option<Received<'a>> {
        let is_message = self.wc.opcode == bindings::ib_wc_opcode_IB_WC_RECV;
        // INVARIANT: Both conditions are checked here.
        (self.result().is_ok() && is_message).then_some(Received {
            wc: self.wc,
            registrations: self.registrations,
        })
    }

    /// Returns the completed receive, of a message or of an RDMA write with immediate data; `None` if the
    /// work request failed or is not a receive.
    #[inline]
    pub fn received(&self) -> Option<Received<'a>> {
        let is_receive = self.wc.opcode & bindings::ib_wc_opcode_IB_WC_RECV != 0;
        // INVARIANT: Both conditions are checked here.
        (self.result().is_ok() && is_receive).then_some(Received {
            wc: self.wc,
            registrations: self.registrations,
        })
    }
}

/// A successful receive.
///
/// # Invariants
///
/// `wc` is the successful completion of a receive.
#[derive(Clone, Copy)]
pub struct Received<'a> {
    wc: &'a bindings::ib_wc,
    registrations: &'a Registrations,
}

impl Received<'_> {
    /// Returns the length of the message in bytes, or that of the RDMA write if it [is
    /// one](Received::is_write). The length of a datagram includes the 40 bytes before its data.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.wc.byte_len as usize
    }

    /// Returns whether the receive was consumed by an RDMA write with immediate data. The buffer of
    /// the receive was not written.
    #[inline]
    pub fn is_write(&self) -> bool {
        self.wc.opcode == bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM
    }

    /// Returns the immediate data, if the message has any.
    #[inline]
    pub fn immediate(&self) -> Option<u32> {
        if !self.has(bindings::ib_wc_flags_IB_WC_WITH_IMM) {
            return None;
        }
        // SAFETY: The flag says that `imm_data` is the valid member of the union.
        Some(u32::from_be(unsafe { self.wc.ex.imm_data }))
    }

    /// Returns the key that the message invalidated, if it invalidated one. The device has done it.
    ///
    /// Always `None` on soft-iWARP, which compares only a part of the key. There, the message
    /// proves nothing, and the owner of the region must invalidate it.
    #[inline]
    pub fn invalidation(&self) -> Option<Invalidation> {
        if !self.has(bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE)
            || !self.registrations.are_checked()
        {
            return None;
        }
        // SAFETY: The flag says that `invalidate_rkey` is the valid member of the union.
        let rkey = unsafe { self.wc.ex.invalidate_rkey };
        Some(Invalidation {
            rkey,
            completed_seq: self.registrations.completed_seq(),
        })
    }

    #[inline]
    pub(crate) fn wc(&self) -> &bindings::ib_wc {
        self.wc
    }

    #[inline]
    fn has(&self, flag: bindings::ib_wc_flags) -> bool {
        self.wc.wc_flags as u32 & flag != 0
    }
}

/// Proof that the device invalidated a key at the request of a peer. It covers registrations with
/// this key that were posted before.
#[derive(Clone, Copy, Debug)]
pub struct Invalidation {
    rkey: u32,
    completed_seq: CompletedSeq,
}

impl Invalidation {
    /// Returns the invalidated key.
    #[inline]
    pub fn rkey(&self) -> u32 {
        self.rkey
    }

    /// Returns whether the registration was posted before, so that the key may be that of
    /// `registered`.
    #[inline]
    pub(in crate::rdma) fn can_be_of(&self, registered: RegSeq) -> bool {
        self.completed_seq.include(registered)
    }
}
