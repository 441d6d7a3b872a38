// SPDX-License-Identifier: GPL-2.0

//! Memory of messages that are sent again and again.

use crate::{
    bindings,
    rdma::{
        dma::{
            Direction,
            DmaBuffer,
            Writing, //
        },
        pd::{
            LocalMemory,
            ProtectionDomain, //
        },
    },
};
use core::{
    ffi::c_int,
    ptr, //
};
use kernel::prelude::*;

/// A buffer for messages, with the piece of their work request, which is made once.
///
/// # Invariants
///
/// `piece` names the memory of the buffer, which is mapped for reading by the device of `memory`, with
/// its key.
pub struct SendMemory {
    piece: bindings::ib_sge,
    memory: LocalMemory,
    buffer: DmaBuffer,
}

// SAFETY: The device of `memory` is only compared.
unsafe impl Send for SendMemory {}

impl SendMemory {
    /// Allocates a buffer for messages of `length` bytes, which are zero. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `length` is 0; `ENOMEM`.
    pub fn new(pd: &ProtectionDomain, length: usize) -> Result<Self> {
        let memory = pd.local_memory();
        let buffer = DmaBuffer::new(pd.device().clone(), length, Direction::ToDevice)?;
        // INVARIANT: Made of this buffer, which is never replaced.
        Ok(Self {
            piece: buffer.sge().as_source(memory)?,
            memory,
            buffer,
        })
    }

    /// Returns a guard for writing the message. Dropping it passes the message to the device.
    #[inline]
    pub fn write(&mut self) -> Writing<'_> {
        self.buffer.write()
    }

    /// Returns the bytes of the message. It must be [given back](Self::give_back) before it is posted.
    #[inline]
    pub fn read(&mut self) -> &[u8] {
        self.buffer.read()
    }

    /// Returns the message to the device, after [`read`](Self::read).
    #[inline]
    pub fn give_back(&mut self) {
        self.buffer.give_back();
    }

    /// Returns the signalled work request, which completes with `cqe`, and invalidates a key of the peer. It
    /// names the piece of `self`.
    ///
    /// It is made each time: a device may read the link of a work request after that has completed, when
    /// `self` belongs to somebody else.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the memory is for another domain.
    #[inline]
    pub(in crate::rdma) fn work_request(
        &self,
        memory: LocalMemory,
        cqe: *mut bindings::ib_cqe,
        invalidate: Option<u32>,
    ) -> Result<bindings::ib_send_wr> {
        if !ptr::eq(memory.device, self.memory.device) || memory.lkey != self.memory.lkey {
            return Err(EINVAL);
        }
        let mut send = bindings::ib_send_wr {
            sg_list: ptr::from_ref(&self.piece).cast_mut(),
            num_sge: 1,
            opcode: bindings::ib_wr_opcode_IB_WR_SEND,
            send_flags: bindings::ib_send_flags_IB_SEND_SIGNALED as c_int,
            ..pin_init::zeroed()
        };
        send.__bindgen_anon_1.wr_cqe = cqe;
        if let Some(rkey) = invalidate {
            send.opcode = bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV;
            send.ex.invalidate_rkey = rkey;
        }
        Ok(send)
    }
}
