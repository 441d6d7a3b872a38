// SPDX-License-Identifier: GPL-2.0

//! The state of the system, as far as it matters to a connection.

use crate::model::controller::Controller;
use std::net::{IpAddr, Ipv6Addr};

/// What a probe found, or why it failed.
pub(crate) type Probed<T> = Result<T, String>;

/// The UDP port of RoCE v2.
pub(crate) const ROCE_PORT: u64 = 4791;

/// What all probes found.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// Where the user wants to connect to.
    pub(crate) destination: Option<Probed<Destination>>,
    /// Name of the subsystem to connect to.
    pub(crate) nqn: Option<String>,
    /// The modules of `MODULES`.
    pub(crate) modules: Vec<Module>,
    /// Network interfaces of this network namespace.
    pub(crate) interfaces: Probed<Vec<Interface>>,
    /// RDMA devices that can be used in it.
    pub(crate) devices: Probed<Vec<Device>>,
    /// Chains of the packet filter.
    pub(crate) chains: Probed<Vec<Chain>>,
    /// Whether the packet filter before nftables has tables, whose rules are not read.
    pub(crate) legacy: Probed<bool>,
    /// Identity of this host.
    pub(crate) host: Probed<HostInfo>,
    /// Controllers of rnvmf; none where its module is not loaded.
    pub(crate) controllers: Probed<Vec<Controller>>,
}

/// The modules that are probed.
pub(crate) const MODULES: [&str; 3] = ["rrdma", "rnvmf", "rdma_rxe"];

/// A module of the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    /// Its name.
    pub(crate) name: &'static str,
    /// It is loaded, or built in.
    pub(crate) loaded: bool,
    /// It is installed for the kernel that runs.
    pub(crate) installed: Probed<bool>,
}

/// Where to connect to.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    /// Its address.
    pub(crate) address: IpAddr,
    /// Its port.
    pub(crate) service: u16,
    /// The address to connect from, if one was chosen.
    pub(crate) from: Option<IpAddr>,
    /// The route to it.
    pub(crate) route: Probed<RouteLookup>,
}

/// A route to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The address is one of this machine's.
    pub(crate) local: bool,
    /// Number of the interface that it takes.
    pub(crate) interface: u32,
    /// Address that packets come from.
    pub(crate) source: Option<IpAddr>,
}

/// The result of a route lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteLookup {
    /// The route.
    Route(Route),
    /// There is none, for this reason.
    NoRoute(String),
}

/// A network interface.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    /// Its number.
    pub(crate) index: u32,
    /// Its name.
    pub(crate) name: String,
    /// Bytes of its largest packet.
    pub(crate) mtu: u32,
    /// It was set up.
    pub(crate) up: bool,
    /// There is something at the other end.
    pub(crate) carrier: bool,
    /// It leads to this machine.
    pub(crate) loopback: bool,
    /// It is IP over InfiniBand.
    pub(crate) infiniband: bool,
    /// The interface that it is a VLAN of.
    pub(crate) vlan_of: Option<u32>,
    /// Its addresses.
    pub(crate) addresses: Vec<Prefix>,
}

impl Interface {
    /// Whether an address is one of its own.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.addresses
            .iter()
            .any(|prefix| prefix.address == address)
    }
}

/// An address, and how many bits of it are its network's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// The address.
    pub(crate) address: IpAddr,
    /// The bits.
    pub(crate) length: u8,
}

impl Prefix {
    /// Whether another address is of the same network.
    pub(crate) fn covers(&self, other: IpAddr) -> bool {
        let differing = match (self.address, other) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (u32::from(a) ^ u32::from(b)).leading_zeros(),
            (IpAddr::V6(a), IpAddr::V6(b)) => (u128::from(a) ^ u128::from(b)).leading_zeros(),
            _ => return false,
        };
        differing >= u32::from(self.length)
    }
}

/// What is on the wire of an RDMA device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// RDMA over Converged Ethernet.
    Roce,
    /// RDMA over TCP.
    Iwarp,
    /// InfiniBand, and what is like it.
    Other,
}

/// An RDMA device.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    /// Its name.
    pub(crate) name: String,
    /// What is on its wire.
    pub(crate) protocol: Protocol,
    /// It is soft-RoCE.
    pub(crate) soft: bool,
    /// Its ports.
    pub(crate) ports: Vec<Port>,
}

/// A port of an RDMA device.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// Its number, from 1.
    pub(crate) number: u32,
    /// Its state, `enum ib_port_state`.
    pub(crate) state: u8,
    /// Number of its network interface, if that is in this network namespace.
    pub(crate) interface: Option<u32>,
    /// Its addresses.
    pub(crate) gids: Vec<Gid>,
    /// The GID type of connections, if configfs has it.
    pub(crate) default_type: Option<String>,
}

/// An address of a port.
#[derive(Clone, Debug)]
pub(crate) struct Gid {
    /// The address; an IPv4 one is mapped.
    pub(crate) address: Ipv6Addr,
    /// Its kind, such as `RoCE v2`.
    pub(crate) kind: String,
    /// Name of the network interface that it is from.
    pub(crate) interface: String,
}

/// A chain of the packet filter that packets of this host pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Family, table and name, as `nft` takes them.
    pub(crate) path: String,
    /// `ip`, `ip6` or `inet`.
    pub(crate) family: String,
    /// What it does with a packet that no rule decides on.
    pub(crate) drops: bool,
    /// Its rules, in their order.
    pub(crate) rules: Vec<Rule>,
}

/// A rule of a chain, as far as it is about RoCE packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Whether it matches RoCE packets; `None` if that is not known.
    pub(crate) matches_roce: Option<bool>,
    /// The interface that it is about.
    pub(crate) interface: Option<String>,
    /// What it does with them.
    pub(crate) verdict: Verdict,
}

/// What a rule does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Let it pass.
    Accept,
    /// Drop or reject it.
    Drop,
    /// Nothing.
    None,
    /// What other rules say.
    Other,
}

/// The identity of this host.
#[derive(Clone, Debug)]
pub(crate) struct HostInfo {
    /// NVMe Qualified Name.
    pub(crate) nqn: String,
    /// Identifier, a UUID.
    pub(crate) id: String,
    /// Which of the two are not in a file.
    pub(crate) generated: Vec<IdentityFile>,
}

/// A file with a part of the identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdentityFile {
    /// /etc/nvme/hostnqn.
    HostNqn,
    /// /etc/nvme/hostid.
    HostId,
}
