// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::nlattr::tests::{attributes, nest, number, text};

fn reply(header: Vec<u8>, list: Vec<Vec<u8>>) -> Payload {
    Payload {
        header,
        attributes: attributes(list),
    }
}

fn route_of(kind: u8) -> RouteLookup {
    let mut header = vec![0; ROUTE_HEADER];
    header[7] = kind;
    let source = number(libc::RTA_PREFSRC, [192, 0, 2, 2]);
    let list = vec![number(libc::RTA_OIF, 3u32), source];
    read_route(&reply(header, list)).unwrap()
}

#[test]
fn a_route_has_an_interface_and_a_source() {
    let expected = Route {
        local: false,
        interface: 3,
        source: Some([192, 0, 2, 2].into()),
    };
    let found = route_of(libc::RTN_UNICAST);
    assert_eq!(found, RouteLookup::Route(expected.clone()));
    let local = Route {
        local: true,
        ..expected
    };
    assert_eq!(route_of(libc::RTN_LOCAL), RouteLookup::Route(local));
}

#[test]
fn a_route_to_nowhere_is_none() {
    for kind in [libc::RTN_UNREACHABLE, libc::RTN_BLACKHOLE, 5] {
        let found = route_of(kind);
        assert!(matches!(found, RouteLookup::NoRoute(_)), "{kind}");
    }
}

#[test]
fn an_interface_is_read() {
    let mut header = vec![0; LINK_HEADER];
    header[4] = 7;
    header[8] = libc::IFF_UP as u8;
    let list = |kind: &str| {
        let kind = vec![text(libc::IFLA_INFO_KIND, kind)];
        vec![
            text(libc::IFLA_IFNAME, "eth0.5"),
            number(libc::IFLA_MTU, 1500u32),
            number(libc::IFLA_LINK, 2u32),
            nest(libc::IFLA_LINKINFO, kind),
        ]
    };
    let read = interface(&reply(header.clone(), list("vlan"))).unwrap();
    assert_eq!((read.index, read.name.as_str()), (7, "eth0.5"));
    assert_eq!((read.mtu, read.vlan_of), (1500, Some(2)));
    assert!(read.up && !read.carrier && !read.loopback && !read.infiniband);
    let veth = interface(&reply(header, list("veth"))).unwrap();
    assert_eq!(veth.vlan_of, None);
}

#[test]
fn an_address_is_the_local_one() {
    let header = vec![2, 24, 0, 0, 7, 0, 0, 0];
    let list = vec![
        number(libc::IFA_ADDRESS, [192, 0, 2, 1]),
        number(libc::IFA_LOCAL, [192, 0, 2, 2]),
    ];
    let prefix = Prefix {
        address: [192, 0, 2, 2].into(),
        length: 24,
    };
    assert_eq!(address(&reply(header, list)), Ok((7, Some(prefix))));
}

#[test]
fn the_kernel_answers() {
    let interfaces = interfaces().unwrap();
    let loopback = interfaces.iter().find(|each| each.loopback).unwrap();
    assert_eq!(loopback.name, "lo");
    if loopback.up {
        let route = |from| {
            let query = Query {
                to: [127, 0, 0, 1].into(),
                from,
                interface: None,
            };
            match query.lookup().unwrap() {
                RouteLookup::Route(route) => route,
                none => panic!("{none:?}"),
            }
        };
        let local = route(None);
        assert!(local.local, "{local:?}");
        let from = Some([127, 0, 0, 2].into());
        assert_eq!(route(from).source, from);
    }
}
