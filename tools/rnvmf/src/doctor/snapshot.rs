// SPDX-License-Identifier: GPL-2.0

//! The state of the system that decides whether a connection can be made.
//!
//! Some types are deserialized from the JSON of `ip` and `rdma`, and have its member names. Members
//! that the doctor does not use are ignored.

use crate::model::controller::Controller;
use serde::Deserialize;
use std::net::{IpAddr, Ipv6Addr};

/// The value that a probe read, or the reason why the probe failed.
pub(crate) type Probed<T> = Result<T, String>;

/// UDP destination port of RoCE v2, `ROCE_V2_UDP_DPORT`.
pub(crate) const ROCE_PORT: u64 = 4791;

/// The results of all probes.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// The target, if the user names one.
    pub(crate) destination: Option<Probed<Destination>>,
    /// NVMe Qualified Name of the subsystem, if the user names one.
    pub(crate) nqn: Option<String>,
    /// The modules of [`MODULES`], in their order.
    pub(crate) modules: Vec<Module>,
    /// The network interfaces of this network namespace.
    pub(crate) interfaces: Probed<Vec<Interface>>,
    /// The ports of the RDMA devices of this network namespace.
    pub(crate) ports: Probed<Vec<Port>>,
    /// A new RDMA device would belong to another network namespace: the RDMA subsystem is in its mode
    /// `exclusive`, and this is not the initial network namespace.
    pub(crate) creates_elsewhere: bool,
    /// The nftables chains that packets of this host traverse.
    pub(crate) chains: Probed<Vec<Chain>>,
    /// Whether iptables-legacy has tables; `nft` does not list their rules.
    pub(crate) legacy: Probed<bool>,
    /// The identity of this host.
    pub(crate) host: Probed<HostInfo>,
    /// The controllers of rnvmf; empty if the module is not loaded.
    pub(crate) controllers: Probed<Vec<Controller>>,
}

/// Names of the probed modules.
pub(crate) const MODULES: [&str; 3] = ["rrdma", "rnvmf", "rdma_rxe"];

/// A kernel module.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    /// Name, with underscores.
    pub(crate) name: &'static str,
    /// It is loaded or built in.
    pub(crate) loaded: bool,
    /// It is installed for the running kernel.
    pub(crate) installed: Probed<bool>,
}

/// The target of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    /// Address of the target.
    pub(crate) address: IpAddr,
    /// Port of the target.
    pub(crate) service: u16,
    /// Source address that the user chose.
    pub(crate) from: Option<IpAddr>,
    /// The result of the route lookup.
    pub(crate) route: Probed<RouteLookup>,
}

/// A route to an address, from `ip -j route get`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Route {
    /// Type of the route; absent for a unicast route.
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    /// Name of the output interface.
    pub(crate) dev: String,
    /// Preferred source address.
    pub(crate) prefsrc: Option<IpAddr>,
}

impl Route {
    /// Whether the address belongs to this host.
    pub(crate) fn is_local(&self) -> bool {
        self.kind.as_deref() == Some("local")
    }
}

/// The result of a route lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteLookup {
    /// Packets take this route.
    Route(Route),
    /// No route exists, for this reason.
    NoRoute(String),
}

/// A network interface, from `ip -j -d address`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Interface {
    /// Interface index.
    pub(crate) ifindex: u32,
    /// Interface name.
    pub(crate) ifname: String,
    /// MTU in bytes.
    pub(crate) mtu: u32,
    /// Flags without their prefix `IFF_`.
    pub(crate) flags: Vec<String>,
    /// Hardware type, such as `ether`, `loopback` or `infiniband`.
    pub(crate) link_type: String,
    /// Name of the lower interface of a VLAN, or of the peer of a veth.
    pub(crate) link: Option<String>,
    /// Kind of a virtual interface.
    #[serde(default)]
    pub(crate) linkinfo: LinkInfo,
    /// Addresses.
    #[serde(default)]
    pub(crate) addr_info: Vec<Prefix>,
}

/// The kind of a virtual interface.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct LinkInfo {
    /// Such as `vlan`.
    pub(crate) info_kind: Option<String>,
}

