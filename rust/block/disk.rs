// SPDX-License-Identifier: GPL-2.0

//! Disks.
//!
//! C headers: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h),
//! [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    fops::DiskFops,
    ioctl,
    DiskUse,
    Limits,
    Openers,
    Operations,
    TagSet, //
};
use crate::{
    bindings,
    sync::{
        DropsLater,
        ModuleUse,
        Msecs,
        SleepingDrop,
        UseKind, //
    },
    sysfs::{
        self,
        Attribute, //
    },
};
use core::{
    marker::PhantomData,
    panic::Location,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    static_lock_class,
    sync::Arc,
    types::{
        NotThreadSafe,
        ScopeGuard, //
    },
};

/// Maximum capacity of a disk in sectors: its size in bytes must fit an `i64`.
const MAX_SECTORS: u64 = i64::MAX as u64 / super::SECTOR_SIZE as u64;

/// Configuration of a disk, for [`Disk::new`].
#[derive(Clone, Copy)]
pub struct DiskConfig<'a> {
    /// Name of the disk, as in `/dev/NAME`: 1 to 31 bytes.
    pub name: &'a CStr,
    /// Limits and features of the disk.
    pub limits: Limits,
    /// Capacity in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Whether the disk is read-only.
    pub read_only: bool,
    /// Module of the driver. An open disk holds a reference to the module.
    pub module: &'static ThisModule,
    /// Parent device, the target of the link `/sys/block/NAME/device`. The disk holds a reference
    /// to it.
    pub parent: Option<&'a Arc<sysfs::Device>>,
    /// Counts the opens of the disk, and may refuse them.
    pub openers: &'a Arc<Openers>,
}

/// Maps the attributes of a disk to the driver data of the disk.
struct OfDisk<T>(PhantomData<T>);

// SAFETY: Only `add` uses these groups. `Disk::new` sets `queuedata` before it adds the disk, and
// `Disk::drop` frees the data after `del_gendisk()` has removed the attributes.
unsafe impl<T: Operations> sysfs::HasAttributes for OfDisk<T> {
    type Data = T::DiskData;

    const ATTRIBUTES: &'static [Attribute<T::DiskData>] = T::ATTRIBUTES;

    unsafe fn data<'a>(dev: *mut bindings::device) -> &'a T::DiskData {
        // SAFETY: By the safety requirements of this function, `dev` is the device of a disk with
        // these groups. `disk_to_dev()` is the `bd_device` of the disk's `part0`. `queuedata` is a
        // `T::DiskData` while the attributes exist; see the comment on this `impl`.
        unsafe {
            let bdev = kernel::container_of!(dev, bindings::block_device, bd_device);

            &*(*(*(*bdev).bd_disk).queue).queuedata.cast()
        }
    }
}

/// A disk, present in the system until it is dropped.
///
/// Processes that then still have the disk open or mounted get errors.
///
/// # Drop
///
/// 1. Writes back the cache, unless the disk is [dead](Self::mark_dead).
/// 2. Waits until all requests have ended, and all calls of [`ioctl`](Operations::ioctl) have ended
///    or have [left](super::Ioctl::leave) the disk.
/// 3. Drops the driver data of the hardware queues and of the disk.
///
/// Sleeps; without limit while the driver owns a request or the tag set is quiesced. Must not be
/// dropped in [`timeout`](Operations::timeout), which `Drop` waits for, nor in memory reclaim. In atomic context, a work
/// item drops it. C: `del_gendisk()`.
pub struct Disk<T: Operations>(SleepingDrop<AddedDisk<T>>);

/// An added disk. Dropping this removes the disk, which sleeps.
///
/// # Invariants
///
/// `disk` is an added disk on `set`. The `queuedata` of its queue is a `T::DiskData` from a `KBox`.
struct AddedDisk<T: Operations> {
    disk: NonNull<bindings::gendisk>,
    set: Arc<TagSet<T>>,
    /// Dropped after the disk.
    _parent: Option<Arc<sysfs::Device>>,
    module: ModuleUse,
}

