// SPDX-License-Identifier: GPL-2.0

//! The way to the target: the address, the route, the network interface, and the RDMA device on it.

use super::link;
use crate::doctor::snapshot::{Destination, Interface, Prefix, Probed, Route, Snapshot};
use crate::doctor::{word, Finding};
use std::net::IpAddr;

const ROUTE: &str = "route";

/// Follow the way, up to the first fault: what comes after is no wonder then.
pub(super) fn diagnose(snapshot: &Snapshot) -> Vec<Finding> {
    let interfaces = match &snapshot.interfaces {
        Ok(interfaces) => interfaces,
        Err(why) => return vec![Finding::unknown("interface", why)],
    };
    let target = match &snapshot.target {
        Some(Ok(target)) => target,
        Some(Err(why)) => return vec![Finding::fault(ROUTE, why)],
        None => return link::all(snapshot, interfaces),
    };
    let mut findings = Vec::new();
    let (interface, source) = match route(target, interfaces) {
        Ok((way, finding)) => {
            findings.push(finding);
            way
        }
        Err(finding) => return vec![finding],
    };
    match carries(interface) {
        Ok(finding) => findings.push(finding),
        Err(finding) => {
            findings.push(finding);
            return findings;
        }
    }
    let end = link::Egress {
        target: target.address,
        interface,
        source,
    };
    findings.extend(link::diagnose(&end, snapshot, interfaces));
    findings
}

type Egress<'a> = (&'a Interface, Option<IpAddr>);

fn route<'a>(
    target: &Destination,
    interfaces: &'a [Interface],
) -> Result<(Egress<'a>, Finding), Finding> {
    let address = target.address;
    if is_of_no_host(address) {
        let text = format!("{address} is not the address of a host on a network");
        return Err(Finding::fault(ROUTE, text));
    }
    if let Some(from) = target.from {
        starts(from, interfaces)?;
    }
    // An interface that is down has taken its route with it, and another one may be in its place.
    let taken = match &target.route {
        Ok(Ok(route)) => interfaces.iter().find(|each| each.index == route.interface),
        _ => None,
    };
    let taken = taken.and_then(|interface| nearness(interface, address));
    let hides = |each: &&Interface| !each.up && nearness(each, address) > taken;
    if let Some(down) = interfaces.iter().find(hides) {
        return Err(is_down(down));
    }
    let found = reach(target)?;
    let source = found.source;
    let by = if found.local {
        owner(address, interfaces).unwrap_or(found.interface)
    } else {
        found.interface
    };
    let Some(interface) = interfaces.iter().find(|each| each.index == by) else {
        let text = format!("the interface of the route to {address} went away meanwhile");
        return Err(Finding::unknown(ROUTE, text));
    };
    let name = &interface.name;
    let text = match (found.local, source) {
        (true, _) => format!("{address} is an address of this machine, on {name}"),
        (false, Some(source)) => format!("to {address} by {name}, from {source}"),
        (false, None) => format!("to {address} by {name}"),
    };
    let source = if found.local { Some(address) } else { source };
    Ok(((interface, source), Finding::ok(ROUTE, text)))
}

/// Whether this host has the address to connect from, on an interface that is up.
fn starts(from: IpAddr, interfaces: &[Interface]) -> Result<(), Finding> {
    match interfaces.iter().find(|each| each.has(from)) {
        Some(interface) if !interface.up => Err(is_down(interface)),
        Some(_) => Ok(()),
        None => {
            let text = format!("{from}, to connect from, is not an address of this machine");
            Err(Finding::fault(ROUTE, text))
        }
    }
}

fn reach(target: &Destination) -> Result<&Route, Finding> {
    let seen: &Probed<_> = &target.route;
    match seen {
        Ok(Ok(route)) => Ok(route),
        Ok(Err(none)) => {
            let text = format!(
                "there is no route to {}: {}; give this host an address of that network, or add a route",
                target.address, none.0
            );
            Err(Finding::fault(ROUTE, text))
        }
        Err(why) => Err(Finding::unknown(ROUTE, why)),
    }
}

fn is_of_no_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    broadcast || address.is_unspecified() || address.is_multicast() || address.is_loopback()
}

/// The length of an interface's longest prefix that an address is in.
fn nearness(interface: &Interface, address: IpAddr) -> Option<u8> {
    let covering = interface
        .addresses
        .iter()
        .filter(|prefix| prefix.covers(address));
    covering.map(|prefix: &Prefix| prefix.length).max()
}

fn owner(address: IpAddr, interfaces: &[Interface]) -> Option<u32> {
    let owner = interfaces.iter().find(|each| each.has(address));
    owner.map(|each| each.index)
}

fn is_down(interface: &Interface) -> Finding {
    let name = &interface.name;
    let fix = format!("ip link set {} up", word(name));
    Finding::fault("interface", format!("{name} is down")).fix(fix)
}

/// Whether packets can leave by it.
fn carries(interface: &Interface) -> Result<Finding, Finding> {
    const CHECK: &str = "interface";
    let name = &interface.name;
    if interface.loopback {
        let text = format!(
            "the address is on {name}, which has no RDMA: use one that is on a network interface"
        );
        return Err(Finding::fault(CHECK, text));
    }
    if !interface.up {
        return Err(is_down(interface));
    }
    if !interface.carrier {
        let text = format!("{name} has no carrier: look at its cable, and at the other end");
        return Err(Finding::fault(CHECK, text));
    }
    Ok(Finding::ok(CHECK, format!("{name} is up")))
}
