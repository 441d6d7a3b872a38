// SPDX-License-Identifier: GPL-2.0

//! Identify Controller.

use super::{ShortData, Text};
use crate::format::layout::Reader;
use crate::format::property::Version;
use crate::format::sqe::Identify;
use core::fmt;

/// What a controller says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Controller {
    /// PCI vendor identifier.
    pub vendor_id: u16,
    /// Serial number.
    pub serial: Text<20>,
    /// Model.
    pub model: Text<40>,
    /// Firmware revision.
    pub firmware: Text<8>,
    /// Largest transfer, as a power of two of the smallest memory page; 0 for
    /// any.
    pub max_transfer_shift: u8,
    /// Controller identifier.
    pub controller_id: u16,
    /// Version of NVMe.
    pub version: Version,
    /// How long a shutdown may take, in microseconds; 0 for unknown.
    pub shutdown_time_us: u32,
    /// Asynchronous events that it can tell: see
    /// [`crate::format::async_event::AsyncEventConfig::for_io`].
    pub async_events: u32,
    /// Attributes: see [`Self::keep_alive_mode`].
    pub attributes: u32,
    /// What kind of controller it is.
    pub kind: ControllerType,
    /// Delays before retries, in units of 100 ms.
    pub retry_delays: [u16; 3],
    /// Log pages: see [`Self::has_effects_log`].
    pub log_pages: u8,
    /// Granularity of the keep alive timer in units of 100 ms; 0 for no timer.
    pub keep_alive_granularity: u16,
    /// Sizes of submission queue entries: required, and largest << 4, as powers
    /// of two.
    pub sq_entry_sizes: u8,
    /// Sizes of completion queue entries, likewise.
    pub cq_entry_sizes: u8,
    /// Most commands outstanding in a queue; 0 for unknown.
    pub max_commands: u16,
    /// Greatest namespace identifier.
    pub max_nsid: u32,
    /// Optional commands: see [`Self::has_dataset_management`] and
    /// [`Self::has_write_zeroes`].
    pub optional_commands: u16,
    /// Volatile write cache: see [`Self::has_write_cache`].
    pub write_cache: u8,
    /// SGL support: see [`Self::has_keyed_sgl`] and [`Self::has_sgl_offset`].
    pub sgl_support: u32,
    /// Most namespaces; 0 for unknown.
    pub max_namespaces: u32,
    /// NQN of the subsystem.
    pub subsystem: Text<256>,
    /// Size of I/O command capsules, in units of 16 bytes.
    pub io_command_capsule_size: u32,
    /// Size of I/O response capsules, in units of 16 bytes.
    pub io_response_capsule_size: u32,
    /// Where data in a capsule begins after the command, in units of 16 bytes.
    pub in_capsule_data_offset: u16,
    /// Most SGL descriptors in a capsule; 0 for no limit.
    pub max_capsule_descriptors: u8,
}

/// What restarts the keep alive timer of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeepAliveMode {
    /// A Keep Alive command.
    CommandBased,
    /// Any command.
    TrafficBased,
}

/// What kind of controller one is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControllerType {
    /// Not reported, as before NVMe 1.4.
    Unknown,
    /// One with namespaces and I/O queues.
    Io,
    /// One that tells where subsystems are.
    Discovery,
    /// One without I/O queues.
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
    /// Reads what an Identify Controller command returned.
    pub fn parse(data: &[u8]) -> Result<Self, ShortData> {
        let fields = Reader::<{ Identify::DATA_SIZE }>::new(data).ok_or(ShortData(data.len()))?;
        Ok(Self {
            vendor_id: fields.u16::<0>(),
            serial: Text::new(fields.bytes::<4, 20>()),
            model: Text::new(fields.bytes::<24, 40>()),
            firmware: Text::new(fields.bytes::<64, 8>()),
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
            keep_alive_granularity: fields.u16::<320>(),
            sq_entry_sizes: fields.u8::<512>(),
            cq_entry_sizes: fields.u8::<513>(),
            max_commands: fields.u16::<514>(),
            max_nsid: fields.u32::<516>(),
            optional_commands: fields.u16::<520>(),
            write_cache: fields.u8::<525>(),
            sgl_support: fields.u32::<536>(),
            max_namespaces: fields.u32::<540>(),
            subsystem: Text::new(fields.bytes::<768, 256>()),
            io_command_capsule_size: fields.u32::<1792>(),
            io_response_capsule_size: fields.u32::<1796>(),
            in_capsule_data_offset: fields.u16::<1800>(),
            max_capsule_descriptors: fields.u8::<1803>(),
        })
    }

    /// How long to wait for a shutdown, in milliseconds: what the controller
    /// asks for, but 5 s at least and a minute at most.
    #[must_use]
    pub fn shutdown_timeout_ms(&self) -> u32 {
        (self.shutdown_time_us / 1000).clamp(5_000, 60_000)
    }

    /// What restarts the keep alive timer (TBKAS).
    #[must_use]
    pub const fn keep_alive_mode(&self) -> KeepAliveMode {
        if self.attributes & (1 << 6) != 0 {
            KeepAliveMode::TrafficBased
        } else {
            KeepAliveMode::CommandBased
        }
    }

    /// Whether it may ask for delays of retries.
    #[must_use]
    pub fn has_retry_delays(&self) -> bool {
        self.retry_delays != [0; 3]
    }

    /// Whether there is a log of [commands and their effects](crate::format::effects_log).
    #[must_use]
    pub const fn has_effects_log(&self) -> bool {
        self.log_pages & (1 << 1) != 0
    }

    /// Whether there is the Dataset Management command.
    #[must_use]
    pub const fn has_dataset_management(&self) -> bool {
        self.optional_commands & (1 << 2) != 0
    }

    /// Whether there is the Write Zeroes command.
    #[must_use]
    pub const fn has_write_zeroes(&self) -> bool {
        self.optional_commands & (1 << 3) != 0
    }

    /// Whether written data may be lost with the power before it is flushed.
    #[must_use]
    pub const fn has_write_cache(&self) -> bool {
        self.write_cache & 1 != 0
    }

    /// Whether there are keyed data block descriptors.
    #[must_use]
    pub const fn has_keyed_sgl(&self) -> bool {
        self.sgl_support & (1 << 2) != 0
    }

    /// Whether a descriptor can name an offset into the capsule.
    #[must_use]
    pub const fn has_sgl_offset(&self) -> bool {
        self.sgl_support & (1 << 20) != 0
    }
}

#[cfg(test)]
mod tests;
