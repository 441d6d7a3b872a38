// SPDX-License-Identifier: GPL-2.0

//! The RDMA device on an interface: its port, its addresses, its MTU.

use super::firewall;
use crate::doctor::snapshot::{Device, Gid, Interface, Module, Port, Protocol, Snapshot};
use crate::doctor::{word, Finding};
use std::net::{IpAddr, Ipv6Addr};

const CHECK: &str = "link";

/// `IB_PORT_ACTIVE`.
const ACTIVE: u8 = 4;

/// The kind of address that targets of today have.
const ROCE_V2: &str = "RoCE v2";

/// Largest packet that RDMA knows.
const MAX_PATH_MTU: u32 = 4096;

/// An MTU that has room for it, with some to spare.
const MTU_FOR_4K: u32 = 4200;

/// What leads to the target.
pub(super) struct Egress<'a> {
    /// The target's address.
    pub(super) target: IpAddr,
    /// The interface.
    pub(super) interface: &'a Interface,
    /// The address that packets come from.
    pub(super) source: Option<IpAddr>,
}

/// Judge what is on the interface of a way.
pub(super) fn diagnose(
    way: &Egress<'_>,
    snapshot: &Snapshot,
    interfaces: &[Interface],
) -> Vec<Finding> {
    let devices = match &snapshot.devices {
        Ok(devices) => devices,
        Err(why) => return vec![Finding::unknown(CHECK, why)],
    };
    let name = &way.interface.name;
    if way.interface.infiniband {
        let text = format!("{name} is InfiniBand, of which little is known here");
        return vec![Finding::unknown(CHECK, text)];
    }
    let Some((device, port)) = on(way.interface, devices) else {
        return vec![none(way, snapshot, devices, interfaces)];
    };
    let mut findings = vec![Finding::ok(CHECK, format!("{} is on {name}", device.name))];
    for check in [active, gid, default_type, mtu] {
        match check(way, device, port) {
            Ok(finding) => findings.extend(finding),
            Err(finding) => {
                findings.push(finding);
                return findings;
            }
        }
    }
    // Only soft-RoCE's packets pass the packet filter.
    if device.soft {
        findings.push(firewall::diagnose(name, way.target, snapshot));
    }
    findings
}

/// Judge all devices, for want of a target.
pub(super) fn all(snapshot: &Snapshot, interfaces: &[Interface]) -> Vec<Finding> {
    let devices = match &snapshot.devices {
        Ok(devices) => devices,
        Err(why) => return vec![Finding::unknown(CHECK, why)],
    };
    if devices.is_empty() {
        let text = "there is no RDMA device; with -a it is told where there has to be one";
        return vec![Finding::fault(CHECK, text)];
    }
    let ports = devices
        .iter()
        .flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    let (active, other): (Vec<_>, Vec<_>) = ports.partition(|(_, port)| port.state == ACTIVE);
    let mut findings = Vec::new();
    for (device, port) in &active {
        findings.push(Finding::ok(CHECK, port_text(device, port, interfaces)));
    }
    for (device, port) in other {
        let text = port_text(device, port, interfaces);
        // That one of several is not used is usual.
        let finding = match active.is_empty() {
            true => Finding::fault(CHECK, text),
            false => Finding::warning(CHECK, text),
        };
        findings.push(match below(port, interfaces) {
            Some(down) if !down.up => finding.fix(format!("ip link set {} up", word(&down.name))),
            _ => finding,
        });
    }
    findings
}

/// The interface that a port is on.
fn below<'a>(port: &Port, interfaces: &'a [Interface]) -> Option<&'a Interface> {
    interfaces
        .iter()
        .find(|each| port.interface == Some(each.index))
}

fn port_text(device: &Device, port: &Port, interfaces: &[Interface]) -> String {
    let named = below(port, interfaces);
    let place = named.map_or(String::new(), |each| format!(", on {}", each.name));
    let state = if port.state == ACTIVE {
        "active"
    } else {
        "not active"
    };
    format!("port {} of {} is {state}{place}", port.number, device.name)
}