// SAFETY: The C functions called with `disk` do their own locking and may be called from any
// thread. The disk data is `Send`; the tag set is `Send` and `Sync`.
unsafe impl<T: Operations> Send for AddedDisk<T> {}

// SAFETY: The C functions called with `disk` do their own locking. The disk data and the tag set
// are `Sync`.
unsafe impl<T: Operations> Sync for AddedDisk<T> {}

impl<T: Operations> Disk<T> {
    /// Creates a disk and adds it to the system.
    ///
    /// The disk has no partitions before [`scan_partitions`](Self::scan_partitions). Programs may
    /// open it at once. Sleeps; waits for requests to other disks on the set, and thus for
    /// the end of each [pause](TagSet::pause) of the set. C: `blk_mq_alloc_disk()`,
    /// `device_add_disk()`.
    ///
    /// # Errors
    ///
    /// - `EBUSY` while the module is being loaded: if its init function failed later, openers would
    ///   run code of a freed module.
    /// - `EINVAL` if the name, the limits or the capacity is out of range.
    /// - `ENOMEM`, also if [`Operations::new_queue`] fails.
    /// - `EEXIST` if a disk of this name exists. The kernel logs a warning.
    #[track_caller]
    pub fn new(config: DiskConfig<'_>, set: Arc<TagSet<T>>, data: T::DiskData) -> Result<Self> {
        // SAFETY: The module is static.
        if unsafe { bindings::module_is_loading(config.module.as_ptr()) } {
            return Err(EBUSY);
        }
        if config.capacity_sectors > MAX_SECTORS {
            return Err(EINVAL);
        }
        let module = ModuleUse::new(UseKind::Disk, Location::caller())?;
        let mut limits = config.limits.to_raw(pin_init::zeroed())?;
        let data = ScopeGuard::new_with_data(
            KBox::into_raw(KBox::new(data, GFP_KERNEL)?),
            // SAFETY: The guard runs only if no disk was added; a disk that was allocated is put
            // before, and does not use its data.
            |data| drop(unsafe { KBox::from_raw(data) }),
        );
        // Guards run in reverse order: put the disk, reap its hardware queues, drop the data.
        let reap = ScopeGuard::new(|| set.reap());
        // SAFETY: The set is valid, and `limits` is valid for the call. The class is static.
        let disk = from_err_ptr(unsafe {
            bindings::__blk_mq_alloc_disk(
                set.as_raw(),
                &raw mut limits,
                data.cast(),
                static_lock_class!().as_ptr(),
            )
        })?;
        let disk = ScopeGuard::new_with_data(disk, |disk| {
            // SAFETY: This function owns the reference to the disk, and the disk was not added.
            // Others may still hold its device, but use neither `queuedata` nor `fops`.
            unsafe { bindings::put_disk(disk) };
        });

        // SAFETY: The disk was just allocated, is not added, and has no other user.
        unsafe { configure(*disk, &config)? };
        // SAFETY: The queue of the disk is on the set, and the disk was not added.
        unsafe { set.join_quiesce((**disk).queue) };
        // SAFETY: The disk was not added, is configured, and has the data as its `queuedata`.
        unsafe { add::<T>(*disk, &config)? };
        reap.dismiss();
        data.dismiss();
        // INVARIANT: The disk was added; `__blk_mq_alloc_disk()` put it on the set with the data.
        Ok(Self(SleepingDrop::new(AddedDisk {
            // SAFETY: A pointer to a valid disk is not null.
            disk: unsafe { NonNull::new_unchecked(disk.dismiss()) },
            set,
            _parent: config.parent.cloned(),
            module,
        })))
    }

    /// Returns the disk for C.
    fn as_raw(&self) -> *mut bindings::gendisk {
        self.0.as_raw()
    }

