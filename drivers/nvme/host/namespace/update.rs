// SPDX-License-Identifier: GPL-2.0

//! Updating the disks to the result of a scan.

use super::{
    error::{
        disk_error,
        ScanError, //
    },
    identify::ScannedNs,
    partitions::{
        PartitionScan,
        Partitions, //
    },
    scan::ScanResult,
    set::{
        Namespace,
        NamespaceSet,
        NsChange,
        NsObserver,
        PendingGuard, //
    },
};
use core::mem::replace;
use kernel::{
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
};
use nvme_proto::policy::{
    limits::block::BlockLimits,
    ns_table::{
        NsEntry,
        MAX_PENDING, //
    },
    revalidate::{
        self,
        Revalidation, //
    },
};
use rnvmf_disk::{
    BlockShift,
    DiskController,
    Io,
    NsDisk, //
};
use rrdma::{
    block::{
        Disk,
        DiskConfig,
        Limits, //
    },
    sync::{
        OwnedQueue,
        RelaxedBool,
        TimedCompletion,
        WorkKind, //
    },
    sysfs,
};

/// Alignment mask for the memory of a request: 4 bytes.
const DMA_ALIGNMENT: u32 = 3;

/// Number of missing disks from which several are created at the same time.
const MANY: u64 = 16;

/// Work items that create disks, besides the thread that updates them.
const MAKERS: u32 = MAX_PENDING as u32 - 1;

/// Updates the disks of a controller to the result of a scan. The result may come from an earlier
/// connection: a later scan then corrects it.
pub(crate) struct DiskUpdate<'a> {
    pub(crate) found: &'a ScanResult,
    pub(crate) set: &'a NamespaceSet,
    pub(crate) observer: &'a dyn NsObserver,
    /// The controller of new disks.
    pub(crate) controller: Arc<dyn DiskController>,
    pub(crate) parent: Option<Arc<sysfs::Device>>,
    /// Stays loaded while a new disk is open.
    pub(crate) module: &'static ThisModule,
    /// Runs a partition scan in a work item.
    pub(crate) spawn: &'a (dyn Fn(PartitionScan) -> Result + Sync),
    /// Completed when a partition scan ends.
    pub(crate) wake: &'a Arc<TimedCompletion>,
}

/// Result of [`DiskUpdate::make_disk`].
enum DiskCreation {
    Created,
    NotMissing,
}

