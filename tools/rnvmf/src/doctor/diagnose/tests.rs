// SPDX-License-Identifier: GPL-2.0

//! A healthy set-up has no findings; a changed one has the expected finding.

use super::diagnose;
use crate::doctor::finding::{Finding, Level};
use crate::doctor::snapshot::{
    Chain, Destination, Effect, Gid, HostInfo, Interface, LinkInfo, Module, Port, Prefix, Route,
    RouteLookup, Rule, Snapshot, MODULES,
};
use crate::error::tests::rejected;
use crate::host::{HOSTID_FILE, HOSTNQN_FILE};
use crate::model::controller::tests::live;
use crate::model::controller::{Controller, State};
use crate::uapi::CtrlState;
use std::net::Ipv4Addr;

const HOST: [u8; 4] = [192, 0, 2, 2];

fn interface(ifindex: u32, ifname: &str, address: [u8; 4], prefixlen: u32) -> Interface {
    Interface {
        ifindex,
        ifname: ifname.into(),
        mtu: 4200,
        flags: vec!["UP".into(), "LOWER_UP".into()],
        link_type: "ether".into(),
        link: None,
        linkinfo: LinkInfo::default(),
        addr_info: vec![Prefix {
            local: Ipv4Addr::from(address).to_string(),
            prefixlen,
        }],
    }
}

fn down(mut interface: Interface) -> Interface {
    interface.flags.retain(|flag| flag != "UP");
    interface
}

fn loopback() -> Interface {
    let mut lo = interface(1, "lo", [127, 0, 0, 1], 8);
    lo.flags.push("LOOPBACK".into());
    lo
}

fn gid(kind: &str, interface: &str) -> Gid {
    Gid {
        address: Ipv4Addr::from(HOST).to_ipv6_mapped(),
        kind: kind.into(),
        interface: interface.into(),
    }
}

fn rxe0() -> Port {
    Port {
        device: "rxe0".into(),
        number: 1,
        state: "ACTIVE".into(),
        netdev: Some("eth0".into()),
        is_roce: true,
        is_soft: true,
        lacks_cm: false,
        gids: vec![gid("RoCE v2", "eth0")],
        default_type: None,
    }
}

fn module(name: &'static str) -> Module {
    Module {
        name,
        loaded: true,
        installed: Ok(true),
    }
}

fn target(address: [u8; 4]) -> Destination {
    Destination {
        address: address.into(),
        service: 4420,
        from: None,
        route: Ok(RouteLookup::Route(Route {
            kind: None,
            dev: "eth0".into(),
            prefsrc: Some(HOST.into()),
        })),
    }
}

/// Returns a set-up with soft-RoCE on eth0, which the route to the target takes.
fn healthy() -> Snapshot {
    Snapshot {
        destination: Some(Ok(target([192, 0, 2, 1]))),
        nqn: Some("nqn.x".into()),
        modules: MODULES.map(module).into(),
        interfaces: Ok(vec![loopback(), interface(2, "eth0", HOST, 24)]),
        ports: Ok(vec![rxe0()]),
        creates_elsewhere: false,
        chains: Ok(Vec::new()),
        legacy: Ok(false),
        host: Ok(HostInfo {
            nqn: "nqn.host".into(),
            id: "00112233-4455-6677-8899-aabbccddeeff".into(),
            missing_files: Vec::new(),
        }),
        controllers: Ok(Vec::new()),
    }
}

/// Returns the findings of a set-up with several problems.
pub(crate) fn several() -> Vec<Finding> {
    let mut snapshot = healthy();
    eth0(&mut snapshot).mtu = 1280;
    port(&mut snapshot).gids.clear();
    snapshot.modules[1].loaded = false;
    snapshot.controllers = Err("no".into());
    diagnose(&snapshot)
}

/// Returns the findings other than `ok` after a change of the healthy set-up.
fn found(change: impl FnOnce(&mut Snapshot)) -> Vec<Finding> {
    let mut snapshot = healthy();
    change(&mut snapshot);
    let mut findings = diagnose(&snapshot);
    findings.retain(|each| each.level != Level::Ok);
    findings
}