    /// Returns the queue of the disk for C.
    pub(super) fn queue(&self) -> *mut bindings::request_queue {
        self.0.queue()
    }

    /// Returns the driver data of the disk.
    #[inline]
    pub fn data(&self) -> &T::DiskData {
        // SAFETY: By the type invariants, `queuedata` is a `T::DiskData`. It is freed only in
        // `drop`.
        unsafe { &*(*self.queue()).queuedata.cast() }
    }

    /// Returns the tag set of the disk.
    pub fn tag_set(&self) -> &Arc<TagSet<T>> {
        &self.0.set
    }

    /// Returns the name, as in `/dev/NAME`.
    pub fn name(&self) -> &CStr {
        self.0.name()
    }

    /// Returns the capacity in sectors of 512 bytes; 0 if the disk is dead.
    pub fn capacity(&self) -> u64 {
        // SAFETY: By the type invariants, `disk` is valid, and so is its `part0`.
        unsafe { bindings::bdev_nr_sectors((*self.as_raw()).part0) }
    }

    /// Returns how the disk or its partitions are open at the moment. Any context. C: `disk_openers()`.
    pub fn usage(&self) -> DiskUse {
        // SAFETY: By the type invariants, `disk` is valid, and so is its `part0`.
        let (claims, openers) = unsafe {
            (
                bindings::disk_claims(self.as_raw()),
                bindings::disk_openers(self.as_raw()),
            )
        };
        match (claims, openers) {
            (0, 0) => DiskUse::Closed,
            (0, _) => DiskUse::Open,
            _ => DiskUse::Claimed,
        }
    }

    /// Reads the partition table, and makes the disk's partitions those of the table.
    ///
    /// Sleeps, and waits for I/O to the disk. The removal of the disk waits for this. C:
    /// `bdev_disk_changed()`.
    ///
    /// # Errors
    ///
    /// - `EIO` if the partition table cannot be read.
    /// - `EBUSY` if a partition is in use.
    /// - `ENXIO` if the disk is [dead](Self::mark_dead).
    pub fn scan_partitions(&self) -> Result {
        // SAFETY: By the type invariants, `disk` is valid and was added.
        to_result(unsafe { bindings::disk_scan_partitions(self.as_raw()) })
    }

    /// Sets the capacity, in sectors of 512 bytes, and notifies user space. The disk must not be
    /// [dead](Self::mark_dead).
    ///
    /// Sleeps, and may wait for arbitrary I/O for the reason given at
    /// [`Device::tell_change`](crate::sysfs::Device::tell_change). Must not be called by a thread
    /// that I/O waits for. C: `set_capacity_and_notify()`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the capacity is too large.
    pub fn set_capacity(&self, sectors: u64) -> Result {
        if sectors > MAX_SECTORS {
            return Err(EINVAL);
        }
        // SAFETY: By the type invariants, `disk` is valid.
        unsafe { bindings::set_capacity_and_notify(self.as_raw(), sectors) };
        Ok(())
    }

    /// Sets whether the disk is read-only, and notifies user space. Sleeps, and may wait for
    /// arbitrary I/O like [`set_capacity`](Self::set_capacity). C: `set_disk_ro()`.
    pub fn set_read_only(&self, read_only: bool) {
        // SAFETY: By the type invariants, `disk` is valid.
        unsafe { bindings::set_disk_ro(self.as_raw(), read_only) };
    }

