// SPDX-License-Identifier: GPL-2.0

//! The RDMA device on an interface: its port, its addresses, its MTU.

use super::firewall;
use crate::doctor::finding::{shell_word, Finding};
use crate::doctor::snapshot::{Device, Gid, Interface, Module, Port, Protocol, Snapshot};
use std::net::{IpAddr, Ipv6Addr};

const CHECK: &str = "link";

/// `IB_PORT_ACTIVE`.
const ACTIVE: u8 = 4;

/// The GID type that current targets use.
const ROCE_V2: &str = "RoCE v2";

/// Largest path MTU of InfiniBand and RoCE.
const MAX_PATH_MTU: u32 = 4096;

/// Header bytes that RoCE drivers reserve, as in `iboe_get_mtu()`.
const ROCE_HEADERS: u32 = 96;

/// Header bytes that soft-RoCE reserves, as in `rxe_set_mtu()`.
const SOFT_ROCE_HEADERS: u32 = 80;

/// An interface MTU with room for that path MTU and its headers.
const MTU_FOR_4K: u32 = 4200;

/// Where packets to the target leave this host.
pub(super) struct Egress<'a> {
    /// The target's address.
    pub(super) target: IpAddr,
    /// The target is this host.
    pub(super) local: bool,
    /// The interface.
    pub(super) interface: &'a Interface,
    /// The address that packets come from.
    pub(super) source: Option<IpAddr>,
}

/// Checks the RDMA device on the interface.
pub(super) fn diagnose(
    egress: &Egress<'_>,
    snapshot: &Snapshot,
    interfaces: &[Interface],
) -> Vec<Finding> {
    let devices = match &snapshot.devices {
        Ok(devices) => devices,
        Err(why) => return vec![Finding::unknown(CHECK, why)],
    };
    let name = &egress.interface.name;
    if egress.interface.infiniband {
        let text = format!("{name} is InfiniBand, of which little is known here");
        return vec![Finding::unknown(CHECK, text)];
    }
    let Some(DevicePort { device, port }) = port_on(egress.interface, devices) else {
        return vec![no_device(egress, snapshot, devices, interfaces)];
    };
    let mut findings = vec![Finding::ok(CHECK, format!("{} is on {name}", device.name))];
    for check in [port_active, gid, default_gid_type, mtu] {
        match check(egress, device, port) {
            Ok(finding) => findings.extend(finding),
            Err(finding) => {
                findings.push(finding);
                return findings;
            }
        }
    }
    // Only soft-RoCE's packets pass the packet filter.
    if device.soft {
        findings.push(firewall::diagnose(name, egress.target, snapshot));
    }
    findings
}

/// Checks all devices, if there is no target.
pub(super) fn diagnose_all(snapshot: &Snapshot, interfaces: &[Interface]) -> Vec<Finding> {
    let devices = match &snapshot.devices {
        Ok(devices) => devices,
        Err(why) => return vec![Finding::unknown(CHECK, why)],
    };
    if devices.is_empty() {
        let text = "there is no RDMA device; with -a it is told where there has to be one";
        return vec![Finding::fault(CHECK, text)];
    }
    let (active, inactive): (Vec<_>, Vec<_>) = all_ports(devices).partition(DevicePort::is_active);
    let mut findings = Vec::new();
    for each in &active {
        findings.push(Finding::ok(CHECK, each.describe(interfaces)));
    }
    for each in inactive {
        let text = each.describe(interfaces);
        // An unused port beside an active one is usual.
        let finding = if active.is_empty() {
            Finding::fault(CHECK, text)
        } else {
            Finding::warning(CHECK, text)
        };
        findings.push(match netdev(each.port, interfaces) {
            Some(down) if !down.up => {
                finding.fix(format!("ip link set {} up", shell_word(&down.name)))
            }
            _ => finding,
        });
    }
    findings
}

/// Returns the interface that a port is on.
fn netdev<'a>(port: &Port, interfaces: &'a [Interface]) -> Option<&'a Interface> {
    interfaces
        .iter()
        .find(|each| port.interface == Some(each.index))
}

