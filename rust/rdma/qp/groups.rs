// SPDX-License-Identifier: GPL-2.0

//! The multicast groups that a queue pair is attached to.
//!
//! C: `ib_attach_mcast` and `ib_detach_mcast`
//!
//! The core counts attachments, and does not destroy a queue pair that has some. A
//! device may take a second one to the same group for success without making any, so
//! that one of the two could never be undone: it is refused here.

use super::{
    QpContext,
    QueuePair,
    Ud, //
};
use crate::{
    bindings,
    rdma::device::Gid, //
};
use kernel::{
    error::to_result,
    new_mutex,
    prelude::*,
    sync::Mutex, //
};

/// A group, as a queue pair is attached to it.
#[derive(Clone, Copy)]
pub(in crate::rdma) struct Group {
    pub(in crate::rdma) gid: Gid,
    /// The local identifier; 0 with RoCE. That of a group is one on a port, and a queue
    /// pair is on one port, so the GID alone says which group it is.
    pub(in crate::rdma) lid: u16,
}

/// The groups that a queue pair is attached to.
#[pin_data]
pub(super) struct Groups {
    #[pin]
    attached: Mutex<KVec<Gid>>,
}

impl Groups {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            attached <- new_mutex!(KVec::new(), "rrdma::qp::Groups"),
        })
    }
}

impl<E: QpContext<QpType = Ud>> QueuePair<E> {
    /// Attaches it to a group (`ib_attach_mcast`). Whoever does keeps it, and
    /// [detaches](Self::detach) it. Sleeps.
    ///
    /// # Errors
    ///
    /// `EEXIST` if it is attached to the group, `ENOMEM`, or what the device answers.
    pub(in crate::rdma) fn attach(&self, group: Group) -> Result {
        let mut attached = self.groups.attached.lock();
        if attached.contains(&group.gid) {
            return Err(EEXIST);
        }
        attached.reserve(1, GFP_KERNEL)?;
        let mut gid = group.gid.as_raw();
        // SAFETY: The queue pair is alive; the GID is only read.
        to_result(unsafe { bindings::ib_attach_mcast(self.as_raw(), &mut gid, group.lid) })?;
        // There is room for it.
        attached.push(group.gid, GFP_KERNEL)?;
        Ok(())
    }

    /// Detaches it from a group that it is attached to (`ib_detach_mcast`). Sleeps.
    pub(in crate::rdma) fn detach(&self, group: Group) {
        let mut attached = self.groups.attached.lock();
        let mut gid = group.gid.as_raw();
        // SAFETY: The queue pair is alive; the GID is only read.
        let errno = unsafe { bindings::ib_detach_mcast(self.as_raw(), &mut gid, group.lid) };
        match to_result(errno) {
            Ok(()) => attached.retain(|gid| *gid != group.gid),
            Err(error) => pr_err!(
                "{}: queue pair {}: cannot leave {}: {error:?}\n",
                self.device().name(),
                self.number(),
                group.gid
            ),
        }
    }
}
