// SPDX-License-Identifier: GPL-2.0

//! Pieces of memory that work requests name.

use super::Direction;
use crate::{
    bindings,
    rdma::{
        device::DeviceRef,
        pd::ProtectionDomain, //
    },
};
use core::marker::PhantomData;
use kernel::prelude::*;

/// One contiguous piece of mapped memory (`struct ib_sge`), borrowed from what
/// keeps it mapped.
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
        device: &'a DeviceRef,
        address: u64,
        length: u32,
        direction: Direction,
    ) -> Self {
        Self {
            device: device.as_raw(),
            address,
            length,
            direction,
            _memory: PhantomData,
        }
    }

    /// Length in bytes.
    #[inline]
    pub fn length(&self) -> u32 {
        self.length
    }

    /// What the device may do with the memory.
    #[inline]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// As an entry of a request of this domain by which the device reads the memory.
    #[inline]
    pub(in crate::rdma) fn as_source(&self, domain: &ProtectionDomain) -> Result<bindings::ib_sge> {
        if !self.direction.is_to_device() {
            return Err(EINVAL);
        }
        self.as_raw(domain)
    }

    /// As an entry of a request of this domain by which the device writes the memory.
    #[inline]
    pub(in crate::rdma) fn as_sink(&self, domain: &ProtectionDomain) -> Result<bindings::ib_sge> {
        if !self.direction.is_from_device() {
            return Err(EINVAL);
        }
        self.as_raw(domain)
    }

    #[inline]
    fn as_raw(&self, domain: &ProtectionDomain) -> Result<bindings::ib_sge> {
        if self.device != domain.device().as_raw() {
            return Err(EINVAL);
        }
        Ok(bindings::ib_sge {
            addr: self.address,
            length: self.length,
            lkey: domain.local_dma_lkey(),
        })
    }
}
