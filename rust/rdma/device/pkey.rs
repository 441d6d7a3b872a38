// SPDX-License-Identifier: GPL-2.0

//! P_Keys: the partitions of a port.
//!
//! C header: [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)

use crate::text::kernel_display;
use core::fmt;

/// The key of a partition: 15 bits identify the partition, and one bit means full membership.
///
/// Two ports can communicate if they belong to the same partition and at least one of them is a
/// full member of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pkey(u16);

impl Pkey {
    const FULL: u16 = 0x8000;

    /// Creates a key from its value.
    #[inline]
    pub const fn new(value: u16) -> Self {
        Self(value)
    }

    /// Returns the value, including the membership bit.
    #[inline]
    pub const fn value(self) -> u16 {
        self.0
    }

    /// Returns whether the key means full membership.
    #[inline]
    pub const fn is_full(self) -> bool {
        self.0 & Self::FULL != 0
    }

    /// Returns whether the key is that of an unused entry.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 & !Self::FULL == 0
    }
}

impl fmt::Display for Pkey {
    /// Prints the value in hexadecimal, as in `0xffff`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

kernel_display!(Pkey);