/// The device on an interface, and its port. A VLAN and a bond have addresses in the device's table.
fn on<'a>(interface: &Interface, devices: &'a [Device]) -> Option<(&'a Device, &'a Port)> {
    let here = |port: &&Port| {
        // The names of interfaces of another network namespace mean nothing here.
        let ours = port.interface.is_some();
        let named = |gid: &Gid| gid.interface == interface.name;
        port.interface == Some(interface.index) || ours && port.gids.iter().any(named)
    };
    devices
        .iter()
        .find_map(|device| Some((device, device.ports.iter().find(here)?)))
}

fn none(
    way: &Egress<'_>,
    snapshot: &Snapshot,
    devices: &[Device],
    interfaces: &[Interface],
) -> Finding {
    let name = &way.interface.name;
    let mut text = format!(
        "no RDMA device is on {name}, which the route to {} takes",
        way.target
    );
    let elsewhere = elsewhere(devices, interfaces);
    if !elsewhere.is_empty() {
        let places = elsewhere.join(", ");
        text.push_str(&format!("; {places}: see -w, the address to connect from"));
    }
    // Soft-RoCE beside an adapter is not what mends this.
    if devices.iter().any(|device| !device.soft) {
        return Finding::fault(CHECK, text);
    }
    let lacks =
        |each: &Module| each.name == "rdma_rxe" && !each.loaded && each.installed == Ok(false);
    if snapshot.modules.iter().any(lacks) {
        let text = format!("{text}, and this kernel has no soft-RoCE (the module rdma_rxe)");
        return Finding::fault(CHECK, text);
    }
    // Soft-RoCE is not for VLANs, but what is on the interface below is for them, too.
    let below = interfaces
        .iter()
        .find(|each| way.interface.vlan_of == Some(each.index));
    let below = below.map_or(name, |each| &each.name);
    let free = (0..)
        .map(|number| format!("rxe{number}"))
        .find(|free| devices.iter().all(|device| device.name != *free))
        .unwrap_or_default();
    Finding::fault(CHECK, text).fix(format!(
        "rdma link add {free} type rxe netdev {}",
        word(below)
    ))
}

/// Which device is on which interface.
fn elsewhere(devices: &[Device], interfaces: &[Interface]) -> Vec<String> {
    let ports = devices
        .iter()
        .flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    let place = |(device, port): (&Device, &Port)| {
        let interface = below(port, interfaces)?;
        Some(format!("{} is on {}", device.name, interface.name))
    };
    ports.filter_map(place).collect()
}

type CheckResult = Result<Option<Finding>, Finding>;

fn active(way: &Egress<'_>, device: &Device, port: &Port) -> CheckResult {
    if port.state == ACTIVE {
        return Ok(None);
    }
    let text = format!(
        "port {} of {} is not active, though {} is up",
        port.number, device.name, way.interface.name
    );
    Err(again(Finding::fault(CHECK, text), way, device))
}

/// Connections are made from an address that the device has.
fn gid(way: &Egress<'_>, device: &Device, port: &Port) -> CheckResult {
    const CHECK: &str = "gid";
    let Some(source) = way.source.filter(|_| device.protocol == Protocol::Roce) else {
        return Ok(None);
    };
    let wanted = match source {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let kinds: Vec<&str> = kinds_of(port, wanted, &way.interface.name);
    if kinds.contains(&ROCE_V2) {
        let text = format!("{} has {source} as {ROCE_V2}", device.name);
        return Ok(Some(Finding::ok(CHECK, text)));
    }
    let name = &device.name;
    if kinds.is_empty() {
        let text = format!("{name} does not have {source} in its table of addresses");
        return Err(again(Finding::fault(CHECK, text), way, device));
    }
    let text = format!(
        "{name} has {source} as {} only, and not as {ROCE_V2}: \
         see -w, the address to connect from, for one of a device that has it",
        kinds.join(", ")
    );
    Err(again(Finding::fault(CHECK, text), way, device))
}

fn kinds_of<'a>(port: &'a Port, address: Ipv6Addr, interface: &str) -> Vec<&'a str> {
    let gids = port.gids.iter();
    gids.filter(|gid| gid.address == address && gid.interface == interface)
        .map(|gid| gid.kind.as_str())
        .collect()
}

