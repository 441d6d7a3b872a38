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
    ops::RangeInclusive,
    ptr, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// The protocol of a port (`rdma_protocol_ib` and others).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// InfiniBand.
    InfiniBand,
    /// The InfiniBand transport over Ethernet. [`Port::has_kind`] says which versions.
    Roce,
    /// iWARP: RDMA over TCP.
    Iwarp,
    /// Another protocol.
    Other,
}

impl fmt::Display for Protocol {
    /// Prints the name that `rdma dev show` prints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InfiniBand => "ib",
            Self::Roce => "roce",
            Self::Iwarp => "iw",
            Self::Other => "other",
        })
    }
}

/// The link layer of a port (`enum rdma_link_layer`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkLayer {
    /// InfiniBand.
    InfiniBand,
    /// Ethernet.
    Ethernet,
    /// The port does not specify it.
    Unspecified,
}

impl fmt::Display for LinkLayer {
    /// Prints the name that `ibv_devinfo` prints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
            Self::Unspecified => "Unspecified",
        })
    }
}

kernel_display!(Protocol, LinkLayer);

/// A port of a device.
///
/// # Invariants
///
/// `number` is the number of a port of `device`.
#[derive(Clone, Copy)]
pub struct Port<'a> {
    device: &'a Device,
    number: u32,
}

