// SPDX-License-Identifier: GPL-2.0

//! Memory of receives that are posted repeatedly.
//!
//! The memory returns to the device when the pieces of the next work request are taken. So a receive cannot
//! be posted again with memory that the CPU still has.

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
use core::{
    ffi::c_int,
    marker::PhantomData, //
};
use kernel::prelude::*;

/// One or two buffers of a receive, and the entries of its work request. A message fills the first buffer, then
/// the second.
///
/// # Invariants
///
/// The first `count` of `pieces` name the memory of the buffers, which are mapped for writing by the
/// device of the domain, with its key.
pub struct ReceiveMemory {
    pieces: [bindings::ib_sge; 2],
    count: c_int,
    /// Whether the CPU has read the second buffer since it was posted. Only then it is returned to the device,
    /// because that takes longer the larger the buffer is.
    has_second: bool,
    /// Serial number of the domain.
    domain: u64,
    first: DmaBuffer,
    second: Option<DmaBuffer>,
}

impl ReceiveMemory {
    /// Allocates a buffer of `first` bytes, and one of `second` bytes unless that is 0. May sleep.
    ///
    /// With two buffers, the queue on which the receive is posted must have been created for [two
    /// pieces](crate::rdma::qp::QpInitAttr::with_receive_sges).
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
            pieces,
            count: match second {
                Some(_) => 2,
                None => 1,
            },
            has_second: false,
            domain: memory.domain,
            first,
            second,
        })
    }

    /// Returns the bytes of the first buffer, after making the writes of the device visible to the CPU. Any
    /// context.
    #[inline]
    pub fn first(&mut self) -> &[u8] {
        self.first.read()
    }

    /// Returns the address of the first buffer for C, which may read and write it until [`pieces`](Self::pieces)
    /// is called, see [`DmaBuffer::lend`]. Any context.
    #[inline]
    pub fn lend_first(&mut self) -> *mut u8 {
        self.first.lend()
    }

    /// Returns the bytes of the second buffer, after making the writes of the device visible to the CPU.
    /// Empty if there is no second buffer. Any context.
    #[inline]
    pub fn second(&mut self) -> &[u8] {
        self.has_second = true;
        // Not map_or(): the call of a function that is passed is not inlined.
        match &mut self.second {
            Some(second) => second.read(),
            None => &[],
        }
    }

    /// Returns the first buffer as an entry of a work request. Any context.
    #[inline]
    pub fn sge(&self) -> Sge<'_> {
        self.first.sge()
    }

    /// Returns the buffers to the device, and their pieces for a work request. Any context.
    #[inline]
    pub fn pieces(&mut self) -> ReceivePieces<'_> {
        // A soft device needs no more than this test.
        if !self.first.uses_virt_dma() {
            self.give_back();
        }
        // INVARIANT: By the type invariants.
        ReceivePieces {
            first: self.pieces.as_mut_ptr(),
            count: self.count,
            domain: self.domain,
            _memory: PhantomData,
        }
    }

    /// Returns the buffers to the device that were passed to the CPU.
    #[inline(never)]
    fn give_back(&mut self) {
        self.first.give_back();
        if self.has_second {
            self.second.iter_mut().for_each(DmaBuffer::give_back);
        }
        self.has_second = false;
    }
}

/// A buffer of `N` bytes that a message fills, with the piece of its work request, which is made once.
///
/// # Invariants
///
/// `buffer` has `N` bytes. `piece` names the memory of the buffer, which is mapped for writing by the device
/// of the domain, with its key.
pub struct ReceiveBuffer<const N: usize> {
    piece: bindings::ib_sge,
    /// Serial number of the domain.
    domain: u64,
    buffer: DmaBuffer,
}

impl<const N: usize> ReceiveBuffer<N> {
    /// Prepares `buffer` for receives of a domain.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the buffer has another length, or is mapped for another device or not for writing by the
    /// device.
    #[inline]
    pub fn new(pd: &ProtectionDomain, buffer: DmaBuffer) -> Result<Self> {
        if buffer.length() != N {
            return Err(EINVAL);
        }
        let memory = pd.local_memory();
        // INVARIANT: Made of this buffer, which is never replaced. Its length was checked above.
        Ok(Self {
            piece: buffer.sge().as_sink(memory)?,
            domain: memory.domain,
            buffer,
        })
    }

    /// Returns the bytes, after making the writes of the device visible to the CPU.
    #[inline]
    pub fn read(&mut self) -> &[u8; N] {
        // SAFETY: By the type invariants.
        unsafe { self.buffer.read_array() }
    }

    /// Returns the buffer to the device, and its piece for a work request. Any context.
    #[inline]
    pub fn pieces(&mut self) -> ReceivePieces<'_> {
        self.buffer.give_back();
        // INVARIANT: By the type invariants.
        ReceivePieces {
            first: &mut self.piece,
            count: 1,
            domain: self.domain,
            _memory: PhantomData,
        }
    }
}

/// The pieces of the work request of a receive.
///
/// # Invariants
///
/// `first` is the first of `count` pieces, which are valid for `'a`. They name memory that is mapped for
/// writing by the device of the domain with serial number `domain`, with its key.
pub struct ReceivePieces<'a> {
    first: *mut bindings::ib_sge,
    count: c_int,
    domain: u64,
    _memory: PhantomData<&'a mut ()>,
}

impl ReceivePieces<'_> {
    /// Returns the work request, which completes with `cqe`. It names the pieces.
    ///
    /// It is made anew for each post: a driver may read `next` of a work request after it has completed, when
    /// the pieces have another owner.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the memory is for another domain.
    #[inline]
    pub(in crate::rdma) fn work_request(
        self,
        memory: LocalMemory,
        cqe: *mut bindings::ib_cqe,
    ) -> Result<bindings::ib_recv_wr> {
        if memory.domain != self.domain {
            return Err(EINVAL);
        }
        let mut request = bindings::ib_recv_wr {
            sg_list: self.first,
            num_sge: self.count,
            ..pin_init::zeroed()
        };
        request.__bindgen_anon_1.wr_cqe = cqe;
        Ok(request)
    }
}
