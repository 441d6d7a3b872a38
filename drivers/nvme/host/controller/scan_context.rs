// SPDX-License-Identifier: GPL-2.0

//! Parameters that the disks of a controller and its later connections share.

use crate::namespace::NsContext;
use nvme_proto::policy::{
    limits::queue_counts::IoQueueCounts,
    permission::IoPermissions, //
};
use nvme_rdma_transport::params::IoQueueParams;
use rrdma::sync::Deadline;

/// Parameters that disks are created with, and that a later connection must support.
pub(crate) struct ScanContext {
    pub(super) namespaces: NsContext,
    /// Permissions for passthrough commands to a namespace.
    pub(super) io_permissions: IoPermissions,
    pub(super) params: IoQueueParams,
    /// The requested I/O queues; the tag set can have a hardware queue for each.
    pub(super) requested_queues: IoQueueCounts,
    /// Deadline of the connect attempt; on the first one it includes creating the disks.
    pub(super) deadline: Deadline,
}
