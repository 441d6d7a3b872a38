// SPDX-License-Identifier: GPL-2.0

//! Socket addresses.
//!
//! C header: [`include/linux/inet.h`](srctree/include/linux/inet.h)

use super::Namespace;
use crate::{
    bindings,
    text::kernel_display, //
};
use core::{
    fmt,
    net::{
        IpAddr,
        Ipv4Addr,
        Ipv6Addr,
        SocketAddr,
        SocketAddrV6, //
    },
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
        let mut storage = pin_init::zeroed::<bindings::__kernel_sockaddr_storage>();
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

    /// Returns the address as a type of `core`, without the flow label.
    fn socket(&self) -> SocketAddr {
        if self.family() == bindings::AF_INET6 {
            // SAFETY: The storage has the size and alignment of any address.
            let raw = unsafe { &*self.as_raw().cast::<bindings::sockaddr_in6>() };
            // SAFETY: All members of the union are plain bytes.
            let ip = Ipv6Addr::from(unsafe { raw.sin6_addr.in6_u.u6_addr8 });
            let port = u16::from_be(raw.sin6_port);
            return SocketAddrV6::new(ip, port, 0, raw.sin6_scope_id).into();
        }
        // SAFETY: The storage has the size and alignment of any address; the only other family is
        // IPv4.
        let raw = unsafe { &*self.as_raw().cast::<bindings::sockaddr_in>() };
        let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
        SocketAddr::from((ip, u16::from_be(raw.sin_port)))
    }

    /// Returns the IP address, without the scope.
    pub fn ip(&self) -> IpAddr {
        self.socket().ip()
    }

    /// Returns whether this is the unspecified address (`0.0.0.0`, `::`).
    pub fn is_unspecified(&self) -> bool {
        self.ip().is_unspecified()
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.socket().port()
    }

    /// Returns whether this is a multicast address.
    pub fn is_multicast(&self) -> bool {
        self.socket().ip().is_multicast()
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
        self.same_family(other) && self.socket() == other.socket()
    }
}

impl fmt::Display for Address {
    /// Formats as `10.0.0.9:4420` or `[fd00::9]:4420`, without the scope.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let socket = self.socket();
        fmt::Display::fmt(&SocketAddr::new(socket.ip(), socket.port()), f)
    }
}

kernel_display!(Address);
