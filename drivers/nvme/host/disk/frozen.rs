// SPDX-License-Identifier: GPL-2.0

//! Disks without I/O.

use super::Io;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::block::{
    Disk,
    Frozen, //
};

/// While this exists, no I/O of these disks is in flight, and none begins.
pub(crate) struct FrozenDisks<'a> {
    /// Thawed in reverse order, as each holds the previous flags of the thread.
    frozen: KVec<Frozen<'a, Io>>,
}

impl<'a> FrozenDisks<'a> {
    /// Waits for the I/O in flight. The controller's thread must be awake, to poll the polled
    /// queues: who polls one may be waiting here, too. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINTR` if the process has a signal; `ENOMEM`.
    pub(crate) fn new(disks: &'a [Arc<Disk<Io>>]) -> Result<Self> {
        let mut this = Self {
            frozen: KVec::with_capacity(disks.len(), GFP_KERNEL)?,
        };
        for disk in disks {
            // There is room.
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
