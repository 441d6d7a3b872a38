// SPDX-License-Identifier: GPL-2.0

//! Frozen disks.

use super::Io;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::block::{
    Disk,
    Frozen, //
};

/// A guard: while it exists, the disks are frozen, with no I/O in flight.
pub(crate) struct FrozenDisks<'a> {
    /// Thawed in reverse order, because each saves the thread's allocation flags from before it.
    frozen: KVec<Frozen<'a, Io>>,
}

impl<'a> FrozenDisks<'a> {
    /// Freezes disks, and waits for their I/O in flight. The controller's thread must be awake to
    /// poll the polled queues, because a thread that polls them may itself be waiting here. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINTR` if a signal is pending; `ENOMEM`.
    pub(crate) fn new(disks: &'a [Arc<Disk<Io>>]) -> Result<Self> {
        let mut this = Self {
            frozen: KVec::with_capacity(disks.len(), GFP_KERNEL)?,
        };
        for disk in disks {
            // The capacity suffices, so this does not fail.
            let _ = this.frozen.push(disk.freeze()?, GFP_KERNEL);
        }
        Ok(this)
    }
}

impl Drop for FrozenDisks<'_> {
    fn drop(&mut self) {
        while self.frozen.pop().is_some() {}
    }
}
