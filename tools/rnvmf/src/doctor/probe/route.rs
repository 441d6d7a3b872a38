// SPDX-License-Identifier: GPL-2.0

//! Network interfaces and routes: rtnetlink.

use crate::address::Address;
use crate::doctor::snapshot::{Interface, Prefix, Probed, Route, RouteLookup};
use crate::error::{strerror, Error};
use crate::netlink::{Payload, Request, RequestError, Socket};
use crate::nlattr::{Attributes, Malformed};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::net::IpAddr;

// Headers from linux/rtnetlink.h and linux/if_addr.h: struct ifinfomsg, ifaddrmsg and rtmsg.
const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;
const ROUTE_HEADER: usize = 12;

/// Returns the interfaces of this network namespace, with their addresses.
pub(super) fn interfaces() -> Result<Vec<Interface>, Error> {
    let mut socket = Socket::open(NETLINK_ROUTE)?;
    let links = Request::with_header(vec![0; LINK_HEADER]).dump();
    let links = socket.request(libc::RTM_GETLINK, &links)?;
    let mut interfaces: Vec<Interface> = links.iter().map(interface).collect::<Result<_, _>>()?;
    let addresses = Request::with_header(vec![0; ADDRESS_HEADER]).dump();
    for reply in socket.request(libc::RTM_GETADDR, &addresses)? {
        let (index, prefix) = address(&reply)?;
        let owner = interfaces.iter_mut().find(|each| each.index == index);
        if let (Some(owner), Some(prefix)) = (owner, prefix) {
            owner.addresses.push(prefix);
        }
    }
    Ok(interfaces)
}

/// Looks up the route that a connection takes. From a chosen address it is that of the interface
/// which has the address.
pub(super) fn to(
    target: &Address,
    from: Option<&Address>,
    interfaces: &Probed<Vec<Interface>>,
) -> Probed<RouteLookup> {
    let interfaces = interfaces.as_ref()?;
    let mut interface = None;
    if let Some(scope) = target.scope().or(from.and_then(Address::scope)) {
        let named = |each: &&Interface| each.name == scope || each.index.to_string() == scope;
        interface = interfaces.iter().find(named);
        if interface.is_none() {
            let why = format!("there is no interface {scope}");
            return Ok(RouteLookup::NoRoute(why));
        }
    } else if let Some(from) = from {
        interface = interfaces.iter().find(|each| each.has(from.ip()));
    }
    let query = Query {
        to: target.ip(),
        from: from.map(Address::ip),
        interface: interface.map(|interface| interface.index),
    };
    query.lookup().map_err(|error| error.message)
}

/// A route query to the kernel.
struct Query {
    to: IpAddr,
    from: Option<IpAddr>,
    interface: Option<u32>,
}

impl Query {
    fn lookup(&self) -> Result<RouteLookup, Error> {
        let mut socket = Socket::open(NETLINK_ROUTE)?;
        let replies = match socket.request(libc::RTM_GETROUTE, &self.request()) {
            Ok(replies) => replies,
            Err(RequestError::Rejected(nl_error)) => {
                return Ok(RouteLookup::NoRoute(strerror(nl_error.errno())));
            }
            Err(error) => return Err(error.into()),
        };
        let Some(reply) = replies.first() else {
            return Err(Error::failed("the kernel did not describe the route"));
        };
        Ok(match read_route(reply)? {
            RouteLookup::Route(route) => RouteLookup::Route(Route {
                // The kernel does not repeat the source of the query.
                source: route.source.or(self.from),
                ..route
            }),
            none => none,
        })
    }

    fn request(&self) -> Request {
        let (family, bits) = match self.to {
            IpAddr::V4(_) => (libc::AF_INET, 32),
            IpAddr::V6(_) => (libc::AF_INET6, 128),
        };
        let mut header = vec![0; ROUTE_HEADER];
        let source_bits = if self.from.is_some() { bits } else { 0 };
        header[..3].copy_from_slice(&[family as u8, bits, source_bits]);
        let request = Request::with_header(header).with_some(libc::RTA_OIF, self.interface);
        let request = with_address(request, libc::RTA_DST, self.to);
        match self.from {
            Some(from) => with_address(request, libc::RTA_SRC, from),
            None => request,
        }
    }
}

