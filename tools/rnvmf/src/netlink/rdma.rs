// SPDX-License-Identifier: GPL-2.0

//! What the kernel says of RDMA devices: the nldev part of RDMA netlink.

use super::attributes::{Attributes, Malformed};
use super::request::Request;
use super::socket::Socket;
use crate::doctor::snapshot::{Device, Port, Protocol};
use crate::error::Error;
use netlink_sys::protocols::NETLINK_RDMA;

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

/// The devices that can be used in this network namespace, without what only sysfs tells.
pub(crate) fn devices() -> Result<Vec<Device>, Error> {
    let mut socket = Socket::open(NETLINK_RDMA)?;
    let mut devices = Vec::new();
    for reply in socket.ask(kind(GET), &Request::with_header(Vec::new()).dump())? {
        let (index, mut device) = device(&reply.attributes)?;
        let ports = Request::with_header(Vec::new())
            .with(DEV_INDEX, index)
            .dump();
        for reply in socket.ask(kind(PORT_GET), &ports)? {
            device.ports.push(port(&reply.attributes)?);
        }
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

#[cfg(test)]
mod tests {
    use super::super::attributes::tests::{attributes, number, text};
    use super::*;

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
