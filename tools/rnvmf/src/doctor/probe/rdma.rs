// SPDX-License-Identifier: GPL-2.0

//! RDMA devices: the nldev part of RDMA netlink, and GID tables from sysfs.

use crate::doctor::snapshot::{Device, Gid, Port, Protocol};
use crate::error::Error;
use crate::netlink::{Request, Socket};
use crate::nlattr::{Attributes, Malformed};
use netlink_sys::protocols::NETLINK_RDMA;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

// From rdma/rdma_netlink.h.
const NLDEV: u16 = 5;
const GET: u16 = 1;
const PORT_GET: u16 = 5;
const DEV_INDEX: u16 = 1;
const DEV_NAME: u16 = 2;
const PORT_INDEX: u16 = 3;
const PORT_STATE: u16 = 12;
const NDEV_INDEX: u16 = 50;
const DEV_PROTOCOL: u16 = 67;

const fn kind(command: u16) -> u16 {
    (NLDEV << 10) + command
}

/// Returns the devices that can be used in this network namespace.
pub(super) fn devices() -> Result<Vec<Device>, Error> {
    // A kernel without RDMA does not know RDMA netlink either.
    if !Path::new("/sys/class/infiniband").exists() {
        return Ok(Vec::new());
    }
    let mut socket = Socket::open(NETLINK_RDMA)?;
    let mut devices = Vec::new();
    for reply in socket.request(kind(GET), &Request::with_header(Vec::new()).dump())? {
        let (index, mut device) = device(&reply.attributes)?;
        let ports = Request::with_header(Vec::new())
            .with(DEV_INDEX, index)
            .dump();
        for reply in socket.request(kind(PORT_GET), &ports)? {
            device.ports.push(port(&reply.attributes)?);
        }
        read_gid_tables(&mut device);
        devices.push(device);
    }
    Ok(devices)
}

fn device(from: &Attributes) -> Result<(u32, Device), Malformed> {
    let index = from.require("dev-index", from.u32(DEV_INDEX)?)?;
    let device = Device {
        name: from.require("dev-name", from.string(DEV_NAME)?)?,
        protocol: match from.string(DEV_PROTOCOL)?.as_deref() {
            Some("roce") => Protocol::Roce,
            Some("iw") => Protocol::Iwarp,
            _ => Protocol::Other,
        },
        soft: false,
        ports: Vec::new(),
    };
    Ok((index, device))
}

fn port(from: &Attributes) -> Result<Port, Malformed> {
    Ok(Port {
        number: from.require("port-index", from.u32(PORT_INDEX)?)?,
        state: from.require("port-state", from.u8(PORT_STATE)?)?,
        interface: from.u32(NDEV_INDEX)?,
        gids: Vec::new(),
        default_type: None,
    })
}

/// Adds the GID tables to a device, which only sysfs and configfs have. Files that are gone by now
/// are left out.
fn read_gid_tables(device: &mut Device) {
    let top = Path::new("/sys/class/infiniband").join(&device.name);
    // Only soft-RoCE has this attribute, the name of its interface.
    device.soft = top.join("parent").exists();
    let configured = Path::new("/sys/kernel/config/rdma_cm").join(&device.name);
    for port in &mut device.ports {
        let number = Path::new("ports").join(port.number.to_string());
        port.gids = gids(&top.join(&number));
        port.default_type = read_text(&configured.join(&number).join("default_roce_mode"));
    }
}

fn gids(port: &Path) -> Vec<Gid> {
    let Ok(entries) = std::fs::read_dir(port.join("gids")) else {
        return Vec::new();
    };
    let mut names: Vec<PathBuf> = entries
        .filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name())))
        .collect();
    names.sort();
    let read = |index: &PathBuf| {
        let address: Ipv6Addr = read_text(&port.join("gids").join(index))?.parse().ok()?;
        // An empty entry has no address.
        if address.is_unspecified() {
            return None;
        }
        let attributes = port.join("gid_attrs");
        Some(Gid {
            address,
            kind: read_text(&attributes.join("types").join(index)).unwrap_or_default(),
            interface: read_text(&attributes.join("ndevs").join(index)).unwrap_or_default(),
        })
    };
    names.iter().filter_map(read).collect()
}

fn read_text(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nlattr::tests::{attributes, number, text};

    #[test]
    fn a_device_is_read() {
        let (index, read) = device(&attributes(vec![
            number(DEV_INDEX, 4u32),
            text(DEV_NAME, "rxe0"),
            text(DEV_PROTOCOL, "roce"),
        ]))
        .unwrap();
        assert_eq!((index, read.name.as_str()), (4, "rxe0"));
        assert_eq!(read.protocol, Protocol::Roce);
    }

    #[test]
    fn a_port_of_another_namespace_has_no_interface() {
        let list = vec![number(PORT_INDEX, 1u32), number(PORT_STATE, 4u8)];
        let read = port(&attributes(list.clone())).unwrap();
        assert_eq!((read.number, read.state, read.interface), (1, 4, None));
        let here = [list, vec![number(NDEV_INDEX, 7u32)]].concat();
        assert_eq!(port(&attributes(here)).unwrap().interface, Some(7));
    }
}
