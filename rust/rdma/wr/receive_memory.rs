// SPDX-License-Identifier: GPL-2.0

//! Memory of receives that are posted again and again.

use super::Sge;
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
use core::ptr;
use kernel::prelude::*;

/// One or two buffers that a message fills, one after the other, with their work request, which is made
/// once.
///
/// # Invariants
///
/// - `pieces` name the memory of the buffers, which are mapped for writing by the device of `memory`,
///   with its key.
/// - `request` is the work request of these pieces, except for their address and the completion entry.
pub struct ReceiveMemory {
    request: bindings::ib_recv_wr,
    pieces: [bindings::ib_sge; 2],
    memory: LocalMemory,
    first: DmaBuffer,
    second: Option<DmaBuffer>,
}

// SAFETY: The work request is used only by the owner.
unsafe impl Send for ReceiveMemory {}

impl ReceiveMemory {
    /// Allocates a buffer of `first` bytes, and one of `second` bytes unless that is 0. May sleep.
    ///
    /// A queue must have been created for [two
    /// pieces](crate::rdma::qp::QpInitAttr::with_receive_sges) if there are two.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `first` is 0; `ENOMEM`.
    pub fn new(pd: &ProtectionDomain, first: usize, second: usize) -> Result<Self> {
        let memory = pd.local_memory();
        let allocate = |length| DmaBuffer::new(pd.device().clone(), length, Direction::FromDevice);
        let first = allocate(first)?;
        let second = match second {
            0 => None,
            length => Some(allocate(length)?),
        };
        let mut pieces = [first.sge().as_sink(memory)?, pin_init::zeroed()];
        if let Some(second) = &second {
            pieces[1] = second.sge().as_sink(memory)?;
        }
        // INVARIANT: Made of these buffers, which are never replaced.
        Ok(Self {
            request: bindings::ib_recv_wr {
                num_sge: 1 + i32::from(second.is_some()),
                ..pin_init::zeroed()
            },
            pieces,
            memory,
            first,
            second,
        })
    }

    /// Returns the bytes of the first buffer, after making the writes of the device visible to the CPU.
    #[inline]
    pub fn first(&mut self) -> &[u8] {
        self.first.read()
    }

    /// Returns the bytes of the second buffer, likewise; none if there is none.
    #[inline]
    pub fn second(&mut self) -> &[u8] {
        self.second.as_mut().map_or(&[], DmaBuffer::read)
    }

    /// Returns the first buffer as an entry of a work request.
    #[inline]
    pub fn sge(&self) -> Sge<'_> {
        self.first.sge()
    }

    /// Returns the work request, which completes with `cqe`. It is valid as long as `self` stays at its
    /// address.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the memory is for another domain.
    #[inline]
    pub(in crate::rdma) fn work_request(
        &mut self,
        memory: LocalMemory,
        cqe: *mut bindings::ib_cqe,
    ) -> Result<&bindings::ib_recv_wr> {
        if !ptr::eq(memory.device, self.memory.device) || memory.lkey != self.memory.lkey {
            return Err(EINVAL);
        }
        self.request.sg_list = self.pieces.as_mut_ptr();
        self.request.__bindgen_anon_1.wr_cqe = cqe;
        Ok(&self.request)
    }
}
