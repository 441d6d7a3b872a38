// SPDX-License-Identifier: GPL-2.0

//! Parameters that the disks of a controller and its later connections share.

use kernel::sync::Arc;
use nvme_proto::{
    format::{identify, property::Version},
    policy::{limits::queue_counts::IoQueueCounts, permission::IoPermissions},
};
use nvme_rdma_transport::params::IoQueueParams;
use rnvmf_disk::Io;
use rrdma::block::TagSet;

/// Parameters that disks are created with, and that a later connection must support.
pub(crate) struct ScanContext {
    /// Shared by all disks of the controller.
    pub(crate) tag_set: Arc<TagSet<Io>>,
    pub(crate) identity: Arc<identify::Controller>,
    pub(crate) version: Version,
    /// Smallest memory page size of the controller (`CAP.MPSMIN`), as a power of two.
    pub(crate) min_page_shift: u8,
    /// Permissions for passthrough commands to a namespace.
    pub(crate) io_permissions: IoPermissions,
    pub(crate) params: IoQueueParams,
    /// The requested I/O queues; the tag set can have a hardware queue for each.
    pub(crate) requested_queues: IoQueueCounts,
}
