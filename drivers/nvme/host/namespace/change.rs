// SPDX-License-Identifier: GPL-2.0

//! Changes of the disks of a controller, and their observer.

use crate::event::NsInfo;
use nvme_proto::policy::ns_table::MarkedGone;

/// A change of the disks of a controller.
pub(crate) enum NsChange<'a> {
    /// A disk was added.
    Added(&'a NsInfo),
    /// The capacity or the write protection of a disk changed.
    Resized(&'a NsInfo),
    /// The limits of a disk changed.
    LimitsChanged { nsid: u32 },
    /// A disk refuses all I/O from now on, because its namespace is gone or was replaced. Sent with
    /// the set locked.
    MarkedGone(MarkedGone),
    /// A disk refuses all I/O from now on, because a command may have changed its namespace. Sent
    /// with the set locked.
    MayChange { nsid: u32 },
    /// A disk was removed.
    Removed(&'a NsInfo),
}

/// Observes changes of the disks.
pub(crate) trait NsObserver {
    /// Called for each change. May sleep, but must not wait for I/O if the set is locked.
    fn notify(&self, change: NsChange<'_>);
}
