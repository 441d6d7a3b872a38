// SPDX-License-Identifier: GPL-2.0

//! The RDMA device on a network interface: its port, its GIDs, its MTU.

use super::firewall;
use crate::doctor::finding::{set_link_up, shell_word, Finding};
use crate::doctor::snapshot::{Gid, Interface, Port, Snapshot};
use std::iter::successors;
use std::net::IpAddr;

const CHECK: &str = "link";

/// The GID type that current targets use.
const ROCE_V2: &str = "RoCE v2";

/// Largest path MTU of InfiniBand and RoCE, in bytes.
const MAX_PATH_MTU: u32 = 4096;

/// Bytes of headers that RoCE drivers reserve, as `iboe_get_mtu()` does.
const ROCE_HEADERS: u32 = 96;

/// Bytes of headers that soft-RoCE reserves, as `rxe_set_mtu()` does.
const SOFT_ROCE_HEADERS: u32 = 80;

/// An interface MTU that holds the largest path MTU and its headers.
const MTU_FOR_4K: u32 = 4200;

/// The way by which packets to the target leave this host.
pub(super) struct Egress<'a> {
    /// Address of the target.
    pub(super) target: IpAddr,
    /// The target is this host.
    pub(super) local: bool,
    /// Output interface.
    pub(super) interface: &'a Interface,
    /// Source address.
    pub(super) source: Option<IpAddr>,
}

/// Checks the RDMA device on the output interface up to the first fault, which is returned.
pub(super) fn diagnose(
    egress: &Egress<'_>,
    snapshot: &Snapshot,
    interfaces: &[Interface],
    findings: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let ports = ports(snapshot)?;
    let name = &egress.interface.ifname;
    if egress.interface.link_type == "infiniband" {
        let text = format!("{name} is IP over InfiniBand, which this program cannot check");
        return Err(Finding::unknown(CHECK, text));
    }
    let port = port_on(egress.interface, ports);
    let port = port.ok_or_else(|| no_device(egress, snapshot, ports, interfaces))?;
    check_lower(egress, port, interfaces)?;
    findings.push(Finding::ok(CHECK, format!("{} is on {name}", port.device)));
    check_state(egress, port)?;
    check_cm(port)?;
    if port.is_roce {
        findings.extend(check_gid(egress, port)?);
    }
    check_default_type(port)?;
    if port.is_roce {
        findings.push(check_mtu(egress, port));
    }
    // Adapters send and receive RoCE packets without the network stack.
    if port.is_soft {
        findings.push(firewall::diagnose(name, egress.target, snapshot));
    }
    Ok(())
}

/// Checks the ports of all devices. Without a target, one active port is sufficient.
pub(super) fn diagnose_all(
    snapshot: &Snapshot,
    interfaces: &[Interface],
    findings: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let ports = ports(snapshot)?;
    if ports.is_empty() {
        let text = "there is no RDMA device; give -a ADDRESS to see which interface needs one";
        return Err(Finding::fault(CHECK, text));
    }
    let (active, inactive): (Vec<_>, Vec<_>) = ports.iter().partition(|port| port.is_active());
    findings.extend(
        active
            .iter()
            .map(|port| Finding::ok(CHECK, describe(port, "active"))),
    );
    for port in inactive {
        let text = describe(port, "not active");
        let finding = if active.is_empty() {
            Finding::fault(CHECK, text)
        } else {
            Finding::warning(CHECK, text)
        };
        let is_below = |each: &&Interface| port.netdev.as_ref() == Some(&each.ifname);
        let down = interfaces
            .iter()
            .find(is_below)
            .filter(|each| !each.is_up());
        findings.push(match down {
            Some(down) => finding.fix(set_link_up(&down.ifname)),
            None => finding,
        });
    }
    Ok(())
}

fn ports(snapshot: &Snapshot) -> Result<&[Port], Finding> {
    match &snapshot.ports {
        Ok(ports) => Ok(ports),
        Err(why) => Err(Finding::unknown(CHECK, why)),
    }
}

fn describe(port: &Port, state: &str) -> String {
    let on = port
        .netdev
        .as_ref()
        .map_or(String::new(), |name| format!(", on {name}"));
    format!("port {} of {} is {state}{on}", port.number, port.device)
}