impl DiskUpdate<'_> {
    /// Removes, changes and creates disks. The caller keeps others from doing so. Sleeps, for I/O
    /// too.
    ///
    /// # Errors
    ///
    /// The first error of the last step that failed. A failure with one disk does not keep the
    /// others from being updated.
    pub(crate) fn run(&self) -> Result<(), ScanError> {
        let gone = self.found.mark_gone(self.set, self.observer);
        self.set.remove_gone(self.observer);
        let resized = self.for_each(Self::update_capacity);
        let changed = self.for_each(Self::update_limits);
        let made = self.make_disks();
        let scanned = self.for_each(Self::scan_partitions);
        // The last step knows best whether a later scan was applied, so its error comes first.
        scanned.and(made).and(changed).and(resized).and(gone)
    }

    /// Runs a step for each usable namespace. After a failure, goes on and returns the first
    /// failure. Stops if a later scan was applied or the connection ended.
    #[inline(never)]
    fn for_each(
        &self,
        step: fn(&Self, &ScannedNs) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        let mut result = Ok(());
        for scanned in &self.found.usable {
            result = merge(result, step(self, scanned));
            if matches!(result, Err(ScanError::Superseded | ScanError::Gone)) {
                break;
            }
        }
        result
    }

    /// Updates the capacity and the write protection of a disk.
    fn update_capacity(&self, scanned: &ScannedNs) -> Result<(), ScanError> {
        let (nsid, now) = (scanned.wwid.nsid, &scanned.limits);
        let outdated = self.set.with(|table| -> Result<_, ScanError> {
            table.apply(self.found.seq)?;
            let disk = table.get(nsid).filter(|disk| {
                let now = Some(scanned.attributes());
                Revalidation::of(disk.attributes(), now) == Revalidation::Update
            });
            Ok(disk.map(|disk| (disk.disk.clone(), disk.limits)))
        })?;
        let Some((disk, before)) = outdated else {
            return Ok(());
        };
        // Without the lock: these calls may wait for I/O, I/O may wait for a reconnect, and a
        // reconnect takes the lock.
        if now.read_only != before.read_only {
            disk.set_read_only(now.read_only);
        }
        if now.capacity_sectors != before.capacity_sectors {
            disk.set_capacity(now.capacity_sectors)
                .map_err(disk_error)?;
        }
        let info = self.set.with(|table| {
            let namespace = table.get_mut(nsid)?;
            namespace.limits.capacity_sectors = now.capacity_sectors;
            namespace.limits.read_only = now.read_only;
            Some(namespace.info())
        });
        if let Some(info) = info {
            self.observer.notify(NsChange::Resized(&info));
        }
        Ok(())
    }

    /// Updates the other limits of a disk, and the number of blocks in use.
    fn update_limits(&self, scanned: &ScannedNs) -> Result<(), ScanError> {
        let nsid = scanned.wwid.nsid;
        let outdated = self.set.with(|table| -> Result<_, ScanError> {
            table.apply(self.found.seq)?;
            Ok(table.get(nsid).and_then(|disk| {
                let used_blocks = &disk.disk.data().used_blocks;
                used_blocks.store(scanned.used_blocks, ordering::Relaxed);
                let now = revalidate::updated_limits(&disk.limits, &scanned.limits)?;
                Some((disk.disk.clone(), now))
            }))
        })?;
        let Some((disk, now)) = outdated else {
            return Ok(());
        };
        // Without the lock, for the same reason as in `update_capacity`.
        self.block_limits(&now)
            .and_then(|limits| disk.set_limits(limits))
            .map_err(disk_error)?;
        let deallocate_zeroes = now.write_zeroes_may_deallocate;
        disk.data().deallocate_zeroes.set(deallocate_zeroes);
        self.set.with(|table| {
            if let Some(namespace) = table.get_mut(nsid) {
                // The capacity may have changed meanwhile.
                let before = namespace.limits;
                namespace.limits = revalidate::updated_limits(&before, &now).unwrap_or(before);
            }
        });
        self.observer.notify(NsChange::LimitsChanged { nsid });
        Ok(())
    }

    /// Begins to scan the partitions of a disk whose partition table was not read yet.
    fn scan_partitions(&self, scanned: &ScannedNs) -> Result<(), ScanError> {
        let scan = self.set.with(|table| {
            let disk = table.get(scanned.wwid.nsid)?;
            disk.partitions.begin(&disk.disk, self.wake)
        });
        match scan {
            Some(scan) => (self.spawn)(scan).map_err(|error| disk_error(error).into()),
            None => Ok(()),
        }
    }

    /// Creates the disks that are missing, several at the same time if there are many.
    ///
    /// The first one is created alone. blk-mq then frees the tags of hardware queues to which no CPU is
    /// mapped, without a lock. There are such queues if memory was short when the CPUs were mapped. Later
    /// disks find no tags to free.
    fn make_disks(&self) -> Result<(), ScanError> {
        let missing = self.found.usable.len() as u64;
        let missing = missing.saturating_sub(self.set.count().into());
        let makers = match missing {
            0..MANY => None,
            _ => OwnedQueue::new(c"rnvmf-add", WorkKind::MemReclaim, 0).ok(),
        };
        let Some(makers) = makers else {
            return self.for_each(|this, scanned| this.make_disk(scanned).map(drop));
        };
        // After a later scan was applied, or the end of the connection, each disk fails at once.
        let mut result = Ok(());
        let mut rest: &[ScannedNs] = &self.found.usable;
        while let [next, after @ ..] = rest {
            rest = after;
            match self.make_disk(next) {
                Ok(DiskCreation::Created) => break,
                made => result = merge(result, made.map(drop)),
            }
        }
        pin_init::stack_pin_init!(let result = new_mutex!(result, "rnvmf::DiskUpdate::make_disks"));
        makers.for_each(MAKERS, rest, |scanned| {
            let made = self.make_disk(scanned);
            let mut result = result.lock();
            *result = merge(replace(&mut *result, Ok(())), made.map(drop));
        });
        let mut result = result.lock();
        replace(&mut *result, Ok(()))
    }

    /// Creates the disk of a namespace that has none.
    fn make_disk(&self, scanned: &ScannedNs) -> Result<DiskCreation, ScanError> {
        // There may be many disks to create, and removal of the controller waits for this work.
        if !self.controller.is_connected() {
            return Err(ScanError::Gone);
        }
        // A scan that finds nothing new needs no memory here.
        if self
            .set
            .with(|table| table.get(scanned.wwid.nsid).is_some())
        {
            return Ok(DiskCreation::NotMissing);
        }
        let pending = self
            .set
            .begin_pending(self.found.seq, scanned.attributes())?;
        let Some(pending) = pending else {
            return Ok(DiskCreation::NotMissing);
        };
        // Fails if another subsystem took the identifiers after the scan. The next scan rejects the
        // namespace.
        let ids = self.set.ids().reserve(&scanned.wwid).map_err(disk_error)?;
        let made = self.new_disk(scanned, &pending).and_then(|disk| {
            Ok(Namespace {
                limits: scanned.limits,
                partitions: Partitions::new()?,
                disk: Arc::new(disk, GFP_KERNEL)?,
                _ids: ids,
            })
        });
        let added = made
            .map_err(|error| disk_error(error).into())
            .and_then(|namespace| self.set.add(namespace));
        if let Ok(info) = &added {
            self.observer.notify(NsChange::Added(info));
        }
        if pending.state.is_gone() {
            return Err(ScanError::Superseded);
        }
        added.map(|_| DiskCreation::Created)
    }

    fn new_disk(&self, scanned: &ScannedNs, pending: &PendingGuard<'_>) -> Result<Disk<Io>> {
        let limits = &scanned.limits;
        let disk_name = self.set.ids().disk_name(scanned.wwid.nsid);
        let name = CString::try_from_fmt(fmt!("{disk_name}"))?;
        let config = DiskConfig {
            name: &name,
            limits: self.block_limits(limits)?,
            capacity_sectors: limits.capacity_sectors,
            read_only: limits.read_only,
            module: self.module,
            parent: self.parent.as_ref(),
            openers: self.set.openers(),
        };
        let data = NsDisk {
            name: disk_name,
            wwid: scanned.wwid,
            block_shift: BlockShift::new(limits.block_shift),
            protection: limits.protection,
            deallocate_zeroes: RelaxedBool::new(limits.write_zeroes_may_deallocate),
            used_blocks: Atomic::new(scanned.used_blocks),
            state: pending.state.clone(),
            controller: self.controller.clone(),
        };
        Disk::new(config, self.found.context.tag_set.clone(), data)
    }

    #[inline(never)]
    fn block_limits(&self, limits: &BlockLimits) -> Result<Limits> {
        let discard = limits.discard.as_ref();
        Ok(Limits {
            logical_block_size: limits.block_size(),
            physical_block_size: limits.physical_block_size,
            io_min: limits.io_min,
            io_opt: limits.io_opt,
            max_hw_sectors: limits.max_sectors,
            max_segments: self.found.context.params.max_segments(),
            max_segment_size: u32::MAX,
            // All pages of a memory region are whole, except for the first and the last one.
            virt_boundary_mask: (rrdma::rdma::mr::PAGE_SIZE - 1) as usize,
            dma_alignment: DMA_ALIGNMENT,
            max_discard_sectors: discard.map_or(0, |d| d.max_sectors),
            discard_granularity: discard.map_or(0, |d| d.granularity),
            max_discard_segments: discard.map_or(0, |d| d.max_ranges),
            max_write_zeroes_sectors: limits.max_write_zeroes_sectors,
            write_zeroes_unmap: limits.write_zeroes_may_deallocate,
            atomic_write_max: limits.atomic_writes.max,
            atomic_write_boundary: limits.atomic_writes.boundary,
            chunk_sectors: limits.chunk_sectors,
            write_cache: limits.write_cache,
            fua: limits.write_cache,
            rotational: limits.rotational,
            ..Limits::default()
        })
    }
}

/// Returns the result of two steps: of failures the first, but the end of the update before any.
fn merge(before: Result<(), ScanError>, now: Result<(), ScanError>) -> Result<(), ScanError> {
    match (before, now) {
        (Err(ScanError::Failed(_)), Err(end @ (ScanError::Superseded | ScanError::Gone))) => {
            Err(end)
        }
        (before, now) => before.and(now),
    }
}
