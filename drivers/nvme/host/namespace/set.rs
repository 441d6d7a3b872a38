// SPDX-License-Identifier: GPL-2.0

//! The disks of a controller, and their changes.

use super::{
    error::{
        disk_error,
        ScanError, //
    },
    id_registry::{
        IdOwner,
        IdReservation, //
    },
    partitions::Partitions,
};
use crate::{
    event::NsInfo, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
        Mutex, //
    },
};
use nvme_proto::{
    format::{
        identify::{
            NamespaceIds,
            Wwid, //
        },
        sqe::ALL_NAMESPACES,
    },
    policy::{
        limits::block::BlockLimits,
        ns_table::{
            InsertError,
            MarkedGone,
            NotInserted,
            NsEntry,
            NsTable,
            PendingError,
            ScanSeq,
            Storage, //
        },
        revalidate::NsAttributes,
    },
};
use rnvmf_disk::{
    DiskName,
    DiskState,
    Io, //
};
use rrdma::{
    block::{
        Disk,
        DiskUse,
        Openers, //
    },
    memory,
    sync::{
        OwnedQueue,
        WorkKind, //
    },
};

/// Most disks of a controller. Limits the memory that a hostile target can make the host allocate.
pub(super) const MAX_NAMESPACES: usize = 1024;

/// Most disks of a controller that are removed at the same time. Each waits for RCU grace periods, which
/// removals at the same time share.
const MAX_REMOVERS: u32 = 32;

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
pub(crate) trait NsObserver: Sync {
    /// Called for each change, by several threads. May sleep, but must not wait for I/O if the set is locked.
    fn notify(&self, change: NsChange<'_>);
}

/// A namespace with its disk.
pub(crate) struct Namespace {
    pub(super) limits: BlockLimits,
    /// Dropped before the disk, because a scan has a reference to it.
    pub(super) partitions: Partitions,
    /// Other references exist only while the set is locked, disks cannot be removed, or partitions
    /// are scanned.
    pub(super) disk: Arc<Disk<Io>>,
    /// Dropped after the disk, because only then may another disk have the identifiers.
    pub(super) _ids: IdReservation,
}

impl Namespace {
    /// Returns the namespace's NSID.
    pub(crate) fn nsid(&self) -> u32 {
        self.disk.data().wwid.nsid
    }

    /// Returns the namespace's identifiers.
    pub(super) fn ids(&self) -> &NamespaceIds {
        &self.disk.data().wwid.ids
    }

    /// Returns the properties of the namespace that user space sees.
    #[inline(never)]
    pub(crate) fn info(&self) -> NsInfo {
        NsInfo {
            nsid: self.nsid(),
            name: self.disk.data().name,
            size: self.disk.capacity().saturating_mul(512),
            ids: *self.ids(),
            limits: self.limits,
            usage: self.disk.usage(),
        }
    }
}

impl NsEntry for Namespace {
    fn attributes(&self) -> NsAttributes<'_> {
        NsAttributes {
            wwid: &self.disk.data().wwid,
            limits: &self.limits,
        }
    }

    fn is_gone(&self) -> bool {
        self.disk.data().state.is_gone()
    }

    fn set_gone(&mut self) {
        self.disk.data().state.set_gone();
    }
}

/// A namespace whose disk is being created.
pub(super) struct PendingDisk {
    /// On the heap, because the table moves on the stack when it is created.
    attributes: KBox<PendingAttributes>,
    /// Shared with the disk.
    state: Arc<DiskState>,
}

struct PendingAttributes {
    wwid: Wwid,
    limits: BlockLimits,
}

impl NsEntry for PendingDisk {
    fn attributes(&self) -> NsAttributes<'_> {
        NsAttributes {
            wwid: &self.attributes.wwid,
            limits: &self.attributes.limits,
        }
    }

    fn is_gone(&self) -> bool {
        self.state.is_gone()
    }

    fn set_gone(&mut self) {
        self.state.set_gone();
    }
}

/// Counts added and removed controllers and disks.
pub(crate) struct ChangeCount(Atomic<u32>);

impl ChangeCount {
    /// Returns a count of 1, because 0 is no generation.
    pub(crate) fn new() -> Self {
        Self(Atomic::new(1))
    }

    /// Counts a change. The list that changes is locked.
    pub(crate) fn count(&self) {
        self.0.add(1, ordering::Relaxed);
    }

    /// Returns the number of changes; wraps around. Any context.
    pub(crate) fn get(&self) -> u32 {
        self.0.load(ordering::Relaxed)
    }
}

impl Storage<Namespace> for KVec<Namespace> {
    type Error = Error;

    fn reserve_one(&mut self) -> Result {
        Ok(self.reserve(1, GFP_KERNEL)?)
    }

