// SPDX-License-Identifier: GPL-2.0

//! The ports of a device.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//! C header: [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)

mod attributes;

pub use attributes::{
    Attributes,
    PhysicalState,
    Speed,
    State,
    Width, //
};

use super::{
    Device,
    Gid,
    GidEntry,
    GidKind,
    Netdev,
    Pkey,
    Statistics, //
};
use crate::{
    bindings,
    text::kernel_display, //
};
use core::{
    fmt,
    ops::RangeInclusive, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// What a port speaks (`rdma_protocol_ib` and the like).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// InfiniBand.
    InfiniBand,
    /// InfiniBand's transport over Ethernet: [`Port::has_kind`] says which version.
    Roce,
    /// RDMA over TCP.
    Iwarp,
    /// Something else.
    Other,
}

impl fmt::Display for Protocol {
    /// As `rdma dev show` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InfiniBand => "ib",
            Self::Roce => "roce",
            Self::Iwarp => "iw",
            Self::Other => "other",
        })
    }
}

/// What is below the protocol (`enum rdma_link_layer`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkLayer {
    /// InfiniBand's own.
    InfiniBand,
    /// Ethernet.
    Ethernet,
    /// The port does not say.
    Unspecified,
}

impl fmt::Display for LinkLayer {
    /// As `ibv_devinfo` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
            Self::Unspecified => "Unspecified",
        })
    }
}

kernel_display!(Protocol, LinkLayer);

/// A port of a device, borrowed.
///
/// # Invariants
///
/// `number` is one of a port of `device`.
#[derive(Clone, Copy)]
pub struct Port<'a> {
    device: &'a Device,
    number: u32,
}