/// A port and its device.
struct DevicePort<'a> {
    device: &'a Device,
    port: &'a Port,
}

impl DevicePort<'_> {
    fn is_active(&self) -> bool {
        self.port.state == ACTIVE
    }

    fn describe(&self, interfaces: &[Interface]) -> String {
        let netdev = netdev(self.port, interfaces);
        let place = netdev.map_or(String::new(), |each| format!(", on {}", each.name));
        let state = if self.is_active() {
            "active"
        } else {
            "not active"
        };
        let (number, name) = (self.port.number, &self.device.name);
        format!("port {number} of {name} is {state}{place}")
    }
}

/// Returns all ports of all devices.
fn all_ports(devices: &[Device]) -> impl Iterator<Item = DevicePort<'_>> {
    devices.iter().flat_map(|device| {
        let ports = device.ports.iter();
        ports.map(move |port| DevicePort { device, port })
    })
}

/// Returns the port on an interface. The addresses of a VLAN and of a bond are in the GID table of
/// the device below them.
fn port_on<'a>(interface: &Interface, devices: &'a [Device]) -> Option<DevicePort<'a>> {
    all_ports(devices).find(|DevicePort { port, .. }| {
        // Interface names of another network namespace mean nothing here.
        let is_ours = port.interface.is_some();
        let is_named = |gid: &Gid| gid.interface == interface.name;
        port.interface == Some(interface.index) || is_ours && port.gids.iter().any(is_named)
    })
}

fn no_device(
    egress: &Egress<'_>,
    snapshot: &Snapshot,
    devices: &[Device],
    interfaces: &[Interface],
) -> Finding {
    let name = &egress.interface.name;
    let mut text = format!(
        "no RDMA device is on {name}, which the route to {} takes",
        egress.target
    );
    let places = device_places(devices, interfaces);
    if !places.is_empty() {
        let places = places.join(", ");
        text.push_str(&format!("; {places}: see -w, the address to connect from"));
    }
    // Soft-RoCE beside an adapter is no fix.
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
    let parent = interfaces
        .iter()
        .find(|each| egress.interface.vlan_of == Some(each.index));
    let parent = parent.map_or(name, |each| &each.name);
    let free = (0..)
        .map(|number| format!("rxe{number}"))
        .find(|free| devices.iter().all(|device| device.name != *free))
        .unwrap_or_default();
    Finding::fault(CHECK, text).fix(format!(
        "rdma link add {free} type rxe netdev {}",
        shell_word(parent)
    ))
}

/// Returns which device is on which interface.
fn device_places(devices: &[Device], interfaces: &[Interface]) -> Vec<String> {
    let place = |each: DevicePort<'_>| {
        let interface = netdev(each.port, interfaces)?;
        Some(format!("{} is on {}", each.device.name, interface.name))
    };
    all_ports(devices).filter_map(place).collect()
}

type CheckResult = Result<Option<Finding>, Finding>;

fn port_active(egress: &Egress<'_>, device: &Device, port: &Port) -> CheckResult {
    if port.state == ACTIVE {
        return Ok(None);
    }
    let text = format!(
        "port {} of {} is not active, though {} is up",
        port.number, device.name, egress.interface.name
    );
    Err(with_recreate_fix(
        Finding::fault(CHECK, text),
        egress,
        device,
    ))
}