/// Returns the only finding after a change: level, check, message and fix.
fn one(change: impl FnOnce(&mut Snapshot)) -> (Level, &'static str, String, String) {
    let findings = found(change);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    let finding = findings.into_iter().next().unwrap();
    (
        finding.level,
        finding.check,
        finding.message,
        finding.fix.unwrap_or_default(),
    )
}

/// Checks that a change causes exactly one fault, with this message and fix.
fn fault(check: &str, message: &str, fix: &str, change: impl FnOnce(&mut Snapshot)) {
    let (level, at, text, mends) = one(change);
    assert_eq!((level, at), (Level::Fault, check), "{text}");
    assert!(text.contains(message), "{text}");
    assert_eq!(mends, fix);
}

fn destination(snapshot: &mut Snapshot) -> &mut Destination {
    let target = snapshot.destination.as_mut().unwrap();
    target.as_mut().unwrap()
}

fn eth0(snapshot: &mut Snapshot) -> &mut Interface {
    &mut snapshot.interfaces.as_mut().unwrap()[1]
}

fn set_down(snapshot: &mut Snapshot) {
    *eth0(snapshot) = down(eth0(snapshot).clone());
}

fn vlan_of(snapshot: &mut Snapshot, lower: &str) {
    eth0(snapshot).link = Some(lower.into());
    eth0(snapshot).linkinfo.info_kind = Some("vlan".into());
}

fn route(snapshot: &mut Snapshot) -> &mut Route {
    match &mut destination(snapshot).route {
        Ok(RouteLookup::Route(route)) => route,
        other => panic!("{other:?}"),
    }
}

fn port(snapshot: &mut Snapshot) -> &mut Port {
    &mut snapshot.ports.as_mut().unwrap()[0]
}

fn no_route(snapshot: &mut Snapshot) {
    destination(snapshot).route = Ok(RouteLookup::NoRoute("Network is unreachable".into()));
}

#[test]
fn a_healthy_set_up_has_nothing() {
    assert_eq!(found(|_| ()), []);
    // The same with an adapter, without a target, and without a subsystem.
    assert_eq!(found(|snapshot| port(snapshot).is_soft = false), []);
    assert_eq!(found(|snapshot| snapshot.destination = None), []);
    assert_eq!(found(|snapshot| snapshot.nqn = None), []);
    // An iWARP device has no RoCE GIDs.
    let iwarp = |snapshot: &mut Snapshot| {
        port(snapshot).is_roce = false;
        port(snapshot).gids.clear();
    };
    assert_eq!(found(iwarp), []);
}

#[test]
fn the_target_may_be_here() {
    let here = |snapshot: &mut Snapshot| {
        let target = destination(snapshot);
        target.address = HOST.into();
        target.route = Ok(RouteLookup::Route(Route {
            kind: Some("local".into()),
            dev: "lo".into(),
            prefsrc: Some(HOST.into()),
        }));
    };
    assert_eq!(found(here), []);
}

/// The address is on `name`, an interface of this kind above eth1, which has the RDMA device.
fn above(snapshot: &mut Snapshot, name: &str, kind: &str) {
    eth0(snapshot).ifname = name.into();
    eth0(snapshot).linkinfo.info_kind = Some(kind.into());
    route(snapshot).dev = name.into();
    let lower = interface(3, "eth1", [198, 51, 100, 2], 24);
    snapshot.interfaces.as_mut().unwrap().push(lower);
    port(snapshot).netdev = Some("eth1".into());
    port(snapshot).gids.push(gid("RoCE v2", name));
}

