// SPDX-License-Identifier: GPL-2.0

//! Disks of a controller, and how scans are applied to them.
//!
//! A scan that began later has newer results, so a scan is applied only if no later one was.
//! [`ScanSeq`] numbers them. While a disk is being added, its I/O may already reach the target. The
//! table has a pending entry for each such disk, and scans apply to those, too.

use core::ops::DerefMut;

use crate::policy::{
    ns_scan::{
        NsState,
        ScanView, //
    },
    revalidate::{
        NsAttributes,
        RemoveReason,
        Revalidation, //
    },
};

/// A disk of the table, or one that is being added.
pub trait NsEntry {
    /// Returns the attributes of the namespace with which the disk was created.
    fn attributes(&self) -> NsAttributes<'_>;

    /// Returns whether the disk refuses all I/O, because the target no longer has its namespace.
    fn is_gone(&self) -> bool;

    /// Makes the disk refuse all I/O.
    fn set_gone(&mut self);

    /// Returns the NSID.
    fn nsid(&self) -> u32 {
        self.attributes().wwid.nsid
    }
}

/// A vector whose growth may fail.
pub trait Storage<T> {
    /// Error of an allocation.
    type Error;

    /// Reserves room for one more element.
    ///
    /// # Errors
    ///
    /// There is no memory.
    fn reserve_one(&mut self) -> Result<(), Self::Error>;

    /// Inserts `item` at index `at`, which is at most the length. Room must be reserved.
    fn insert(&mut self, at: usize, item: T);

    /// Removes and returns the element at index `at`; `None` if `at` is not below the length.
    fn remove(&mut self, at: usize) -> Option<T>;
}

/// Sequence number of a scan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct ScanSeq(u64);

/// Most disks that are being added at the same time.
pub const MAX_PENDING: usize = 8;

/// A later scan was applied already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Superseded;

/// A disk that was not inserted, with the reason.
#[derive(Debug)]
pub struct NotInserted<D, E> {
    /// The disk.
    pub disk: D,
    /// The reason.
    pub error: InsertError<E>,
}

/// Reason why a disk was not inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertError<E> {
    /// A scan found meanwhile that the namespace is gone.
    Gone,
    /// The storage did not grow.
    Storage(E),
}

/// Whether a disk is added, or is still being added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskStage {
    /// It is being added.
    Pending,
    /// It is added.
    Made,
}

/// A disk that refuses all I/O from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkedGone {
    /// NSID of its namespace.
    pub nsid: u32,
    /// The reason.
    pub reason: RemoveReason,
    /// Whether the disk is added.
    pub stage: DiskStage,
}

/// Reason why no pending entry was added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PendingError {
    /// A later scan was applied.
    Superseded,
    /// The namespace has a disk, or one is being added.
    Exists,
    /// [`MAX_PENDING`] disks are being added.
    Busy,
}

impl From<Superseded> for PendingError {
    fn from(_: Superseded) -> Self {
        Self::Superseded
    }
}

/// Disks of a controller in the order of NSIDs, and those that are being added.
#[derive(Debug)]
pub struct NsTable<S, P> {
    disks: S,
    pending: [Option<P>; MAX_PENDING],
    /// Last scan that began.
    begun: ScanSeq,
    /// Last scan that was applied.
    applied: ScanSeq,
}