/// Returns the port that a connection through an interface uses. The kernel adds the addresses of
/// all upper interfaces, such as a VLAN, a bond or a bridge, to the GID table of the device on the
/// lower interface.
fn port_on<'a>(interface: &Interface, ports: &'a [Port]) -> Option<&'a Port> {
    let name = &interface.ifname;
    ports.iter().find(|port| {
        // Without a network interface in this namespace, the names are those of another namespace.
        port.netdev.as_ref().is_some_and(|netdev| netdev == name)
            || port.netdev.is_some() && port.gids.iter().any(|gid| gid.interface == *name)
    })
}

/// Checks that a soft-RoCE device gets the packets for the interface. The network stack gives it
/// those of its own interface and of VLANs on that, but not those of another upper interface.
fn check_lower(egress: &Egress<'_>, port: &Port, interfaces: &[Interface]) -> Result<(), Finding> {
    let named = |name: &str| interfaces.iter().find(|each| each.ifname == name);
    let lower = |upper: &&Interface| named(upper.vlan_of()?);
    let below_vlans = || successors(Some(egress.interface), lower).take(interfaces.len());
    let Some(netdev) = port.netdev.as_ref().filter(|_| port.is_soft) else {
        return Ok(());
    };
    if below_vlans().any(|each| each.ifname == *netdev || each.vlan_of() == Some(netdev)) {
        return Ok(());
    }
    let name = &egress.interface.ifname;
    let upper = below_vlans().last().map_or(name, |each| &each.ifname);
    let kind = egress.interface.linkinfo.info_kind.as_deref();
    let kind = kind.map_or(String::new(), |kind| format!(" ({kind})"));
    let text = format!(
        "{} is on {netdev}, but the route to {} takes {name}{kind} above it: \
         soft-RoCE receives no packets of {name} there",
        port.device, egress.target
    );
    Err(Finding::fault(CHECK, text).fix(recreate_soft(&port.device, upper)))
}

fn no_device(
    egress: &Egress<'_>,
    snapshot: &Snapshot,
    ports: &[Port],
    interfaces: &[Interface],
) -> Finding {
    let name = &egress.interface.ifname;
    let mut text = format!(
        "no RDMA device is on {name}, which the route to {} takes",
        egress.target
    );
    let place = |port: &Port| Some(format!("{} is on {}", port.device, port.netdev.as_ref()?));
    let places: Vec<_> = ports.iter().filter_map(place).collect();
    if !places.is_empty() {
        text += &format!("; {}: -w chooses the source address", places.join(", "));
    }
    if snapshot.creates_elsewhere {
        text +=
            ", and each device belongs to one network namespace (mode exclusive, `rdma system`)";
        return Finding::fault(CHECK, text);
    }
    // A host with an adapter needs no soft-RoCE.
    if ports.iter().any(|port| !port.is_soft) {
        return Finding::fault(CHECK, text);
    }
    let mut modules = snapshot
        .modules
        .iter()
        .filter(|each| each.name == "rdma_rxe");
    if modules.any(|rxe| !rxe.loaded && rxe.installed == Ok(false)) {
        text += ", and this kernel has no soft-RoCE (module rdma_rxe)";
        return Finding::fault(CHECK, text);
    }
    // A soft-RoCE device is created on the lower interface of a VLAN, and serves both.
    let parent = egress
        .interface
        .vlan_of()
        .filter(|parent| interfaces.iter().any(|each| each.ifname == *parent));
    let is_free = |name: &String| ports.iter().all(|port| port.device != *name);
    let free = (0..).map(|number| format!("rxe{number}")).find(is_free);
    Finding::fault(CHECK, text).fix(add_soft(&free.unwrap_or_default(), parent.unwrap_or(name)))
}

/// Returns the command that creates a soft-RoCE device.
fn add_soft(device: &str, interface: &str) -> String {
    let (device, interface) = (shell_word(device), shell_word(interface));
    format!("rdma link add {device} type rxe netdev {interface}")
}

/// Adds the command that creates a soft-RoCE device again: it reads the state and the addresses of
/// its interface only when it is created.
fn with_recreate_fix(finding: Finding, egress: &Egress<'_>, port: &Port) -> Finding {
    if !port.is_soft || egress.interface.vlan_of().is_some() {
        return finding;
    }
    finding.fix(recreate_soft(&port.device, &egress.interface.ifname))
}

