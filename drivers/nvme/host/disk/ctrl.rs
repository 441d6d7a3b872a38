// SPDX-License-Identifier: GPL-2.0

//! The interface of a disk to its controller.

use nvme_proto::{
    format::sqe::Command,
    policy::permission::IoPermissions, //
};
use nvme_rdma_transport::queue::{CommandData, CommandError, Reply};
use rrdma::sync::Msecs;

/// The controller of a disk.
pub(crate) trait DiskController: Send + Sync {
    /// Whether the controller is connected and no removal is requested. Any context.
    fn is_connected(&self) -> bool;

    /// Whether the controller is live. May sleep.
    fn is_live(&self) -> bool;

    /// Returns the permissions for passthrough commands to a namespace. May sleep.
    fn io_permissions(&self) -> IoPermissions;

    /// Sends an admin command from user space, and handles its effects. Sleeps, for I/O too: the
    /// caller must not block the removal of disks.
    ///
    /// # Errors
    ///
    /// `EINTR` for a signal before the command is sent; otherwise why there is no response.
    fn execute_for_user(
        &self,
        command: Command,
        data: Option<CommandData>,
        limit: Msecs,
    ) -> Result<Reply, CommandError>;

    /// Whether requests wait for the next connection, unless their submitter forbids retries. Any
    /// context.
    fn holds_io(&self) -> bool;

    /// Returns the time for which requests with path errors are retried. Any context.
    fn path_retry_limit(&self) -> Msecs;

    /// Whether one more failed request may be logged. Any context but NMI.
    fn may_log_failed_io(&self) -> bool;
}
