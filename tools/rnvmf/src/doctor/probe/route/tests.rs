// SPDX-License-Identifier: GPL-2.0

use super::*;
use serde_json::{from_str, from_value, json};

fn recorded() -> Vec<Interface> {
    from_str(include_str!("../recorded/ip-address.json")).unwrap()
}

fn routes(printed: &str) -> Probed<RouteLookup> {
    read(Ok(from_str(printed).unwrap()))
}

#[test]
fn a_route_has_an_interface_and_a_source() {
    let expected = Route {
        kind: None,
        dev: "eth0".into(),
        prefsrc: Some([192, 0, 2, 2].into()),
    };
    let found = routes(include_str!("../recorded/ip-route.json"));
    assert_eq!(found, Ok(RouteLookup::Route(expected)));
    match routes(include_str!("../recorded/ip-route-local.json")).unwrap() {
        RouteLookup::Route(route) => assert!(route.is_local() && route.dev == "lo"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_route_to_no_host_is_none() {
    for kind in ["unreachable", "blackhole", "prohibit", "broadcast", "frob"] {
        let printed = json!([{ "type": kind, "dst": "192.0.2.1", "dev": "lo" }]);
        let why = format!("the route is of type {kind}");
        assert_eq!(routes(&printed.to_string()), Ok(RouteLookup::NoRoute(why)));
    }
}

#[test]
fn a_rejection_of_the_kernel_is_no_route() {
    let why = "Network is unreachable";
    for printed in ["RTNETLINK answers", "Error"] {
        let found = read(Err(format!("ip: {printed}: {why}")));
        assert_eq!(found, Ok(RouteLookup::NoRoute(why.into())));
    }
    for other in ["ip: Cannot find device \"eth0\"", "ip is not installed"] {
        assert_eq!(read(Err(other.into())), Err(other.into()));
    }
    assert!(read(Ok(Vec::new())).is_err());
}

#[test]
fn interfaces_are_read() {
    let interfaces = recorded();
    let [lo, _, eth0] = &interfaces[..] else {
        panic!("{interfaces:?}");
    };
    assert!(lo.is_loopback() && lo.is_up() && !eth0.is_loopback());
    assert!(eth0.is_up() && eth0.has_carrier());
    assert_eq!((eth0.ifindex, &*eth0.ifname, eth0.mtu), (3, "eth0", 1500));
    assert_eq!(eth0.link_type, "ether");
    // The link of a veth is its peer.
    assert_eq!((eth0.link.as_deref(), eth0.vlan_of()), (Some("eth1"), None));
    assert!(eth0.has([192, 0, 2, 2].into()) && !eth0.has([192, 0, 2, 1].into()));
    assert!(eth0.has("2001:db8::2".parse().unwrap()));
    let covering = |address: &str| {
        let address = address.parse().unwrap();
        eth0.addr_info
            .iter()
            .filter(|prefix| prefix.covers(address))
            .count()
    };
    assert_eq!([covering("192.0.2.9"), covering("192.0.3.9")], [1, 0]);
    assert_eq!([covering("2001:db8::9"), covering("2001:db8:1::9")], [1, 0]);
}

#[test]
fn odd_interfaces_are_read() {
    let vlan: Interface = from_value(json!({
        "ifindex": 4, "link": "eth0", "ifname": "eth0.5", "flags": ["NO-CARRIER", "UP"],
        "mtu": 1500, "link_type": "ether",
        "linkinfo": { "info_kind": "vlan", "info_data": { "protocol": "802.1Q", "id": 5 } },
        "addr_info": [{}, { "family": "mctp", "local": "8", "prefixlen": 4294967295u32 }],
    }))
    .unwrap();
    assert_eq!(vlan.vlan_of(), Some("eth0"));
    assert!(vlan.is_up() && !vlan.has_carrier());
    assert!(vlan
        .addr_info
        .iter()
        .all(|each| !each.covers([192, 0, 2, 2].into())));
}

#[test]
fn a_scope_is_a_name_or_an_index() {
    let interfaces = Ok(recorded());
    let to = |text: &str| to(&text.parse().unwrap(), None, &interfaces);
    for scope in ["frob", "9"] {
        let why = format!("there is no interface {scope}");
        let found = to(&format!("fe80::1%{scope}"));
        assert_eq!(found, Ok(RouteLookup::NoRoute(why)));
    }
}

/// Only where `ip` is installed.
#[test]
fn the_kernel_answers() {
    let Ok(interfaces) = interfaces() else {
        return;
    };
    let lo = interfaces.iter().find(|each| each.is_loopback()).unwrap();
    if lo.is_up() {
        let target = "127.0.0.1".parse().unwrap();
        let from = "127.0.0.1".parse().unwrap();
        match to(&target, Some(&from), &Ok(interfaces.clone())) {
            Ok(RouteLookup::Route(route)) => assert!(route.is_local(), "{route:?}"),
            other => panic!("{other:?}"),
        }
    }
}
