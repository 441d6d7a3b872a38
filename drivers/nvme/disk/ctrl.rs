// SPDX-License-Identifier: GPL-2.0

//! The interface of a disk to its controller.

use crate::Io;
use kernel::prelude::*;
use rrdma::{
    block::Ioctl,
    sync::Msecs, //
};

/// The controller of a disk.
pub trait DiskController: Send + Sync {
    /// Whether the controller is connected and no removal is requested. Any context.
    fn is_connected(&self) -> bool;

    /// Whether requests wait for the next connection, unless their submitter forbids retries. Any
    /// context.
    fn holds_io(&self) -> bool;

    /// Returns the time for which requests with path errors are retried. Any context.
    fn path_retry_limit(&self) -> Msecs;

    /// Whether one more failed request may be logged. Any context but NMI.
    fn may_log_failed_io(&self) -> bool;

    /// Handles an ioctl of a disk. Sleeps.
    ///
    /// # Errors
    ///
    /// That of the ioctl.
    fn ioctl(&self, call: Ioctl<'_, Io>) -> Result<c_int>;
}
