// SPDX-License-Identifier: GPL-2.0

//! Properties of the controller for scans and disks.

use crate::disk::Io;
use kernel::sync::Arc;
use nvme_proto::format::{identify, property::Version};
use rrdma::block::TagSet;

/// Properties of a connected controller for scans and disks.
pub(crate) struct NsContext {
    /// Shared by all disks of the controller.
    pub(crate) tag_set: Arc<TagSet<Io>>,
    pub(crate) identity: Arc<identify::Controller>,
    pub(crate) version: Version,
    /// Smallest memory page size of the controller (`CAP.MPSMIN`), as a power of two.
    pub(crate) min_page_shift: u8,
    /// Most sectors of 512 bytes in a command.
    pub(crate) max_sectors: u32,
    /// Most memory segments in a command.
    pub(crate) max_segments: u16,
}