#[test]
fn addresses_on_a_vlan_or_a_bond_are_in_the_devices_table() {
    let vlan = |snapshot: &mut Snapshot| {
        above(snapshot, "eth1.5", "vlan");
        vlan_of(snapshot, "eth1");
    };
    assert_eq!(found(vlan), []);
    // A VLAN in a VLAN.
    let both = |snapshot: &mut Snapshot| {
        above(snapshot, "eth1.5.6", "vlan");
        vlan_of(snapshot, "eth1.5");
        let mut between = interface(4, "eth1.5", [203, 0, 113, 2], 24);
        between.link = Some("eth1".into());
        between.linkinfo.info_kind = Some("vlan".into());
        snapshot.interfaces.as_mut().unwrap().push(between);
    };
    assert_eq!(found(both), []);
    // The lower interface is in another network namespace.
    let alone = |snapshot: &mut Snapshot| {
        vlan_of(snapshot, "eth1");
        port(snapshot).netdev = Some("eth1".into());
    };
    assert_eq!(found(alone), []);
    // An adapter sends the packets of a bond itself.
    let bond = |snapshot: &mut Snapshot| {
        above(snapshot, "bond0", "bond");
        port(snapshot).is_soft = false;
    };
    assert_eq!(found(bond), []);
    // The device is on the bridge itself.
    let bridge = |snapshot: &mut Snapshot| {
        above(snapshot, "br0", "bridge");
        port(snapshot).netdev = Some("br0".into());
    };
    assert_eq!(found(bridge), []);
}

#[test]
fn soft_roce_does_not_serve_an_upper_interface() {
    for (name, kind) in [
        ("br0", "bridge"),
        ("macvlan0", "macvlan"),
        ("bond0", "bond"),
    ] {
        let text = format!(
            "rxe0 is on eth1, but the route to 192.0.2.1 takes {name} ({kind}) above it: \
             soft-RoCE receives no packets of {name} there"
        );
        let fix = format!("rdma link delete rxe0 && rdma link add rxe0 type rxe netdev {name}");
        fault("link", &text, &fix, |snapshot| above(snapshot, name, kind));
    }
    // A VLAN on a bridge: the device belongs on the bridge.
    fault(
        "link",
        "takes br0.5 (vlan) above it",
        "rdma link delete rxe0 && rdma link add rxe0 type rxe netdev br0",
        |snapshot| {
            above(snapshot, "br0.5", "vlan");
            vlan_of(snapshot, "br0");
            let bridge = interface(4, "br0", [203, 0, 113, 2], 24);
            snapshot.interfaces.as_mut().unwrap().push(bridge);
        },
    );
}

#[test]
fn modules_are_missed() {
    let (level, check, _, fix) = one(|snapshot| snapshot.modules[1].loaded = false);
    assert_eq!((level, check), (Level::Warning, "module"));
    assert_eq!(fix, "modprobe rnvmf");
    fault("module", "rnvmf is not installed", "", |snapshot| {
        snapshot.modules[1].loaded = false;
        snapshot.modules[1].installed = Ok(false);
    });
    let (level, ..) = one(|snapshot| {
        snapshot.modules[1].loaded = false;
        snapshot.modules[1].installed = Err("no list".into());
    });
    assert_eq!(level, Level::Unknown);
    // The other modules are sufficient for an adapter.
    assert_eq!(found(|snapshot| snapshot.modules[2].loaded = false), []);
}

#[test]
fn an_address_must_be_of_a_host() {
    for address in [
        [0, 0, 0, 0],
        [127, 0, 0, 1],
        [224, 0, 0, 1],
        [255, 255, 255, 255],
    ] {
        fault("route", "is not the address of a host", "", |snapshot| {
            snapshot.destination = Some(Ok(target(address)));
        });
    }
}

#[test]
fn there_must_be_a_route() {
    fault(
        "route",
        "no route to 192.0.2.1: Network is unreachable",
        "",
        no_route,
    );
}

#[test]
fn a_name_must_be_known() {
    let why = "cannot resolve host name x: no such host";
    fault("route", why, "", |snapshot| {
        snapshot.destination = Some(Err(why.into()))
    });
    // The checks of the host are made nevertheless.
    let findings = found(|snapshot| {
        snapshot.destination = Some(Err(why.into()));
        snapshot.host.as_mut().unwrap().missing_files = vec![HOSTNQN_FILE];
        there(snapshot, CtrlState::Dead);
    });
    let checks: Vec<_> = findings.iter().map(|each| each.check).collect();
    assert_eq!(checks, ["route", "host", "controller"]);
}

