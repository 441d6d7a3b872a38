// SPDX-License-Identifier: GPL-2.0

//! When `ctrl_loss_tmo` of a controller is over.

use crate::options::Options;
use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};
use rrdma::sync::{
    Deadline,
    Msecs, //
};

/// Time at which the last connection of a controller was lost, by the clock of [`Deadline::now_ms`]; 0 if none was.
pub(crate) struct LossTime(AtomicU64);

impl LossTime {
    /// Returns the time of a controller that has lost no connection. Any context.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Records that the connection is lost, or given up for a reset, from now on. Any context.
    pub(crate) fn record(&self) {
        self.0.store(Deadline::now_ms(), Ordering::Relaxed);
    }
}

/// The `ctrl_loss_tmo` of a controller that has lost its connections: what it is at the time of each call.
#[derive(Clone, Copy)]
pub struct CtrlLossTmo<'a> {
    lost_at: &'a LossTime,
    options: &'a Options,
}

impl<'a> CtrlLossTmo<'a> {
    /// Returns that of the controller with these options. Any context.
    pub(crate) fn new(lost_at: &'a LossTime, options: &'a Options) -> Self {
        Self { lost_at, options }
    }

    /// Returns when `ctrl_loss_tmo` is over, in milliseconds of the clock of [`Deadline::now_ms`]; `None` if it is
    /// off or 0, or if no connection was lost. Any context.
    ///
    /// A write to the attribute changes the result at any time.
    pub fn end_ms(&self) -> Option<u64> {
        let lost_at = self.lost_at.0.load(Ordering::Relaxed);
        let limit = self.options.ctrl_loss_ms()?;
        (lost_at != 0).then(|| lost_at.saturating_add(limit))
    }

    /// Returns the time that is left of `ctrl_loss_tmo`; `None` if there is no [end](Self::end_ms). Any context.
    pub(crate) fn left(&self) -> Option<Msecs> {
        let left = self.end_ms()?.saturating_sub(Deadline::now_ms());
        Some(Msecs::new(u32::try_from(left).unwrap_or(u32::MAX)))
    }
}