impl<'a> Port<'a> {
    /// Returns the device.
    #[inline]
    pub fn device(&self) -> &'a Device {
        self.device
    }

    /// Returns the number of the port, counted from 1. The only port of a switch is number 0.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Queries the attributes of the port (`ib_query_port`). May sleep.
    ///
    /// # Errors
    ///
    /// The error of the driver: with RoCE, `ENODEV` if the network device is gone.
    pub fn attributes(&self) -> Result<Attributes> {
        let mut raw = pin_init::zeroed::<bindings::ib_port_attr>();
        // SAFETY: By the type invariant, the device has the port. `raw` is valid for writes.
        to_result(unsafe { bindings::ib_query_port(self.device.as_raw(), self.number, &mut raw) })?;
        Ok(raw.into())
    }

    /// Returns the state of the port after its last event (`ib_get_cached_port_state`). Any
    /// context.
    pub fn state(&self) -> State {
        let mut raw = bindings::ib_port_state_IB_PORT_NOP;
        // SAFETY: By the type invariant, the device has the port. `raw` is valid for writes. The
        // call fails only if there is no such port.
        unsafe { bindings::ib_get_cached_port_state(self.device.as_raw(), self.number, &mut raw) };
        State::from_raw(raw)
    }

    /// Returns the protocol. Any context.
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

    /// Returns whether the port can have GIDs of `kind`. A port may support both RoCE versions. Any
    /// context.
    pub fn has_kind(&self, kind: GidKind) -> bool {
        let flag = match kind {
            GidKind::InfiniBand => bindings::RDMA_CORE_CAP_PROT_IB,
            GidKind::RoceV1 => Self::ROCE_V1,
            GidKind::RoceV2 => Self::ROCE_V2,
        };
        self.constants().core_cap_flags & flag != 0
    }

    /// Returns the link layer. Any context.
    pub fn link_layer(&self) -> LinkLayer {
        // SAFETY: By the type invariant, the device has the port.
        let raw = unsafe { bindings::rdma_port_get_link_layer(self.device.as_raw(), self.number) };
        match raw {
            bindings::rdma_link_layer_IB_LINK_LAYER_INFINIBAND => LinkLayer::InfiniBand,
            bindings::rdma_link_layer_IB_LINK_LAYER_ETHERNET => LinkLayer::Ethernet,
            _ => LinkLayer::Unspecified,
        }
    }

    /// Returns the network device of the port (`ib_device_get_netdev`). `None` with InfiniBand, and
    /// while the network device is being removed. Process context.
    pub fn netdev(&self) -> Option<Netdev> {
        let mut raw = pin_init::zeroed::<bindings::rrdma_netdev>();
        // SAFETY: By the type invariant, the device has the port. `raw` is valid for writes.
        unsafe { bindings::port_netdev(self.device.as_raw(), self.number, &mut raw) };
        Netdev::from_raw(&raw)
    }

    /// Returns the entry at `index` of the GID table (`rdma_get_gid_attr`). Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the table is shorter; `ENODATA` if the entry is unused.
    pub fn gid(&self, index: u32) -> Result<GidEntry<'a>> {
        let (device, index) = (self.device.as_raw(), index.try_into()?);
        // SAFETY: By the type invariant, the device has the port. The call checks the index, and
        // returns a reference.
        unsafe { GidEntry::from_raw(bindings::rdma_get_gid_attr(device, self.number, index)) }
    }

    /// Returns an iterator over the used entries of the GID table. It may miss an entry that is
    /// added meanwhile, and may include one that is removed. Any context.
    pub fn gids(&self) -> impl Iterator<Item = GidEntry<'a>> {
        let port = *self;
        let length = self.constants().gid_tbl_len.try_into().unwrap_or(0);
        // Unused entries return an error.
        (0..length).filter_map(move |index| port.gid(index).ok())
    }

    /// Returns the entry of the GID table with this GID and type (`rdma_find_gid_by_port`). Any
    /// context.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is no such entry.
    pub fn find_gid(&self, gid: &Gid, kind: GidKind) -> Result<GidEntry<'a>> {
        let (device, netdev) = (self.device.as_raw(), ptr::null_mut());
        let (gid, kind, port) = (gid.as_raw(), kind.as_raw(), self.number);
        // SAFETY: By the type invariant, the device has the port. A null network device matches
        // any. The call returns a reference.
        unsafe {
            let raw = bindings::rdma_find_gid_by_port(device, &gid, kind, port, netdev);
            GidEntry::from_raw(raw)
        }
    }

    /// Returns the P_Key at `index` of the port's table (`ib_get_cached_pkey`). Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the table is shorter; with iWARP, it is empty.
    pub fn pkey(&self, index: u16) -> Result<Pkey> {
        let mut value = 0;
        // SAFETY: By the type invariant, the device has the port. `value` is valid for writes.
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

    /// Returns an iterator over the used P_Keys and their indices. Any context.
    pub fn pkeys(&self) -> impl Iterator<Item = (u16, Pkey)> + use<'a> {
        let port = *self;
        let length = self.constants().pkey_tbl_len.try_into().unwrap_or(0);
        (0..length)
            .filter_map(move |index| Some((index, port.pkey(index).ok()?)))
            .filter(|(_, pkey)| !pkey.is_none())
    }

    /// Returns the index of the P_Key for the partition of `pkey`, of one with full membership if
    /// there is one (`ib_find_cached_pkey`). Any context.
    ///
    /// # Errors
    ///
    /// `ENOENT` if the port does not belong to the partition.
    pub fn find_pkey(&self, pkey: Pkey) -> Result<u16> {
        let mut index = 0;
        // SAFETY: By the type invariant, the device has the port. `index` is valid for writes.
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

    /// Allocates the counters of the port. They are zero until they are
    /// [updated](Statistics::update). May sleep.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the driver has no counters; `ENOMEM`.
    pub fn statistics(&self) -> Result<Statistics<'a>> {
        Statistics::new(self.device, self.number)
    }

    /// Returns the constant properties of the port (`struct ib_port_immutable`).
    fn constants(&self) -> &'a bindings::ib_port_immutable {
        // SAFETY: By the type invariant, the device has the port. The core keeps the properties as
        // long as the device is registered, and does not change them.
        unsafe { &*bindings::ib_port_immutable_read(self.device.as_raw(), self.number) }
    }
}

impl Device {
    /// Returns the range of port numbers.
    fn port_numbers(&self) -> RangeInclusive<u32> {
        // SAFETY: `self` is a valid device by the type invariant; the number of
        // ports is constant.
        unsafe { bindings::rdma_start_port(self.as_raw())..=bindings::rdma_end_port(self.as_raw()) }
    }

    /// Returns port `number`; `None` if there is no such port.
    pub fn port(&self, number: u32) -> Option<Port<'_>> {
        // INVARIANT: The number is in the range of the device's port numbers.
        self.port_numbers().contains(&number).then_some(Port {
            device: self,
            number,
        })
    }

    /// Returns an iterator over the ports, in ascending order.
    pub fn ports(&self) -> impl Iterator<Item = Port<'_>> {
        // INVARIANT: The number is in the range of the device's port numbers.
        self.port_numbers().map(|number| Port {
            device: self,
            number,
        })
    }
}
