// SPDX-License-Identifier: GPL-2.0

//! The direction of a mapping.
//!
//! C header: [`include/linux/dma-direction.h`](srctree/include/linux/dma-direction.h)

use crate::bindings;

/// The direction of a DMA transfer (`enum dma_data_direction`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Direction {
    /// The device reads the memory.
    ToDevice = bindings::dma_data_direction_DMA_TO_DEVICE,
    /// The device writes the memory.
    FromDevice = bindings::dma_data_direction_DMA_FROM_DEVICE,
    /// The device reads and writes the memory in any order, for example a buffer that a peer writes
    /// and reads, or the target of an atomic operation.
    Both = bindings::dma_data_direction_DMA_BIDIRECTIONAL,
}

impl Direction {
    #[inline]
    pub(crate) fn as_raw(self) -> bindings::dma_data_direction {
        self as bindings::dma_data_direction
    }

    /// Returns whether the device may read memory that is mapped in this direction.
    #[inline]
    pub fn is_to_device(self) -> bool {
        self != Direction::FromDevice
    }

    /// Returns whether the device may write memory that is mapped in this direction.
    #[inline]
    pub fn is_from_device(self) -> bool {
        self != Direction::ToDevice
    }
}