    fn insert(&mut self, at: usize, item: Namespace) {
        // The storage has room, so this does not fail.
        let _ = self.insert_within_capacity(at, item);
    }

    fn remove(&mut self, at: usize) -> Option<Namespace> {
        KVec::remove(self, at).ok()
    }
}

/// The disks by NSID, and those being created.
type DiskTable = NsTable<KVec<Namespace>, PendingDisk>;

/// The disks of a controller. They outlive a lost connection.
///
/// Reconnecting takes the lock while I/O is quiesced. So code under the lock must not wait for I/O,
/// and must not drop a disk, which waits for I/O.
#[pin_data]
pub(crate) struct NamespaceSet {
    ids: Arc<IdOwner>,
    changes: Arc<ChangeCount>,
    openers: Arc<Openers>,
    #[pin]
    table: Mutex<DiskTable>,
}

impl NamespaceSet {
    /// Returns an empty set. `ids` is the controller in the registry of identifiers; `openers` counts the
    /// opens of the disks.
    pub(crate) fn new(
        ids: Arc<IdOwner>,
        changes: Arc<ChangeCount>,
        openers: Arc<Openers>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            ids,
            changes,
            openers,
            table <- new_mutex!(NsTable::new(KVec::new()), "rnvmf::NamespaceSet::table"),
        })
    }

    /// Returns the controller in the registry of identifiers.
    pub(super) fn ids(&self) -> &Arc<IdOwner> {
        &self.ids
    }

    /// Returns the count of the disks' opens.
    pub(super) fn openers(&self) -> &Arc<Openers> {
        &self.openers
    }

    /// Refuses all later opens of the disks, unless one of them is open; returns whether they are refused.
    /// The caller removes the disks then. Any context.
    pub(crate) fn refuse_opens(&self) -> bool {
        self.openers.refuse_unless_open()
    }

    /// Returns the first disk that is open. Sleeps, but not for I/O.
    pub(crate) fn first_open(&self) -> Option<DiskName> {
        self.with_disks(|disks| {
            let mut open = disks
                .iter()
                .filter(|each| each.disk.usage() != DiskUse::Closed);
            open.next().map(|each| each.disk.data().name)
        })
    }

    /// Calls `act` with the disks locked. Sleeps, but not for I/O.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut DiskTable) -> R) -> R {
        memory::without_io(|| act(&mut self.table.lock()))
    }

    /// Calls `look` with the disks, by NSID. No disk of this set changes the [`ChangeCount`]
    /// during the call. Sleeps, but not for I/O.
    pub(crate) fn with_disks<R>(&self, look: impl FnOnce(&[Namespace]) -> R) -> R {
        self.with(|table| look(table.disks()))
    }

    /// Returns the number of disks. Sleeps, but not for I/O.
    pub(crate) fn count(&self) -> u32 {
        self.with_disks(|disks| u32::try_from(disks.len()).unwrap_or(u32::MAX))
    }

    /// Returns the first namespace whose partitions are being scanned. Sleeps, but not for I/O.
    pub(crate) fn first_scanning(&self) -> Option<u32> {
        self.with_disks(|disks| {
            let mut scanning = disks.iter().filter(|disk| disk.partitions.is_scanning());
            scanning.next().map(Namespace::nsid)
        })
    }

    /// Returns references to the disks. The caller keeps disks from being removed while it holds
    /// them. Sleeps, but not for I/O.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn disks(&self) -> Result<KVec<Arc<Disk<Io>>>> {
        self.with(|table| {
            let mut disks = KVec::with_capacity(table.disks().len(), GFP_KERNEL)?;
            for namespace in table.disks() {
                disks.push(namespace.disk.clone(), GFP_KERNEL)?;
            }
            Ok(disks)
        })
    }

    /// Makes the disk of namespace `named` refuse all I/O; for [`ALL_NAMESPACES`] all disks.
    /// Sleeps, but not for I/O.
    pub(crate) fn mark_may_change(&self, named: Option<u32>, observer: &dyn NsObserver) {
        self.with(|table| {
            for namespace in table.disks_mut() {
                let nsid = namespace.nsid();
                if named == Some(ALL_NAMESPACES) || named == Some(nsid) {
                    namespace.set_gone();
                    observer.notify(NsChange::MayChange { nsid });
                }
            }
        });
    }

    /// Records that a disk is being created by the scan `seq`, until the guard is dropped. Returns
    /// `None` if the namespace has a disk, or the controller has as many disks as it may. Sleeps, but
    /// not for I/O.
    ///
    /// # Errors
    ///
    /// [`ScanError::Superseded`]; out of memory; `EBUSY` if too many disks are being created.
    pub(super) fn begin_pending(
        &self,
        seq: ScanSeq,
        attributes: NsAttributes<'_>,
    ) -> Result<Option<PendingGuard<'_>>, ScanError> {
        let state = DiskState::new(attributes.limits.protection);
        let state = Arc::new(state, GFP_KERNEL).map_err(|_| disk_error(ENOMEM))?;
        let copied = PendingAttributes {
            wwid: *attributes.wwid,
            limits: *attributes.limits,
        };
        let pending = PendingDisk {
            attributes: KBox::new(copied, GFP_KERNEL).map_err(|_| disk_error(ENOMEM))?,
            state: state.clone(),
        };
        let begun = self.with(|table| {
            // The disks may belong to namespaces beyond the first `MAX_NAMESPACES` of the scan.
            match table.count() < MAX_NAMESPACES {
                true => table.begin_pending(seq, pending),
                false => Err(PendingError::Exists),
            }
        });
        match begun {
            Ok(()) => Ok(Some(PendingGuard {
                set: self,
                nsid: attributes.wwid.nsid,
                state,
            })),
            Err(PendingError::Exists) => Ok(None),
            Err(PendingError::Superseded) => Err(ScanError::Superseded),
            Err(PendingError::Busy) => Err(disk_error(EBUSY).into()),
        }
    }

    /// Adds a disk. Sleeps, for I/O too, because on an error the disk is removed.
    ///
    /// # Errors
    ///
    /// [`ScanError::Superseded`] if a later scan found meanwhile that the namespace is gone;
    /// otherwise out of memory.
    pub(super) fn add(&self, namespace: Namespace) -> Result<NsInfo, ScanError> {
        let info = namespace.info();
        let added = self.with(|table| {
            table.insert(namespace)?;
            self.changes.count();
            Ok(())
        });
        // Drops a refused disk without the lock: the drop waits for I/O, which may need the lock to
        // make progress.
        added.map_err(|refused: NotInserted<_, _>| match refused.error {
            InsertError::Gone => ScanError::Superseded,
            InsertError::Storage(error) => disk_error(error).into(),
        })?;
        Ok(info)
    }

    /// Removes all disks. The caller keeps others from changing them. Sleeps, for I/O too.
    pub(crate) fn remove_all(&self, observer: &dyn NsObserver) {
        self.remove_where(|_| true, observer);
    }

    /// Removes the disks that are marked as gone. Requirements as for
    /// [`remove_all`](Self::remove_all).
    pub(crate) fn remove_gone(&self, observer: &dyn NsObserver) {
        self.remove_where(Namespace::is_gone, observer);
    }

    fn remove_where(&self, which: fn(&Namespace) -> bool, observer: &dyn NsObserver) {
        // An allocation must not wait for the I/O of another disk of this controller, which may be
        // held until it reconnects.
        memory::without_io(|| self.remove_each(which, observer));
    }

    #[inline(never)]
    fn remove_each(&self, which: fn(&Namespace) -> bool, observer: &dyn NsObserver) {
        let removers = self.removers(which);
        let mut removed = KVVec::new();

        while let Some(namespace) = self.take(which) {
            let info = namespace.info();
            // Deletes the disk, which waits for its I/O.
            match &removers {
                // Without the memory for a work item, drops the closure and the disk here.
                Some(removers) => {
                    let _ = removers.try_spawn(GFP_KERNEL, move || drop(namespace));
                }
                None => drop(namespace),
            }
            if removed.reserve(1, GFP_KERNEL).is_err() {
                if let Some(removers) = &removers {
                    removers.flush();
                }
                observer.notify(NsChange::Removed(&info));
                continue;
            }
            let _ = removed.push_within_capacity(info);
        }
        // Waits for all work items.
        drop(removers);
        for info in &removed {
            observer.notify(NsChange::Removed(info));
        }
    }

    /// Prepares disks to be removed. If there are several, returns a workqueue to remove them, which
    /// needs memory.
    fn removers(&self, which: fn(&Namespace) -> bool) -> Option<OwnedQueue> {
        let found = self.with_disks(|disks| {
            let mut found = 0u32;

            for namespace in disks.iter().filter(|namespace| which(namespace)) {
                namespace.disk.prepare_removal();
                found = found.saturating_add(1);
            }
            found
        });

        match found {
            0 | 1 => None,
            _ => OwnedQueue::new(c"rnvmf-remove", WorkKind::MemReclaim, MAX_REMOVERS).ok(),
        }
    }

    /// Takes out the first disk for which `which` is true.
    fn take(&self, which: fn(&Namespace) -> bool) -> Option<Namespace> {
        self.with(|table| {
            let taken = table.remove(which)?;
            self.changes.count();
            Some(taken)
        })
    }
}

/// A disk is being created until this guard is dropped.
pub(super) struct PendingGuard<'a> {
    set: &'a NamespaceSet,
    nsid: u32,
    /// Shared with the disk.
    pub(super) state: Arc<DiskState>,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.set.with(|table| table.end_pending(self.nsid));
    }
}
