// SPDX-License-Identifier: GPL-2.0

//! Disks.
//!
//! C headers: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h),
//! [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    fops::DiskFops,
    ioctl,
    Limits,
    Operations,
    TagSet, //
};
use crate::{
    bindings,
    sync::Msecs,
    sysfs::{
        self,
        Attribute, //
    },
};
use core::{
    marker::PhantomData,
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

/// The most sectors that a disk can have: what fits a signed number of bytes.
const MAX_SECTORS: u64 = i64::MAX as u64 / super::SECTOR_SIZE as u64;

/// What [`Disk::new`] makes.
#[derive(Clone, Copy)]
pub struct DiskConfig<'a> {
    /// The name, as in `/dev/NAME`: 1 to 31 bytes.
    pub name: &'a CStr,
    /// What the disk can do.
    pub limits: Limits,
    /// The size, in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Whether it can only be read.
    pub read_only: bool,
    /// The module of the driver. It is not unloaded while somebody has the disk open.
    pub module: &'static ThisModule,
    /// The device that the disk belongs to, for which `/sys/block/NAME/device` is a link. It
    /// stays as long as the disk.
    pub parent: Option<&'a Arc<sysfs::Device>>,
}

/// The data of the driver behind a disk's attributes.
struct OfDisk<T>(PhantomData<T>);

// SAFETY: A disk of these groups is from `Disk::new`, which has it added by C with its data in
// place, and drops the data when C has removed it.
unsafe impl<T: Operations> sysfs::Owner for OfDisk<T> {
    type Data = T::DiskData;

    const ATTRIBUTES: &'static [Attribute<T::DiskData>] = T::ATTRIBUTES;

    unsafe fn data<'a>(dev: *mut bindings::device) -> &'a T::DiskData {
        // SAFETY: By the requirements of this function it is the device of a disk, which is
        // that of the disk's first block device; and as above.
        unsafe {
            let bdev = kernel::container_of!(dev, bindings::block_device, bd_device);

            &*(*(*(*bdev).bd_disk).queue).queuedata.cast()
        }
    }
}

/// A disk.
///
/// It is there for user space until it is dropped. What is still open or mounted then gets
/// errors.
///
/// # Dropping it
///
/// Writes back what is cached, if the disk is not [dead](Self::mark_dead), waits until all
/// requests and calls of [`ioctl`](Operations::ioctl) have ended, or have
/// [left](super::Ioctl::leave), then drops the data of the
/// hardware queues and the disk. Sleeps; for ever, if the driver keeps a request or the tag
/// set is quiesced. Not from [`timeout`](Operations::timeout), which it waits for, nor where
/// memory is reclaimed. C: `del_gendisk`.
///
/// # Invariants
///
/// `disk` is a disk on `set` that was added; its queue has a `T::DiskData` in a `KBox` as its
/// `queuedata`.
pub struct Disk<T: Operations> {
    disk: NonNull<bindings::gendisk>,
    set: Arc<TagSet<T>>,
    /// Goes after the disk.
    _parent: Option<Arc<sysfs::Device>>,
}

// SAFETY: All that is done with `disk` C serialises itself; the data is `Send`, and the set
// `Send` and `Sync`.
unsafe impl<T: Operations> Send for Disk<T> {}

// SAFETY: As above; the data is `Sync`.
unsafe impl<T: Operations> Sync for Disk<T> {}

impl<T: Operations> Disk<T> {
    /// Makes a disk and adds it to the system.
    ///
    /// The partition table is read before it returns, so
    /// [`queue_rq`](Operations::queue_rq) must be able to work by then. If the tag set is
    /// quiesced it waits for [`unquiesce`](TagSet::unquiesce). Sleeps; waits for requests to
    /// other disks on the set. C: `blk_mq_alloc_disk`, `device_add_disk`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the name, the limits or the capacity are not possible.
    /// - `ENOMEM`, also if [`Operations::new_queue`] or [`Operations::new_request_data`] fail.
    /// - `EEXIST` if there is a disk of this name, for which the kernel log has a warning.
    pub fn new(config: DiskConfig<'_>, set: Arc<TagSet<T>>, data: T::DiskData) -> Result<Self> {
        if config.capacity_sectors > MAX_SECTORS {
            return Err(EINVAL);
        }
        let mut limits = config.limits.to_raw(Default::default())?;
        let data = ScopeGuard::new_with_data(
            KBox::into_raw(KBox::new(data, GFP_KERNEL)?),
            // SAFETY: If it comes to this there is no disk that would use it.
            |data| drop(unsafe { KBox::from_raw(data) }),
        );
        // Undone after the disk below, before the data above. If there are hardware queues
        // of a disk that was never there, here they go.
        let reap = ScopeGuard::new(|| set.reap());
        // SAFETY: The set is valid, and so are the limits for the call. The class is static.
        let disk = from_err_ptr(unsafe {
            bindings::__blk_mq_alloc_disk(
                set.as_raw(),
                &raw mut limits,
                data.cast(),
                static_lock_class!().as_ptr(),
            )
        })?;
        let disk = ScopeGuard::new_with_data(disk, |disk| {
            // SAFETY: The disk is ours and was not added. Others may look at it a little
            // longer, but get neither at the data nor at the table.
            unsafe { bindings::put_disk(disk) };
        });

        // SAFETY: The disk is ours and was not added.
        unsafe { configure(*disk, &config)? };
        // SAFETY: As above; its queue is on the set.
        unsafe { set.join_quiesce((**disk).queue) };
        // SAFETY: As above.
        unsafe { add::<T>(*disk, &config)? };
        reap.dismiss();
        data.dismiss();
        // INVARIANT: It is added, on the set and has the data.
        Ok(Self {
            // SAFETY: A valid disk is not at address 0.
            disk: unsafe { NonNull::new_unchecked(disk.dismiss()) },
            set,
            _parent: config.parent.cloned(),
        })
    }