#[test]
fn the_address_to_connect_from_must_be_here() {
    assert_eq!(
        found(|snapshot| destination(snapshot).from = Some(HOST.into())),
        []
    );
    let text = "the source address 198.51.100.9 is not an address of this host";
    fault("route", text, "", |snapshot| {
        destination(snapshot).from = Some([198, 51, 100, 9].into());
    });
    let text = "eth1 is down";
    fault("interface", text, "ip link set eth1 up", |snapshot| {
        let mut other = interface(3, "eth1", [198, 51, 100, 2], 24);
        other = down(other);
        snapshot.interfaces.as_mut().unwrap().push(other);
        destination(snapshot).from = Some([198, 51, 100, 2].into());
    });
    // A controller with another source address does not conflict.
    let elsewhere = |snapshot: &mut Snapshot| {
        there(snapshot, CtrlState::Dead);
        destination(snapshot).from = Some(HOST.into());
    };
    assert_eq!(found(elsewhere), []);
    let same = |snapshot: &mut Snapshot| {
        elsewhere(snapshot);
        snapshot.controllers.as_mut().unwrap()[0].host_traddr = Some("192.0.2.2".into());
    };
    let (level, check, ..) = one(same);
    assert_eq!((level, check), (Level::Warning, "controller"));
}

#[test]
fn an_interface_that_is_down_has_taken_the_route_with_it() {
    fault(
        "interface",
        "eth0 is down",
        "ip link set eth0 up",
        |snapshot| {
            set_down(snapshot);
            no_route(snapshot);
        },
    );
    // The lookup may find a less specific route instead.
    fault(
        "interface",
        "eth0 is down",
        "ip link set eth0 up",
        |snapshot| {
            set_down(snapshot);
            let other = interface(3, "eth1", [198, 51, 100, 2], 24);
            snapshot.interfaces.as_mut().unwrap().push(other);
            route(snapshot).dev = "eth1".into();
        },
    );
    // An interface that is down is no fault if another one is in the same network.
    for length in [24, 8] {
        let spare = |snapshot: &mut Snapshot| {
            let mut other = interface(3, "eth1", HOST, length);
            other = down(other);
            snapshot.interfaces.as_mut().unwrap().push(other);
        };
        assert_eq!(found(spare), [], "/{length}");
    }
    // An interface in another network does not matter.
    let elsewhere = |snapshot: &mut Snapshot| {
        let mut other = interface(3, "eth1", [198, 51, 100, 2], 24);
        other = down(other);
        snapshot.interfaces.as_mut().unwrap().push(other);
    };
    assert_eq!(found(elsewhere), []);
}

#[test]
fn an_interface_must_carry() {
    fault("interface", "no carrier", "", |snapshot| {
        eth0(snapshot).flags.retain(|flag| flag != "LOWER_UP")
    });
    fault("interface", "on lo, which has no RDMA", "", |snapshot| {
        snapshot.destination = Some(Ok(Destination {
            route: Ok(RouteLookup::Route(Route {
                kind: Some("local".into()),
                dev: "lo".into(),
                prefsrc: None,
            })),
            ..target([198, 51, 100, 1])
        }));
    });
}

