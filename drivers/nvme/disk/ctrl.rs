// SPDX-License-Identifier: GPL-2.0

//! The interface of a disk to its controller.

use crate::Io;
use kernel::prelude::*;
use nvme_proto::format::status::Status;
use rrdma::{
    block::{
        Ioctl,
        Op, //
    },
    sync::Msecs, //
};

/// A request that has failed, for the log.
pub struct FailedIo<'a> {
    /// The name of the disk.
    pub disk: &'a str,
    /// What the request does.
    pub op: Op,
    /// The first block.
    pub start: u64,
    /// The number of blocks.
    pub count: u32,
    /// The target's status.
    pub status: Status,
    /// The number of retries after an error status.
    pub retries: u8,
}

/// The controller of a disk.
pub trait DiskController: Send + Sync {
    /// Whether the controller is connected and no removal is requested. Any context.
    fn is_connected(&self) -> bool;

    /// Whether requests wait for the next connection, unless their submitter forbids retries. Any
    /// context.
    fn holds_io(&self) -> bool;

    /// Returns the time for which requests with path errors are retried. Any context.
    fn path_retry_limit(&self) -> Msecs;

    /// Logs the first path error of a request, which is retried for `limit_ms` milliseconds. `disk` is the
    /// name of its disk. Logs nothing above the rate limit. Any context but NMI.
    fn log_path_error(&self, disk: &str, status: Status, limit_ms: u32);

    /// Logs a failed request. Logs nothing above the rate limit. Any context but NMI.
    fn log_failed_io(&self, failed: FailedIo<'_>);

    /// Handles an ioctl of a disk. Sleeps.
    ///
    /// # Errors
    ///
    /// That of the ioctl.
    fn ioctl(&self, call: Ioctl<'_, Io>) -> Result<c_int>;
}
