// SPDX-License-Identifier: GPL-2.0

//! Identifiers of the namespaces that have disks, of all controllers.
//!
//! A user who opens a disk by an identifier, as in `/dev/disk/by-id`, must not get the data of
//! another subsystem. If namespaces of two subsystems share an identifier, only the first one gets
//! a disk. Within a subsystem an identifier names the same data through any controller, so several
//! controllers may have disks with the same identifier. [`nvme_proto::policy::duplicate_ids`]
//! ensures that one controller has no two of them.

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
use rnvmf_disk::{
    disk_name,
    DiskName, //
};
use rrdma::memory;

/// The identifiers in use.
///
/// The lock is a leaf. Code under it must not wait for I/O, because reconnecting takes it.
#[pin_data]
pub(crate) struct IdRegistry {
    #[pin]
    entries: Mutex<KVec<IdEntry>>,
}

struct IdEntry {
    owner: Arc<IdOwner>,
    wwid: Wwid,
}

/// A controller, as the owner of identifiers.
pub(crate) struct IdOwner {
    registry: Arc<IdRegistry>,
    /// The NQN of the subsystem.
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
    /// Returns controller `number` of a subsystem as an owner of identifiers. May sleep.
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

    /// Returns the name of the disk of a namespace.
    pub(super) fn disk_name(&self, nsid: u32) -> DiskName {
        disk_name(self.number, nsid)
    }

    /// Returns the disk of another subsystem that has one of these identifiers. Sleeps, but not for
    /// I/O.
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

    /// Reserves the identifiers of a namespace that has no reservation yet. Sleeps, but not for
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
