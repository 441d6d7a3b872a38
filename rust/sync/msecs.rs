// SPDX-License-Identifier: GPL-2.0

//! Spans of time in milliseconds.
//!
//! C header: [`include/linux/jiffies.h`](srctree/include/linux/jiffies.h)

use kernel::time::{msecs_to_jiffies, Delta, Jiffies};

/// A span of time in milliseconds, at most about 49 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Msecs(u32);

impl Msecs {
    /// A span of so many milliseconds.
    #[inline]
    pub const fn new(msecs: u32) -> Self {
        Self(msecs)
    }

    /// A span of so many seconds, or the longest one if that is longer.
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
    /// From 2^31 milliseconds on it is the largest number of them that the kernel
    /// can wait for, which is as good as for ever. C: `msecs_to_jiffies`.
    #[inline]
    pub fn to_jiffies(self) -> Jiffies {
        msecs_to_jiffies(self.0)
    }
}

impl From<Delta> for Msecs {
    /// Whole milliseconds; 0 if `span` is negative, the longest one if it is longer.
    fn from(span: Delta) -> Self {
        Self(span.as_millis().max(0).try_into().unwrap_or(u32::MAX))
    }
}
