// SPDX-License-Identifier: GPL-2.0

//! Deadlines on the monotonic clock.
//!
//! C header: [`include/linux/ktime.h`](srctree/include/linux/ktime.h)

use super::Msecs;
use crate::bindings;

const NANOSECONDS: i64 = 1_000_000;

/// A point in time of the monotonic clock, with the time span it was created with. Ordered by time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    /// Nanoseconds of the clock.
    at: i64,
    span: Msecs,
}

impl Deadline {
    /// A deadline that never expires.
    pub const NEVER: Self = Self {
        at: i64::MAX,
        span: Msecs::new(u32::MAX),
    };

    /// Returns the deadline `span` from now. Any context.
    pub fn after(span: Msecs) -> Self {
        let nanoseconds = i64::from(span.get()).saturating_mul(NANOSECONDS);
        Self {
            at: now().saturating_add(nanoseconds),
            span,
        }
    }

    /// Returns the time of the monotonic clock, in milliseconds. Any context. C: `ktime_get()`.
    pub fn now_ms() -> u64 {
        u64::try_from(now() / NANOSECONDS).unwrap_or(0)
    }

    /// Returns the span that the deadline was created with, for messages. Any context.
    pub const fn span(self) -> Msecs {
        self.span
    }

    /// Returns whether the deadline has expired. Any context.
    pub fn is_over(self) -> bool {
        self.at <= now()
    }

    /// Returns the remaining time, rounded up; zero if expired. Any context.
    pub fn left(self) -> Msecs {
        let left = self.at.saturating_sub(now()).max(0);
        let left = left.saturating_add(NANOSECONDS - 1) / NANOSECONDS;
        Msecs::new(left.try_into().unwrap_or(u32::MAX))
    }
}

fn now() -> i64 {
    // SAFETY: `ktime_get()` may be called in any context.
    unsafe { bindings::ktime_get() }
}
