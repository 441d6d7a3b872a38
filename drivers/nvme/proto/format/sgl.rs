// SPDX-License-Identifier: GPL-2.0

//! SGL descriptors: where the data of a command is.
//!
//! Source: NVMe Base 2.3, section 4.3.2 (Scatter Gather List); keyed descriptors: NVMe RDMA
//! Transport.

use crate::format::layout::{Reader, Writer};

/// An SGL descriptor of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sgl {
    /// Address of the data, or its offset in the capsule.
    address: u64,
    /// Length, key of a keyed descriptor, and SGL identifier (type and subtype) in the highest
    /// byte.
    rest: u64,
}

/// The side that invalidates the key of a keyed descriptor when the command ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invalidate {
    /// The host, with a local invalidation.
    ByHost,
    /// The target, if it chooses to: it may send its response as Send With Invalidate.
    ByTarget,
}

/// The data of a command, as the descriptor of its host tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataBlock {
    /// In the capsule, so many bytes after the command.
    InCapsule {
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes.
        length: u32,
    },
    /// In the memory of the host.
    Keyed {
        /// Address in the host's memory.
        address: u64,
        /// Length in bytes, at most [`Sgl::MAX_KEYED_LEN`].
        length: u32,
        /// The key (R_Key).
        key: u32,
        /// The side that invalidates the key.
        invalidate: Invalidate,
    },
}

/// Reason why a descriptor is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SglError {
    /// The type is none of this transport.
    Type(u8),
    /// The type has no such subtype.
    Subtype(u8),
}

impl Sgl {
    /// Size in bytes.
    pub const SIZE: usize = 16;

    /// Largest length of a keyed descriptor in bytes: the field has 24 bits.
    pub const MAX_KEYED_LEN: u32 = (1 << 24) - 1;

    /// Keyed SGL Data Block (4h), subtype Address (0h).
    const KEYED_DATA_BLOCK: u8 = 0x40;

    /// Keyed SGL Data Block (4h), subtype Fh: the target may invalidate the key.
    const KEYED_DATA_BLOCK_INVALIDATE: u8 = 0x4f;

    /// SGL Data Block (0h), subtype Offset (1h).
    const DATA_BLOCK_OFFSET: u8 = 0x01;

    /// Returns the descriptor of a command without data: a keyed data block of length 0.
    #[inline]
    pub const fn null() -> Self {
        Self::new(0, 0, Self::KEYED_DATA_BLOCK)
    }

    #[inline]
    const fn new(address: u64, rest: u64, kind: u8) -> Self {
        Self {
            address,
            rest: rest | ((kind as u64) << 56),
        }
    }

    /// Describes `len` bytes of host memory at `addr`, which the target accesses with `key`; `None`
    /// if `len` exceeds [`Self::MAX_KEYED_LEN`].
    #[inline]
    pub fn keyed(addr: u64, len: u32, key: u32, invalidate: Invalidate) -> Option<Self> {
        if len > Self::MAX_KEYED_LEN {
            return None;
        }
        let kind = match invalidate {
            Invalidate::ByHost => Self::KEYED_DATA_BLOCK,
            Invalidate::ByTarget => Self::KEYED_DATA_BLOCK_INVALIDATE,
        };
        // Bits 23:0 are the length, bits 55:24 the key.
        let length_and_key = u64::from(len) | (u64::from(key) << 24);
        Some(Self::new(addr, length_and_key, kind))
    }

    /// Describes `len` bytes in the capsule, `offset` bytes after the command.
    #[inline]
    pub const fn in_capsule(offset: u64, len: u32) -> Self {
        Self::new(offset, len as u64, Self::DATA_BLOCK_OFFSET)
    }

    /// Decodes a descriptor of a host.
    ///
    /// # Errors
    ///
    /// The SGL identifier, if its type or subtype is not one of the NVMe RDMA Transport.
    #[inline]
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Result<DataBlock, SglError> {
        let fields = Reader::over(bytes);
        let address = fields.u64::<0>();
        // One word: the compiler would copy fields that overlap to the stack.
        let rest = fields.u64::<8>();
        let low = (rest & 0xffff_ffff) as u32;
        let keyed = |invalidate| DataBlock::Keyed {
            address,
            length: low & Self::MAX_KEYED_LEN,
            key: ((rest >> 24) & 0xffff_ffff) as u32,
            invalidate,
        };
        match (rest >> 56) as u8 {
            Self::KEYED_DATA_BLOCK => Ok(keyed(Invalidate::ByHost)),
            Self::KEYED_DATA_BLOCK_INVALIDATE => Ok(keyed(Invalidate::ByTarget)),
            Self::DATA_BLOCK_OFFSET => Ok(DataBlock::InCapsule {
                offset: address,
                length: low,
            }),
            kind if kind & 0xf0 == 0 || kind & 0xf0 == Self::KEYED_DATA_BLOCK => {
                Err(SglError::Subtype(kind))
            }
            kind => Err(SglError::Type(kind)),
        }
    }

    /// Returns the bytes of the descriptor.
    #[inline]
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let mut block = Writer::over(&mut bytes);
        block.put::<0, 8>(self.address.to_le_bytes());
        block.put::<8, 8>(self.rest.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests;
