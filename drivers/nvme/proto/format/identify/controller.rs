// SPDX-License-Identifier: GPL-2.0

//! Identify Controller (CNS 01h).
//!
//! Source: NVMe Base 2.3, section 5.2.13.2.1. C structure: `struct nvme_id_ctrl`.

use super::{ShortData, Text};
use crate::format::layout::Reader;
use crate::format::property::Version;
use crate::format::sqe::Identify;
use core::fmt;

/// The Identify Controller data structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Controller {
    /// PCI vendor identifier (VID).
    pub vendor_id: u16,
    /// Serial number (SN).
    pub serial: Text<20>,
    /// Model number (MN).
    pub model: Text<40>,
    /// Firmware revision (FR).
    pub firmware: Text<8>,
    /// Multi-path I/O and namespace sharing (CMIC): see [`Self::has_other_paths`] and
    /// [`Self::ana_transition_time`].
    pub multipath: u8,
    /// Largest transfer (MDTS), as a power of two of the smallest memory page; 0 for no limit.
    pub max_transfer_shift: u8,
    /// Controller identifier (CNTLID).
    pub controller_id: u16,
    /// Version of the specification (VER).
    pub version: Version,
    /// Time that a shutdown takes (RTD3E), in microseconds; 0 if not reported.
    pub shutdown_time_us: u32,
    /// Asynchronous events that the controller supports (OAES): see
    /// [`crate::format::async_event::AsyncEventConfig::for_io`].
    pub async_events: u32,
    /// Controller attributes (CTRATT): see [`Self::keep_alive_mode`] and
    /// [`Self::has_extended_formats`].
    pub attributes: u32,
    /// Controller type (CNTRLTYPE).
    pub kind: ControllerType,
    /// Command retry delays (CRDT1 to CRDT3), in units of 100 ms.
    pub retry_delays: [u16; 3],
    /// Log page attributes (LPA): see [`Self::has_effects_log`].
    pub log_pages: u8,
    /// ANA Transition Time (ANATT), in seconds: see [`Self::ana_transition_time`].
    pub anatt: u8,
    /// Granularity of the keep alive timer (KAS), in units of 100 ms; 0 if there is no timer.
    pub keep_alive_granularity: u16,
    /// Command Quiesce Time (CQT) in milliseconds; 0 if not reported.
    pub command_quiesce_time: u16,
    /// Largest number of outstanding commands of a queue (MAXCMD); 0 if not reported.
    pub max_commands: u16,
    /// Optional NVM commands (ONCS): see [`Self::has_dataset_management`] and
    /// [`Self::has_write_zeroes`].
    pub optional_commands: u16,
    /// Volatile write cache (VWC): see [`Self::has_write_cache`].
    pub write_cache: u8,
    /// SGL support (SGLS): see [`Self::has_keyed_sgl`] and [`Self::has_sgl_offset`].
    pub sgl_support: u32,
    /// NQN of the subsystem (SUBNQN).
    pub subsystem: Text<256>,
    /// Size of I/O command capsules (IOCCSZ), in units of 16 bytes.
    pub io_command_capsule_size: u32,
    /// Size of I/O response capsules (IORCSZ), in units of 16 bytes.
    pub io_response_capsule_size: u32,
    /// Offset of data in a capsule after the command (ICDOFF), in units of 16 bytes.
    pub in_capsule_data_offset: u16,
}

/// Commands that restart the keep alive timer of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeepAliveMode {
    /// Only a Keep Alive command.
    CommandBased,
    /// Any command.
    TrafficBased,
}

/// Controller type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControllerType {
    /// Not reported, as before NVMe 1.4.
    Unknown,
    /// I/O controller.
    Io,
    /// Discovery controller.
    Discovery,
    /// Administrative controller, which has no I/O queues.
    Administrative,
    /// A reserved value.
    Reserved(u8),
}

impl ControllerType {
    const fn from_wire(value: u8) -> Self {
        match value {
            0 => Self::Unknown,
            1 => Self::Io,
            2 => Self::Discovery,
            3 => Self::Administrative,
            _ => Self::Reserved(value),
        }
    }
}

impl fmt::Display for ControllerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "a controller of unknown type",
            Self::Io => "an I/O controller",
            Self::Discovery => "a discovery controller",
            Self::Administrative => "an administrative controller",
            Self::Reserved(kind) => return write!(f, "a controller of type {kind}"),
        })
    }
}