    /// The disk for C.
    fn as_raw(&self) -> *mut bindings::gendisk {
        self.disk.as_ptr()
    }

    /// The queue of the disk for C.
    pub(super) fn queue(&self) -> *mut bindings::request_queue {
        // SAFETY: By the invariants `disk` is valid, and its queue never changes.
        unsafe { (*self.as_raw()).queue }
    }

    /// The data of the driver.
    #[inline]
    pub fn data(&self) -> &T::DiskData {
        // SAFETY: By the invariants, and it is not dropped before us.
        unsafe { &*(*self.queue()).queuedata.cast() }
    }

    /// The tag set that the disk is on.
    pub fn tag_set(&self) -> &Arc<TagSet<T>> {
        &self.set
    }

    /// The name, as in `/dev/NAME`.
    pub fn name(&self) -> &CStr {
        // SAFETY: By the invariants `disk` is valid; its name ends in 0 and does not change.
        unsafe { CStr::from_char_ptr((&raw const (*self.as_raw()).disk_name).cast()) }
    }

    /// The size, in sectors of 512 bytes; 0 if it is dead.
    pub fn capacity(&self) -> u64 {
        // SAFETY: By the invariants `disk` is valid, and so is its first block device.
        unsafe { bindings::bdev_nr_sectors((*self.as_raw()).part0) }
    }

    /// Changes the size, in sectors of 512 bytes, and tells user space. Not for a disk that
    /// is [dead](Self::mark_dead). Sleeps, and may wait for any I/O, as
    /// [`Device::tell_change`](crate::sysfs::Device::tell_change) does and for the same reason: not
    /// for who I/O waits for. C: `set_capacity_and_notify`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are no such disks.
    pub fn set_capacity(&self, sectors: u64) -> Result {
        if sectors > MAX_SECTORS {
            return Err(EINVAL);
        }
        // SAFETY: By the invariants `disk` is valid.
        unsafe { bindings::set_capacity_and_notify(self.as_raw(), sectors) };
        Ok(())
    }

    /// Changes whether the disk can only be read, and tells user space. Sleeps, and may wait for
    /// any I/O, as [`set_capacity`](Self::set_capacity). C: `set_disk_ro`.
    pub fn set_read_only(&self, read_only: bool) {
        // SAFETY: By the invariants `disk` is valid.
        unsafe { bindings::set_disk_ro(self.as_raw(), read_only) };
    }

    /// Changes what the disk can do; what users have set stays, as far as it can. Waits until all
    /// requests have ended, and keeps new ones out meanwhile: as long as a request takes, or a
    /// quiesced tag set stays so. The time that a request has stays as it was. Sleeps. C:
    /// `queue_limits_start_update`, `queue_limits_commit_update`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the limits are not possible; as [`freeze`](Self::freeze).
    pub fn set_limits(&self, limits: Limits) -> Result {
        let mut raw = bindings::queue_limits::default();
        // SAFETY: By the invariants the queue is valid. From here on its limits are locked.
        unsafe { bindings::queue_limits_start_update(self.queue(), &mut raw) };
        let cancel = ScopeGuard::new(|| {
            // SAFETY: The limits are locked, by us.
            unsafe { bindings::queue_limits_cancel_update(self.queue()) };
        });
        let mut raw = limits.to_raw(raw)?;
        // C wants the limits locked before.
        let _frozen = self.freeze()?;
        cancel.dismiss();
        // SAFETY: The limits are locked, by us; this unlocks them.
        to_result(unsafe { bindings::queue_limits_commit_update(self.queue(), &mut raw) })
    }

