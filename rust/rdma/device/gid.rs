// SPDX-License-Identifier: GPL-2.0

//! GIDs, the addresses of ports, and the tables of them.
//!
//! C header: [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)
//!
//! With RoCE, the core maintains the table. It has an entry for each IP address of the port's
//! network devices and each RoCE version of the port. Entries therefore change while the device is
//! in use; a [`GidEntry`] keeps one in place.

use super::{
    Device,
    Netdev, //
};
use crate::{
    bindings,
    text::kernel_display, //
};
use core::{
    fmt,
    marker::PhantomData,
    net::{
        Ipv4Addr,
        Ipv6Addr, //
    },
    ptr::NonNull,
};
use kernel::{
    error::from_err_ptr,
    prelude::*, //
};

/// A global identifier (GID): the address of a port, 16 bytes in network byte order
/// (`union ib_gid`).
///
/// With RoCE v2, this is the IPv6 address of the port, or its IPv4 address as an IPv4-mapped one.
/// With InfiniBand, it consists of the subnet prefix and the port GUID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Gid([u8; 16]);

impl Gid {
    /// Creates a GID from its bytes, in network byte order.
    #[inline]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, in network byte order.
    #[inline]
    pub const fn bytes(&self) -> [u8; 16] {
        self.0
    }

    /// Returns the first half: the subnet prefix.
    #[inline]
    pub const fn subnet_prefix(&self) -> u64 {
        (u128::from_be_bytes(self.0) >> 64) as u64
    }

    /// Returns the second half; with InfiniBand, the port GUID.
    #[inline]
    pub const fn interface_id(&self) -> u64 {
        u128::from_be_bytes(self.0) as u64
    }

    /// Returns whether the GID is all zeroes, as in an unused entry.
    #[inline]
    pub const fn is_zero(&self) -> bool {
        u128::from_be_bytes(self.0) == 0
    }

    /// Returns the IPv4 address if the GID is an IPv4-mapped address.
    #[inline]
    pub fn to_ipv4(&self) -> Option<Ipv4Addr> {
        Ipv6Addr::from(self.0).to_ipv4_mapped()
    }

    /// Converts the GID for C.
    #[inline]
    pub(crate) fn as_raw(&self) -> bindings::ib_gid {
        bindings::ib_gid { raw: self.0 }
    }

    #[inline]
    pub(crate) fn from_raw(raw: bindings::ib_gid) -> Self {
        // SAFETY: Both members of the union are plain bytes, valid for every bit pattern.
        Self(unsafe { raw.raw })
    }
}

impl From<Ipv6Addr> for Gid {
    fn from(address: Ipv6Addr) -> Self {
        Self(address.octets())
    }
}

impl From<Ipv4Addr> for Gid {
    /// The IPv4-mapped address, `::ffff:a.b.c.d`.
    fn from(address: Ipv4Addr) -> Self {
        address.to_ipv6_mapped().into()
    }
}

impl fmt::Display for Gid {
    /// Prints the GID as an IPv6 address, as the programs of rdma-core do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}

kernel_display!(Gid);

/// The type of a GID table entry, and thus of the packets that use it (`enum ib_gid_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum GidKind {
    /// InfiniBand, or another protocol that is not RoCE.
    InfiniBand = bindings::ib_gid_type_IB_GID_TYPE_IB,
    /// RoCE v1: Ethernet frames with an EtherType of their own, which routers do not forward.
    RoceV1 = bindings::ib_gid_type_IB_GID_TYPE_ROCE,
    /// RoCE v2: UDP over IPv4 or IPv6, port 4791.
    RoceV2 = bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP,
}

impl GidKind {
    #[inline]
    pub(crate) fn as_raw(self) -> bindings::ib_gid_type {
        self as bindings::ib_gid_type
    }

    #[inline]
    pub(crate) fn from_raw(raw: bindings::ib_gid_type) -> Self {
        match raw {
            bindings::ib_gid_type_IB_GID_TYPE_ROCE => Self::RoceV1,
            bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP => Self::RoceV2,
            _ => Self::InfiniBand,
        }
    }
}

