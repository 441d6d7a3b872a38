// SPDX-License-Identifier: GPL-2.0

//! RDMA devices: the ports that `rdma` prints, with their GID tables from sysfs.

use super::tool::RDMA;
use crate::doctor::snapshot::{Gid, Port, Probed};
use std::net::Ipv6Addr;
use std::path::Path;

/// Directory of the RDMA devices of this network namespace.
const CLASS: &str = "/sys/class/infiniband";

/// Returns the ports of the RDMA devices of this network namespace.
pub(super) fn ports() -> Probed<Vec<Port>> {
    // The kernel would load ib_core for the netlink socket of rdma.
    if !Path::new(CLASS).exists() {
        return Ok(Vec::new());
    }
    let mut ports: Vec<Port> = RDMA.run(&["-j", "link", "show"])?;
    for port in &mut ports {
        read_attributes(port);
    }
    Ok(ports)
}

/// Whether a new RDMA device would belong to another network namespace. `rdma link add` creates it in the
/// initial one, and only the mode `shared` shows it in all.
pub(super) fn creates_elsewhere() -> bool {
    let namespace = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/net")).ok();
    is_exclusive() && namespace("1") != namespace("self")
}

/// Whether each RDMA device belongs to one network namespace (`rdma system`).
fn is_exclusive() -> bool {
    read_text(Path::new("/sys/module/ib_core/parameters/netns_mode")).as_deref() == Some("N")
}

/// Reads the attributes of a port that only sysfs and configfs have. A device that is removed
/// meanwhile lacks them.
fn read_attributes(port: &mut Port) {
    let device = Path::new(CLASS).join(&port.device);
    let number = Path::new("ports").join(port.number.to_string());
    let directory = device.join(&number);
    // iWARP devices have Ethernet ports, too, but are RNICs; a RoCE device is a channel adapter.
    port.is_roce = read_text(&device.join("node_type")).as_deref() == Some("1: CA")
        && read_text(&directory.join("link_layer")).as_deref() == Some("Ethernet");
    // Only rdma_rxe defines this attribute, the name of the network interface.
    port.is_soft = device.join("parent").exists();
    // ib_cm has counters below each port that it serves. In the mode shared, only the initial
    // network namespace has them.
    port.lacks_cm = port.is_roce
        && is_exclusive()
        && Path::new("/sys/module/ib_cm").exists()
        && !directory.join("cm_tx_msgs").exists();
    port.gids = gids(&directory);
    let configfs = Path::new("/sys/kernel/config/rdma_cm").join(&port.device);
    port.default_type = read_text(&configfs.join(&number).join("default_roce_mode"));
}

/// Reads a GID table, in no particular order. The directories have a file for each entry.
fn gids(port: &Path) -> Vec<Gid> {
    let entries = std::fs::read_dir(port.join("gids")).into_iter().flatten();
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let index = entry.ok()?.file_name();
        let address: Ipv6Addr = read_text(&port.join("gids").join(&index))?.parse().ok()?;
        let attribute = |name: &str| read_text(&port.join("gid_attrs").join(name).join(&index));
        (!address.is_unspecified()).then(|| Gid {
            address,
            kind: attribute("types").unwrap_or_default(),
            interface: attribute("ndevs").unwrap_or_default(),
        })
    };
    entries.filter_map(read).collect()
}

fn read_text(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(printed: &str) -> Vec<Port> {
        serde_json::from_str(printed).unwrap()
    }

    #[test]
    fn ports_are_read() {
        let ports = read(include_str!("recorded/rdma-link.json"));
        let [rxe, other] = &ports[..] else {
            panic!("{ports:?}");
        };
        assert_eq!((rxe.device.as_str(), rxe.number), ("rxe0", 1));
        assert_eq!(rxe.netdev.as_deref(), Some("eth0"));
        assert!(rxe.is_active() && !other.is_active());
        // The network interface of a device may be in another namespace.
        assert_eq!(other.netdev, None);
    }

    #[test]
    fn a_device_that_is_gone_has_no_attributes() {
        let mut ports = read(include_str!("recorded/rdma-link.json"));
        ports[0].device = "no-such-device".into();
        read_attributes(&mut ports[0]);
        let port = &ports[0];
        assert!(!port.is_roce && !port.is_soft && port.gids.is_empty());
        assert_eq!(port.default_type, None);
    }
}