impl Interface {
    /// Whether an interface flag is set.
    fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|each| each == flag)
    }

    /// Whether the interface is administratively up.
    pub(crate) fn is_up(&self) -> bool {
        self.has_flag("UP")
    }

    /// Whether the interface has a carrier.
    pub(crate) fn has_carrier(&self) -> bool {
        self.has_flag("LOWER_UP")
    }

    /// Whether the interface is the loopback interface.
    pub(crate) fn is_loopback(&self) -> bool {
        self.has_flag("LOOPBACK")
    }

    /// Whether an address is configured on the interface.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        let mut addresses = self.addr_info.iter().filter_map(Prefix::address);
        addresses.any(|each| each == address)
    }

    /// Returns the name of the lower interface of a VLAN.
    pub(crate) fn vlan_of(&self) -> Option<&str> {
        let is_vlan = self.linkinfo.info_kind.as_deref() == Some("vlan");
        self.link.as_deref().filter(|_| is_vlan)
    }
}

/// An address of an interface, with the length of its network prefix.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Prefix {
    /// The address in text; not always one of IP.
    pub(crate) local: String,
    /// Length of the prefix in bits.
    pub(crate) prefixlen: u32,
}

impl Prefix {
    fn address(&self) -> Option<IpAddr> {
        self.local.parse().ok()
    }

    /// Whether another address is in the same network.
    pub(crate) fn covers(&self, other: IpAddr) -> bool {
        let equal_bits = match (self.address(), other) {
            (Some(IpAddr::V4(a)), IpAddr::V4(b)) => (u32::from(a) ^ u32::from(b)).leading_zeros(),
            (Some(IpAddr::V6(a)), IpAddr::V6(b)) => (u128::from(a) ^ u128::from(b)).leading_zeros(),
            _ => return false,
        };
        equal_bits >= self.prefixlen
    }
}

/// A port of an RDMA device, from `rdma -j link` and sysfs.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Port {
    /// Name of the device.
    #[serde(rename = "ifname")]
    pub(crate) device: String,
    /// Port number, from 1.
    #[serde(rename = "port")]
    pub(crate) number: u32,
    /// State, such as `ACTIVE` or `DOWN`.
    pub(crate) state: String,
    /// Name of its network interface, if that is in this network namespace.
    pub(crate) netdev: Option<String>,
    /// The port speaks RoCE.
    #[serde(skip)]
    pub(crate) is_roce: bool,
    /// The device is soft-RoCE.
    #[serde(skip)]
    pub(crate) is_soft: bool,
    /// The connection manager of InfiniBand and RoCE is loaded, but does not serve the device. Known in the mode
    /// `exclusive` only.
    #[serde(skip)]
    pub(crate) lacks_cm: bool,
    /// The GID table without its empty entries.
    #[serde(skip)]
    pub(crate) gids: Vec<Gid>,
    /// GID type of RDMA CM connections, if configfs is mounted and has the device.
    #[serde(skip)]
    pub(crate) default_type: Option<String>,
}

impl Port {
    /// Whether the port can be used.
    pub(crate) fn is_active(&self) -> bool {
        self.state == "ACTIVE"
    }
}

/// An entry of a GID table.
#[derive(Clone, Debug)]
pub(crate) struct Gid {
    /// The GID; an IPv4 address is mapped to IPv6.
    pub(crate) address: Ipv6Addr,
    /// GID type, such as `RoCE v2`.
    pub(crate) kind: String,
    /// Name of the network interface that has the address.
    pub(crate) interface: String,
}

/// A base chain of nftables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Family, table and name, as arguments of `nft`.
    pub(crate) path: String,
    /// `ip`, `ip6`, `inet` or `netdev`.
    pub(crate) family: String,
    /// Names, or with `*` at the end patterns, of the interfaces whose packets traverse it; `None` if
    /// those of all do.
    pub(crate) devices: Option<Vec<String>>,
    /// The chain's policy is to drop packets.
    pub(crate) drops: bool,
    /// Its rules, in order.
    pub(crate) rules: Vec<Rule>,
}

/// A rule of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The only interface that the rule matches, if it names one.
    pub(crate) interface: Option<String>,
    /// What the rule does with RoCE packets on that interface.
    pub(crate) effect: Effect,
}

/// What a rule does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The packet passes the chain.
    Accept,
    /// The packet is dropped or rejected.
    Drop,
    /// The next rule decides.
    None,
    /// Unknown: a set, another chain or the state of a connection decides.
    Unknown,
}

/// The identity of this host.
#[derive(Clone, Debug)]
pub(crate) struct HostInfo {
    /// Host NQN.
    pub(crate) nqn: String,
    /// Host identifier, a UUID.
    pub(crate) id: String,
    /// The identity files that do not exist, so that their contents are generated.
    pub(crate) missing_files: Vec<&'static str>,
}