impl<D: NsEntry + 'static, S: Storage<D> + DerefMut<Target = [D]>, P: NsEntry> NsTable<S, P> {
    /// Returns a table without disks.
    pub const fn new(storage: S) -> Self {
        Self {
            disks: storage,
            pending: [const { None }; MAX_PENDING],
            begun: ScanSeq(0),
            applied: ScanSeq(0),
        }
    }

    /// Returns the disks, in the order of NSIDs.
    pub fn disks(&self) -> &[D] {
        &self.disks
    }

    /// Returns the disks, to be changed. The NSID of a disk must stay the same.
    pub fn disks_mut(&mut self) -> &mut [D] {
        &mut self.disks
    }

    /// Returns the disk of a namespace.
    pub fn get(&self, nsid: u32) -> Option<&D> {
        self.disks().iter().find(|disk| disk.nsid() == nsid)
    }

    /// Returns the disk of a namespace, to be changed. Its NSID must stay the same.
    pub fn get_mut(&mut self, nsid: u32) -> Option<&mut D> {
        self.disks.iter_mut().find(|disk| disk.nsid() == nsid)
    }

    /// Iterates over the NSIDs of all disks, and of the pending ones.
    fn nsids(&self) -> impl Iterator<Item = u32> + '_ {
        let made = self.disks().iter().map(NsEntry::nsid);
        Iterator::chain(made, self.pending().map(NsEntry::nsid))
    }

    fn pending(&self) -> impl Iterator<Item = &P> + '_ {
        self.pending.iter().flatten()
    }

    /// Returns the number of disks, with those that are being added. A pending entry may remain for
    /// a moment when its disk is there.
    pub fn count(&self) -> usize {
        let pending = self
            .pending()
            .filter(|pending| self.get(pending.nsid()).is_none());
        // `Iterator::count` may panic.
        pending.fold(self.disks().len(), |count, _| count.saturating_add(1))
    }

    /// Returns whether a namespace has a disk, or one is being added.
    pub fn contains(&self, nsid: u32) -> bool {
        self.nsids().any(|other| other == nsid)
    }

    /// Returns whether a namespace has a disk that is not gone, or one is being added.
    pub fn is_usable(&self, nsid: u32) -> bool {
        let mut made = self.disks().iter();
        let mut pending = self.pending();
        made.any(|disk| disk.nsid() == nsid && !disk.is_gone())
            || pending.any(|pending| pending.nsid() == nsid && !pending.is_gone())
    }

    /// Returns the first NSID after `nsid` that has a disk, or for which one is being added.
    pub fn next_after(&self, nsid: u32) -> Option<u32> {
        self.nsids().filter(|next| *next > nsid).min()
    }

    /// Begins a scan, and returns its number.
    pub fn begin_scan(&mut self) -> ScanSeq {
        self.begun = ScanSeq(self.begun.0.wrapping_add(1));
        self.begun
    }

    /// Records that a step of the scan `seq` is applied.
    ///
    /// # Errors
    ///
    /// [`Superseded`] if a later scan was applied.
    pub fn apply(&mut self, seq: ScanSeq) -> Result<(), Superseded> {
        if seq < self.applied {
            return Err(Superseded);
        }
        self.applied = seq;
        Ok(())
    }

    /// Makes disks refuse all I/O whose namespaces are gone according to the scan `seq`, and calls
    /// `marked` for each.
    ///
    /// The disk of a namespace that the target could not identify stays as it is. Returns the error
    /// of the first such namespace.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply).
    pub fn mark_gone<'s, V: ScanView>(
        &mut self,
        seq: ScanSeq,
        scan: &'s V,
        mut marked: impl FnMut(MarkedGone),
    ) -> Result<Option<&'s V::Error>, Superseded> {
        self.apply(seq)?;
        let mut failure = None;
        for pending in self.pending.iter_mut().flatten() {
            let said = mark(pending, DiskStage::Pending, scan, &mut marked);
            failure = failure.or(said);
        }
        for disk in self.disks.iter_mut() {
            let said = mark(disk, DiskStage::Made, scan, &mut marked);
            failure = failure.or(said);
        }
        Ok(failure)
    }

    /// Returns whether a disk that is not gone would be, because the scan has no usable namespace for
    /// it. Another scan may find the namespace: a target may list its namespaces only a moment after
    /// it accepts connections.
    pub fn misses_namespace<V: ScanView>(&self, scan: &V) -> bool {
        let mut disks = self.disks().iter().filter(|disk| !disk.is_gone());
        disks.any(|disk| matches!(scan.state(disk.nsid()), NsState::Unusable))
    }

    /// Adds the pending entry of a disk for a namespace that the scan `seq` found. Later scans
    /// apply to it until [`end_pending`](Self::end_pending).
    ///
    /// # Errors
    ///
    /// [`PendingError`].
    pub fn begin_pending(&mut self, seq: ScanSeq, pending: P) -> Result<(), PendingError> {
        self.apply(seq)?;
        if self.contains(pending.nsid()) {
            return Err(PendingError::Exists);
        }
        let mut places = self.pending.iter_mut();
        let place = places.find(|place| place.is_none());
        *place.ok_or(PendingError::Busy)? = Some(pending);
        Ok(())
    }

    /// Removes the pending entry of a namespace.
    pub fn end_pending(&mut self, nsid: u32) {
        for place in &mut self.pending {
            if place.as_ref().is_some_and(|pending| pending.nsid() == nsid) {
                *place = None;
            }
        }
    }

    /// Inserts a disk in the order of NSIDs.
    ///
    /// # Errors
    ///
    /// [`NotInserted`] returns the disk, because dropping it may wait for I/O that needs the lock
    /// of the table.
    pub fn insert(&mut self, disk: D) -> Result<(), NotInserted<D, S::Error>> {
        let error = match self.disks.reserve_one() {
            _ if disk.is_gone() => InsertError::Gone,
            Err(error) => InsertError::Storage(error),
            Ok(()) => {
                let after = self.disks().iter().position(|d| d.nsid() > disk.nsid());
                let at = after.unwrap_or(self.disks().len());
                self.disks.insert(at, disk);
                return Ok(());
            }
        };
        Err(NotInserted { disk, error })
    }

    /// Removes and returns the first disk for which `which` returns true.
    pub fn remove(&mut self, which: impl Fn(&D) -> bool) -> Option<D> {
        let at = self.disks().iter().position(which)?;
        self.disks.remove(at)
    }
}

/// Makes a disk refuse all I/O if its namespace is gone, and calls `marked` unless it did before.
/// Returns the error if the target could not identify the namespace.
fn mark<'s, E: NsEntry, V: ScanView>(
    entry: &mut E,
    stage: DiskStage,
    scan: &'s V,
    marked: &mut impl FnMut(MarkedGone),
) -> Option<&'s V::Error> {
    let nsid = entry.nsid();
    let now = match scan.state(nsid) {
        NsState::Unknown(failure) => return Some(failure),
        NsState::Usable(now) => Some(now),
        NsState::Unusable => None,
    };
    if let Revalidation::Remove(reason) = Revalidation::of(entry.attributes(), now) {
        if !entry.is_gone() {
            marked(MarkedGone {
                nsid,
                reason,
                stage,
            });
        }
        entry.set_gone();
    }
    None
}

#[cfg(test)]
mod tests;
