// SPDX-License-Identifier: GPL-2.0

use core::ops::Deref;

use super::*;
use crate::{
    format::identify::{NamespaceIds, Text, Wwid},
    format::sqe::Protection,
    policy::limits::block::{AtomicWriteLimits, BlockLimits},
};

/// A disk, or one that is being added.
#[derive(Debug)]
struct Disk {
    wwid: Wwid,
    limits: BlockLimits,
    gone: bool,
}

impl NsEntry for Disk {
    fn attributes(&self) -> NsAttributes<'_> {
        NsAttributes {
            wwid: &self.wwid,
            limits: &self.limits,
        }
    }

    fn is_gone(&self) -> bool {
        self.gone
    }

    fn set_gone(&mut self) {
        self.gone = true;
    }
}

/// A vector with a maximum length.
#[derive(Debug)]
struct List(Vec<Disk>, usize);

impl Deref for List {
    type Target = [Disk];

    fn deref(&self) -> &[Disk] {
        &self.0
    }
}

impl DerefMut for List {
    fn deref_mut(&mut self) -> &mut [Disk] {
        &mut self.0
    }
}

impl Storage<Disk> for List {
    type Error = ();

    fn reserve_one(&mut self) -> Result<(), ()> {
        (self.0.len() < self.1).then_some(()).ok_or(())
    }

    fn insert(&mut self, at: usize, item: Disk) {
        self.0.insert(at, item);
    }

    fn remove(&mut self, at: usize) -> Option<Disk> {
        (at < self.0.len()).then(|| self.0.remove(at))
    }
}

