// SPDX-License-Identifier: GPL-2.0

//! Memory of messages that are sent again and again.

use crate::{
    bindings,
    rdma::{
        dma::{
            Direction,
            DmaBuffer, //
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
use kernel::{
    prelude::*,
    types::Opaque, //
};

/// A buffer for messages, with their work request, which is made once.
///
/// # Invariants
///
/// - `piece` names the memory of the buffer, which is mapped for reading by the device of `memory`, with
///   its key.
/// - `request` is a signalled SEND of this piece, except for its address, the completion entry, and what
///   it invalidates.
pub struct SendMemory {
    request: Opaque<bindings::ib_send_wr>,
    piece: bindings::ib_sge,
    memory: LocalMemory,
    buffer: DmaBuffer,
}

// SAFETY: The work request is used only by the owner.
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
            request: Opaque::new(bindings::ib_send_wr {
                num_sge: 1,
                send_flags: bindings::ib_send_flags_IB_SEND_SIGNALED as c_int,
                ..pin_init::zeroed()
            }),
            piece: buffer.sge().as_source(memory)?,
            memory,
            buffer,
        })
    }

    /// Returns the buffer, to write the message. The message must be
    /// [given back](DmaBuffer::give_back) to the device before it is posted.
    #[inline]
    pub fn buffer_mut(&mut self) -> &mut DmaBuffer {
        &mut self.buffer
    }

    /// Returns the work request, which completes with `cqe`, and invalidates a key of the peer. It is
    /// valid until this is called again, and as long as `self` stays at its address.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the memory is for another domain.
    ///
    /// # Safety
    ///
    /// Nobody else may use the last result of this function.
    #[inline]
    pub(in crate::rdma) unsafe fn work_request(
        &self,
        memory: LocalMemory,
        cqe: *mut bindings::ib_cqe,
        invalidate: Option<u32>,
    ) -> Result<*mut bindings::ib_send_wr> {
        if !ptr::eq(memory.device, self.memory.device) || memory.lkey != self.memory.lkey {
            return Err(EINVAL);
        }
        let send = self.request.get();
        // SAFETY: The work request is part of `self`. Nobody else uses it by the safety requirements.
        unsafe {
            (*send).sg_list = ptr::from_ref(&self.piece).cast_mut();
            (*send).__bindgen_anon_1.wr_cqe = cqe;
            (*send).opcode = bindings::ib_wr_opcode_IB_WR_SEND;
            if let Some(rkey) = invalidate {
                (*send).opcode = bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV;
                (*send).ex.invalidate_rkey = rkey;
            }
        }
        Ok(send)
    }
}
