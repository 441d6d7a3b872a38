// SPDX-License-Identifier: GPL-2.0

//! Events for user space.

use nvme_proto::{format::identify::NamespaceIds, policy::limits::block::BlockLimits};
use rnvmf_disk::DiskName;
use rrdma::block::DiskUse;

/// A change of a controller or of one of its namespaces.
#[derive(Clone, Copy)]
pub(crate) enum Event<'a> {
    Added,
    Changed,
    Removed,
    NamespaceAdded(&'a NsInfo),
    NamespaceChanged(&'a NsInfo),
    NamespaceRemoved(&'a NsInfo),
}

/// The properties of a namespace that user space sees; independent of the disk's lifetime.
pub(crate) struct NsInfo {
    pub(crate) nsid: u32,
    pub(crate) name: DiskName,
    /// Capacity of the disk, in bytes.
    pub(crate) size: u64,
    pub(crate) ids: NamespaceIds,
    pub(crate) limits: BlockLimits,
    /// How the disk was open when this was read.
    pub(crate) usage: DiskUse,
}

impl NsInfo {
    /// Returns the size of a logical block, in bytes.
    pub(crate) fn block_size(&self) -> u32 {
        self.limits.block_size()
    }
}