/// Result of a scan: disks, and errors of namespaces that the target could not identify.
#[derive(Default)]
struct Scan(Vec<Disk>, Vec<(u32, &'static str)>);

impl ScanView for Scan {
    type Error = &'static str;

    fn state(&self, nsid: u32) -> NsState<'_, &'static str> {
        if let Some((_, failure)) = self.1.iter().find(|failed| failed.0 == nsid) {
            return NsState::Unknown(failure);
        }
        let found = self.0.iter().find(|disk| disk.nsid() == nsid);
        found.map_or(NsState::Unusable, |disk| NsState::Usable(disk.attributes()))
    }
}

type Table = NsTable<List, Disk>;

const LIMITS: BlockLimits = BlockLimits {
    block_shift: 9,
    protection: Protection::None,
    capacity_sectors: 1000,
    physical_block_size: 512,
    io_min: 512,
    io_opt: 0,
    max_sectors: 2048,
    chunk_sectors: 0,
    atomic_writes: AtomicWriteLimits {
        max: 512,
        boundary: 0,
    },
    discard: None,
    max_write_zeroes_sectors: 0,
    write_zeroes_may_deallocate: false,
    write_cache: true,
    rotational: false,
    read_only: false,
};

/// Returns the disk of a namespace with the identifier `nguid`.
fn disk(nsid: u32, nguid: u8) -> Disk {
    Disk {
        wwid: Wwid {
            nsid,
            ids: NamespaceIds {
                nguid: Some([nguid; 16]),
                ..NamespaceIds::default()
            },
            vendor_id: 1,
            serial: Text::new([b's'; 20]),
            model: Text::new([b'm'; 40]),
        },
        limits: LIMITS,
        gone: false,
    }
}

/// Returns a table with disks of these namespaces, whose NGUIDs are filled with the NSID.
fn table(nsids: &[u8]) -> Table {
    let mut table = Table::new(List(Vec::new(), 8));
    for &nsid in nsids {
        table.insert(disk(nsid.into(), nsid)).unwrap();
    }
    table
}

fn scan(nsids: &[u8]) -> Scan {
    let disks = nsids.iter().map(|&nsid| disk(nsid.into(), nsid));
    Scan(disks.collect(), Vec::new())
}

/// Applies a new scan. Returns the NSIDs that it marked, and the error.
fn mark(table: &mut Table, scan: &Scan) -> (Vec<(u32, DiskStage)>, Option<&'static str>) {
    let seq = table.begin_scan();
    let mut marked = Vec::new();
    let failure = table.mark_gone(seq, scan, |one| marked.push((one.nsid, one.stage)));
    (marked, failure.unwrap().copied())
}

fn nsids(table: &Table) -> Vec<u32> {
    table.disks().iter().map(NsEntry::nsid).collect()
}

#[test]
fn disks_are_in_the_order_of_nsids() {
    let mut table = table(&[5, 1, 9, 3]);
    assert_eq!(nsids(&table), [1, 3, 5, 9]);
    assert_eq!(table.remove(|disk| disk.nsid() > 1).unwrap().nsid(), 3);
    assert!(table.remove(NsEntry::is_gone).is_none());
    assert_eq!(nsids(&table), [1, 5, 9]);
    assert_eq!(table.get(5).unwrap().nsid(), 5);
    assert!(table.get(3).is_none());
    // The disk of a new namespace follows one of the same NSID that is gone but still in use.
    table.insert(disk(5, 7)).unwrap();
    let nguids = table.disks().iter().map(|disk| disk.wwid.ids.nguid);
    assert!(nguids.eq([1, 5, 7, 9].map(|byte| Some([byte; 16]))));
}

#[test]
fn pending_disk_counts_as_a_disk() {
    let mut table = table(&[2, 6]);
    let seq = table.begin_scan();
    table.begin_pending(seq, disk(4, 4)).unwrap();
    assert!(table.contains(4) && table.is_usable(4));
    assert!(table.get(4).is_none());
    let after = [0, 2, 4, 6].map(|nsid| table.next_after(nsid));
    assert_eq!(after, [Some(2), Some(4), Some(6), None]);
    table.end_pending(4);
    assert!(!table.contains(4));
    assert_eq!(table.next_after(2), Some(6));
}

#[test]
fn disks_are_added_at_the_same_time() {
    let mut table = table(&[1]);
    let seq = table.begin_scan();
    let most = u8::try_from(MAX_PENDING).unwrap();
    for nsid in 2..2 + most {
        table.begin_pending(seq, disk(nsid.into(), nsid)).unwrap();
    }
    assert_eq!(table.count(), 1 + MAX_PENDING);
    assert_eq!(
        table.begin_pending(seq, disk(99, 99)),
        Err(PendingError::Busy)
    );
    // A disk that is there and still pending counts once.
    table.insert(disk(3, 3)).unwrap();
    assert_eq!(table.count(), 1 + MAX_PENDING);
    assert!(table.remove(|disk| disk.nsid() == 3).is_some());
    table.end_pending(3);
    assert!(!table.contains(3) && table.contains(2) && table.contains(4));
    assert_eq!(
        table.begin_pending(seq, disk(1, 1)),
        Err(PendingError::Exists)
    );
    assert_eq!(
        table.begin_pending(seq, disk(2, 9)),
        Err(PendingError::Exists)
    );
    table.begin_pending(seq, disk(99, 99)).unwrap();
    // A scan without the namespaces applies to each.
    let gone: Vec<_> = mark(&mut table, &scan(&[1, 2]))
        .0
        .iter()
        .map(|one| one.0)
        .collect();
    assert_eq!(
        gone,
        [99].into_iter()
            .chain(4..2 + u32::from(most))
            .collect::<Vec<_>>()
    );
}

#[test]
fn later_scan_supersedes() {
    let mut table = table(&[1]);
    let (first, second) = (table.begin_scan(), table.begin_scan());
    let one = scan(&[1]);
    assert_eq!(table.mark_gone(second, &one, |_| ()), Ok(None));
    assert_eq!(table.apply(second), Ok(()));
    let mut marked = 0;
    let nothing = scan(&[]);
    let result = table.mark_gone(first, &nothing, |_| marked += 1);
    assert_eq!((result, marked), (Err(Superseded), 0));
    let late = table.begin_pending(first, disk(2, 2));
    assert_eq!(late, Err(PendingError::Superseded));
    assert!(table.is_usable(1) && !table.contains(2));
    // A scan that only began does not supersede another.
    let _ = table.begin_scan();
    assert_eq!(table.apply(second), Ok(()));
}

#[test]
fn missing_namespace_of_a_disk_that_is_not_gone() {
    let mut table = table(&[1, 2]);
    assert!(table.misses_namespace(&scan(&[1])));
    assert!(!table.misses_namespace(&scan(&[1, 2, 3])));
    // Another or an unknown namespace is not missing.
    let others = Scan(vec![disk(1, 9)], vec![(2, "not now")]);
    assert!(!table.misses_namespace(&others));
    table.get_mut(2).unwrap().set_gone();
    assert!(!table.misses_namespace(&scan(&[1])));
}

#[test]
fn missing_or_other_namespace_loses_its_disk_once() {
    let mut table = table(&[1, 2, 3]);
    let found = Scan(vec![disk(1, 1), disk(3, 9)], Vec::new());
    let made = |nsid| (nsid, DiskStage::Made);
    assert_eq!(mark(&mut table, &found).0, [made(2), made(3)]);
    // A namespace that returns does not revive its disk.
    assert_eq!(mark(&mut table, &scan(&[1, 2, 3])).0, []);
    assert_eq!(mark(&mut table, &scan(&[])).0, [made(1)]);
    assert!(!table.is_usable(2) && table.contains(2));
    assert_eq!(table.remove(NsEntry::is_gone).unwrap().nsid(), 1);
}

#[test]
fn unknown_namespace_keeps_its_disk() {
    let mut table = table(&[1, 2, 3]);
    let found = Scan(Vec::new(), vec![(3, "busy"), (2, "not ready")]);
    let (marked, failure) = mark(&mut table, &found);
    assert_eq!(marked, [(1, DiskStage::Made)]);
    assert_eq!(failure, Some("not ready"));
    assert!(table.is_usable(2) && table.is_usable(3));
}

#[test]
fn scan_applies_to_the_pending_disk() {
    let mut table = table(&[1]);
    let seq = table.begin_scan();
    table.begin_pending(seq, disk(2, 2)).unwrap();
    let unknown = Scan(vec![disk(1, 1)], vec![(2, "busy")]);
    assert_eq!(mark(&mut table, &unknown), (vec![], Some("busy")));
    assert!(table.is_usable(2));
    let pending = (2, DiskStage::Pending);
    assert_eq!(mark(&mut table, &scan(&[1])).0, [pending]);
    assert!(table.contains(2) && !table.is_usable(2));
}

#[test]
fn disk_that_is_gone_is_not_inserted() {
    let mut table = table(&[1]);
    let mut late = disk(2, 2);
    late.set_gone();
    let refused = table.insert(late).unwrap_err();
    assert_eq!(refused.error, InsertError::Gone);
    assert_eq!(refused.disk.nsid(), 2);
    assert_eq!(nsids(&table), [1]);
}

#[test]
fn without_memory_the_disk_comes_back() {
    let mut table = Table::new(List(Vec::new(), 0));
    let refused = table.insert(disk(7, 7)).unwrap_err();
    assert_eq!(refused.error, InsertError::Storage(()));
    assert_eq!(refused.disk.nsid(), 7);
}

#[test]
fn limits_can_change_in_place() {
    let mut table = table(&[1, 2]);
    table.get_mut(2).unwrap().limits.capacity_sectors = 1;
    assert_eq!(table.get(2).unwrap().limits.capacity_sectors, 1);
    assert_eq!(table.get(1).unwrap().limits.capacity_sectors, 1000);
    assert!(table.get_mut(3).is_none());
    for disk in table.disks_mut() {
        disk.limits.read_only = true;
    }
    assert!(table.disks().iter().all(|disk| disk.limits.read_only));
}
