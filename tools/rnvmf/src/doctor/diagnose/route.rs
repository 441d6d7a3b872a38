// SPDX-License-Identifier: GPL-2.0

//! The path to the target: its address, the route, the network interface, and the RDMA device on
//! it.

use super::link::{self, Egress};
use crate::doctor::finding::{shell_word, Finding};
use crate::doctor::snapshot::{Destination, Interface, Prefix, Route, RouteLookup, Snapshot};
use std::net::IpAddr;

const ROUTE_CHECK: &str = "route";
const INTERFACE_CHECK: &str = "interface";

/// Checks the path up to its first fault.
pub(super) fn diagnose(snapshot: &Snapshot) -> Vec<Finding> {
    let interfaces = match &snapshot.interfaces {
        Ok(interfaces) => interfaces,
        Err(why) => return vec![Finding::unknown(INTERFACE_CHECK, why)],
    };
    let destination = match &snapshot.destination {
        Some(Ok(destination)) => destination,
        Some(Err(why)) => return vec![Finding::fault(ROUTE_CHECK, why)],
        None => return link::diagnose_all(snapshot, interfaces),
    };
    let egress = match egress(destination, interfaces) {
        Ok(egress) => egress,
        Err(finding) => return vec![finding],
    };
    let mut findings = vec![route_found(&egress)];
    match check_interface(egress.interface) {
        Ok(finding) => findings.push(finding),
        Err(finding) => {
            findings.push(finding);
            return findings;
        }
    }
    findings.extend(link::diagnose(&egress, snapshot, interfaces));
    findings
}

/// Works out where packets to the target leave this host.
fn egress<'a>(
    destination: &Destination,
    interfaces: &'a [Interface],
) -> Result<Egress<'a>, Finding> {
    let address = destination.address;
    if is_of_no_host(address) {
        let text = format!("{address} is not the address of a host on a network");
        return Err(Finding::fault(ROUTE_CHECK, text));
    }
    if let Some(from) = destination.from {
        check_source(from, interfaces)?;
    }
    // The route of an interface that is down is gone, and a less specific one may be used instead.
    let used = match &destination.route {
        Ok(RouteLookup::Route(route)) => {
            interfaces.iter().find(|each| each.index == route.interface)
        }
        _ => None,
    };
    let used = used.and_then(|interface| prefix_length(interface, address));
    let is_better = |each: &&Interface| !each.up && prefix_length(each, address) > used;
    if let Some(down) = interfaces.iter().find(is_better) {
        return Err(is_down(down));
    }
    let route = route(destination)?;
    let index = if route.local {
        owner(address, interfaces).unwrap_or(route.interface)
    } else {
        route.interface
    };
    let Some(interface) = interfaces.iter().find(|each| each.index == index) else {
        let text = format!("the interface of the route to {address} went away meanwhile");
        return Err(Finding::unknown(ROUTE_CHECK, text));
    };
    Ok(Egress {
        target: address,
        local: route.local,
        interface,
        source: if route.local {
            Some(address)
        } else {
            route.source
        },
    })
}

fn route_found(egress: &Egress<'_>) -> Finding {
    let (address, name) = (egress.target, &egress.interface.name);
    let text = match egress.source {
        _ if egress.local => format!("{address} is an address of this machine, on {name}"),
        Some(source) => format!("to {address} by {name}, from {source}"),
        None => format!("to {address} by {name}"),
    };
    Finding::ok(ROUTE_CHECK, text)
}

/// Checks that this host has the address to connect from, on an interface that is up.
fn check_source(from: IpAddr, interfaces: &[Interface]) -> Result<(), Finding> {
    match interfaces.iter().find(|each| each.has(from)) {
        Some(interface) if !interface.up => Err(is_down(interface)),
        Some(_) => Ok(()),
        None => {
            let text = format!("{from}, to connect from, is not an address of this machine");
            Err(Finding::fault(ROUTE_CHECK, text))
        }
    }
}

fn route(destination: &Destination) -> Result<&Route, Finding> {
    match &destination.route {
        Ok(RouteLookup::Route(route)) => Ok(route),
        Ok(RouteLookup::NoRoute(why)) => {
            let text = format!(
                "there is no route to {}: {why}; give this host an address of that network, or add a route",
                destination.address
            );
            Err(Finding::fault(ROUTE_CHECK, text))
        }
        Err(why) => Err(Finding::unknown(ROUTE_CHECK, why)),
    }
}

fn is_of_no_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    broadcast || address.is_unspecified() || address.is_multicast() || address.is_loopback()
}

/// Returns the length of an interface's longest prefix that covers an address.
fn prefix_length(interface: &Interface, address: IpAddr) -> Option<u8> {
    let covering = interface
        .addresses
        .iter()
        .filter(|prefix| prefix.covers(address));
    covering.map(|prefix: &Prefix| prefix.length).max()
}

/// Returns the number of the interface that has an address.
fn owner(address: IpAddr, interfaces: &[Interface]) -> Option<u32> {
    let owner = interfaces.iter().find(|each| each.has(address));
    owner.map(|each| each.index)
}

fn is_down(interface: &Interface) -> Finding {
    let name = &interface.name;
    let fix = format!("ip link set {} up", shell_word(name));
    Finding::fault(INTERFACE_CHECK, format!("{name} is down")).fix(fix)
}

/// Checks that packets can leave by an interface.
fn check_interface(interface: &Interface) -> Result<Finding, Finding> {
    let name = &interface.name;
    if interface.loopback {
        let text = format!(
            "the address is on {name}, which has no RDMA: use one that is on a network interface"
        );
        return Err(Finding::fault(INTERFACE_CHECK, text));
    }
    if !interface.up {
        return Err(is_down(interface));
    }
    if !interface.carrier {
        let text = format!("{name} has no carrier: look at its cable, and at the other end");
        return Err(Finding::fault(INTERFACE_CHECK, text));
    }
    Ok(Finding::ok(INTERFACE_CHECK, format!("{name} is up")))
}
