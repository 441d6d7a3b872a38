// SPDX-License-Identifier: GPL-2.0

//! Admin commands.

use super::{Command, ALL_NAMESPACES};
use crate::format::async_event::AsyncEventConfig;
use crate::format::layout::Writer;
use core::fmt;
use core::num::NonZeroU16;

/// What to identify. The answer has [`Identify::DATA_SIZE`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Identify {
    /// A namespace.
    Namespace(u32),
    /// The controller.
    Controller,
    /// The active namespaces whose identifiers are greater than this.
    ActiveNamespacesAfter(u32),
    /// The identification descriptors of a namespace.
    NamespaceDescriptors(u32),
    /// What the NVM command set adds to a namespace.
    NvmNamespace(u32),
    /// What the NVM command set adds to the controller.
    NvmController,
    /// What a namespace is whatever its command set.
    NamespaceIndependent(u32),
}

impl Identify {
    /// Size of any answer in bytes.
    pub const DATA_SIZE: usize = 4096;

    /// The structure asked for, and the namespace. The command set where it
    /// matters is NVM, number 0.
    #[inline]
    const fn cns_and_nsid(self) -> (u8, u32) {
        match self {
            Self::Namespace(nsid) => (0x00, nsid),
            Self::Controller => (0x01, 0),
            Self::ActiveNamespacesAfter(nsid) => (0x02, nsid),
            Self::NamespaceDescriptors(nsid) => (0x03, nsid),
            Self::NvmNamespace(nsid) => (0x05, nsid),
            Self::NvmController => (0x06, 0),
            Self::NamespaceIndependent(nsid) => (0x08, nsid),
        }
    }
}

/// A feature of the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FeatureId {
    /// How many I/O queues there may be.
    NumberOfQueues = 0x07,
    /// Which events are told.
    AsyncEvents = 0x0b,
    /// The keep alive timer.
    KeepAliveTimer = 0x0f,
    /// What the controller may count on of its host.
    HostBehavior = 0x16,
}

/// A feature, and the value to set it to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feature {
    /// Asks for so many I/O queues. The result has the number that the controller grants.
    NumberOfQueues(NonZeroU16),
    /// Asks to be told of these events.
    AsyncEvents(AsyncEventConfig),
    /// Sets the keep alive timer, in milliseconds.
    KeepAliveTimer(u32),
    /// Says what the controller may count on; the data is a [`HostBehavior`].
    HostBehavior,
}

impl Feature {
    #[inline]
    const fn id_and_value(self) -> (FeatureId, u32) {
        match self {
            Self::NumberOfQueues(count) => {
                // One number for submission queues, one for completion queues.
                let zero_based = count.get().wrapping_sub(1) as u32;
                (FeatureId::NumberOfQueues, zero_based | (zero_based << 16))
            }
            Self::AsyncEvents(events) => (FeatureId::AsyncEvents, events.bits()),
            Self::KeepAliveTimer(milliseconds) => (FeatureId::KeepAliveTimer, milliseconds),
            Self::HostBehavior => (FeatureId::HostBehavior, 0),
        }
    }
}

/// What a controller may count on of its host.
///
/// C structure: `struct nvme_feat_host_behavior`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostBehavior {
    /// A command is sent again after the delay that its status asks for: a controller asks for none
    /// before it knows this.
    pub advanced_retry: bool,
}

impl HostBehavior {
    /// Size in bytes.
    pub const SIZE: usize = 512;

    /// Writes it as it goes on the wire.
    pub fn encode(&self, block: &mut [u8; Self::SIZE]) {
        block.fill(0);
        Writer::over(block).put::<0, 1>([self.advanced_retry.into()]);
    }
}

/// A log page, or a part of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPage {
    id: u8,
    nsid: u32,
    dwords_zero_based: u32,
    offset: u64,
}

/// Why part of a log page cannot be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidLogPage {
    /// The length is 0, not a multiple of 4, or above 16 GiB.
    Length(u64),
    /// The offset is not a multiple of 4.
    Offset(u64),
}

