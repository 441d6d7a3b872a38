// SPDX-License-Identifier: GPL-2.0

//! Partition scans of disks.
//!
//! Each scan has a work item, so a namespace that does not respond delays no other disk.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rnvmf_disk::Io;
use rrdma::{
    block::Disk,
    sync::{
        RelaxedBool,
        TimedCompletion, //
    },
};

/// State of the partition scan of a disk. Dropping it waits for the scan.
pub(super) struct Partitions(Arc<ScanState>);

#[pin_data]
struct ScanState {
    /// The last scan could not read the partition table.
    unread: RelaxedBool,
    /// Completed if no scan is queued or running.
    #[pin]
    idle: TimedCompletion,
}

/// A partition scan that [`run`](Self::run) does. Dropping it ends the scan.
pub(crate) struct PartitionScan {
    /// Dropped before `end`, because the removal of the disk waits for `end`.
    disk: Arc<Disk<Io>>,
    end: ScanEnd,
}

struct ScanEnd {
    state: Arc<ScanState>,
    /// Wakes the controller's thread.
    wake: Arc<TimedCompletion>,
}

impl Partitions {
    /// Returns the state of a new disk, which has not been scanned.
    pub(super) fn new() -> Result<Self> {
        let state = Arc::pin_init(
            pin_init!(ScanState {
                unread: RelaxedBool::new(true),
                idle <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )?;
        state.idle.complete_all();
        Ok(Self(state))
    }

    /// Begins a scan of `disk`, unless its partition table was read; `None` then, or if a scan is
    /// queued or running. `wake` is completed when the scan ends. The caller keeps others from
    /// beginning one.
    pub(super) fn begin(
        &self,
        disk: &Arc<Disk<Io>>,
        wake: &Arc<TimedCompletion>,
    ) -> Option<PartitionScan> {
        if !self.0.unread.get() || self.is_scanning() {
            return None;
        }
        self.0.idle.reinit();
        Some(PartitionScan {
            disk: disk.clone(),
            end: ScanEnd {
                state: self.0.clone(),
                wake: wake.clone(),
            },
        })
    }

    /// Whether a scan is queued or running.
    pub(super) fn is_scanning(&self) -> bool {
        !self.0.idle.is_completed()
    }
}

impl Drop for Partitions {
    fn drop(&mut self) {
        self.0.idle.wait();
    }
}

impl PartitionScan {
    /// Scans the partitions. Sleeps, for I/O too.
    pub(crate) fn run(self) {
        // Partitions in use need no scan.
        let is_unread = self.disk.scan_partitions() == Err(EIO);
        self.end.state.unread.set(is_unread);
    }
}

impl Drop for ScanEnd {
    fn drop(&mut self) {
        self.state.idle.complete_all();
        self.wake.complete();
    }
}