/// Soft-RoCE fills its table, and looks at its interface, when it is made.
fn again(finding: Finding, way: &Egress<'_>, device: &Device) -> Finding {
    let (name, interface) = (word(&device.name), word(&way.interface.name));
    match device.soft && way.interface.vlan_of.is_none() {
        true => finding.fix(format!(
            "rdma link delete {name} && rdma link add {name} type rxe netdev {interface}"
        )),
        false => finding,
    }
}

/// An administrator may have chosen what connections use.
fn default_type(_: &Egress<'_>, device: &Device, port: &Port) -> CheckResult {
    match &port.default_type {
        Some(kind) if kind != ROCE_V2 => {
            let (name, number) = (&device.name, port.number);
            let text = format!("connections of {name} use {kind}, and targets expect {ROCE_V2}");
            let file =
                format!("/sys/kernel/config/rdma_cm/{name}/ports/{number}/default_roce_mode");
            let fix = format!("echo '{ROCE_V2}' >{}", word(&file));
            Err(Finding::fault("gid", text).fix(fix))
        }
        _ => Ok(None),
    }
}

fn mtu(way: &Egress<'_>, device: &Device, _: &Port) -> CheckResult {
    const CHECK: &str = "mtu";
    if device.protocol != Protocol::Roce {
        return Ok(None);
    }
    let (name, mtu) = (&way.interface.name, way.interface.mtu);
    let path = path_mtu(mtu, device.soft);
    let text = format!("{name} has {mtu}, so that a packet carries {path} bytes of data");
    if path == MAX_PATH_MTU {
        return Ok(Some(Finding::ok(CHECK, text)));
    }
    // What is on the way may not take it, and then nothing passes that passes now.
    let text = format!(
        "{text}; it could be {MAX_PATH_MTU} with an MTU of {MTU_FOR_4K}, where all on the way to the target takes that"
    );
    let finding = Finding::warning(CHECK, text);
    // A VLAN has at most what is below it has.
    Ok(Some(match way.interface.vlan_of {
        None => finding.fix(format!("ip link set {} mtu {MTU_FOR_4K}", word(name))),
        Some(_) => finding,
    }))
}

/// Bytes of data of a packet on a RoCE device whose interface has this MTU, as the kernel has it in
/// `iboe_get_mtu`, and soft-RoCE in `rxe_set_mtu`.
fn path_mtu(mtu: u32, soft: bool) -> u32 {
    let headers = if soft { 80 } else { 96 };
    let room = mtu.saturating_sub(headers);
    let sizes = [MAX_PATH_MTU, 2048, 1024, 512];
    sizes.into_iter().find(|size| *size <= room).unwrap_or(256)
}

#[cfg(test)]
mod tests {
    use super::path_mtu;

    #[test]
    fn the_path_mtu_is_the_kernels() {
        for (mtu, hard, soft) in [
            (0, 256, 256),
            (607, 256, 512),
            (608, 512, 512),
            (1119, 512, 1024),
            (1120, 1024, 1024),
            (1280, 1024, 1024),
            (1500, 1024, 1024),
            (2143, 1024, 2048),
            (2144, 2048, 2048),
            (4175, 2048, 2048),
            (4176, 2048, 4096),
            (4192, 4096, 4096),
            (9000, 4096, 4096),
        ] {
            assert_eq!(path_mtu(mtu, false), hard, "{mtu}");
            assert_eq!(path_mtu(mtu, true), soft, "{mtu}");
        }
    }
}
