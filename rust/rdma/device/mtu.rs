// SPDX-License-Identifier: GPL-2.0

//! Path MTUs.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `enum ib_mtu`

use crate::{
    bindings,
    text::kernel_display, //
};
use core::fmt;

/// The maximum payload of a packet on a path (`enum ib_mtu`).
///
/// Both ends of a connection must use the same MTU. A longer message is sent in several packets. A
/// datagram must fit into one packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum Mtu {
    /// 256 bytes.
    Bytes256 = bindings::ib_mtu_IB_MTU_256,
    /// 512 bytes.
    Bytes512 = bindings::ib_mtu_IB_MTU_512,
    /// 1024 bytes.
    Bytes1024 = bindings::ib_mtu_IB_MTU_1024,
    /// 2048 bytes.
    Bytes2048 = bindings::ib_mtu_IB_MTU_2048,
    /// 4096 bytes.
    Bytes4096 = bindings::ib_mtu_IB_MTU_4096,
}

impl Mtu {
    /// All MTUs, in ascending order.
    pub const ALL: [Self; 5] = [
        Self::Bytes256,
        Self::Bytes512,
        Self::Bytes1024,
        Self::Bytes2048,
        Self::Bytes4096,
    ];

    /// Returns the size in bytes.
    #[inline]
    pub const fn bytes(self) -> u32 {
        128 << self.as_raw()
    }

    /// Returns the MTU of exactly `bytes` bytes, if there is one.
    pub fn from_bytes(bytes: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.bytes() == bytes)
    }

    /// Returns the number that the verbs and the wire format use.
    #[inline]
    pub(crate) const fn as_raw(self) -> bindings::ib_mtu {
        self as bindings::ib_mtu
    }

    /// Converts the number of the verbs. `None` if it is no MTU, as for a port without a link.
    #[inline]
    pub(crate) fn from_raw(raw: bindings::ib_mtu) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.as_raw() == raw)
    }
}

impl fmt::Display for Mtu {
    /// Prints the number of bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

kernel_display!(Mtu);
