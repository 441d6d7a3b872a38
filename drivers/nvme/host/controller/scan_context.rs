// SPDX-License-Identifier: GPL-2.0

//! What later connections of a controller, and its disks, must agree with.

use crate::namespace::NsContext;
use nvme_proto::policy::{
    limits::queue_counts::IoQueueCounts,
    permission::IoPermissions, //
};
use nvme_rdma_transport::params::IoQueueParams;
use rrdma::sync::Deadline;

/// What the disks of a controller are made with, and what a later connection must allow.
pub(crate) struct ScanContext {
    pub(super) namespaces: NsContext,
    /// What users may send to a namespace.
    pub(super) io_permissions: IoPermissions,
    pub(super) params: IoQueueParams,
    /// The I/O queues that are requested: there is a hardware queue for each.
    pub(super) requested_queues: IoQueueCounts,
    /// When the first connection must be live.
    pub(super) deadline: Deadline,
}
