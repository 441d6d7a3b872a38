// SPDX-License-Identifier: GPL-2.0

//! Properties: registers of a controller, which Fabrics commands read and write.
//!
//! Source: NVMe Base 2.3, section 3.1.4 (Controller Properties).

use core::fmt;

/// A property of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Property {
    /// CAP: [`Capabilities`].
    Capabilities,
    /// VS: [`Version`].
    Version,
    /// CC: [`Configuration`].
    Configuration,
    /// CSTS: [`ControllerStatus`].
    Status,
    /// CRTO: [`ReadyTimeouts`].
    ReadyTimeouts,
}

impl Property {
    #[inline]
    pub(crate) const fn offset(self) -> u32 {
        match self {
            Self::Capabilities => 0x00,
            Self::Version => 0x08,
            Self::Configuration => 0x14,
            Self::Status => 0x1c,
            Self::ReadyTimeouts => 0x68,
        }
    }

    /// Returns the size attribute of the command: 1 for 8 bytes, 0 for 4 bytes.
    #[inline]
    pub(crate) const fn size_attribute(self) -> u8 {
        match self {
            Self::Capabilities => 1,
            _ => 0,
        }
    }
}

/// Controller Capabilities (CAP).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Memory page size if MPSMIN is 0, as a power of two.
    const MIN_PAGE_SHIFT: u8 = 12;

    const COMMAND_SET_NVM: u8 = 1;
    const COMMAND_SET_SELECTABLE: u8 = 1 << 6;
    const COMMAND_SET_NONE: u8 = 1 << 7;

    /// Returns the largest number of entries of an I/O queue, zero-based (MQES).
    pub const fn max_queue_entries_zero_based(self) -> u16 {
        (self.0 & 0xffff) as u16
    }

    /// Returns how long the controller takes at most to become ready or disabled, in units of 500
    /// ms (TO).
    pub const fn timeout_units(self) -> u8 {
        ((self.0 >> 24) & 0xff) as u8
    }

    /// Returns the supported I/O command sets (CSS).
    const fn command_sets(self) -> u8 {
        ((self.0 >> 37) & 0xff) as u8
    }

    /// Returns the smallest memory page size, as a power of two (MPSMIN).
    pub const fn min_page_shift(self) -> u8 {
        // At most 15 + 12.
        (((self.0 >> 48) & 0xf) as u8).saturating_add(Self::MIN_PAGE_SHIFT)
    }

    /// Returns whether [`Property::ReadyTimeouts`] is supported (CRMS.CRWMS).
    pub const fn has_ready_timeouts(self) -> bool {
        self.0 & (1 << 59) != 0
    }

    /// Returns the configuration to enable the controller with.
    ///
    /// The caller writes it first as it is and then [`Configuration::enabled`], because the first
    /// write may change the capabilities.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the host supports no page size or I/O command set of the controller.
    pub const fn configure(self) -> Result<Configuration, Unsupported> {
        if self.min_page_shift() > Self::MIN_PAGE_SHIFT {
            return Err(Unsupported::PageShift(self.min_page_shift()));
        }
        let sets = self.command_sets();
        if sets & Self::COMMAND_SET_SELECTABLE != 0 {
            Ok(Configuration::new(Configuration::ALL_COMMAND_SETS))
        } else if sets & (Self::COMMAND_SET_NVM | Self::COMMAND_SET_NONE) != 0 {
            Ok(Configuration::new(Configuration::NVM_COMMAND_SET))
        } else {
            Err(Unsupported::CommandSets(sets))
        }
    }

    /// Returns how long to wait for the controller to become ready, in milliseconds. `timeouts` is
    /// required if [`Self::has_ready_timeouts`] returns true.
    ///
    /// The specification forbids that CRTO is shorter than TO, but some controllers report that.
    /// The longer one applies.
    pub fn ready_timeout_ms(self, timeouts: Option<ReadyTimeouts>) -> u32 {
        let with_media = timeouts.map_or(0, ReadyTimeouts::with_media_units);
        Self::units_to_ms(with_media.max(self.timeout_units().into()))
    }

    /// Returns how long to wait for the controller to be disabled, in milliseconds.
    pub fn disable_timeout_ms(self) -> u32 {
        Self::units_to_ms(self.timeout_units().into())
    }

    /// Converts units of 500 ms. A controller that reports 0 gets one unit.
    fn units_to_ms(units: u16) -> u32 {
        u32::from(units.max(1)).saturating_mul(500)
    }
}