impl LogPage {
    /// List of the namespaces that changed since it was read last.
    pub const CHANGED_NAMESPACES: u8 = 0x04;
    /// Bytes of that list.
    pub const CHANGED_NAMESPACES_SIZE: u64 = 4096;
    /// Commands Supported and Effects: see [`crate::format::effects_log`].
    pub const EFFECTS: u8 = 0x05;
    /// Bytes of that page.
    pub const EFFECTS_SIZE: u64 = 4096;
    /// What the subsystem of a discovery controller offers.
    pub const DISCOVERY: u8 = 0x70;

    const DWORD: u64 = 4;

    /// `len` bytes from `offset` on of log page `id` of the whole controller.
    pub fn new(id: u8, offset: u64, len: u64) -> Result<Self, InvalidLogPage> {
        let length = InvalidLogPage::Length(len);
        if len % Self::DWORD != 0 {
            return Err(length);
        }
        if offset % Self::DWORD != 0 {
            return Err(InvalidLogPage::Offset(offset));
        }
        let zero_based = (len / Self::DWORD).checked_sub(1).ok_or(length)?;
        let dwords_zero_based = u32::try_from(zero_based).map_err(|_| length)?;
        Ok(Self {
            id,
            nsid: ALL_NAMESPACES,
            dwords_zero_based,
            offset,
        })
    }

    /// How many bytes are asked for.
    #[must_use]
    pub fn length(&self) -> u64 {
        u64::from(self.dwords_zero_based)
            .saturating_add(1)
            .saturating_mul(Self::DWORD)
    }
}

impl fmt::Display for InvalidLogPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(len) => write!(f, "a log page part cannot have {len} bytes"),
            Self::Offset(at) => write!(f, "a log page part cannot begin at byte {at}"),
        }
    }
}

impl Command {
    const GET_LOG_PAGE: u8 = 0x02;
    const IDENTIFY: u8 = 0x06;
    const SET_FEATURES: u8 = 0x09;
    const GET_FEATURES: u8 = 0x0a;
    const ASYNC_EVENT_REQUEST: u8 = 0x0c;
    const KEEP_ALIVE: u8 = 0x18;

    /// Asks what something is.
    #[must_use]
    pub fn identify(what: Identify) -> Self {
        let (cns, nsid) = what.cns_and_nsid();
        let mut command = Self::with_namespace(Self::IDENTIFY, nsid);
        command.put::<40, 1>([cns]);
        command
    }

    /// Sets a feature of the controller.
    #[must_use]
    pub fn set_feature(feature: Feature) -> Self {
        let (id, value) = feature.id_and_value();
        let mut command = Self::with_opcode(Self::SET_FEATURES);
        command.put::<40, 1>([id as u8]);
        command.put::<44, 4>(value.to_le_bytes());
        command
    }

    /// Asks for the current value of a feature of the controller.
    #[must_use]
    pub fn get_feature(id: FeatureId) -> Self {
        let mut command = Self::with_opcode(Self::GET_FEATURES);
        command.put::<40, 1>([id as u8]);
        command
    }

    /// Asks for a log page.
    #[must_use]
    pub fn get_log_page(page: LogPage) -> Self {
        let mut command = Self::with_namespace(Self::GET_LOG_PAGE, page.nsid);
        command.put::<40, 1>([page.id]);
        // The dword count's halves are in this order in two dwords, so that
        // together they lie in memory like one number.
        command.put::<42, 4>(page.dwords_zero_based.to_le_bytes());
        command.put::<48, 8>(page.offset.to_le_bytes());
        command
    }

    /// Asks to be answered once an event happens.
    #[must_use]
    pub fn async_event_request() -> Self {
        Self::with_opcode(Self::ASYNC_EVENT_REQUEST)
    }

    /// Tells the controller that its host lives.
    #[must_use]
    pub fn keep_alive() -> Self {
        Self::with_opcode(Self::KEEP_ALIVE)
    }
}

#[cfg(test)]
mod tests;