/// Checks that the device has the address that connections are made from.
fn gid(egress: &Egress<'_>, device: &Device, port: &Port) -> CheckResult {
    const CHECK: &str = "gid";
    let Some(source) = egress.source.filter(|_| device.protocol == Protocol::Roce) else {
        return Ok(None);
    };
    let wanted = match source {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let kinds: Vec<&str> = gid_types(port, wanted, &egress.interface.name);
    if kinds.contains(&ROCE_V2) {
        let text = format!("{} has {source} as {ROCE_V2}", device.name);
        return Ok(Some(Finding::ok(CHECK, text)));
    }
    let name = &device.name;
    if kinds.is_empty() {
        let text = format!("{name} does not have {source} in its table of addresses");
        return Err(with_recreate_fix(
            Finding::fault(CHECK, text),
            egress,
            device,
        ));
    }
    let text = format!(
        "{name} has {source} as {} only, and not as {ROCE_V2}: \
         see -w, the address to connect from, for one of a device that has it",
        kinds.join(", ")
    );
    Err(with_recreate_fix(
        Finding::fault(CHECK, text),
        egress,
        device,
    ))
}

fn gid_types<'a>(port: &'a Port, address: Ipv6Addr, interface: &str) -> Vec<&'a str> {
    let gids = port.gids.iter();
    gids.filter(|gid| gid.address == address && gid.interface == interface)
        .map(|gid| gid.kind.as_str())
        .collect()
}

/// Adds the command that creates a soft-RoCE device again: it reads its interface's state and
/// addresses when it is created.
fn with_recreate_fix(finding: Finding, egress: &Egress<'_>, device: &Device) -> Finding {
    let (name, interface) = (shell_word(&device.name), shell_word(&egress.interface.name));
    if !device.soft || egress.interface.vlan_of.is_some() {
        return finding;
    }
    finding.fix(format!(
        "rdma link delete {name} && rdma link add {name} type rxe netdev {interface}"
    ))
}

/// Checks the GID type that an administrator may have chosen for connections.
fn default_gid_type(_: &Egress<'_>, device: &Device, port: &Port) -> CheckResult {
    match &port.default_type {
        Some(kind) if kind != ROCE_V2 => {
            let (name, number) = (&device.name, port.number);
            let text = format!("connections of {name} use {kind}, and targets expect {ROCE_V2}");
            let file =
                format!("/sys/kernel/config/rdma_cm/{name}/ports/{number}/default_roce_mode");
            let fix = format!("echo '{ROCE_V2}' >{}", shell_word(&file));
            Err(Finding::fault("gid", text).fix(fix))
        }
        _ => Ok(None),
    }
}

fn mtu(egress: &Egress<'_>, device: &Device, _: &Port) -> CheckResult {
    const CHECK: &str = "mtu";
    if device.protocol != Protocol::Roce {
        return Ok(None);
    }
    let (name, mtu) = (&egress.interface.name, egress.interface.mtu);
    let headers_len = if device.soft {
        SOFT_ROCE_HEADERS
    } else {
        ROCE_HEADERS
    };
    let path = path_mtu(mtu, headers_len);
    let text = format!("{name} has {mtu}, so that a packet carries {path} bytes of data");
    if path == MAX_PATH_MTU {
        return Ok(Some(Finding::ok(CHECK, text)));
    }
    // A hop on the path may drop larger packets, and then nothing passes that passes now.
    let text = format!(
        "{text}; it could be {MAX_PATH_MTU} with an MTU of {MTU_FOR_4K}, where all on the way to the target takes that"
    );
    let finding = Finding::warning(CHECK, text);
    // A VLAN has at most what is below it has.
    Ok(Some(match egress.interface.vlan_of {
        None => finding.fix(format!("ip link set {} mtu {MTU_FOR_4K}", shell_word(name))),
        Some(_) => finding,
    }))
}

/// Returns the largest path MTU that fits an interface's MTU beside headers of `headers_len` bytes.
fn path_mtu(mtu: u32, headers_len: u32) -> u32 {
    let room = mtu.saturating_sub(headers_len);
    let sizes = [MAX_PATH_MTU, 2048, 1024, 512];
    sizes.into_iter().find(|size| *size <= room).unwrap_or(256)
}

#[cfg(test)]
mod tests {
    use super::{path_mtu, ROCE_HEADERS, SOFT_ROCE_HEADERS};

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
            assert_eq!(path_mtu(mtu, ROCE_HEADERS), hard, "{mtu}");
            assert_eq!(path_mtu(mtu, SOFT_ROCE_HEADERS), soft, "{mtu}");
        }
    }
}
