// SPDX-License-Identifier: GPL-2.0

//! Completions of work requests.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_wc`
//!
//! What a completion tells depends on how the request ended and on what it was,
//! so each part is had from the type that says so: a [`Failure`] of one that
//! failed, a [`Received`] of a receive that succeeded.

use super::{
    registrations::{
        CompletedSeq,
        RegSeq,
        Registrations, //
    },
    Failure, //
};
use crate::bindings;
use core::ptr;
use kernel::prelude::*;

/// What a successful work request did (`enum ib_wc_opcode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opcode {
    /// Sent a message, of any kind.
    Send,
    /// Wrote to memory of the peer.
    Write,
    /// Read memory of the peer.
    Read,
    /// Compared and swapped a word of the peer.
    CompareAndSwap,
    /// Added to a word of the peer.
    FetchAndAdd,
    /// Registered a region.
    Register,
    /// Invalidated a key of ours.
    Invalidate,
    /// Received a message.
    Receive,
    /// Was used up by the peer's write with immediate data.
    ReceiveWrite,
}

/// The completion of one work request (`struct ib_wc`), as its handler sees it.
///
/// # Invariants
///
/// `wc` is a valid `struct ib_wc` that was found in `cq` and whose `qp` is alive, and
/// `registrations` are those of that queue pair.
pub struct Completion<'a> {
    cq: *mut bindings::ib_cq,
    wc: &'a bindings::ib_wc,
    registrations: &'a Registrations,
}

impl<'a> Completion<'a> {
    /// # Safety
    ///
    /// `wc` must be valid, found in `cq`, and its `qp` alive, for the lifetime of the result;
    /// `registrations` must be those of that queue pair.
    #[inline]
    pub(crate) unsafe fn from_raw(
        cq: *mut bindings::ib_cq,
        wc: *const bindings::ib_wc,
        registrations: &'a Registrations,
    ) -> Self {
        // INVARIANT: By the contract.
        Self {
            cq,
            // SAFETY: By the contract.
            wc: unsafe { &*wc },
            registrations,
        }
    }

    #[inline]
    pub(crate) fn wc(&self) -> &'a bindings::ib_wc {
        self.wc
    }

    /// Whether it is a completion of this entry on the queue pair of this serial number,
    /// which no other one ever has, as it may have the address.
    pub(crate) fn is_of(&self, cqe: *const bindings::ib_cqe, queue: u64) -> bool {
        // SAFETY: A completion of ours was posted with an entry, not a number.
        let own = unsafe { self.wc().__bindgen_anon_1.wr_cqe };
        ptr::eq(own, cqe) && self.registrations.queue() == queue
    }

    /// Whether the request succeeded.
    #[inline]
    pub fn result(&self) -> Result<(), Failure> {
        match self.wc().status {
            bindings::ib_wc_status_IB_WC_SUCCESS => Ok(()),
            status => Err(Failure::new(status, self.wc().vendor_err)),
        }
    }

    /// Whether it is the first of those that one poll of the core found (`ib_poll_cq`), which
    /// fetches up to 16: who counts these, counts polls. Never on a queue that its owner polls,
    /// who knows.
    #[inline]
    pub fn begins_poll(&self) -> bool {
        // SAFETY: By the type invariant the queue pair is alive, which holds its completion
        // queues; where the core fetches completions to is constant.
        ptr::eq(self.wc(), unsafe { (*self.cq).wc })
    }

    /// What the request did; `None` if it failed, or did what no request here asks for.
    pub fn opcode(&self) -> Option<Opcode> {
        self.result().ok()?;
        Some(match self.wc().opcode {
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

    /// What was received; `None` if the request failed, or is not a receive.
    #[inline]
    pub fn received(&self) -> Option<Received<'a>> {
        let is_receive = self.wc().opcode & bindings::ib_wc_opcode_IB_WC_RECV != 0;
        // INVARIANT: Just seen.
        (self.result().is_ok() && is_receive).then_some(Received {
            wc: self.wc,
            registrations: self.registrations,
        })
    }
}

/// A receive that succeeded.
///
/// # Invariants
///
/// The completion is of a receive, and successful.
#[derive(Clone, Copy)]
pub struct Received<'a> {
    wc: &'a bindings::ib_wc,
    registrations: &'a Registrations,
}

impl Received<'_> {
    /// Length of the message in bytes, or of what the peer wrote, if it
    /// [wrote](Received::is_write). A datagram's is with the 40 bytes ahead of it.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.wc.byte_len as usize
    }

    /// The peer wrote to memory of ours, and only its immediate data arrived:
    /// the buffer of the receive was not touched.
    #[inline]
    pub fn is_write(&self) -> bool {
        self.wc.opcode == bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM
    }

    /// The immediate data of the peer's request, if it has any.
    #[inline]
    pub fn immediate(&self) -> Option<u32> {
        if !self.has(bindings::ib_wc_flags_IB_WC_WITH_IMM) {
            return None;
        }
        // SAFETY: The flag says which member of the union is set.
        Some(u32::from_be(unsafe { self.wc.ex.imm_data }))
    }

    /// The invalidation that the peer's message asked for, if it did. The device
    /// has done it.
    ///
    /// There is none where that proves nothing, as the device looks at no more than a part of
    /// the key (soft-iWARP): who exposed the memory must invalidate it.
    #[inline]
    pub fn invalidation(&self) -> Option<Invalidation> {
        if !self.has(bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE)
            || !self.registrations.are_checked()
        {
            return None;
        }
        // SAFETY: The flag says which member of the union is set.
        let rkey = unsafe { self.wc.ex.invalidate_rkey };
        Some(Invalidation {
            rkey,
            completed_seq: self.registrations.completed_seq(),
        })
    }

    /// Number of the queue pair that sent it. Of datagrams only: otherwise it is
    /// known, and some devices do not tell.
    pub fn source(&self) -> u32 {
        self.wc.src_qp
    }

    /// The place in the port's table of the partition key that it came with. Of
    /// the general services' queue pair only.
    pub fn pkey_index(&self) -> u16 {
        self.wc.pkey_index
    }

    /// Whether a global routing header was received ahead of a datagram.
    pub fn has_grh(&self) -> bool {
        self.has(bindings::ib_wc_flags_IB_WC_GRH)
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

/// Proof that the device invalidated a key because a peer asked for it: of what was
/// registered with it before.
#[derive(Clone, Copy, Debug)]
pub struct Invalidation {
    rkey: u32,
    completed_seq: CompletedSeq,
}

impl Invalidation {
    /// The key, which is dead whoever held it.
    #[inline]
    pub fn rkey(&self) -> u32 {
        self.rkey
    }

    /// Whether it came after this registration, so that the key may be that one's.
    #[inline]
    pub(in crate::rdma) fn can_be_of(&self, registered: RegSeq) -> bool {
        self.completed_seq.include(registered)
    }
}
