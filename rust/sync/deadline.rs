// SPDX-License-Identifier: GPL-2.0

//! Moments by which something must be over.
//!
//! C header: [`include/linux/ktime.h`](srctree/include/linux/ktime.h)

use super::Msecs;
use crate::bindings;

const NANOSECONDS: i64 = 1_000_000;

/// A moment of the monotonic clock, and how long it was until then when it was set; of two, the
/// earlier is the less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    /// In nanoseconds.
    at: i64,
    span: Msecs,
}

impl Deadline {
    /// A moment that does not come.
    pub const NEVER: Self = Self {
        at: i64::MAX,
        span: Msecs::new(u32::MAX),
    };

    /// The moment `span` from now. Any context.
    pub fn after(span: Msecs) -> Self {
        let nanoseconds = i64::from(span.get()).saturating_mul(NANOSECONDS);
        Self {
            at: now().saturating_add(nanoseconds),
            span,
        }
    }

    /// How long there was until then when it was set: what to tell who was too late. Any context.
    pub const fn span(self) -> Msecs {
        self.span
    }

    /// How long it is until then, rounded up; zero if it has passed. Any context.
    pub fn left(self) -> Msecs {
        let left = self.at.saturating_sub(now()).max(0);
        let left = left.saturating_add(NANOSECONDS - 1) / NANOSECONDS;
        Msecs::new(left.try_into().unwrap_or(u32::MAX))
    }
}

fn now() -> i64 {
    // SAFETY: The clock may be read in any context.
    unsafe { bindings::ktime_get() }
}
