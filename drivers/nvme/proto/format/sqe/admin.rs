// SPDX-License-Identifier: GPL-2.0

//! Admin commands.
//!
//! Source: NVMe Base 2.3, sections 5.2.2 (Asynchronous Event Request), 5.2.12 (Get Log Page),
//! 5.2.13 (Identify), 5.2.14 (Keep Alive) and 5.2.26 (Set Features).

use super::{Command, ALL_NAMESPACES};
use crate::format::async_event::AsyncEventConfig;
use crate::format::layout::Writer;
use core::num::NonZeroU16;

/// A data structure that Identify returns, with [`Identify::DATA_SIZE`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Identify {
    /// Identify Namespace of this namespace.
    Namespace(u32),
    /// Identify Controller.
    Controller,
    /// Active Namespace ID list, from the first namespace after this one.
    ActiveNamespacesAfter(u32),
    /// Namespace Identification Descriptor list of this namespace.
    NamespaceDescriptors(u32),
    /// Identify Namespace for the NVM command set, of this namespace.
    NvmNamespace(u32),
    /// Identify Controller for the NVM command set.
    NvmController,
    /// I/O Command Set Independent Identify Namespace, of this namespace.
    NamespaceIndependent(u32),
}

impl Identify {
    /// Size of each structure in bytes.
    pub const DATA_SIZE: usize = 4096;

    /// Returns the CNS value and the namespace. CSI stays 0, the NVM command set.
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

/// A feature with the value to set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feature {
    /// Requests this number of I/O queues. The result of the command has the number that is
    /// granted.
    NumberOfQueues(NonZeroU16),
    /// Enables these asynchronous events.
    AsyncEvents(AsyncEventConfig),
    /// Sets the behavior of the host; the data is a [`HostBehavior`].
    HostBehavior,
}

impl Feature {
    /// Returns the feature identifier (FID) and CDW11.
    #[inline]
    const fn id_and_value(self) -> (u8, u32) {
        match self {
            Self::NumberOfQueues(count) => {
                // NSQR for submission queues, NCQR for completion queues.
                let zero_based = count.get().wrapping_sub(1) as u32;
                (0x07, zero_based | (zero_based << 16))
            }
            Self::AsyncEvents(events) => (0x0b, events.bits()),
            Self::HostBehavior => (0x16, 0),
        }
    }
}

/// Data of the feature Host Behavior Support.
///
/// C structure: `struct nvme_feat_host_behavior`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostBehavior {
    /// ACRE: the host delays retries as a status requests. A controller requests no delay without
    /// it.
    pub advanced_retry: bool,
}

impl HostBehavior {
    /// Size in bytes.
    pub const SIZE: usize = 512;

    /// Writes the data to `block`.
    pub fn encode(&self, block: &mut [u8; Self::SIZE]) {
        block.fill(0);
        Writer::over(block).put::<0, 1>([self.advanced_retry.into()]);
    }
}

/// A log page of the controller, or part of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPage {
    id: u8,
    offset: u64,
    dwords_zero_based: u32,
}

impl LogPage {
    /// Changed Attached Namespace List: see [`crate::format::changed_namespaces`].
    pub const CHANGED_NAMESPACES: Self = Self::of_4096_bytes(0x04);
    /// Commands Supported and Effects: see [`crate::format::effects_log`].
    pub const EFFECTS: Self = Self::of_4096_bytes(0x05);

    /// Asymmetric Namespace Access: its first 4096 bytes.
    pub const ANA: Self = Self::of_4096_bytes(0x0c);

    const DWORD: u64 = 4;

    /// Returns `len` bytes at `offset` of the discovery log: see [`crate::format::discovery`].
    ///
    /// Returns `None` unless both are multiples of 4, and `len` is neither 0 nor above 16 GiB.
    pub fn discovery(offset: u64, len: u64) -> Option<Self> {
        if len % Self::DWORD != 0 || offset % Self::DWORD != 0 {
            return None;
        }
        let zero_based = (len / Self::DWORD).checked_sub(1)?;
        Some(Self {
            id: 0x70,
            offset,
            dwords_zero_based: u32::try_from(zero_based).ok()?,
        })
    }

    /// Returns the first 4096 bytes of the log page `id`.
    const fn of_4096_bytes(id: u8) -> Self {
        Self {
            id,
            offset: 0,
            dwords_zero_based: 1023,
        }
    }

    /// Returns the number of bytes.
    pub fn length(&self) -> u64 {
        u64::from(self.dwords_zero_based)
            .saturating_add(1)
            .saturating_mul(Self::DWORD)
    }
}

impl Command {
    const GET_LOG_PAGE: u8 = 0x02;
    const IDENTIFY: u8 = 0x06;
    const SET_FEATURES: u8 = 0x09;
    const ASYNC_EVENT_REQUEST: u8 = 0x0c;
    const KEEP_ALIVE: u8 = 0x18;

    /// Returns an Identify command.
    pub fn identify(what: Identify) -> Self {
        let (cns, nsid) = what.cns_and_nsid();
        let mut command = Self::with_namespace(Self::IDENTIFY, nsid);
        command.put::<40, 1>([cns]);
        command
    }

    /// Returns a Set Features command.
    pub fn set_feature(feature: Feature) -> Self {
        let (id, value) = feature.id_and_value();
        let mut command = Self::with_opcode(Self::SET_FEATURES);
        command.put::<40, 1>([id]);
        command.put::<44, 4>(value.to_le_bytes());
        command
    }

    /// Returns a Get Log Page command.
    pub fn get_log_page(page: LogPage) -> Self {
        let mut command = Self::with_namespace(Self::GET_LOG_PAGE, ALL_NAMESPACES);
        command.put::<40, 1>([page.id]);
        // NUMDL and NUMDU are adjacent and in this order, so one write of 32 bits sets both.
        command.put::<42, 4>(page.dwords_zero_based.to_le_bytes());
        command.put::<48, 8>(page.offset.to_le_bytes());
        command
    }

    /// Returns an Asynchronous Event Request, which the controller completes when an event occurs.
    pub fn async_event_request() -> Self {
        Self::with_opcode(Self::ASYNC_EVENT_REQUEST)
    }

    /// Returns a Keep Alive command.
    pub fn keep_alive() -> Self {
        Self::with_opcode(Self::KEEP_ALIVE)
    }
}

#[cfg(test)]
mod tests;
