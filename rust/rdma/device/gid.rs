// SPDX-License-Identifier: GPL-2.0

//! GIDs: the addresses of ports, and the tables that hold them.
//!
//! C header: [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)
//!
//! With RoCE the core keeps the table: an entry for every IP address of the
//! port's network devices and every version of RoCE that the device speaks. So
//! entries come and go while a device is used; a [`GidEntry`] keeps one in place.

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

/// The address of a port, 16 bytes as on the wire (`union ib_gid`).
///
/// With RoCE v2 it is the IPv6 address of the port, or its IPv4 address mapped
/// into one; with InfiniBand the subnet's prefix and the port's GUID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Gid([u8; 16]);

impl Gid {
    /// The GID of these bytes, in the order of the wire.
    #[inline]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes, in the order of the wire.
    #[inline]
    pub const fn bytes(&self) -> [u8; 16] {
        self.0
    }

    /// The first half: the prefix of the subnet.
    #[inline]
    pub const fn subnet_prefix(&self) -> u64 {
        (u128::from_be_bytes(self.0) >> 64) as u64
    }

    /// The second half: with InfiniBand the GUID of the port.
    #[inline]
    pub const fn interface_id(&self) -> u64 {
        u128::from_be_bytes(self.0) as u64
    }

    /// Whether it is none: all zeroes, the content of an entry that is not used.
    #[inline]
    pub const fn is_zero(&self) -> bool {
        u128::from_be_bytes(self.0) == 0
    }

    /// The IPv4 address that is mapped into it, if one is.
    #[inline]
    pub fn to_ipv4(&self) -> Option<Ipv4Addr> {
        Ipv6Addr::from(self.0).to_ipv4_mapped()
    }

    /// As the verbs take it.
    #[inline]
    pub(crate) fn as_raw(&self) -> bindings::ib_gid {
        bindings::ib_gid { raw: self.0 }
    }

    #[inline]
    pub(crate) fn from_raw(raw: bindings::ib_gid) -> Self {
        // SAFETY: All members of the union are plain bytes.
        Self(unsafe { raw.raw })
    }
}

impl From<Ipv6Addr> for Gid {
    fn from(address: Ipv6Addr) -> Self {
        Self(address.octets())
    }
}

impl From<Ipv4Addr> for Gid {
    /// The mapped address, `::ffff:a.b.c.d`.
    fn from(address: Ipv4Addr) -> Self {
        address.to_ipv6_mapped().into()
    }
}

impl fmt::Display for Gid {
    /// As an IPv6 address, like the programs of rdma-core print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}

kernel_display!(Gid);

/// What packets the address of an entry goes into (`enum ib_gid_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GidKind {
    /// InfiniBand, and whatever is not RoCE.
    InfiniBand,
    /// RoCE v1: Ethernet frames of a type of their own, which routers do not pass.
    RoceV1,
    /// RoCE v2: UDP over IPv4 or IPv6, port 4791.
    RoceV2,
}

impl GidKind {
    #[inline]
    pub(crate) fn as_raw(self) -> bindings::ib_gid_type {
        match self {
            Self::InfiniBand => bindings::ib_gid_type_IB_GID_TYPE_IB,
            Self::RoceV1 => bindings::ib_gid_type_IB_GID_TYPE_ROCE,
            Self::RoceV2 => bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP,
        }
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
    /// As the core names it in sysfs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InfiniBand => "IB",
            Self::RoceV1 => "RoCE v1",
            Self::RoceV2 => "RoCE v2",
        })
    }
}

kernel_display!(GidKind);

/// An entry of a port's GID table, held (`struct ib_gid_attr`).
///
/// While it is held, the entry keeps its content and its index, even if the
/// address is taken off the network device meanwhile. What is made of it, a path
/// of a queue pair or an address handle, holds the entry itself: so this one is
/// needed no longer than making that takes. May be dropped in any context.
///
/// # Invariants
///
/// `raw` is an entry of a device that is registered during `'a`, on which this
/// owns one reference.
pub struct GidEntry<'a> {
    raw: NonNull<bindings::ib_gid_attr>,
    _device: PhantomData<&'a Device>,
}