#[test]
fn a_device_must_be_on_the_interface() {
    let text = "no RDMA device is on eth0, which the route to 192.0.2.1 takes";
    let fix = "rdma link add rxe0 type rxe netdev eth0";
    fault("link", text, fix, |snapshot| {
        snapshot.ports = Ok(Vec::new())
    });
    // A device on another interface cannot be used, and its name is taken.
    let fix = "rdma link add rxe1 type rxe netdev eth0";
    fault("link", text, fix, |snapshot| {
        port(snapshot).netdev = Some("eth1".into());
        port(snapshot).gids.clear();
    });
    // A device of another network namespace may name an interface of the same name.
    fault("link", text, fix, |snapshot| port(snapshot).netdev = None);
    // Soft-RoCE is created on the lower interface of a VLAN.
    fault(
        "link",
        text,
        "rdma link add rxe0 type rxe netdev eth1",
        |snapshot| {
            snapshot.ports = Ok(Vec::new());
            let below = interface(3, "eth1", [198, 51, 100, 2], 24);
            snapshot.interfaces.as_mut().unwrap().push(below);
            vlan_of(snapshot, "eth1");
        },
    );
    // A soft-RoCE device would be made in the initial network namespace.
    fault("link", "belongs to one network namespace", "", |snapshot| {
        snapshot.ports = Ok(Vec::new());
        snapshot.creates_elsewhere = true;
    });
    fault("link", "this kernel has no soft-RoCE", "", |snapshot| {
        snapshot.ports = Ok(Vec::new());
        snapshot.modules[2].loaded = false;
        snapshot.modules[2].installed = Ok(false);
    });
}

#[test]
fn a_device_may_be_on_another_interface() {
    let elsewhere = |snapshot: &mut Snapshot| {
        let other = interface(3, "eth1", [198, 51, 100, 2], 24);
        snapshot.interfaces.as_mut().unwrap().push(other);
        port(snapshot).netdev = Some("eth1".into());
        port(snapshot).gids.clear();
    };
    let text = "no RDMA device is on eth0, which the route to 192.0.2.1 takes; \
                rxe0 is on eth1: -w chooses the source address";
    let fix = "rdma link add rxe1 type rxe netdev eth0";
    fault("link", text, fix, elsewhere);
    // A host with an adapter needs no soft-RoCE.
    fault("link", text, "", |snapshot| {
        elsewhere(snapshot);
        port(snapshot).is_soft = false;
    });
}

#[test]
fn a_device_must_have_a_connection_manager() {
    let text = "rxe0 has no connection manager; soft-RoCE loses it";
    fault("link", text, "", |snapshot| port(snapshot).lacks_cm = true);
    fault("link", "rxe0 has no connection manager", "", |snapshot| {
        port(snapshot).is_soft = false;
        port(snapshot).lacks_cm = true;
    });
}

#[test]
fn a_port_must_be_active() {
    let text = "port 1 of rxe0 is not active, though eth0 is up";
    let fix = "rdma link delete rxe0 && rdma link add rxe0 type rxe netdev eth0";
    fault("link", text, fix, |snapshot| {
        port(snapshot).state = "DOWN".into()
    });
    fault("link", text, "", |snapshot| {
        port(snapshot).is_soft = false;
        port(snapshot).state = "DOWN".into();
    });
    // Without a target, one active port is sufficient.
    fault("link", "port 1 of rxe0 is not active", "", |snapshot| {
        snapshot.destination = None;
        port(snapshot).state = "DOWN".into();
    });
    let fix = "ip link set eth0 up";
    fault("link", "port 1 of rxe0 is not active", fix, |snapshot| {
        snapshot.destination = None;
        set_down(snapshot);
        port(snapshot).state = "DOWN".into();
    });
    let (level, ..) = one(|snapshot| {
        snapshot.destination = None;
        let mut second = port(snapshot).clone();
        second.state = "DOWN".into();
        snapshot.ports.as_mut().unwrap().push(second);
    });
    assert_eq!(level, Level::Warning);
    fault("link", "there is no RDMA device", "", |snapshot| {
        snapshot.destination = None;
        snapshot.ports = Ok(Vec::new());
    });
}

