// SPDX-License-Identifier: GPL-2.0

//! What identifies the namespaces that have disks, of all controllers.
//!
//! Whoever looks for a disk by an identifier, as in `/dev/disk/by-id`, must not find another
//! subsystem's data. So of two subsystems that have a namespace of the same identifier only one
//! has a disk of it: that which had it first. Disks of one subsystem, by whatever controllers, are
//! the same data; that one controller has no two of them is settled by
//! [`nvme_proto::policy::duplicates`].

use crate::{
    controller::Controller,
    namespace::disk_name, //
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
pub(crate) struct Identities {
    #[pin]
    taken: Mutex<KVec<Taken>>,
}

struct Taken {
    controller: Arc<Controller>,
    wwid: Wwid,
}

/// The identifiers of a namespace are taken, until this is dropped.
pub(crate) struct Identity {
    controller: Arc<Controller>,
    nsid: u32,
}

impl Drop for Identity {
    fn drop(&mut self) {
        self.controller.host.identities.release(self);
    }
}

impl Identities {
    /// None is.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            taken <- new_mutex!(KVec::new(), "rnvmf::Identities::taken"),
        })
    }

    /// The disk of another subsystem than the controller's that has one of these. Sleeps, but not
    /// for I/O.
    pub(crate) fn holder(&self, controller: &Controller, wwid: &Wwid) -> Option<Message<31>> {
        memory::without_io(|| holder(&self.taken.lock(), controller, wwid))
    }

    /// Takes those of a namespace that has none taken. Sleeps, but not for I/O.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there is a [`holder`](Self::holder); `ENOMEM`.
    pub(crate) fn take(&self, controller: &Arc<Controller>, wwid: &Wwid) -> Result<Identity> {
        memory::without_io(|| {
            let mut taken = self.taken.lock();
            if holder(&taken, controller, wwid).is_some() {
                return Err(EEXIST);
            }
            let one = Taken {
                controller: controller.clone(),
                wwid: *wwid,
            };
            taken.push(one, GFP_KERNEL)?;
            Ok(Identity {
                controller: controller.clone(),
                nsid: wwid.nsid,
            })
        })
    }

    fn release(&self, identity: &Identity) {
        let Identity { controller, nsid } = identity;
        memory::without_io(|| {
            let mut taken = self.taken.lock();
            taken.retain(|one| one.wwid.nsid != *nsid || !Arc::ptr_eq(&one.controller, controller));
        });
    }
}

fn holder(taken: &[Taken], controller: &Controller, wwid: &Wwid) -> Option<Message<31>> {
    let subsystem = controller.options.subsystem();
    let mut others = taken
        .iter()
        .filter(|one| one.controller.options.subsystem() != subsystem);
    let other = others.find(|one| one.wwid.shares_one_with(wwid))?;
    Some(disk_name(other.controller.name.number(), other.wwid.nsid))
}
