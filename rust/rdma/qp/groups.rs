// SPDX-License-Identifier: GPL-2.0

//! Multicast groups that a queue pair is attached to.
//!
//! C: `ib_attach_mcast` and `ib_detach_mcast` in `drivers/infiniband/core/verbs.c`
//!
//! The core counts the attachments of a queue pair and does not destroy a queue pair that has any.
//! A device may accept a second attachment to the same group without making one. Only one detach
//! then succeeds, and the core's count never returns to zero. So a second attachment is refused
//! here.

use super::{
    QpContext,
    QueuePair,
    Ud, //
};
use crate::{
    bindings,
    rdma::device::Gid,
    sync::new_mutex, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Mutex, //
};

/// A multicast group, as a queue pair is attached to it.
#[derive(Clone, Copy)]
pub(in crate::rdma) struct Group {
    pub(in crate::rdma) gid: Gid,
    /// Local identifier of the group; 0 with RoCE. It is not part of the identity of a group: a
    /// queue pair is on one port, and there the GID alone identifies the group.
    pub(in crate::rdma) lid: u16,
}

/// The groups that a queue pair is attached to, by their GID.
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
    /// Attaches the queue pair to a group (`ib_attach_mcast`). The caller must hold a reference to
    /// the queue pair until it [detaches](Self::detach) it. May sleep.
    ///
    /// # Errors
    ///
    /// - `EEXIST`: the queue pair is attached to the group already.
    /// - `ENOMEM`, or any error of the driver.
    pub(in crate::rdma) fn attach(&self, group: Group) -> Result {
        let mut attached = self.groups.attached.lock();
        if attached.contains(&group.gid) {
            return Err(EEXIST);
        }
        attached.reserve(1, GFP_KERNEL)?;
        let mut gid = group.gid.as_raw();
        // SAFETY: The queue pair is alive, and `gid` is valid for the call.
        to_result(unsafe { bindings::ib_attach_mcast(self.as_raw(), &mut gid, group.lid) })?;
        // Capacity was reserved above.
        attached.push(group.gid, GFP_KERNEL)?;
        Ok(())
    }

    /// Detaches the queue pair from a group (`ib_detach_mcast`). Tries until it succeeds, as a queue
    /// pair that is attached cannot be destroyed. Sleeps.
    pub(in crate::rdma) fn detach(&self, group: Group) {
        let mut attached = self.groups.attached.lock();
        let mut gid = group.gid.as_raw();
        self.device().insist("leave a multicast group", || {
            // SAFETY: The queue pair is alive, and `gid` is valid for the call.
            unsafe { bindings::ib_detach_mcast(self.as_raw(), &mut gid, group.lid) }
        });
        attached.retain(|gid| *gid != group.gid);
    }
}