impl<'a> Port<'a> {
    /// The device.
    #[inline]
    pub fn device(&self) -> &'a Device {
        self.device
    }

    /// Its number, counted from 1, but for the one of a switch, which is 0.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Asks the driver what the port is like (`ib_query_port`). May sleep.
    ///
    /// # Errors
    ///
    /// What the driver answers: `ENODEV` with RoCE if the network device is gone.
    pub fn attributes(&self) -> Result<Attributes> {
        let mut raw = bindings::ib_port_attr::default();
        // SAFETY: By the type invariant; `raw` is writable.
        to_result(unsafe { bindings::ib_query_port(self.device.as_raw(), self.number, &mut raw) })?;
        Ok(raw.into())
    }

    /// What the port is ready for, as the core remembers it from the port's last
    /// event (`ib_get_cached_port_state`). Any context.
    pub fn state(&self) -> State {
        let mut raw = bindings::ib_port_state_IB_PORT_NOP;
        // SAFETY: By the type invariant; `raw` is writable, and stays what it is on
        // an error, of which there is none, since the port is one.
        unsafe { bindings::ib_get_cached_port_state(self.device.as_raw(), self.number, &mut raw) };
        State::from_raw(raw)
    }

    /// What the port speaks. Any context.
    pub fn protocol(&self) -> Protocol {
        let flags = self.constants().core_cap_flags;
        let any = |of: u32| flags & of != 0;
        if any(bindings::RDMA_CORE_CAP_PROT_IB) {
            Protocol::InfiniBand
        } else if any(Self::ROCE_V1 | Self::ROCE_V2) {
            Protocol::Roce
        } else if any(bindings::RDMA_CORE_CAP_PROT_IWARP) {
            Protocol::Iwarp
        } else {
            Protocol::Other
        }
    }

    const ROCE_V1: u32 = bindings::RDMA_CORE_CAP_PROT_ROCE;
    const ROCE_V2: u32 = bindings::RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP;

    /// Whether the port can have GIDs of `kind`; a port may know both versions of
    /// RoCE. Any context.
    pub fn has_kind(&self, kind: GidKind) -> bool {
        let flag = match kind {
            GidKind::InfiniBand => bindings::RDMA_CORE_CAP_PROT_IB,
            GidKind::RoceV1 => Self::ROCE_V1,
            GidKind::RoceV2 => Self::ROCE_V2,
        };
        self.constants().core_cap_flags & flag != 0
    }

    /// What is below the protocol. Any context.
    pub fn link_layer(&self) -> LinkLayer {
        // SAFETY: By the type invariant.
        let raw = unsafe { bindings::rdma_port_get_link_layer(self.device.as_raw(), self.number) };
        match raw {
            bindings::rdma_link_layer_IB_LINK_LAYER_INFINIBAND => LinkLayer::InfiniBand,
            bindings::rdma_link_layer_IB_LINK_LAYER_ETHERNET => LinkLayer::Ethernet,
            _ => LinkLayer::Unspecified,
        }
    }

    /// The network device behind the port (`ib_device_get_netdev`); `None` with
    /// InfiniBand, and when it is going away. Process context.
    pub fn netdev(&self) -> Option<Netdev> {
        let mut raw = bindings::rrdma_netdev::default();
        // SAFETY: By the type invariant; `raw` is writable.
        unsafe { bindings::port_netdev(self.device.as_raw(), self.number, &mut raw) };
        Netdev::from_raw(&raw)
    }

    /// The GUID of the port: the second half of the GID at index 0. Any context.
    ///
    /// # Errors
    ///
    /// As [`gid`](Self::gid).
    pub fn guid(&self) -> Result<u64> {
        Ok(self.gid(0)?.gid().interface_id())
    }

    /// The entry at `index` of the port's GID table (`rdma_get_gid_attr`), held.
    /// Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an index beyond the table, `ENODATA` if the entry is not used.
    pub fn gid(&self, index: u32) -> Result<GidEntry<'a>> {
        GidEntry::at(self.device, self.number, index)
    }

    /// The entries of the port's GID table that are used, each held while the
    /// caller has it. What is added or goes meanwhile may be among them or not.
    /// Any context.
    pub fn gids(&self) -> impl Iterator<Item = GidEntry<'a>> {
        let port = *self;
        let length = self.constants().gid_tbl_len.try_into().unwrap_or(0);
        // An error here is that of an entry which is not used.
        (0..length).filter_map(move |index| port.gid(index).ok())
    }

    /// The entry of the port's GID table that is for `gid` and of `kind`
    /// (`rdma_find_gid_by_port`), held. Any context.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is none.
    pub fn find_gid(&self, gid: &Gid, kind: GidKind) -> Result<GidEntry<'a>> {
        GidEntry::find(self.device, self.number, gid, kind)
    }

    /// The P_Key at `index` of the port's table (`ib_get_cached_pkey`). Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an index beyond the table: with iWARP, any.
    pub fn pkey(&self, index: u16) -> Result<Pkey> {
        let mut value = 0;
        // SAFETY: By the type invariant; `value` is writable.
        to_result(unsafe {
            bindings::ib_get_cached_pkey(
                self.device.as_raw(),
                self.number,
                index.into(),
                &mut value,
            )
        })?;
        Ok(Pkey::new(value))
    }

    /// The P_Keys of the port's table that are used, and their indices. Any context.
    pub fn pkeys(&self) -> impl Iterator<Item = (u16, Pkey)> + use<'a> {
        let port = *self;
        let length = self.constants().pkey_tbl_len.try_into().unwrap_or(0);
        (0..length)
            .filter_map(move |index| Some((index, port.pkey(index).ok()?)))
            .filter(|(_, pkey)| !pkey.is_none())
    }

    /// The index of the P_Key for the partition of `pkey`, that of a full member if
    /// there is one (`ib_find_cached_pkey`). Any context.
    ///
    /// # Errors
    ///
    /// `ENOENT` if the port is not in that partition.
    pub fn find_pkey(&self, pkey: Pkey) -> Result<u16> {
        let mut index = 0;
        // SAFETY: By the type invariant; `index` is writable.
        to_result(unsafe {
            bindings::ib_find_cached_pkey(
                self.device.as_raw(),
                self.number,
                pkey.value(),
                &mut index,
            )
        })?;
        Ok(index)
    }

    /// The port's counters, all zero before they are
    /// [updated](Statistics::update). May sleep.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the driver has none, `ENOMEM`.
    pub fn statistics(&self) -> Result<Statistics<'a>> {
        Statistics::new(self.device, self.number)
    }

    /// What the core knows of the port, constant while the device is registered.
    fn constants(&self) -> &'a bindings::ib_port_immutable {
        // SAFETY: By the type invariant; the core keeps them with the device.
        unsafe { &*bindings::ib_port_immutable_read(self.device.as_raw(), self.number) }
    }
}

impl Device {
    /// The numbers of its ports.
    fn port_numbers(&self) -> RangeInclusive<u32> {
        // SAFETY: `self` is a valid device by the type invariant; the number of
        // ports is constant.
        unsafe { bindings::rdma_start_port(self.as_raw())..=bindings::rdma_end_port(self.as_raw()) }
    }

    /// The port of this number; `None` if there is none.
    pub fn port(&self, number: u32) -> Option<Port<'_>> {
        // INVARIANT: The number is in the range of the device's.
        self.port_numbers().contains(&number).then_some(Port {
            device: self,
            number,
        })
    }

    /// The ports of the device, in order of their numbers.
    pub fn ports(&self) -> impl Iterator<Item = Port<'_>> {
        // INVARIANT: The numbers are the device's.
        self.port_numbers().map(|number| Port {
            device: self,
            number,
        })
    }
}
