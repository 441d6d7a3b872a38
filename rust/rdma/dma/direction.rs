// SPDX-License-Identifier: GPL-2.0

//! The direction of a mapping.
//!
//! C header: [`include/linux/dma-direction.h`](srctree/include/linux/dma-direction.h)

use crate::bindings;

/// Which way data moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The device reads the memory.
    ToDevice,
    /// The device writes the memory.
    FromDevice,
    /// The device does either, in an order that it does not tell: a sink that is
    /// read later, or a word that is changed atomically.
    Both,
}

impl Direction {
    #[inline]
    pub(crate) fn as_raw(self) -> bindings::dma_data_direction {
        match self {
            Direction::ToDevice => bindings::dma_data_direction_DMA_TO_DEVICE,
            Direction::FromDevice => bindings::dma_data_direction_DMA_FROM_DEVICE,
            Direction::Both => bindings::dma_data_direction_DMA_BIDIRECTIONAL,
        }
    }

    /// Whether the device may read memory that is mapped like this.
    #[inline]
    pub fn is_to_device(self) -> bool {
        self != Direction::FromDevice
    }

    /// Whether the device may write memory that is mapped like this.
    #[inline]
    pub fn is_from_device(self) -> bool {
        self != Direction::ToDevice
    }
}