    /// Sets the limits and features. Settings of users are kept within the new limits, and the
    /// timeout of requests is unchanged.
    ///
    /// Freezes the disk for the update: sleeps until all requests have ended, without limit while
    /// the tag set is quiesced. C: `queue_limits_start_update()`, `queue_limits_commit_update()`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the limits are out of range; the errors of [`freeze`](Self::freeze).
    pub fn set_limits(&self, limits: Limits) -> Result {
        let mut raw = pin_init::zeroed::<bindings::queue_limits>();
        // SAFETY: By the type invariants, the queue is valid. The call locks its limits.
        unsafe { bindings::queue_limits_start_update(self.queue(), &mut raw) };
        let cancel = ScopeGuard::new(|| {
            // SAFETY: `queue_limits_start_update()` locked the limits for this function.
            unsafe { bindings::queue_limits_cancel_update(self.queue()) };
        });
        let mut raw = limits.to_raw(raw)?;
        // Lock order of C: the lock of the limits, then the freeze.
        let _frozen = self.freeze()?;
        cancel.dismiss();
        // SAFETY: `queue_limits_start_update()` locked the limits for this function. The call
        // unlocks them.
        to_result(unsafe { bindings::queue_limits_commit_update(self.queue(), &mut raw) })
    }

    /// Marks the disk as lost: new requests fail, and caches are not written back. Requests in
    /// flight must still be completed. Sleeps. C: `blk_mark_disk_dead()`.
    pub fn mark_dead(&self) {
        // SAFETY: By the type invariants, `disk` is valid.
        unsafe { bindings::blk_mark_disk_dead(self.as_raw()) };
    }

    /// Prepares the disk to be dropped soon: this saves one of the grace periods for which dropping it
    /// waits. Requests go on, slightly slower. May sleep.
    ///
    /// `del_gendisk()` of the other disks on the tag set waits meanwhile. So if several disks are
    /// dropped, prepare them all first.
    pub fn prepare_removal(&self) {
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::blk_queue_count_atomically(self.queue()) };
    }

    /// Waits until all requests have ended, and holds back new ones until the result is dropped.
    ///
    /// This thread must neither do I/O to the disk meanwhile nor wait for a thread that does.
    /// Sleeps; without limit while a request is in flight or the tag set is quiesced. C:
    /// `blk_mq_freeze_queue()`, but interruptible.
    ///
    /// # Errors
    ///
    /// `EINTR` if the process has a pending signal, which is checked every second.
    pub fn freeze(&self) -> Result<Frozen<'_, T>> {
        // SAFETY: By the type invariants, the queue is valid.
        let memflags = unsafe { bindings::blk_freeze_queue_begin(self.queue()) };
        // `Frozen` thaws the queue on every path from here.
        let frozen = Frozen {
            disk: self,
            memflags,
            _not_send: NotThreadSafe,
        };
        let second = Msecs::from_secs(1).to_jiffies();
        // SAFETY: By the type invariants, the queue is valid. Its freeze has begun.
        while unsafe { bindings::blk_mq_freeze_queue_wait_timeout(self.queue(), second) } == 0 {
            if kernel::current!().signal_pending() {
                return Err(EINTR);
            }
        }
        Ok(frozen)
    }
}

/// Sets the name, capacity and other properties of a new disk.
///
/// # Safety
///
/// `disk` is valid, is not added, and has no other user.
unsafe fn configure(disk: *mut bindings::gendisk, config: &DiskConfig<'_>) -> Result {
    // SAFETY: By the safety requirements of this function, `disk` is valid and has no other user.
    let disk_name = unsafe { &mut (*disk).disk_name };
    let name = config.name.to_bytes_with_nul();

    // At least one byte and the NUL.
    if name.len() < 2 || name.len() > disk_name.len() {
        return Err(EINVAL);
    }
    for (to, from) in disk_name.iter_mut().zip(name) {
        *to = *from as c_char;
    }
    // SAFETY: By the safety requirements of this function, `disk` is valid and has no other user.
    unsafe {
        bindings::set_capacity(disk, config.capacity_sectors);
        bindings::set_disk_ro(disk, config.read_only);
        if let Some(timeout) = config.limits.timeout {
            let jiffies = c_uint::try_from(timeout.to_jiffies()).unwrap_or(c_uint::MAX);

            bindings::blk_queue_rq_timeout((*disk).queue, jiffies);
        }
    }
    Ok(())
}