// SAFETY: References on an entry are counted atomically, and may be given up by
// another thread than the one that took them.
unsafe impl Send for GidEntry<'_> {}
// SAFETY: What is read through a shared entry is constant while it is held.
unsafe impl Sync for GidEntry<'_> {}

impl<'a> GidEntry<'a> {
    /// The entry at `index` of port `port` (`rdma_get_gid_attr`).
    pub(super) fn at(device: &'a Device, port: u32, index: u32) -> Result<Self> {
        let index = index.try_into()?;
        // SAFETY: The device is registered; the core checks the port and the index.
        unsafe { Self::from_raw(bindings::rdma_get_gid_attr(device.as_raw(), port, index)) }
    }

    /// The entry of port `port` with this content (`rdma_find_gid_by_port`).
    pub(super) fn find(device: &'a Device, port: u32, gid: &Gid, kind: GidKind) -> Result<Self> {
        let gid = gid.as_raw();
        // SAFETY: The device is registered; the core checks the port. No network
        // device is asked for.
        unsafe {
            Self::from_raw(bindings::rdma_find_gid_by_port(
                device.as_raw(),
                &gid,
                kind.as_raw(),
                port,
                core::ptr::null_mut(),
            ))
        }
    }

    /// # Safety
    ///
    /// `raw` must be an error or an entry of a device that is registered during
    /// `'a`, with a reference on it for the result to own.
    unsafe fn from_raw(raw: *const bindings::ib_gid_attr) -> Result<Self> {
        let raw = NonNull::new(from_err_ptr(raw.cast_mut())?).ok_or(ENOENT)?;
        // INVARIANT: By the contract.
        Ok(Self {
            raw,
            _device: PhantomData,
        })
    }

    #[inline]
    fn attr(&self) -> &bindings::ib_gid_attr {
        // SAFETY: By the type invariant. The one member that changes is the
        // pointer to the network device, which is not read through this.
        unsafe { self.raw.as_ref() }
    }

    /// As the verbs take it.
    #[inline]
    pub(crate) fn as_raw(&self) -> *const bindings::ib_gid_attr {
        self.raw.as_ptr()
    }

    /// The address.
    #[inline]
    pub fn gid(&self) -> Gid {
        Gid::from_raw(self.attr().gid)
    }

    /// What packets it goes into.
    #[inline]
    pub fn kind(&self) -> GidKind {
        GidKind::from_raw(self.attr().gid_type)
    }

    /// Its place in the table of the port.
    #[inline]
    pub fn index(&self) -> u16 {
        self.attr().index
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> &'a Device {
        // SAFETY: By the type invariant.
        unsafe { Device::from_raw(self.attr().device) }
    }

    /// The number of the port.
    #[inline]
    pub fn port(&self) -> u32 {
        self.attr().port_num
    }

    /// The network device that the address is on; `None` with InfiniBand, and if the
    /// address has been taken off it. Any context.
    pub fn netdev(&self) -> Option<Netdev> {
        let mut raw = bindings::rrdma_netdev::default();
        // SAFETY: By the type invariant; `raw` is writable.
        unsafe { bindings::gid_netdev(self.raw.as_ptr(), &mut raw) };
        Netdev::from_raw(&raw)
    }
}

impl Clone for GidEntry<'_> {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariant.
        unsafe { bindings::rdma_hold_gid_attr(self.raw.as_ptr()) };
        // INVARIANT: The reference was just taken.
        Self {
            raw: self.raw,
            _device: PhantomData,
        }
    }
}

impl Drop for GidEntry<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; the reference is not used any more. The
        // last one queues work, for which the core waits when the device goes.
        unsafe { bindings::rdma_put_gid_attr(self.raw.as_ptr()) };
    }
}