/// Returns the command that deletes a soft-RoCE device and creates it on an interface.
fn recreate_soft(device: &str, interface: &str) -> String {
    let add = add_soft(device, interface);
    format!("rdma link delete {} && {add}", shell_word(device))
}

fn check_state(egress: &Egress<'_>, port: &Port) -> Result<(), Finding> {
    if port.is_active() {
        return Ok(());
    }
    let (device, name) = (&port.device, &egress.interface.ifname);
    let text = format!(
        "port {} of {device} is not active, though {name} is up",
        port.number
    );
    Err(with_recreate_fix(Finding::fault(CHECK, text), egress, port))
}

/// Checks that the connection manager serves the device. Soft-RoCE refuses it a second queue pair.
fn check_cm(port: &Port) -> Result<(), Finding> {
    if !port.lacks_cm {
        return Ok(());
    }
    let mut text = format!("{} has no connection manager", port.device);
    if port.is_soft {
        text += "; soft-RoCE loses it when it moves to another network namespace: \
                 use the mode shared (`rdma system set netns shared`)";
    }
    Err(Finding::fault(CHECK, text))
}

/// Checks that the source address is a RoCE v2 GID of the device.
fn check_gid(egress: &Egress<'_>, port: &Port) -> Result<Option<Finding>, Finding> {
    let Some(source) = egress.source else {
        return Ok(None);
    };
    let (device, name) = (&port.device, &egress.interface.ifname);
    let is_source = |gid: &&Gid| gid.address.to_canonical() == source && gid.interface == *name;
    let kinds: Vec<&str> = port
        .gids
        .iter()
        .filter(is_source)
        .map(|gid| gid.kind.as_str())
        .collect();
    if kinds.contains(&ROCE_V2) {
        let text = format!("{device} has {source} as {ROCE_V2}");
        return Ok(Some(Finding::ok("gid", text)));
    }
    let text = if kinds.is_empty() {
        format!("{device} does not have {source} in its GID table")
    } else {
        let kinds = kinds.join(", ");
        format!(
            "{device} has {source} as {kinds}, but not as {ROCE_V2}: \
             -w chooses another source address"
        )
    };
    Err(with_recreate_fix(Finding::fault("gid", text), egress, port))
}

/// Checks the GID type that an administrator may have set for RDMA CM connections.
fn check_default_type(port: &Port) -> Result<(), Finding> {
    let Some(kind) = port.default_type.as_ref().filter(|kind| *kind != ROCE_V2) else {
        return Ok(());
    };
    let Port { device, number, .. } = port;
    let text = format!("connections of {device} use {kind}, but targets expect {ROCE_V2}");
    let file = format!("/sys/kernel/config/rdma_cm/{device}/ports/{number}/default_roce_mode");
    let fix = format!("echo '{ROCE_V2}' >{}", shell_word(&file));
    Err(Finding::fault("gid", text).fix(fix))
}

fn check_mtu(egress: &Egress<'_>, port: &Port) -> Finding {
    const CHECK: &str = "mtu";
    let (name, mtu) = (&egress.interface.ifname, egress.interface.mtu);
    let headers = if port.is_soft {
        SOFT_ROCE_HEADERS
    } else {
        ROCE_HEADERS
    };
    let path = path_mtu(mtu, headers);
    let text = format!("{name} has an MTU of {mtu}, so that a packet carries {path} bytes of data");
    if path == MAX_PATH_MTU {
        return Finding::ok(CHECK, text);
    }
    // A switch on the path may drop larger packets that it does not expect.
    let text = format!(
        "{text}; with an MTU of {MTU_FOR_4K} it would carry {MAX_PATH_MTU}, \
         if all hops to the target accept that"
    );
    let finding = Finding::warning(CHECK, text);
    // The MTU of a VLAN cannot exceed that of its lower interface.
    match egress.interface.vlan_of() {
        None => finding.fix(format!("ip link set {} mtu {MTU_FOR_4K}", shell_word(name))),
        Some(_) => finding,
    }
}

/// Returns the largest path MTU that fits into an interface MTU together with the headers, in
/// bytes.
fn path_mtu(mtu: u32, headers: u32) -> u32 {
    let room = mtu.saturating_sub(headers);
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
