// SPDX-License-Identifier: GPL-2.0

//! Time spans in milliseconds.
//!
//! C header: [`include/linux/jiffies.h`](srctree/include/linux/jiffies.h)

use kernel::time::{msecs_to_jiffies, Delta, Jiffies};

/// A time span in milliseconds, at most about 49 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Msecs(u32);

impl Msecs {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// Returns a span of `msecs` milliseconds.
    #[inline]
    pub const fn new(msecs: u32) -> Self {
        Self(msecs)
    }

    /// Returns a span of `secs` seconds, limited to the longest one.
    #[inline]
    pub const fn from_secs(secs: u32) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Returns the number of milliseconds.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the number of jiffies, rounded up.
    ///
    /// From 2^31 ms on, it is `MAX_JIFFY_OFFSET`, which is practically infinite. C:
    /// `msecs_to_jiffies()`.
    #[inline]
    pub fn to_jiffies(self) -> Jiffies {
        msecs_to_jiffies(self.0)
    }
}

impl From<Delta> for Msecs {
    /// Converts to whole milliseconds: 0 if `span` is negative, limited to the longest span.
    fn from(span: Delta) -> Self {
        Self(span.as_millis().max(0).try_into().unwrap_or(u32::MAX))
    }
}
