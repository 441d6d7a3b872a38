// SPDX-License-Identifier: GPL-2.0

//! SGL descriptors: where the data of a command is.
//!
//! Source: NVMe Base 2.3, section 4.3.2 (Scatter Gather List); keyed descriptors: NVMe RDMA
//! Transport.

use crate::format::layout::Writer;

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
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        // struct nvme_keyed_sgl_desc: addr, length[3], key[4], type.
        let keyed = Sgl::keyed(
            0x1122_3344_5566_7788,
            0x00ab_cdef,
            0xdead_beef,
            Invalidate::ByHost,
        );
        assert_eq!(
            keyed.unwrap().to_bytes(),
            [
                0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xef, 0xcd, 0xab, 0xef, 0xbe, 0xad,
                0xde, 0x40
            ]
        );
        let invalidate = Sgl::keyed(0, 1, 0xff, Invalidate::ByTarget).unwrap();
        assert_eq!(
            invalidate.to_bytes(),
            [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0xff, 0, 0, 0, 0x4f]
        );
        // struct nvme_sgl_desc: addr, length, rsvd[3], type.
        assert_eq!(
            Sgl::in_capsule(0x10, 0x0102_0304).to_bytes(),
            [0x10, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1, 0, 0, 0, 0x01]
        );
        assert_eq!(
            Sgl::null().to_bytes(),
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40]
        );
    }

    #[test]
    fn keyed_length_has_24_bits() {
        for len in [0, 1, Sgl::MAX_KEYED_LEN] {
            assert!(Sgl::keyed(0, len, 0, Invalidate::ByHost).is_some());
        }
        for len in [Sgl::MAX_KEYED_LEN + 1, u32::MAX] {
            assert_eq!(Sgl::keyed(0, len, 0, Invalidate::ByTarget), None);
        }
    }
}
