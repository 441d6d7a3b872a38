// SPDX-License-Identifier: GPL-2.0

//! What a disk needs of its controller.

use nvme_proto::{
    format::sqe::Command,
    policy::permission::IoPermissions, //
};
use nvme_rdma_transport::queue::{CommandData, CommandError, Reply};
use rrdma::{
    sync::Msecs, //
};

/// The controller of a disk.
pub(crate) trait DiskController: Send + Sync {
    /// Whether there is a connection that nobody wants to end. Any context.
    fn is_connected(&self) -> bool;

    /// Whether the controller is live. May sleep.
    fn is_live(&self) -> bool;

    /// Permissions for users' commands to a namespace. May sleep.
    fn io_permissions(&self) -> IoPermissions;

    /// Sends an admin command of a user, and sees to its effects. Sleeps, for I/O too: the caller
    /// must not keep disks from being removed.
    ///
    /// # Errors
    ///
    /// Why there is no response; a signal before the command is sent is `EINTR`.
    fn execute_for_user(
        &self,
        command: Command,
        data: Option<CommandData>,
        limit: Msecs,
    ) -> Result<Reply, CommandError>;

    /// Whether one more failed request may be logged. Any context but NMI.
    fn may_log_failed_io(&self) -> bool;
}