impl Controller {
    /// Decodes the data of an Identify command.
    ///
    /// # Errors
    ///
    /// [`ShortData`] if it is shorter than [`Identify::DATA_SIZE`].
    pub fn parse(data: &[u8]) -> Result<Self, ShortData> {
        let fields = Reader::<{ Identify::DATA_SIZE }>::new(data).ok_or(ShortData(data.len()))?;
        Ok(Self {
            vendor_id: fields.u16::<0>(),
            serial: Text::new(fields.bytes::<4, 20>()),
            model: Text::new(fields.bytes::<24, 40>()),
            firmware: Text::new(fields.bytes::<64, 8>()),
            multipath: fields.u8::<76>(),
            max_transfer_shift: fields.u8::<77>(),
            controller_id: fields.u16::<78>(),
            version: Version(fields.u32::<80>()),
            shutdown_time_us: fields.u32::<88>(),
            async_events: fields.u32::<92>(),
            attributes: fields.u32::<96>(),
            kind: ControllerType::from_wire(fields.u8::<111>()),
            retry_delays: [
                fields.u16::<128>(),
                fields.u16::<130>(),
                fields.u16::<132>(),
            ],
            log_pages: fields.u8::<261>(),
            anatt: fields.u8::<342>(),
            keep_alive_granularity: fields.u16::<320>(),
            command_quiesce_time: fields.u16::<386>(),
            max_commands: fields.u16::<514>(),
            optional_commands: fields.u16::<520>(),
            write_cache: fields.u8::<525>(),
            sgl_support: fields.u32::<536>(),
            subsystem: Text::new(fields.bytes::<768, 256>()),
            io_command_capsule_size: fields.u32::<1792>(),
            io_response_capsule_size: fields.u32::<1796>(),
            in_capsule_data_offset: fields.u16::<1800>(),
        })
    }

    /// Returns how long to wait for a shutdown, in milliseconds: RTD3E, but at least 5 s and at
    /// most 60 s.
    pub fn shutdown_timeout_ms(&self) -> u32 {
        (self.shutdown_time_us / 1000).clamp(5_000, 60_000)
    }

    /// Returns whether the subsystem may have other ports or controllers (CMIC).
    pub const fn has_other_paths(&self) -> bool {
        self.multipath & 3 != 0
    }

    /// Returns the longest time that a change of an ANA state takes, in seconds; `None` if the
    /// controller does not report asymmetric namespace access (CMIC, ANATT).
    pub const fn ana_transition_time(&self) -> Option<u8> {
        if self.multipath & (1 << 3) != 0 {
            Some(self.anatt)
        } else {
            None
        }
    }

    /// Returns which commands restart the keep alive timer (CTRATT.TBKAS).
    pub const fn keep_alive_mode(&self) -> KeepAliveMode {
        if self.attributes & (1 << 6) != 0 {
            KeepAliveMode::TrafficBased
        } else {
            KeepAliveMode::CommandBased
        }
    }

    /// Returns the time after which the keep alive timer expires, in milliseconds, for a timeout
    /// (KATO) of `timeout_ms`: the controller may round it up to its granularity (KAS).
    pub const fn keep_alive_expiry_ms(&self, timeout_ms: u32) -> u32 {
        let granularity_ms = (self.keep_alive_granularity as u32).saturating_mul(100);
        match timeout_ms.checked_next_multiple_of(granularity_ms) {
            Some(expiry_ms) => expiry_ms,
            None if granularity_ms == 0 => timeout_ms,
            None => u32::MAX,
        }
    }

    /// Returns whether namespaces may have other protection information than that of 8 bytes with a
    /// guard of 16 bits (CTRATT.ELBAS).
    pub const fn has_extended_formats(&self) -> bool {
        self.attributes & (1 << 15) != 0
    }

    /// Returns whether the controller may request delays of retries.
    pub fn has_retry_delays(&self) -> bool {
        self.retry_delays != [0; 3]
    }

    /// Returns whether the controller has the log page [`effects_log`](crate::format::effects_log).
    pub const fn has_effects_log(&self) -> bool {
        self.log_pages & (1 << 1) != 0
    }

    /// Returns whether the controller supports Dataset Management.
    pub const fn has_dataset_management(&self) -> bool {
        self.optional_commands & (1 << 2) != 0
    }

    /// Returns whether the controller supports Write Zeroes.
    pub const fn has_write_zeroes(&self) -> bool {
        self.optional_commands & (1 << 3) != 0
    }

    /// Returns whether the controller has a volatile write cache: data that was not flushed may be
    /// lost when the power fails.
    pub const fn has_write_cache(&self) -> bool {
        self.write_cache & 1 != 0
    }

    /// Returns whether the controller supports keyed SGL Data Block descriptors.
    pub const fn has_keyed_sgl(&self) -> bool {
        self.sgl_support & (1 << 2) != 0
    }

    /// Returns whether the controller supports SGL Data Block descriptors with an offset into the
    /// capsule.
    pub const fn has_sgl_offset(&self) -> bool {
        self.sgl_support & (1 << 20) != 0
    }
}

#[cfg(test)]
mod tests;