/// Adds a new disk to the system.
///
/// # Safety
///
/// `disk` is valid, configured and not added. The `queuedata` of its queue is a `T::DiskData`.
unsafe fn add<T: Operations>(disk: *mut bindings::gendisk, config: &DiskConfig<'_>) -> Result {
    let fops = DiskFops::new(config.module, ioctl::entry::<T>, config.openers.clone())?;
    let parent = config.parent.map_or(core::ptr::null_mut(), |p| p.as_raw());

    // SAFETY: By the safety requirements of this function, `disk` is valid, is not added, and has
    // the `queuedata` that `ioctl::entry` and the attributes use. `parent` is null or a valid
    // device.
    let ret = unsafe {
        DiskFops::attach(fops, disk);
        bindings::disk_suppress_part_scan(disk);
        bindings::device_add_disk(parent, disk, sysfs::Table::<OfDisk<T>>::groups())
    };

    to_result(ret).inspect_err(|_| {
        // SAFETY: Nobody could open the disk. C uses the table of a disk that was not added only to
        // open it.
        unsafe { DiskFops::free(fops) };
    })
}

impl<T: Operations> AddedDisk<T> {
    #[inline]
    fn as_raw(&self) -> *mut bindings::gendisk {
        self.disk.as_ptr()
    }

    #[inline]
    fn queue(&self) -> *mut bindings::request_queue {
        // SAFETY: By the type invariants, `disk` is valid. Its queue never changes.
        unsafe { (*self.as_raw()).queue }
    }

    fn name(&self) -> &CStr {
        // SAFETY: By the type invariants, `disk` is valid. Its name is NUL-terminated and constant.
        unsafe { CStr::from_char_ptr((&raw const (*self.as_raw()).disk_name).cast()) }
    }
}

impl<T: Operations> DropsLater for AddedDisk<T> {
    fn drop_later(self) {
        self.module.clone().drop_later("disk", self);
    }
}

impl<T: Operations> Drop for AddedDisk<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the queue is valid.
        let data = unsafe { (*self.queue()).queuedata.cast::<T::DiskData>() };

        // SAFETY: By the type invariants, the disk was added, so its table was attached. The disk
        // is not freed before the `put_disk()` below.
        let fops = unsafe { DiskFops::of(self.as_raw()) };

        fops.rundown.close();
        // SAFETY: By the type invariants, the disk was added; it is removed only here.
        unsafe { bindings::del_gendisk(self.as_raw()) };
        fops.opens.forget();
        // `del_gendisk()` has ended the requests of ioctls that are still inside. They get no new
        // ones, so they return.
        fops.rundown.wait(|count| {
            pr_warn!(
                "{}: has waited for 10 s for {count} calls of the disk\n",
                self.name()
            );
        });

        // All requests have ended, but a `queue_rq` that completed its request may still run and
        // hold references to the data.
        self.set.reap();
        // SAFETY: By the type invariants, `data` is from a `KBox`. C does not call the driver for a
        // removed disk: the block layer fails the calls of its openers.
        drop(unsafe { KBox::from_raw(data) });

        // SAFETY: This drops the reference of `Disk`, which does not use the disk afterwards.
        // Openers hold their own references.
        unsafe { bindings::put_disk(self.as_raw()) };
    }
}

/// A frozen disk; thawed when this is dropped, which must happen in the thread that froze it.
/// Created by [`Disk::freeze`].
#[must_use = "the disk is thawed at once if this is unused"]
pub struct Frozen<'a, T: Operations> {
    disk: &'a Disk<T>,
    memflags: c_uint,
    _not_send: NotThreadSafe,
}

impl<T: Operations> Drop for Frozen<'_, T> {
    fn drop(&mut self) {
        // SAFETY: By the invariants of `Disk`, the queue is valid. `Disk::freeze` began the freeze
        // on this thread and returned `memflags`; `NotThreadSafe` keeps the guard on it.
        unsafe { bindings::blk_mq_unfreeze_queue(self.disk.queue(), self.memflags) };
    }
}
