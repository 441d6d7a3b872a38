// SPDX-License-Identifier: GPL-2.0

//! Scatter/gather entries of work requests.

use super::Direction;
use crate::{
    bindings,
    rdma::pd::LocalMemory, //
};
use core::marker::PhantomData;
use kernel::prelude::*;

/// A contiguous piece of mapped memory (`struct ib_sge`). Borrows the object that keeps the memory
/// mapped.
#[derive(Clone, Copy)]
pub struct Sge<'a> {
    device: *mut bindings::ib_device,
    address: u64,
    length: u32,
    direction: Direction,
    _memory: PhantomData<&'a [u8]>,
}

impl<'a> Sge<'a> {
    #[inline]
    pub(crate) fn new(
        device: *mut bindings::ib_device,
        address: u64,
        length: u32,
        direction: Direction,
    ) -> Self {
        Self {
            device,
            address,
            length,
            direction,
            _memory: PhantomData,
        }
    }

    /// Returns the DMA address.
    #[inline]
    pub(in crate::rdma) fn address(&self) -> u64 {
        self.address
    }

    /// Returns the length in bytes.
    #[inline]
    pub fn length(&self) -> u32 {
        self.length
    }

    /// Returns the direction in which the memory is mapped.
    #[inline]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Converts the entry for a work request by which the device of `memory` reads the memory.
    /// Fails with `EINVAL` if the mapping does not allow that, or is for another device.
    #[inline]
    pub(in crate::rdma) fn as_source(&self, memory: LocalMemory) -> Result<bindings::ib_sge> {
        if !self.direction.is_to_device() {
            return Err(EINVAL);
        }
        self.as_raw(memory)
    }

    /// Converts the entry for a work request by which the device of `memory` writes the memory.
    /// Fails with `EINVAL` if the mapping does not allow that, or is for another device.
    #[inline]
    pub(in crate::rdma) fn as_sink(&self, memory: LocalMemory) -> Result<bindings::ib_sge> {
        if !self.direction.is_from_device() {
            return Err(EINVAL);
        }
        self.as_raw(memory)
    }

    #[inline]
    fn as_raw(&self, memory: LocalMemory) -> Result<bindings::ib_sge> {
        if self.device != memory.device {
            return Err(EINVAL);
        }
        Ok(bindings::ib_sge {
            addr: self.address,
            length: self.length,
            lkey: memory.lkey,
        })
    }
}
