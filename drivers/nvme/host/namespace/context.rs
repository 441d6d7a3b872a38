// SPDX-License-Identifier: GPL-2.0

//! What a scan, and a disk, need to know of the controller.

use crate::disk::Io;
use kernel::sync::Arc;
use nvme_proto::format::{identify, property::Version};
use rrdma::block::TagSet;

/// What a scan, and a disk, need to know of a controller that is connected.
pub(crate) struct NsContext {
    /// Shared by all disks of the controller.
    pub(crate) tag_set: Arc<TagSet<Io>>,
    pub(crate) identity: Arc<identify::Controller>,
    pub(crate) version: Version,
    /// Size of the controller's smallest page, as a power of two.
    pub(crate) min_page_shift: u8,
    /// Most sectors of a command.
    pub(crate) max_sectors: u32,
    /// Most pieces of memory of a command.
    pub(crate) max_segments: u16,
}