#[test]
fn the_source_must_be_a_roce_v2_address_of_the_device() {
    let fix = "rdma link delete rxe0 && rdma link add rxe0 type rxe netdev eth0";
    let text = "rxe0 does not have 192.0.2.2";
    fault("gid", text, fix, |snapshot| port(snapshot).gids.clear());
    fault("gid", text, fix, |snapshot| {
        port(snapshot).gids = vec![gid("RoCE v2", "eth1")]
    });
    fault("gid", text, "", |snapshot| {
        port(snapshot).is_soft = false;
        port(snapshot).gids.clear();
    });
    let text = "as IB/RoCE v1, but not as RoCE v2: -w chooses another source address";
    fault("gid", text, fix, |snapshot| {
        port(snapshot).gids = vec![gid("IB/RoCE v1", "eth0")];
    });
    fault("gid", text, "", |snapshot| {
        port(snapshot).is_soft = false;
        port(snapshot).gids = vec![gid("IB/RoCE v1", "eth0")];
    });
    let both = |snapshot: &mut Snapshot| port(snapshot).gids.push(gid("IB/RoCE v1", "eth0"));
    assert_eq!(found(both), []);
    let fix = "echo 'RoCE v2' >/sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_mode";
    fault(
        "gid",
        "connections of rxe0 use IB/RoCE v1",
        fix,
        |snapshot| {
            port(snapshot).default_type = Some("IB/RoCE v1".into());
        },
    );
    let chosen = |snapshot: &mut Snapshot| port(snapshot).default_type = Some("RoCE v2".into());
    assert_eq!(found(chosen), []);
}

#[test]
fn a_small_mtu_is_slow() {
    let (level, check, text, fix) = one(|snapshot| eth0(snapshot).mtu = 1280);
    assert_eq!((level, check), (Level::Warning, "mtu"));
    assert!(
        text.contains("eth0 has an MTU of 1280, so that a packet carries 1024 bytes"),
        "{text}"
    );
    assert!(
        text.contains("with an MTU of 4200 it would carry 4096"),
        "{text}"
    );
    assert_eq!(fix, "ip link set eth0 mtu 4200");
    // The lower interface of a VLAN needs the MTU first.
    let (level, _, _, fix) = one(|snapshot| {
        eth0(snapshot).mtu = 1280;
        vlan_of(snapshot, "eth1");
    });
    assert_eq!((level, fix), (Level::Warning, String::new()));
}

fn chain(drops: bool, effects: &[Effect]) -> Chain {
    let rule = |effect: &Effect| Rule {
        interface: None,
        effect: *effect,
    };
    Chain {
        path: "inet filter input".into(),
        family: "inet".into(),
        devices: None,
        drops,
        rules: effects.iter().map(rule).collect(),
    }
}

#[test]
fn a_rule_may_drop_roce() {
    use Effect::{Accept, Drop, None as Nothing, Unknown};
    let fix = "nft insert rule inet filter input udp dport 4791 accept";
    let text = "a rule of inet filter input seems to drop UDP port 4791";
    fault("firewall", text, fix, |snapshot| {
        snapshot.chains = Ok(vec![chain(false, &[Nothing, Drop])])
    });
    fault("firewall", "as no rule accepts it", fix, |snapshot| {
        snapshot.chains = Ok(vec![chain(true, &[Nothing])]);
    });
    for (drops, effects) in [
        (false, &[][..]),
        (true, &[Accept]),
        (false, &[Accept, Drop]),
        (true, &[Accept, Unknown]),
        (false, &[Nothing, Nothing]),
    ] {
        assert_eq!(
            found(|snapshot| snapshot.chains = Ok(vec![chain(drops, effects)])),
            []
        );
    }
    for effects in [[Unknown, Drop], [Unknown, Accept], [Unknown, Nothing]] {
        let (level, check, ..) = one(|snapshot| snapshot.chains = Ok(vec![chain(true, &effects)]));
        assert_eq!((level, check), (Level::Unknown, "firewall"));
    }
    // A chain that drops is a fault also after one that is unclear.
    let chains = vec![chain(false, &[Unknown]), chain(false, &[Drop])];
    fault("firewall", text, fix, |snapshot| {
        snapshot.chains = Ok(chains)
    });
}