    /// Tells the system that the disk is lost: from here on there are no new requests, and
    /// nobody writes back to it. Those under way must still end. Sleeps. C:
    /// `blk_mark_disk_dead`.
    pub fn mark_dead(&self) {
        // SAFETY: By the invariants `disk` is valid.
        unsafe { bindings::blk_mark_disk_dead(self.as_raw()) };
    }

    /// Waits until all requests have ended, and keeps new ones out until the result is
    /// dropped.
    ///
    /// Meanwhile this thread must not do I/O to the disk, nor wait for somebody who does.
    /// Sleeps; as long as a request takes, or a quiesced tag set stays so. C:
    /// `blk_mq_freeze_queue`, which cannot be interrupted.
    ///
    /// # Errors
    ///
    /// `EINTR` if the process has a signal: it is seen within a second.
    pub fn freeze(&self) -> Result<Frozen<'_, T>> {
        // SAFETY: By the invariants the queue is valid.
        let memflags = unsafe { bindings::blk_freeze_queue_begin(self.queue()) };
        // From here on it is thawed, whatever happens.
        let frozen = Frozen {
            disk: self,
            memflags,
            _not_send: NotThreadSafe,
        };
        let second = Msecs::from_secs(1).to_jiffies();
        // SAFETY: As above; it is being frozen.
        while unsafe { bindings::blk_mq_freeze_queue_wait_timeout(self.queue(), second) } == 0 {
            if kernel::current!().signal_pending() {
                return Err(EINTR);
            }
        }
        Ok(frozen)
    }
}

/// Gives a new disk its name, size and other properties.
///
/// # Safety
///
/// `disk` is valid, was not added, and nobody else uses it.
unsafe fn configure(disk: *mut bindings::gendisk, config: &DiskConfig<'_>) -> Result {
    // SAFETY: By the requirements of this function.
    let disk_name = unsafe { &mut (*disk).disk_name };
    let name = config.name.to_bytes_with_nul();

    // A name has at least one byte, and the 0 at the end.
    if name.len() < 2 || name.len() > disk_name.len() {
        return Err(EINVAL);
    }
    for (to, from) in disk_name.iter_mut().zip(name) {
        *to = *from as c_char;
    }
    // SAFETY: By the requirements of this function.
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
/// `disk` is valid, configured and was not added; it has a `T::DiskData` as `queuedata` of its
/// queue.
unsafe fn add<T: Operations>(disk: *mut bindings::gendisk, config: &DiskConfig<'_>) -> Result {
    let fops = DiskFops::new(config.module, ioctl::entry::<T>)?;
    let parent = config.parent.map_or(core::ptr::null_mut(), |p| p.as_raw());

    // SAFETY: By the requirements of this function.
    let ret = unsafe {
        DiskFops::attach(fops, disk);
        bindings::device_add_disk(parent, disk, sysfs::Table::<OfDisk<T>>::groups())
    };

    to_result(ret).inspect_err(|_| {
        // SAFETY: Nobody could open the disk, and C looks at the table of a disk that was
        // not added for nothing else.
        unsafe { DiskFops::free(fops) };
    })
}

impl<T: Operations> Drop for Disk<T> {
    fn drop(&mut self) {
        // SAFETY: By the invariants the queue is valid.
        let data = unsafe { (*self.queue()).queuedata.cast::<T::DiskData>() };

        // SAFETY: By the invariants the disk has its table, and is not freed before the end.
        let rundown = unsafe { &DiskFops::of(self.as_raw()).rundown };

        rundown.close();
        // SAFETY: By the invariants the disk was added, and we are the ones to remove it.
        unsafe { bindings::del_gendisk(self.as_raw()) };
        // Their requests have ended now, and they get no new ones.
        rundown.wait();

        // All requests have ended. But a call of `queue_rq` that ended its own may not have
        // returned; it still has references to the data.
        self.set.reap();
        // SAFETY: By the invariants it is from a `KBox`. Nothing of a disk that was removed
        // leads to its driver: openers get errors from the block layer.
        drop(unsafe { KBox::from_raw(data) });

        // SAFETY: That was the last use. Openers may have references of their own.
        unsafe { bindings::put_disk(self.as_raw()) };
    }
}

/// A disk that gets no requests until this is dropped, which must be by the thread that
/// made it. Made by [`Disk::freeze`].
#[must_use = "the disk thaws at once if it is unused"]
pub struct Frozen<'a, T: Operations> {
    disk: &'a Disk<T>,
    memflags: c_uint,
    _not_send: NotThreadSafe,
}

impl<T: Operations> Drop for Frozen<'_, T> {
    fn drop(&mut self) {
        // SAFETY: By the invariants of `Disk` the queue is valid. Its freeze was begun when we
        // were made, by this thread, which is what the flags are of.
        unsafe { bindings::blk_mq_unfreeze_queue(self.disk.queue(), self.memflags) };
    }
}
