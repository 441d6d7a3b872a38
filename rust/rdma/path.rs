// SPDX-License-Identifier: GPL-2.0

//! Paths: where the packets of a queue pair, or of a datagram, go.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct rdma_ah_attr`
//!
//! The connection manager finds the path of a connection that it makes. For one
//! that is made by hand, the two ends tell each other their GIDs in some way of
//! their own, and each makes a [`Path`] to the other's:
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

/// Declares a number of at most so many bits: what does not fit cannot be made,
/// so that nothing is cut off in silence where it is used.
macro_rules! number_of_bits {
    ($(#[$doc:meta])* $name:ident($type:ty), $bits:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub struct $name($type);

        impl $name {
            /// The largest one.
            pub const MAX: Self = Self((1 << $bits) - 1);

            /// The number; `None` if it has more bits than fit.
            #[inline]
            pub const fn new(value: $type) -> Option<Self> {
                if value > Self::MAX.0 {
                    return None;
                }
                Some(Self(value))
            }

            /// Its value.
            #[inline]
            pub const fn get(self) -> $type {
                self.0
            }
        }
    };
}

pub(crate) use number_of_bits;

number_of_bits! {
    /// The service level of packets, 4 bits: with InfiniBand it chooses the virtual
    /// lane, with RoCE the priority of the Ethernet frames.
    ServiceLevel(u8), 4
}

/// Where packets go, and from where (`struct rdma_ah_attr`).
///
/// It keeps the entry of the GID table that it begins at. What is made of it, the
/// connection of a queue pair or an address handle, keeps that itself: the path is
/// needed no longer than making it takes.
pub struct Path<'a> {
    port: Port<'a>,
    link: Link,
    global: Option<Global<'a>>,
    service_level: ServiceLevel,
}

/// The next stop on the port's own network.
#[derive(Clone, Copy)]
enum Link {
    Ethernet([u8; 6]),
    InfiniBand(u16),
}

/// The global route header (GRH); with RoCE v2, of what the IP header is made.
struct Global<'a> {
    source: GidEntry<'a>,
    source_index: u8,
    destination: Gid,
    hop_limit: u8,
    traffic_class: u8,
}

impl<'a> Path<'a> {
    /// The path of RoCE packets from `source` to the port with the GID
    /// `destination`, with service level 0 and traffic class 0.
    ///
    /// Asks the network for the route and for the Ethernet address of its first
    /// stop (`rdma_resolve_ip`), in the network namespace of the source, and
    /// waits for at most a second. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EPROTONOSUPPORT` if `source` is not the address of a RoCE port;
    /// - `EAFNOSUPPORT` if one is an IPv4 address and the other is not, `EINVAL` for
    ///   a destination that is no single port;
    /// - `EOVERFLOW` for an entry beyond the 256 that the verbs can name here;
    /// - `ETIMEDOUT` if nobody answers for the destination, `ENETUNREACH` and the
    ///   like if there is no route to it, `ENODEV` if the source's network device is
    ///   gone.
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
        let source_index = source.index().try_into().map_err(|_| EOVERFLOW)?;
        let port = source.device().port(source.port()).ok_or(EINVAL)?;
        let next_hop = resolve::next_hop(&source, &destination)?;
        Ok(Self {
            port,
            link: Link::Ethernet(next_hop.address),
            global: Some(Global {
                source,
                source_index,
                destination,
                hop_limit: next_hop.hop_limit,
                traffic_class: 0,
            }),
            service_level: ServiceLevel(0),
        })
    }

    /// The path of InfiniBand packets from `port` to the port of its subnet with
    /// the local identifier `lid`, with service level 0. Any context.
    ///
    /// # Errors
    ///
    /// - `EPROTONOSUPPORT` if `port` does not speak InfiniBand;
    /// - `EINVAL` for an identifier that is no single port's: zero, or from 0xc000 on.
    pub fn to_lid(port: Port<'a>, lid: u16) -> Result<Self> {
        if !port.has_kind(GidKind::InfiniBand) {
            return Err(EPROTONOSUPPORT);
        }
        if !(1..0xc000).contains(&lid) {
            return Err(EINVAL);
        }
        Ok(Self {
            port,
            link: Link::InfiniBand(lid),
            global: None,
            service_level: ServiceLevel(0),
        })
    }

    /// Lets the packets have this service level.
    pub fn with_service_level(mut self, level: ServiceLevel) -> Self {
        self.service_level = level;
        self
    }

    /// Lets the packets have this traffic class, which with RoCE v2 is the type of
    /// service of IPv4, or the traffic class of IPv6. A path without a GID has none.
    pub fn with_traffic_class(mut self, class: u8) -> Self {
        if let Some(global) = &mut self.global {
            global.traffic_class = class;
        }
        self
    }

    /// Lets the packets pass at most so many routers; before that, as many as the
    /// route says. A path without a GID passes none.
    pub fn with_hop_limit(mut self, limit: u8) -> Self {
        if let Some(global) = &mut self.global {
            global.hop_limit = limit;
        }
        self
    }

    /// The port that the path begins at.
    pub fn port(&self) -> Port<'a> {
        self.port
    }

    /// The device of that port.
    pub fn device(&self) -> &'a Device {
        self.port.device()
    }

    /// As the verbs take it: valid as long as `self`, whose reference on the entry
    /// of the GID table it names without one of its own.
    pub(crate) fn as_raw(&self) -> bindings::rdma_ah_attr {
        let mut raw = bindings::rdma_ah_attr {
            sl: self.service_level.get(),
            port_num: self.port.number(),
            ..pin_init::zeroed()
        };
        match self.link {
            Link::Ethernet(address) => {
                raw.type_ = bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE;
                raw.__bindgen_anon_1.roce.dmac = address;
            }
            Link::InfiniBand(lid) => {
                raw.type_ = bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB;
                raw.__bindgen_anon_1.ib.dlid = lid;
            }
        }
        if let Some(global) = &self.global {
            raw.ah_flags = bindings::ib_ah_flags_IB_AH_GRH as u8;
            raw.grh = bindings::ib_global_route {
                sgid_attr: global.source.as_raw(),
                dgid: global.destination.as_raw(),
                sgid_index: global.source_index,
                hop_limit: global.hop_limit,
                traffic_class: global.traffic_class,
                ..pin_init::zeroed()
            };
        }
        raw
    }
}

/// Whether a GID is that of a group.
fn is_multicast(gid: &Gid) -> bool {
    let [first, ..] = gid.bytes();
    first == 0xff || gid.to_ipv4().is_some_and(|address| address.is_multicast())
}