impl fmt::Display for GidKind {
    /// Prints the name that the core uses in sysfs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InfiniBand => "IB",
            Self::RoceV1 => "RoCE v1",
            Self::RoceV2 => "RoCE v2",
        })
    }
}

kernel_display!(GidKind);

/// A reference to an entry of a port's GID table (`struct ib_gid_attr`).
///
/// The entry keeps its content and its index while the reference exists, even if the address is
/// removed from the network device. The path of a queue pair and an address handle have references
/// of their own, so this one may be dropped once they are created. May be dropped in any context.
///
/// # Invariants
///
/// `raw` is a valid entry of a device that is registered during `'a`. This object owns one
/// reference to the entry.
pub struct GidEntry<'a> {
    raw: NonNull<bindings::ib_gid_attr>,
    _device: PhantomData<&'a Device>,
}

// SAFETY: References to an entry are counted atomically, so any thread may drop one.
unsafe impl Send for GidEntry<'_> {}
// SAFETY: The fields that `&self` methods read are constant while there is a reference.
unsafe impl Sync for GidEntry<'_> {}

impl<'a> GidEntry<'a> {
    /// Takes over a reference to an entry.
    ///
    /// # Safety
    ///
    /// `raw` must be an error pointer, null, or a valid entry of a device that is registered during
    /// `'a`, with a reference that the caller gives up.
    pub(super) unsafe fn from_raw(raw: *const bindings::ib_gid_attr) -> Result<Self> {
        let raw = NonNull::new(from_err_ptr(raw.cast_mut())?).ok_or(ENOENT)?;
        // INVARIANT: By the safety requirements.
        Ok(Self {
            raw,
            _device: PhantomData,
        })
    }

    #[inline]
    fn attr(&self) -> &bindings::ib_gid_attr {
        // SAFETY: By the type invariant, the entry is valid. Its only field that changes is the
        // pointer to the network device, which is not read through this reference.
        unsafe { self.raw.as_ref() }
    }

    /// Returns the pointer for C.
    #[inline]
    pub(crate) fn as_raw(&self) -> *const bindings::ib_gid_attr {
        self.raw.as_ptr()
    }

    /// Returns the GID.
    #[inline]
    pub fn gid(&self) -> Gid {
        Gid::from_raw(self.attr().gid)
    }

    /// Returns the type of the entry.
    #[inline]
    pub fn kind(&self) -> GidKind {
        GidKind::from_raw(self.attr().gid_type)
    }

    /// Returns the index of the entry in the port's table.
    #[inline]
    pub fn index(&self) -> u16 {
        self.attr().index
    }

    /// Returns the device.
    #[inline]
    pub fn device(&self) -> &'a Device {
        // SAFETY: By the type invariant, the device of the entry is registered during `'a`.
        unsafe { Device::from_raw(self.attr().device) }
    }

    /// Returns the number of the port.
    #[inline]
    pub fn port(&self) -> u32 {
        self.attr().port_num
    }

    /// Returns the network device that has the address. `None` with InfiniBand, and if the address
    /// was removed from the network device. Any context.
    pub fn netdev(&self) -> Option<Netdev> {
        let mut raw = pin_init::zeroed::<bindings::rrdma_netdev>();
        // SAFETY: By the type invariant, the entry is valid. `raw` is valid for writes.
        unsafe { bindings::gid_netdev(self.raw.as_ptr(), &mut raw) };
        Netdev::from_raw(&raw)
    }
}

impl Clone for GidEntry<'_> {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariant, the entry is valid and has a reference.
        unsafe { bindings::rdma_hold_gid_attr(self.raw.as_ptr()) };
        // INVARIANT: `rdma_hold_gid_attr` has taken the reference.
        Self {
            raw: self.raw,
            _device: PhantomData,
        }
    }
}

impl Drop for GidEntry<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, this object owns the reference. Dropping the last one
        // queues work, for which the core waits before it frees the device.
        unsafe { bindings::rdma_put_gid_attr(self.raw.as_ptr()) };
    }
}
