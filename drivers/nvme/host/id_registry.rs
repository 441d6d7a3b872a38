// SPDX-License-Identifier: GPL-2.0

//! What identifies the namespaces that have disks, of all controllers.
//!
//! Whoever looks for a disk by an identifier, as in `/dev/disk/by-id`, must not find another
//! subsystem's data. So of two subsystems that have a namespace of the same identifier only one
//! has a disk of it: that which had it first. Disks of one subsystem, by whatever controllers, are
//! the same data; that one controller has no two of them is settled by
//! [`nvme_proto::policy::duplicate_ids`].

use crate::{
    controller::Controller,
    name::disk_name, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use nvme_proto::format::identify::Wwid;
use rrdma::{
    memory,
    text::Message, //
};

/// The identifiers that are taken.
///
/// The lock is the innermost, and who has it does not wait for I/O: recovery looks at them.
#[pin_data]
pub(crate) struct IdRegistry {
    #[pin]
    entries: Mutex<KVec<IdEntry>>,
}

struct IdEntry {
    controller: Arc<Controller>,
    wwid: Wwid,
}

/// The identifiers of a namespace are taken, until this is dropped.
pub(crate) struct IdReservation {
    controller: Arc<Controller>,
    nsid: u32,
}

impl Drop for IdReservation {
    fn drop(&mut self) {
        self.controller.services.ids.remove(self);
    }
}

impl IdRegistry {
    /// None is.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            entries <- new_mutex!(KVec::new(), "rnvmf::IdRegistry::entries"),
        })
    }

    /// The disk of another subsystem than the controller's that has one of these. Sleeps, but not
    /// for I/O.
    pub(crate) fn holder(&self, controller: &Controller, wwid: &Wwid) -> Option<Message<31>> {
        memory::without_io(|| holder(&self.entries.lock(), controller, wwid))
    }

    /// Takes those of a namespace that has none taken. Sleeps, but not for I/O.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there is a [`holder`](Self::holder); `ENOMEM`.
    pub(crate) fn insert(
        &self,
        controller: &Arc<Controller>,
        wwid: &Wwid,
    ) -> Result<IdReservation> {
        memory::without_io(|| {
            let mut entries = self.entries.lock();
            if holder(&entries, controller, wwid).is_some() {
                return Err(EEXIST);
            }
            let one = IdEntry {
                controller: controller.clone(),
                wwid: *wwid,
            };
            entries.push(one, GFP_KERNEL)?;
            Ok(IdReservation {
                controller: controller.clone(),
                nsid: wwid.nsid,
            })
        })
    }

    fn remove(&self, identity: &IdReservation) {
        let IdReservation { controller, nsid } = identity;
        memory::without_io(|| {
            let mut entries = self.entries.lock();
            entries
                .retain(|one| one.wwid.nsid != *nsid || !Arc::ptr_eq(&one.controller, controller));
        });
    }
}

fn holder(entries: &[IdEntry], controller: &Controller, wwid: &Wwid) -> Option<Message<31>> {
    let subsystem = controller.options.subsystem();
    let mut others = entries
        .iter()
        .filter(|one| one.controller.options.subsystem() != subsystem);
    let other = others.find(|one| one.wwid.shares_id_with(wwid))?;
    Some(disk_name(other.controller.name.number(), other.wwid.nsid))
}
