// SPDX-License-Identifier: GPL-2.0

//! Socket addresses.
//!
//! C header: [`include/linux/inet.h`](srctree/include/linux/inet.h)

use super::Namespace;
use crate::{
    bindings,
    text::kernel_display, //
};
use core::fmt::{
    self,
    Write, //
};
use kernel::{
    error::to_result,
    prelude::*,
    str::CString, //
};

/// An IPv4 or IPv6 address with a port.
#[derive(Clone, Copy)]
pub struct Address(bindings::__kernel_sockaddr_storage);

// SAFETY: The storage is plain bytes. Its pointer member is only there for the alignment.
unsafe impl Send for Address {}
// SAFETY: The storage is plain bytes, and a shared reference only reads them.
unsafe impl Sync for Address {}

impl Address {
    /// Parses a numeric IPv4 or IPv6 address. An IPv6 address may have an `%interface` suffix,
    /// which is looked up in `namespace`. May sleep. C: `inet_pton_with_scope()`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `text` is not an address; `ENOMEM`.
    pub fn parse(namespace: &Namespace, text: &str, port: u16) -> Result<Self> {
        let text = CString::try_from_fmt(fmt!("{text}"))?;
        let port = CString::try_from_fmt(fmt!("{port}"))?;
        let mut storage = bindings::__kernel_sockaddr_storage::default();
        // SAFETY: The namespace is alive, the strings are NUL-terminated, and `storage` is
        // writable.
        to_result(unsafe {
            bindings::inet_pton_with_scope(
                namespace.as_ptr(),
                bindings::AF_UNSPEC as u16,
                text.as_char_ptr(),
                port.as_char_ptr(),
                &mut storage,
            )
        })?;
        Ok(Self(storage))
    }

    /// Copies an address.
    ///
    /// # Safety
    ///
    /// `raw` is valid for reads, and holds an IPv4 or IPv6 address.
    pub(crate) unsafe fn from_raw(raw: *const bindings::__kernel_sockaddr_storage) -> Self {
        // SAFETY: By the safety requirements of this function, `raw` is valid for reads.
        Self(unsafe { raw.read() })
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::sockaddr {
        core::ptr::from_ref(&self.0).cast_mut().cast()
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        // SAFETY: The storage has the size and alignment of any address. The port has the same
        // offset in both families.
        u16::from_be(unsafe { (*self.as_raw().cast::<bindings::sockaddr_in>()).sin_port })
    }

    /// Returns whether this is a multicast address.
    pub fn is_multicast(&self) -> bool {
        if self.family() == bindings::AF_INET6 {
            // SAFETY: The storage has the size and alignment of any address. All members of the
            // union are plain bytes.
            let bytes = unsafe {
                (*self.as_raw().cast::<bindings::sockaddr_in6>())
                    .sin6_addr
                    .in6_u
                    .u6_addr8
            };
            return core::net::Ipv6Addr::from(bytes).is_multicast();
        }
        // SAFETY: The storage has the size and alignment of any address; the only other family is
        // IPv4.
        let address = unsafe { &*self.as_raw().cast::<bindings::sockaddr_in>() };
        core::net::Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes()).is_multicast()
    }

    /// Returns whether both addresses have the same family.
    pub fn same_family(&self, other: &Self) -> bool {
        self.family() == other.family()
    }

    pub(crate) fn family(&self) -> u32 {
        // SAFETY: Every member of the union starts with the family.
        u32::from(unsafe { self.0.__bindgen_anon_1.__bindgen_anon_1.ss_family })
    }
}

impl PartialEq for Address {
    /// Compares family, address, port and scope.
    fn eq(&self, other: &Self) -> bool {
        if self.family() != other.family() {
            return false;
        }
        if self.family() == bindings::AF_INET6 {
            // SAFETY: The storage has the size and alignment of any address.
            let (a, b) = unsafe {
                (
                    &*self.as_raw().cast::<bindings::sockaddr_in6>(),
                    &*other.as_raw().cast::<bindings::sockaddr_in6>(),
                )
            };
            // SAFETY: All members of the union are plain bytes.
            let same = unsafe { a.sin6_addr.in6_u.u6_addr8 == b.sin6_addr.in6_u.u6_addr8 };
            return same && a.sin6_port == b.sin6_port && a.sin6_scope_id == b.sin6_scope_id;
        }
        // SAFETY: The storage has the size and alignment of any address; the only other family is
        // IPv4.
        let (a, b) = unsafe {
            (
                &*self.as_raw().cast::<bindings::sockaddr_in>(),
                &*other.as_raw().cast::<bindings::sockaddr_in>(),
            )
        };
        a.sin_addr.s_addr == b.sin_addr.s_addr && a.sin_port == b.sin_port
    }
}

impl fmt::Display for Address {
    /// Formats as `10.0.0.9:4420` or `[fd00::9]:4420`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.family() == bindings::AF_INET6 {
            // SAFETY: The storage has the size and alignment of any address.
            let address = unsafe { &*self.as_raw().cast::<bindings::sockaddr_in6>() };
            // SAFETY: All members of the union are plain bytes.
            let bytes = unsafe { address.sin6_addr.in6_u.u6_addr8 };
            f.write_char('[')?;
            core::net::Ipv6Addr::from(bytes).fmt(f)?;
            return write!(f, "]:{}", u16::from_be(address.sin6_port));
        }
        // SAFETY: The storage has the size and alignment of any address; the only other family is
        // IPv4.
        let address = unsafe { &*self.as_raw().cast::<bindings::sockaddr_in>() };
        let bytes = address.sin_addr.s_addr.to_ne_bytes();
        let address_port = u16::from_be(address.sin_port);
        core::net::Ipv4Addr::from(bytes).fmt(f)?;
        write!(f, ":{address_port}")
    }
}

kernel_display!(Address);
