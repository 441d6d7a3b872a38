// SPDX-License-Identifier: GPL-2.0

//! Properties: the registers of a controller, read and written by commands.

use core::fmt;

/// A property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Property {
    /// What the controller can do: [`Capabilities`].
    Capabilities,
    /// Which version of NVMe it is made to: [`Version`].
    Version,
    /// How it is configured: [`Configuration`].
    Configuration,
    /// How it is: [`ControllerStatus`].
    Status,
    /// How long it may take to become ready: [`ReadyTimeouts`].
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

    /// 1 for 8 bytes, 0 for 4.
    #[inline]
    pub(crate) const fn size_attribute(self) -> u8 {
        match self {
            Self::Capabilities => 1,
            _ => 0,
        }
    }
}

/// The capabilities of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Size of the smallest memory page there is, as a power of two.
    const MIN_PAGE_SHIFT: u8 = 12;

    const COMMAND_SET_NVM: u8 = 1 << 0;
    const COMMAND_SET_SELECTABLE: u8 = 1 << 6;
    const COMMAND_SET_NONE: u8 = 1 << 7;

    /// Most entries of an I/O queue, less one.
    #[must_use]
    pub const fn max_queue_entries_zero_based(self) -> u16 {
        (self.0 & 0xffff) as u16
    }

    /// How long to wait for the controller to become ready or not, in units
    /// of 500 ms.
    #[must_use]
    pub const fn timeout_units(self) -> u8 {
        ((self.0 >> 24) & 0xff) as u8
    }

    /// Which command sets there are.
    const fn command_sets(self) -> u8 {
        ((self.0 >> 37) & 0xff) as u8
    }

    /// Size of the smallest memory page, as a power of two.
    #[must_use]
    pub const fn min_page_shift(self) -> u8 {
        // Four bits and twelve.
        (((self.0 >> 48) & 0xf) as u8).saturating_add(Self::MIN_PAGE_SHIFT)
    }

    /// Whether [`Property::ReadyTimeouts`] tells how long to wait.
    #[must_use]
    pub const fn has_ready_timeouts(self) -> bool {
        self.0 & (1 << 59) != 0
    }

    /// The configuration to enable the controller with, or why not to.
    ///
    /// It is written twice, first as it is and then with
    /// [`Configuration::enabled`]: the first may change the capabilities.
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

    /// How long to wait for the controller to become ready, in milliseconds;
    /// `timeouts` are needed where [`Self::has_ready_timeouts`].
    ///
    /// The ready timeout shall not be less than the one here, but with some
    /// controllers it is: the longer one is the safe one.
    #[must_use]
    pub fn ready_timeout_ms(self, timeouts: Option<ReadyTimeouts>) -> u32 {
        let with_media = timeouts.map_or(0, ReadyTimeouts::with_media_units);
        Self::units_to_ms(with_media.max(self.timeout_units().into()))
    }

    /// How long to wait for the controller to be disabled, in milliseconds.
    #[must_use]
    pub fn disable_timeout_ms(self) -> u32 {
        Self::units_to_ms(self.timeout_units().into())
    }

    /// A controller that claims to need no time gets one unit.
    fn units_to_ms(units: u16) -> u32 {
        u32::from(units.max(1)).saturating_mul(500)
    }
}

/// Why a controller cannot be enabled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsupported {
    /// Its smallest memory page is larger than 4 KiB: the power of two.
    PageShift(u8),
    /// It has no command set that a host could select.
    CommandSets(u8),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PageShift(shift) => {
                write!(
                    f,
                    "smallest memory page of 2^{shift} bytes is larger than 2^12"
                )
            }
            Self::CommandSets(sets) => write!(f, "no known command set in {sets:#04x}"),
        }
    }
}

/// The configuration of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Configuration(u32);

impl Configuration {
    const NVM_COMMAND_SET: u32 = 0 << 4;
    const ALL_COMMAND_SETS: u32 = 6 << 4;
    const ENABLE: u32 = 1 << 0;
    const SHUTDOWN: u32 = 3 << 14;
    const SHUTDOWN_NORMAL: u32 = 1 << 14;
    /// I/O submission queue entries of 2^6, completion queue entries of 2^4.
    const ENTRY_SIZES: u32 = (6 << 16) | (4 << 20);

    /// Memory pages have 4 KiB and queues are served round robin: both 0.
    const fn new(command_set: u32) -> Self {
        Self(command_set | Self::ENTRY_SIZES)
    }

    /// This, with the controller enabled.
    #[must_use]
    pub const fn enabled(self) -> Self {
        Self((self.0 & !Self::SHUTDOWN) | Self::ENABLE)
    }

    /// This, with the controller disabled, which resets it.
    #[must_use]
    pub const fn disabled(self) -> Self {
        Self(self.0 & !(Self::SHUTDOWN | Self::ENABLE))
    }

    /// This, with the controller told to shut down in good order.
    #[must_use]
    pub const fn shut_down(self) -> Self {
        Self((self.0 & !Self::SHUTDOWN) | Self::SHUTDOWN_NORMAL)
    }

    /// The value to write.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0 as u64
    }
}

/// The status of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerStatus(pub u32);

/// How far a controller is on its way to what it was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// There.
    Done,
    /// Not there; ask again.
    Wait,
    /// It reports a fatal error and will not get there.
    Failed,
}

impl ControllerStatus {
    const READY: u32 = 1 << 0;
    const FATAL: u32 = 1 << 1;
    const SHUTDOWN: u32 = 3 << 2;
    const SHUTDOWN_COMPLETE: u32 = 2 << 2;

    /// What a controller that is gone reads as.
    const GONE: u32 = u32::MAX;

    /// Whether the controller is enabled.
    #[must_use]
    pub const fn enabling(self) -> Progress {
        if self.0 & Self::FATAL != 0 {
            Progress::Failed
        } else {
            Self::done_if(self.0 & Self::READY != 0)
        }
    }

    /// Whether the controller is disabled: what clears a fatal error, too.
    #[must_use]
    pub const fn disabling(self) -> Progress {
        if self.0 == Self::GONE {
            Progress::Failed
        } else {
            Self::done_if(self.0 & Self::READY == 0)
        }
    }

    /// Whether the controller is shut down.
    #[must_use]
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

/// How long a controller may take to become ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadyTimeouts(pub u32);

impl ReadyTimeouts {
    /// With its media ready, in units of 500 ms.
    const fn with_media_units(self) -> u16 {
        (self.0 & 0xffff) as u16
    }
}

/// A version of NVMe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version(pub u32);

impl Version {
    /// Makes a version of its numbers.
    #[must_use]
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
