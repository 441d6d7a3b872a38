// SPDX-License-Identifier: GPL-2.0

//! The namespaces of a controller that have disks, and what a scan means for them.
//!
//! A scan that began later says more. So a scan is applied only as long as no later one was:
//! its numbers are [`ScanSeq`]s. While a disk is made, its I/O may reach the target already; so the
//! table has a pending entry, to which scans apply, too.

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

/// A disk of the table, or one that is being made.
pub trait NsEntry {
    /// The namespace, as its disk was made for it.
    fn attributes(&self) -> NsAttributes<'_>;

    /// Whether the disk refuses all I/O, as the target has its namespace no more.
    fn is_gone(&self) -> bool;

    /// Makes the disk refuse all I/O.
    fn set_gone(&mut self);

    /// The namespace's identifier.
    fn nsid(&self) -> u32 {
        self.attributes().wwid.nsid
    }
}

/// A list whose growth may fail.
pub trait Storage<T> {
    /// Why it did not grow.
    type Error;

    /// What is in it.
    fn as_slice(&self) -> &[T];

    /// What is in it, to be changed.
    fn as_mut_slice(&mut self) -> &mut [T];

    /// Makes room for one more.
    ///
    /// # Errors
    ///
    /// There is no memory.
    fn reserve_one(&mut self) -> Result<(), Self::Error>;

    /// Inserts `item` before place `at`, which is at most the length. There must be room for it.
    fn insert(&mut self, at: usize, item: T);

    /// Takes out what is at place `at`; `None` if that is not below the length.
    fn remove(&mut self, at: usize) -> Option<T>;
}

/// The number of a scan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct ScanSeq(u64);

/// A later scan was applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Superseded;

/// A disk that was not inserted.
#[derive(Debug)]
pub struct NotInserted<D, E> {
    /// The disk.
    pub disk: D,
    /// Why.
    pub error: InsertError<E>,
}

/// Why a disk was not inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertError<E> {
    /// A scan said meanwhile that the namespace is gone.
    Gone,
    /// The storage did not grow.
    Storage(E),
}

/// Whether a disk is there, or is still being made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskStage {
    /// It is being made.
    Pending,
    /// It is there.
    Made,
}

/// A disk was made to refuse all I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkedGone {
    /// Its namespace.
    pub nsid: u32,
    /// Why.
    pub reason: RemoveReason,
    /// Whether the disk is there.
    pub stage: DiskStage,
}

/// The disks of a controller by NSID, and the one that is being made.
#[derive(Debug)]
pub struct NsTable<D, S, P> {
    disks: S,
    pending: Option<P>,
    /// The last scan that began.
    begun: ScanSeq,
    /// The last scan that was applied.
    applied: ScanSeq,
    _entry: core::marker::PhantomData<D>,
}

impl<D: NsEntry, S: Storage<D>, P: NsEntry> NsTable<D, S, P> {
    /// A table without a disk.
    pub const fn new(storage: S) -> Self {
        Self {
            disks: storage,
            pending: None,
            begun: ScanSeq(0),
            applied: ScanSeq(0),
            _entry: core::marker::PhantomData,
        }
    }

    /// The disks, by NSID.
    pub fn disks(&self) -> &[D] {
        self.disks.as_slice()
    }

    /// The disks, to be changed: not their NSIDs.
    pub fn disks_mut(&mut self) -> &mut [D] {
        self.disks.as_mut_slice()
    }

    /// The disk of a namespace.
    pub fn get(&self, nsid: u32) -> Option<&D> {
        self.disks().iter().find(|disk| disk.nsid() == nsid)
    }

    /// The disk of a namespace, to be changed: not its NSID.
    pub fn get_mut(&mut self, nsid: u32) -> Option<&mut D> {
        let mut disks = self.disks.as_mut_slice().iter_mut();
        disks.find(|disk| disk.nsid() == nsid)
    }

    /// The NSIDs of all disks, and of the pending one.
    fn nsids(&self) -> impl Iterator<Item = u32> + '_ {
        let made = self.disks().iter().map(NsEntry::nsid);
        Iterator::chain(made, self.pending.iter().map(NsEntry::nsid))
    }

    /// Whether a namespace has a disk, or one is being made.
    pub fn contains(&self, nsid: u32) -> bool {
        self.nsids().any(|other| other == nsid)
    }

    /// Whether a namespace has a disk that is not gone, or one is being made.
    pub fn is_usable(&self, nsid: u32) -> bool {
        let mut made = self.disks().iter();
        let mut pending = self.pending.iter();
        made.any(|disk| disk.nsid() == nsid && !disk.is_gone())
            || pending.any(|pending| pending.nsid() == nsid && !pending.is_gone())
    }

    /// The first namespace after `nsid` that has a disk, or one being made.
    pub fn next_after(&self, nsid: u32) -> Option<u32> {
        self.nsids().filter(|next| *next > nsid).min()
    }

    /// Numbers a scan that begins.
    pub fn begin_scan(&mut self) -> ScanSeq {
        self.begun = ScanSeq(self.begun.0.wrapping_add(1));
        self.begun
    }

    /// A step of the scan `seq` is to be applied.
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

    /// Makes all disks refuse I/O whose namespace is not there any more by the scan `seq`, and calls
    /// `marked` for each. Returns what the target said of the first namespace that it could not
    /// identify: the disk of such a one stays as it is.
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
        if let Some(pending) = &mut self.pending {
            let said = mark(pending, DiskStage::Pending, scan, &mut marked);
            failure = failure.or(said);
        }
        for disk in self.disks.as_mut_slice() {
            let said = mark(disk, DiskStage::Made, scan, &mut marked);
            failure = failure.or(said);
        }
        Ok(failure)
    }

    /// A disk is being made for what the scan `seq` found: until [`end_pending`](Self::end_pending)
    /// later scans apply to it, too.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply).
    pub fn begin_pending(&mut self, seq: ScanSeq, pending: P) -> Result<(), Superseded> {
        self.apply(seq)?;
        self.pending = Some(pending);
        Ok(())
    }

    /// No disk is being made any more.
    pub fn end_pending(&mut self) {
        self.pending = None;
    }

    /// Inserts a disk in the order of NSIDs.
    ///
    /// # Errors
    ///
    /// See [`InsertError`]. The disk comes back, as its end may wait for I/O that needs the lock of
    /// the table.
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

    /// Takes out the first disk for which `which` is true.
    pub fn remove(&mut self, which: impl Fn(&D) -> bool) -> Option<D> {
        let at = self.disks().iter().position(which)?;
        self.disks.remove(at)
    }
}

/// Marks one disk, if its namespace is not there any more, unless it was before. Returns what the
/// target said if it could not identify the namespace.
fn mark<'s, E: NsEntry, V: ScanView>(
    entry: &mut E,
    stage: DiskStage,
    scan: &'s V,
    marked: &mut impl FnMut(MarkedGone),
) -> Option<&'s V::Error> {
    let nsid = entry.nsid();
    let now = match scan.state(nsid) {
        NsState::Unknown(failure) => return Some(failure),
        NsState::Active(now) => Some(now),
        NsState::Inactive => None,
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