/// Reason why the host cannot enable a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsupported {
    /// The smallest memory page is larger than 4 KiB; its size as a power of two.
    PageShift(u8),
    /// The controller has no I/O command set that the host can select; its CSS field.
    CommandSets(u8),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PageShift(shift) => {
                write!(
                    f,
                    "minimum memory page size of 2^{shift} bytes is larger than 2^12"
                )
            }
            Self::CommandSets(sets) => {
                write!(f, "no supported I/O command set in CAP.CSS {sets:#04x}")
            }
        }
    }
}

/// Controller Configuration (CC).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Configuration(u32);

impl Configuration {
    const NVM_COMMAND_SET: u32 = 0;
    const ALL_COMMAND_SETS: u32 = 6 << 4;
    const ENABLE: u32 = 1;
    const SHUTDOWN: u32 = 3 << 14;
    const SHUTDOWN_NORMAL: u32 = 1 << 14;
    /// IOSQES and IOCQES: entries of 2^6 and 2^4 bytes.
    const ENTRY_SIZES: u32 = (6 << 16) | (4 << 20);

    /// Returns the configuration for a command set, with memory pages of 4 KiB (MPS 0) and round
    /// robin arbitration (AMS 0).
    const fn new(command_set: u32) -> Self {
        Self(command_set | Self::ENTRY_SIZES)
    }

    /// Returns this configuration with the controller enabled (EN).
    pub const fn enabled(self) -> Self {
        Self((self.0 & !Self::SHUTDOWN) | Self::ENABLE)
    }

    /// Returns this configuration with the controller disabled (EN cleared), which resets it.
    pub const fn disabled(self) -> Self {
        Self(self.0 & !(Self::SHUTDOWN | Self::ENABLE))
    }

    /// Returns this configuration with a normal shutdown notification (SHN).
    pub const fn shut_down(self) -> Self {
        Self((self.0 & !Self::SHUTDOWN) | Self::SHUTDOWN_NORMAL)
    }

    /// Returns the value to write.
    pub const fn get(self) -> u64 {
        self.0 as u64
    }
}

/// Controller Status (CSTS).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerStatus(pub u32);

/// Progress of a controller to a state that was requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The controller is in the state.
    Done,
    /// The controller is not in the state yet; read the property again.
    Wait,
    /// The controller has a fatal error or is gone, and will not reach the state.
    Failed,
}

impl ControllerStatus {
    const READY: u32 = 1;
    const FATAL: u32 = 1 << 1;
    const SHUTDOWN: u32 = 3 << 2;
    const SHUTDOWN_COMPLETE: u32 = 2 << 2;

    /// Value that is read if the controller is gone.
    const GONE: u32 = u32::MAX;

    /// Returns the progress of enabling.
    pub const fn enabling(self) -> Progress {
        if self.0 & Self::FATAL != 0 {
            Progress::Failed
        } else {
            Self::done_if(self.0 & Self::READY != 0)
        }
    }

    /// Returns the progress of disabling, which clears a fatal error, too.
    pub const fn disabling(self) -> Progress {
        if self.0 == Self::GONE {
            Progress::Failed
        } else {
            Self::done_if(self.0 & Self::READY == 0)
        }
    }

    /// Returns the progress of a shutdown.
    pub const fn shutting_down(self) -> Progress {
        if self.0 & Self::FATAL != 0 {
            Progress::Failed
        } else {
            Self::done_if(self.0 & Self::SHUTDOWN == Self::SHUTDOWN_COMPLETE)
        }
    }

    const fn done_if(done: bool) -> Progress {
        if done {
            Progress::Done
        } else {
            Progress::Wait
        }
    }
}

/// Controller Ready Timeouts (CRTO).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadyTimeouts(pub u32);

impl ReadyTimeouts {
    /// Returns the timeout to become ready with media (CRWMT), in units of 500 ms.
    const fn with_media_units(self) -> u16 {
        (self.0 & 0xffff) as u16
    }
}

/// Version of the NVMe specification (VS).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version(pub u32);

impl Version {
    /// Returns the version `major.minor.tertiary`.
    pub const fn new(major: u16, minor: u8, tertiary: u8) -> Self {
        Self(((major as u32) << 16) | ((minor as u32) << 8) | tertiary as u32)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{}.{}",
            self.0 >> 16,
            (self.0 >> 8) & 0xff,
            self.0 & 0xff
        )
    }
}

#[cfg(test)]
mod tests;
