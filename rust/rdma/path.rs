// SPDX-License-Identifier: GPL-2.0

//! Paths of the packets of a queue pair or a datagram.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct rdma_ah_attr`
//!
//! The connection manager resolves the path of a connection that it establishes. For a connection
//! without it, the two ends exchange their GIDs in another way, and each creates a [`Path`] to the
//! other's GID:
//!
//! ```ignore
//! // samples/common/port_gid.rs
//! source: port.gid(gid_index).step("GID")?,
//! // ...
//! path: Path::to_gid(self.source.clone(), there.source.gid()).step("path")?,
//! ```

mod resolve;

use super::{
    device::{
        Device,
        Gid,
        GidEntry,
        GidKind,
        Port, //
    }, //
};
use crate::{
    bindings,
    errno::{
        EAFNOSUPPORT,
        EPROTONOSUPPORT, //
    }, //
};
use kernel::prelude::*;

/// Declares a number of at most `$bits` bits. A larger number cannot be created, so none is
/// truncated silently where it is used.
macro_rules! number_of_bits {
    ($(#[$doc:meta])* $name:ident($type:ty), $bits:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub struct $name($type);

        impl $name {
            /// The largest number.
            pub const MAX: Self = Self((1 << $bits) - 1);

            /// Creates the number; `None` if `value` has more bits.
            #[inline]
            pub const fn new(value: $type) -> Option<Self> {
                if value > Self::MAX.0 {
                    return None;
                }
                Some(Self(value))
            }

            /// Returns the number `N`. More bits are an error of the compiler.
            #[inline]
            pub const fn of<const N: $type>() -> Self {
                const { assert!(N <= Self::MAX.0, "the number has more bits") };
                Self(N)
            }

            /// Returns the value.
            #[inline]
            pub const fn get(self) -> $type {
                self.0
            }
        }
    };
}

pub(crate) use number_of_bits;

number_of_bits! {
    /// The service level of packets, 4 bits. With InfiniBand, it selects the virtual lane; with
    /// RoCE, the priority of the Ethernet frames.
    ServiceLevel(u8), 4
}

/// The source and destination of packets, and how they travel (`struct rdma_ah_attr`).
///
/// Holds a reference to the GID table entry of the source. The connection or address handle that is
/// created from a path has its own reference, so the path may be dropped then.
///
/// # Invariants
///
/// `raw` is a path that starts at `port`. If it has a global route header (GRH), that refers to
/// `_source`.
pub struct Path<'a> {
    port: Port<'a>,
    raw: bindings::rdma_ah_attr,
    /// Keeps the GID table entry in place.
    _source: Option<GidEntry<'a>>,
}

impl<'a> Path<'a> {
    /// Creates the path of RoCE packets from `source` to the port with the GID `destination`, with
    /// service level 0 and traffic class 0. Sleeps.
    ///
    /// Resolves the route and the Ethernet address of the next hop in the network namespace of the
    /// source (`rdma_resolve_ip`). This takes at most a second.
    ///
    /// # Errors
    ///
    /// - `EPROTONOSUPPORT` if `source` does not belong to a RoCE port;
    /// - `EAFNOSUPPORT` if only one of the two is an IPv4 address;
    /// - `EINVAL` if `destination` is zero or a multicast address;
    /// - `EOVERFLOW` if the index of `source` is above 255, the limit of the verbs;
    /// - `ETIMEDOUT` if the next hop does not answer; `ENETUNREACH` or a similar error if there is
    ///   no route; `ENODEV` if the network device of the source is gone.
    pub fn to_gid(source: GidEntry<'a>, destination: Gid) -> Result<Self> {
        if source.kind() == GidKind::InfiniBand {
            return Err(EPROTONOSUPPORT);
        }
        if destination.is_zero() || is_multicast(&destination) {
            return Err(EINVAL);
        }
        if source.gid().to_ipv4().is_some() != destination.to_ipv4().is_some() {
            return Err(EAFNOSUPPORT);
        }
        let sgid_index = source.index().try_into().map_err(|_| EOVERFLOW)?;
        let port = source.device().port(source.port()).ok_or(EINVAL)?;
        let next_hop = resolve::next_hop(&source, &destination)?;
        let mut raw = bindings::rdma_ah_attr {
            type_: bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE,
            port_num: port.number(),
            ah_flags: bindings::ib_ah_flags_IB_AH_GRH as u8,
            // With RoCE v2, the device makes the IP header from it.
            grh: bindings::ib_global_route {
                sgid_attr: source.as_raw(),
                dgid: destination.as_raw(),
                sgid_index,
                hop_limit: next_hop.hop_limit,
                ..pin_init::zeroed()
            },
            ..pin_init::zeroed()
        };
        raw.__bindgen_anon_1.roce.dmac = next_hop.address;
        // INVARIANT: The header refers to `_source`.
        Ok(Self {
            port,
            raw,
            _source: Some(source),
        })
    }

    /// Creates the path of InfiniBand packets from `port` to the port with the local identifier
    /// `lid` in the same subnet, with service level 0. Any context.
    ///
    /// # Errors
    ///
    /// - `EPROTONOSUPPORT` if `port` is not an InfiniBand port;
    /// - `EINVAL` if `lid` is not that of a single port: 0, or from 0xc000 on.
    pub fn to_lid(port: Port<'a>, lid: u16) -> Result<Self> {
        if !port.has_kind(GidKind::InfiniBand) {
            return Err(EPROTONOSUPPORT);
        }
        if !(1..0xc000).contains(&lid) {
            return Err(EINVAL);
        }
        let mut raw = bindings::rdma_ah_attr {
            type_: bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB,
            port_num: port.number(),
            ..pin_init::zeroed()
        };
        raw.__bindgen_anon_1.ib.dlid = lid;
        // INVARIANT: There is no header.
        Ok(Self {
            port,
            raw,
            _source: None,
        })
    }

    /// Sets the service level.
    pub fn with_service_level(mut self, level: ServiceLevel) -> Self {
        self.raw.sl = level.get();
        self
    }

    /// Sets the traffic class; with RoCE v2, this is the type of service of IPv4 or the traffic
    /// class of IPv6. No effect on a path to a LID.
    pub fn with_traffic_class(mut self, class: u8) -> Self {
        self.raw.grh.traffic_class = class;
        self
    }

    /// Sets the maximum number of routers to pass; by default, that of the route. No effect on a
    /// path to a LID.
    pub fn with_hop_limit(mut self, limit: u8) -> Self {
        self.raw.grh.hop_limit = limit;
        self
    }

    /// Returns the port that the path begins at.
    pub fn port(&self) -> Port<'a> {
        self.port
    }

    /// Returns the device of that port.
    pub fn device(&self) -> &'a Device {
        self.port.device()
    }

    /// Converts the path for C. The result is valid as long as `self`: it points to the GID table
    /// entry without a reference of its own.
    pub(crate) fn as_raw(&self) -> bindings::rdma_ah_attr {
        self.raw
    }
}

/// Returns whether the GID is a multicast address.
fn is_multicast(gid: &Gid) -> bool {
    let [first, ..] = gid.bytes();
    first == 0xff || gid.to_ipv4().is_some_and(|address| address.is_multicast())
}
