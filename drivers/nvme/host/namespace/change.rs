// SPDX-License-Identifier: GPL-2.0

//! What happens to the disks of a controller.

use crate::event::NsInfo;
use nvme_proto::policy::ns_table::MarkedGone;

/// A change of the disks of a controller.
pub(crate) enum NsChange<'a> {
    /// A disk was added.
    Added(&'a NsInfo),
    /// A disk has another capacity or write protection.
    Resized(&'a NsInfo),
    /// A disk has other limits.
    LimitsChanged { nsid: u32 },
    /// A disk refuses all I/O from now on, as its namespace is not there any more. The set is
    /// locked.
    MarkedGone(MarkedGone),
    /// A disk refuses all I/O from now on, as a command may be changing its namespace. The set is
    /// locked.
    MayChange { nsid: u32 },
    /// A disk was removed.
    Removed(&'a NsInfo),
}

/// Who is told of changes.
pub(crate) trait NsObserver {
    /// The disks changed. May sleep, but where the set is locked not for I/O.
    fn notify(&self, change: NsChange<'_>);
}
