// SPDX-License-Identifier: GPL-2.0

//! The identifiers of the namespaces that have disks, of all controllers.
//!
//! Who opens a disk by an identifier, as in `/dev/disk/by-id`, must not get the data of another
//! subsystem. If namespaces of two subsystems have the same identifier, only the first one gets a
//! disk. The disks of one subsystem are the same data, by whatever controller;
//! [`nvme_proto::policy::duplicate_ids`] sees to it that one controller has no two of them.

use crate::name::{
    disk_name,
    DiskName, //
};
use kernel::{
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        Arc,
        Mutex, //
    },
};
use nvme_proto::format::identify::Wwid;
use rrdma::memory;

/// The identifiers that are in use.
///
/// Its lock is a leaf, under which nothing waits for I/O: reconnecting takes it.
#[pin_data]
pub(crate) struct IdRegistry {
    #[pin]
    entries: Mutex<KVec<IdEntry>>,
}

struct IdEntry {
    owner: Arc<IdOwner>,
    wwid: Wwid,
}

/// A controller in the registry.
pub(crate) struct IdOwner {
    registry: Arc<IdRegistry>,
    /// The name of the subsystem.
    subsystem: CString,
    /// The number of the controller.
    number: u32,
}

/// Reserves the identifiers of a namespace until it is dropped.
pub(crate) struct IdReservation {
    owner: Arc<IdOwner>,
    nsid: u32,
}

impl Drop for IdReservation {
    fn drop(&mut self) {
        let (owner, nsid) = (&self.owner, self.nsid);
        owner.registry.with(|entries| {
            entries.retain(|one| one.wwid.nsid != nsid || !Arc::ptr_eq(&one.owner, owner));
        });
    }
}

impl IdRegistry {
    /// An empty registry. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                entries <- new_mutex!(KVec::new(), "rnvmf::IdRegistry::entries"),
            }),
            GFP_KERNEL,
        )
    }

    /// Locks the entries; allocations do not wait for I/O.
    fn with<R>(&self, act: impl FnOnce(&mut KVec<IdEntry>) -> R) -> R {
        memory::without_io(|| act(&mut self.entries.lock()))
    }
}

impl IdOwner {
    /// The controller of this number, of a subsystem. May sleep.
    pub(crate) fn new(
        registry: Arc<IdRegistry>,
        subsystem: &str,
        number: u32,
    ) -> Result<Arc<Self>> {
        let owner = Self {
            registry,
            subsystem: CString::try_from_fmt(fmt!("{subsystem}"))?,
            number,
        };
        Ok(Arc::new(owner, GFP_KERNEL)?)
    }

    /// The name of the disk of a namespace.
    pub(super) fn disk_name(&self, nsid: u32) -> DiskName {
        disk_name(self.number, nsid)
    }

    /// The disk of another subsystem that has one of these identifiers. Sleeps, but not for I/O.
    pub(super) fn conflict(&self, wwid: &Wwid) -> Option<DiskName> {
        self.registry
            .with(|entries| self.conflict_in(entries, wwid))
    }

    fn conflict_in(&self, entries: &[IdEntry], wwid: &Wwid) -> Option<DiskName> {
        let mut others = entries
            .iter()
            .filter(|one| *one.owner.subsystem != *self.subsystem);
        let other = others.find(|one| one.wwid.shares_id_with(wwid))?;
        Some(other.owner.disk_name(other.wwid.nsid))
    }

    /// Reserves the identifiers of a namespace for which nothing is reserved. Sleeps, but not for
    /// I/O.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there is a [`conflict`](Self::conflict); `ENOMEM`.
    pub(super) fn reserve(self: &Arc<Self>, wwid: &Wwid) -> Result<IdReservation> {
        self.registry.with(|entries| {
            if self.conflict_in(entries, wwid).is_some() {
                return Err(EEXIST);
            }
            let entry = IdEntry {
                owner: self.clone(),
                wwid: *wwid,
            };
            entries.push(entry, GFP_KERNEL)?;
            Ok(IdReservation {
                owner: self.clone(),
                nsid: wwid.nsid,
            })
        })
    }
}