fn with_address(request: Request, id: u16, address: IpAddr) -> Request {
    match address {
        IpAddr::V4(v4) => request.with(id, v4.octets()),
        IpAddr::V6(v6) => request.with(id, v6.octets()),
    }
}

fn read_route(reply: &Payload) -> Result<RouteLookup, Malformed> {
    let from = &reply.attributes;
    let no_route = |why: String| Ok(RouteLookup::NoRoute(why));
    // Where IPv4 rejects the query, IPv6 answers with a route of one of these types.
    let local = match *reply.header.get(7).ok_or(Malformed::Message)? {
        libc::RTN_UNICAST => false,
        libc::RTN_LOCAL => true,
        libc::RTN_BLACKHOLE => return no_route("the route drops all".into()),
        libc::RTN_PROHIBIT => return no_route("the route prohibits it".into()),
        libc::RTN_UNREACHABLE => return no_route(strerror(libc::ENETUNREACH)),
        _ => return no_route("the route is to no single host".into()),
    };
    Ok(RouteLookup::Route(Route {
        local,
        interface: from.require("oif", from.u32(libc::RTA_OIF)?)?,
        source: ip(from, libc::RTA_PREFSRC)?,
    }))
}

fn interface(reply: &Payload) -> Result<Interface, Malformed> {
    let (header, from) = (&reply.header, &reply.attributes);
    let flags = word(header, 8)?;
    let has = |flag: i32| flags & flag as u32 != 0;
    let kind = match from.nest(libc::IFLA_LINKINFO)? {
        Some(nest) => nest.string(libc::IFLA_INFO_KIND)?,
        None => None,
    };
    let link = from.u32(libc::IFLA_LINK)?;
    Ok(Interface {
        index: word(header, 4)?,
        name: from.require("ifname", from.string(libc::IFLA_IFNAME)?)?,
        mtu: from.require("mtu", from.u32(libc::IFLA_MTU)?)?,
        up: has(libc::IFF_UP),
        carrier: has(libc::IFF_LOWER_UP),
        loopback: has(libc::IFF_LOOPBACK),
        infiniband: word(header, 0)? >> 16 == u32::from(libc::ARPHRD_INFINIBAND),
        // Of other kinds this is what is at the other end.
        vlan_of: link.filter(|_| kind.as_deref() == Some("vlan")),
        addresses: Vec::new(),
    })
}

fn address(reply: &Payload) -> Result<(u32, Option<Prefix>), Malformed> {
    let (header, from) = (&reply.header, &reply.attributes);
    let length = *header.get(1).ok_or(Malformed::Message)?;
    // Where there is a peer, IFA_ADDRESS is the peer's.
    let own = match ip(from, libc::IFA_LOCAL)? {
        Some(local) => Some(local),
        None => ip(from, libc::IFA_ADDRESS)?,
    };
    let prefix = own.map(|address| Prefix { address, length });
    Ok((word(header, 4)?, prefix))
}

/// An address, of the family that its length tells.
fn ip(from: &Attributes, id: u16) -> Result<Option<IpAddr>, Malformed> {
    match from.array::<4>(id) {
        Ok(v4) => Ok(v4.map(IpAddr::from)),
        Err(_) => Ok(from.array::<16>(id)?.map(IpAddr::from)),
    }
}

fn word(header: &[u8], at: usize) -> Result<u32, Malformed> {
    let bytes = header.get(at..).and_then(|rest| rest.first_chunk());
    bytes
        .copied()
        .map(u32::from_ne_bytes)
        .ok_or(Malformed::Message)
}

#[cfg(test)]
mod tests;