#[test]
fn some_rules_are_not_seen() {
    let (level, check, text, _) = one(|snapshot| snapshot.legacy = Ok(true));
    assert_eq!((level, check), (Level::Unknown, "firewall"));
    assert!(text.contains("only iptables-legacy can list"), "{text}");
    // A rule of nftables that drops the packets is a fault nevertheless.
    let fix = "nft insert rule inet filter input udp dport 4791 accept";
    fault(
        "firewall",
        "a rule of inet filter input seems",
        fix,
        |snapshot| {
            snapshot.chains = Ok(vec![chain(false, &[Effect::Drop])]);
            snapshot.legacy = Ok(true);
        },
    );
}

#[test]
fn rules_of_others_do_not_matter() {
    let drops = chain(false, &[Effect::Drop]);
    let family = Chain {
        family: "ip6".into(),
        ..drops.clone()
    };
    assert_eq!(found(|snapshot| snapshot.chains = Ok(vec![family])), []);
    let mut other = drops.clone();
    other.rules[0].interface = Some("eth1".into());
    assert_eq!(found(|snapshot| snapshot.chains = Ok(vec![other])), []);
    for (names, is_fault) in [
        (&[][..], false),
        (&["eth1"], false),
        (&["eth1", "eth0"], true),
        (&["eth*"], true),
        (&["e*", "eth1"], true),
        (&["enp*"], false),
    ] {
        let hooked = Chain {
            family: "netdev".into(),
            devices: Some(names.iter().map(|&name| name.into()).collect()),
            ..drops.clone()
        };
        let findings = found(|snapshot| snapshot.chains = Ok(vec![hooked]));
        assert_eq!(findings.len(), usize::from(is_fault), "{names:?}");
    }
    // The packets of an adapter bypass nftables.
    let device = |snapshot: &mut Snapshot| {
        port(snapshot).is_soft = false;
        snapshot.chains = Ok(vec![drops]);
    };
    assert_eq!(found(device), []);
}

#[test]
fn an_identity_should_be_written_down() {
    let (level, check, text, fix) = one(|snapshot| {
        snapshot.host.as_mut().unwrap().missing_files = vec![HOSTNQN_FILE, HOSTID_FILE];
    });
    assert_eq!((level, check), (Level::Warning, "host"));
    assert!(
        text.contains("/etc/nvme/hostnqn and /etc/nvme/hostid"),
        "{text}"
    );
    assert_eq!(
        fix,
        "mkdir -p /etc/nvme && echo 'nqn.host' >/etc/nvme/hostnqn && \
         echo '00112233-4455-6677-8899-aabbccddeeff' >/etc/nvme/hostid"
    );
}

/// Adds a controller of the subsystem with this state and an error.
fn there(snapshot: &mut Snapshot, state: CtrlState) {
    snapshot.controllers = Ok(vec![Controller {
        traddr: "192.0.2.1".into(),
        subsysnqn: "nqn.x".into(),
        hostnqn: Some("nqn.host".into()),
        state: State(state as u32),
        error: Some(rejected()),
        ..live()
    }]);
}

#[test]
fn a_subsystem_may_be_connected_already() {
    assert_eq!(found(|snapshot| there(snapshot, CtrlState::Live)), []);
    for (state, name) in [
        (CtrlState::New, "new"),
        (CtrlState::Connecting, "connecting"),
        (CtrlState::Resetting, "resetting"),
        (CtrlState::Deleting, "deleting"),
    ] {
        let (level, check, text, fix) = one(|snapshot| there(snapshot, state));
        assert_eq!((level, check), (Level::Warning, "controller"));
        let why = rejected().message;
        let wanted = format!("nqn.x has rnvmf0, which is {name}: {why}");
        assert_eq!((text, fix), (wanted, String::new()));
    }
    let connected = |snapshot: &mut Snapshot| there(snapshot, CtrlState::Dead);
    let (level, check, text, fix) = one(connected);
    assert_eq!((level, check), (Level::Warning, "controller"));
    let wanted = "nqn.x has rnvmf0, which is dead: rejected by target: no such subsystem nqn.x; \
                  connect replaces it, unless its disks are in use";
    assert_eq!((&*text, &*fix), (wanted, "rnvmf disconnect -d rnvmf0"));
    let elsewhere = |snapshot: &mut Snapshot| {
        connected(snapshot);
        snapshot.destination = Some(Ok(target([192, 0, 2, 3])));
    };
    assert_eq!(found(elsewhere), []);
    let other_host = |snapshot: &mut Snapshot| {
        connected(snapshot);
        let host = snapshot.host.as_mut().unwrap();
        host.nqn = "nqn.other".into();
        host.id = "00112233-4455-6677-8899-aabbccddee00".into();
    };
    assert_eq!(found(other_host), []);
}

