// SPDX-License-Identifier: GPL-2.0

//! The path to the target: its address, the route, the network interface and its RDMA device.

use super::link::{self, Egress};
use crate::doctor::finding::{set_link_up, Finding};
use crate::doctor::snapshot::{Destination, Interface, Prefix, Route, RouteLookup, Snapshot};
use std::net::IpAddr;

const ROUTE_CHECK: &str = "route";
const INTERFACE_CHECK: &str = "interface";

/// Checks the path up to its first fault, which is returned.
pub(super) fn diagnose(snapshot: &Snapshot, findings: &mut Vec<Finding>) -> Result<(), Finding> {
    let destination = match &snapshot.destination {
        Some(Ok(destination)) => Some(destination),
        Some(Err(why)) => return Err(Finding::fault(ROUTE_CHECK, why)),
        None => None,
    };
    if let Some(address) = destination.map(|each| each.address).filter(is_no_host) {
        let text = format!("{address} is not the address of a host on a network");
        return Err(Finding::fault(ROUTE_CHECK, text));
    }
    let interfaces = snapshot.interfaces.as_ref();
    let interfaces = interfaces.map_err(|why| Finding::unknown(INTERFACE_CHECK, why))?;
    let Some(destination) = destination else {
        return link::diagnose_all(snapshot, interfaces, findings);
    };
    let egress = egress(destination, interfaces)?;
    findings.push(route_found(&egress));
    findings.push(check_interface(egress.interface)?);
    link::diagnose(&egress, snapshot, interfaces, findings)
}

/// Determines where packets to the target leave this host.
fn egress<'a>(
    destination: &Destination,
    interfaces: &'a [Interface],
) -> Result<Egress<'a>, Finding> {
    let address = destination.address;
    let named = |name: &str| interfaces.iter().find(|each| each.ifname == name);
    if let Some(from) = destination.from {
        check_source(from, interfaces)?;
    }
    // The kernel removes the routes of an interface that is down, so the lookup may find a less
    // specific one.
    let used = match &destination.route {
        Ok(RouteLookup::Route(route)) => named(&route.dev),
        _ => None,
    };
    let used = used.and_then(|interface| prefix_len(interface, address));
    let is_better = |each: &&Interface| !each.is_up() && prefix_len(each, address) > used;
    if let Some(down) = interfaces.iter().find(is_better) {
        return Err(is_down(down));
    }
    let route = route(destination)?;
    // The route to an address of this host leads to the loopback interface.
    let owner = interfaces
        .iter()
        .find(|each| route.is_local() && each.has(address));
    let interface = owner.or_else(|| named(&route.dev)).ok_or_else(|| {
        let text = format!("the interface of the route to {address} was removed meanwhile");
        Finding::unknown(ROUTE_CHECK, text)
    })?;
    let source = if route.is_local() {
        Some(address)
    } else {
        destination.from.or(route.prefsrc)
    };
    Ok(Egress {
        target: address,
        local: route.is_local(),
        interface,
        source,
    })
}

fn route_found(egress: &Egress<'_>) -> Finding {
    let (address, name) = (egress.target, &egress.interface.ifname);
    let text = match egress.source {
        _ if egress.local => format!("{address} is an address of this host, on {name}"),
        Some(source) => format!("to {address} through {name}, from {source}"),
        None => format!("to {address} through {name}"),
    };
    Finding::ok(ROUTE_CHECK, text)
}

/// Checks that the source address belongs to an interface that is up.
fn check_source(from: IpAddr, interfaces: &[Interface]) -> Result<(), Finding> {
    match interfaces.iter().find(|each| each.has(from)) {
        Some(interface) if !interface.is_up() => Err(is_down(interface)),
        Some(_) => Ok(()),
        None => {
            let text = format!("the source address {from} is not an address of this host");
            Err(Finding::fault(ROUTE_CHECK, text))
        }
    }
}

fn route(destination: &Destination) -> Result<&Route, Finding> {
    match &destination.route {
        Ok(RouteLookup::Route(route)) => Ok(route),
        Ok(RouteLookup::NoRoute(why)) => {
            let text = format!(
                "there is no route to {}: {why}; give this host an address of that network, \
                 or add a route",
                destination.address
            );
            Err(Finding::fault(ROUTE_CHECK, text))
        }
        Err(why) => Err(Finding::unknown(ROUTE_CHECK, why)),
    }
}

/// Whether an address cannot belong to another host.
fn is_no_host(address: &IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    is_broadcast || address.is_unspecified() || address.is_multicast() || address.is_loopback()
}

/// Returns the length of the interface's longest prefix that covers an address.
fn prefix_len(interface: &Interface, address: IpAddr) -> Option<u32> {
    let prefixes = interface.addr_info.iter();
    let covering = prefixes.filter(|prefix: &&Prefix| prefix.covers(address));
    covering.map(|prefix| prefix.prefixlen).max()
}

fn is_down(interface: &Interface) -> Finding {
    let text = format!("{} is down", interface.ifname);
    Finding::fault(INTERFACE_CHECK, text).fix(set_link_up(&interface.ifname))
}

/// Checks that an interface can send packets.
fn check_interface(interface: &Interface) -> Result<Finding, Finding> {
    let name = &interface.ifname;
    if interface.is_loopback() {
        let text = format!(
            "the address is on {name}, which has no RDMA device: \
             use an address of a network interface"
        );
        return Err(Finding::fault(INTERFACE_CHECK, text));
    }
    if !interface.is_up() {
        return Err(is_down(interface));
    }
    if !interface.has_carrier() {
        let text = format!("{name} has no carrier: check its cable and the other end");
        return Err(Finding::fault(INTERFACE_CHECK, text));
    }
    Ok(Finding::ok(INTERFACE_CHECK, format!("{name} is up")))
}
