// SPDX-License-Identifier: GPL-2.0

//! P_Keys: the partitions that a port is in.
//!
//! C header: [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)

use crate::text::kernel_display;
use core::fmt;

/// The key of a partition: 15 bits that name it, and one for full membership.
///
/// Ports hear each other if they are in one partition and not both limited
/// members of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pkey(u16);

impl Pkey {
    /// The partition that every port is in by default, as a full member.
    pub const DEFAULT: Self = Self(0xffff);

    const FULL: u16 = 0x8000;

    /// The key of this value.
    #[inline]
    pub const fn new(value: u16) -> Self {
        Self(value)
    }

    /// Its value, with the bit of membership.
    #[inline]
    pub const fn value(self) -> u16 {
        self.0
    }

    /// Whether it makes its holder a full member.
    #[inline]
    pub const fn is_full(self) -> bool {
        self.0 & Self::FULL != 0
    }

    /// Whether it is no key: the content of an entry that is not used.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 & !Self::FULL == 0
    }
}

impl fmt::Display for Pkey {
    /// In hexadecimal, as in `0xffff`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

kernel_display!(Pkey);