#[test]
fn half_of_an_identity_is_in_the_way() {
    let fix = "rnvmf disconnect -d rnvmf0";
    // In every state, and for every subsystem.
    for state in [CtrlState::Live, CtrlState::Connecting, CtrlState::Dead] {
        for nqn in [Some("nqn.x"), Some("nqn.y"), None] {
            let text =
                "rnvmf0 uses this host's NQN with another identifier, so the kernel refuses a \
                        connect; connect with -I 00112233-4455-6677-8899-aabbccddeeff to be the \
                        same host";
            fault("controller", text, fix, |snapshot| {
                there(snapshot, state);
                snapshot.nqn = nqn.map(Into::into);
                let host = snapshot.host.as_mut().unwrap();
                host.id = "00112233-4455-6677-8899-aabbccddee00".into();
            });
            let text =
                "rnvmf0 uses this host's identifier with another NQN, so the kernel refuses a \
                        connect; connect with -q nqn.host to be the same host";
            fault("controller", text, fix, |snapshot| {
                there(snapshot, state);
                snapshot.nqn = nqn.map(Into::into);
                snapshot.host.as_mut().unwrap().nqn = "nqn.other".into();
            });
        }
    }
    // Each conflicting controller is a fault.
    let findings = found(|snapshot| {
        there(snapshot, CtrlState::Live);
        let controllers = snapshot.controllers.as_mut().unwrap();
        controllers.push(Controller {
            device: "rnvmf1".into(),
            ..controllers[0].clone()
        });
        snapshot.host.as_mut().unwrap().nqn = "nqn.other".into();
    });
    let fixes: Vec<_> = findings.into_iter().filter_map(|each| each.fix).collect();
    assert_eq!(fixes, [fix, "rnvmf disconnect -d rnvmf1"]);
    // An older kernel does not report the identifier, so nothing is known.
    let untold = |snapshot: &mut Snapshot| {
        there(snapshot, CtrlState::Live);
        snapshot.controllers.as_mut().unwrap()[0].hostid = None;
        snapshot.host.as_mut().unwrap().id = "00112233-4455-6677-8899-aabbccddee00".into();
    };
    assert_eq!(found(untold), []);
}

#[test]
fn what_cannot_be_seen_is_no_fault() {
    let cannot = || "no".to_owned();
    for (check, change) in [
        (
            "interface",
            (|snapshot, why| snapshot.interfaces = Err(why)) as fn(&mut Snapshot, String),
        ),
        ("link", |snapshot, why| snapshot.ports = Err(why)),
        ("firewall", |snapshot, why| snapshot.chains = Err(why)),
        ("firewall", |snapshot, why| snapshot.legacy = Err(why)),
        ("host", |snapshot, why| snapshot.host = Err(why)),
        ("controller", |snapshot, why| {
            snapshot.controllers = Err(why)
        }),
        ("route", |snapshot, why| {
            destination(snapshot).route = Err(why)
        }),
    ] {
        let (level, at, text, _) = one(|snapshot| change(snapshot, cannot()));
        assert_eq!((level, at, text.as_str()), (Level::Unknown, check, "no"));
    }
    let (level, ..) = one(|snapshot| eth0(snapshot).link_type = "infiniband".into());
    assert_eq!(level, Level::Unknown);
}
