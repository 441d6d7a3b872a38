// SPDX-License-Identifier: GPL-2.0

//! Tag sets.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    hw_queue::{
        HwQueue,
        Retired, //
    },
    operations::Vtable,
    request::Pdu,
    Operations,
    QueueMaps, //
};
use crate::{
    bindings,
    sync::Msecs, //
};
use kernel::{
    error::to_result,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    types::Opaque, //
};

/// What [`TagSet::new`] makes.
#[derive(Clone, Copy, Debug)]
pub struct TagSetConfig {
    /// The number of hardware queues. If the driver names no
    /// [kinds](Operations::map_queues) of them there are never more than CPUs.
    pub queues: u32,
    /// The number of tags of each hardware queue, reserved ones included: at most 10240.
    /// There may be fewer if memory is short.
    pub depth: u32,
    /// The number of tags of each hardware queue that only
    /// [commands](super::Command) of the driver get: less than `depth`.
    pub reserved_tags: u32,
    /// The NUMA node to have the memory on, or [`TagSetConfig::NO_NODE`].
    pub numa_node: i32,
    /// The time that a request has, if the limits of its disk do not say otherwise.
    pub timeout: Msecs,
}

impl TagSetConfig {
    /// No preference for a NUMA node.
    pub const NO_NODE: i32 = bindings::NUMA_NO_NODE;
}

/// The hardware queues of a device and their tags, shared by its disks.
///
/// Dropping the last reference may sleep.
///
/// # Invariants
///
/// - `inner` is a tag set that `blk_mq_alloc_tag_set` made, with the operations of `T`, room
///   for a `Pdu<T>` in each request, and the address of this in `driver_data`.
/// - Every queue on it that belongs to a disk that was added is quiesced once by us if
///   `quiesced` is true, and not at all if it is false.
#[pin_data(PinnedDrop)]
pub struct TagSet<T: Operations> {
    data: T::SetData,
    maps: QueueMaps,
    /// While `inner` is being made: whether all went well with the data of requests.
    #[pin]
    making: Mutex<Option<Result>>,
    #[pin]
    quiesced: Mutex<bool>,
    #[pin]
    retired: Mutex<Retired<T>>,
    #[pin]
    inner: Opaque<bindings::blk_mq_tag_set>,
}

// SAFETY: All that is done with `inner` C serialises itself; the data is `Send`.
unsafe impl<T: Operations> Send for TagSet<T> {}

// SAFETY: As above; the data is `Sync`.
unsafe impl<T: Operations> Sync for TagSet<T> {}

impl<T: Operations> TagSet<T> {
    /// Makes a tag set. May sleep. C: `blk_mq_alloc_tag_set`.
    ///
    /// Calls [`Operations::new_request_data`] for each tag.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if a number of `config` is out of its range, or the driver names more
    ///   queues than there are.
    /// - `ENOMEM`, or the error of `new_request_data`.
    pub fn new(config: TagSetConfig, data: T::SetData) -> Result<Arc<Self>> {
        let maps = T::map_queues(&data);

        maps.share_out(config.queues).ok_or(EINVAL)?;
        // SAFETY: Safe for any number.
        if !unsafe { bindings::numa_node_usable(config.numa_node) } {
            return Err(EINVAL);
        }
        // INVARIANT: No queue is on the new tag set.
        Arc::pin_init(
            try_pin_init!(&this in Self {
                data,
                maps,
                making <- new_mutex!(Some(Ok(())), "TagSet::making"),
                quiesced <- new_mutex!(false, "TagSet::quiesced"),
                retired <- new_mutex!(Retired::new(), "TagSet::retired"),
                // Last: it calls back for the requests, which needs the others.
                inner <- Opaque::try_ffi_init(|set: *mut bindings::blk_mq_tag_set| {
                    // SAFETY: `set` is valid for writes.
                    unsafe { set.write(Self::raw_config(config, *maps, this.as_ptr().cast())) };
                    // SAFETY: `set` is set up, and does not move. All else is initialised.
                    unsafe { Self::make(set) }
                }),
            }),
            GFP_KERNEL,
        )
    }

    /// What C wants to know of a tag set.
    fn raw_config(
        config: TagSetConfig,
        maps: QueueMaps,
        driver_data: *mut c_void,
    ) -> bindings::blk_mq_tag_set {
        bindings::blk_mq_tag_set {
            ops: Vtable::<T>::get(),
            nr_maps: maps.count(),
            nr_hw_queues: config.queues,
            queue_depth: config.depth,
            reserved_tags: config.reserved_tags,
            cmd_size: Pdu::<T>::SIZE,
            numa_node: config.numa_node,
            timeout: c_uint::try_from(config.timeout.to_jiffies()).unwrap_or(c_uint::MAX),
            driver_data,
            ..pin_init::zeroed()
        }
    }

    /// Makes the tag set, with its requests.
    ///
    /// # Safety
    ///
    /// `set` is set up, and its `driver_data` is that of a `TagSet<T>` of which all but `inner`
    /// is initialised.
    unsafe fn make(set: *mut bindings::blk_mq_tag_set) -> Result {
        // SAFETY: By the requirements of this function.
        to_result(unsafe { bindings::blk_mq_alloc_tag_set(set) })?;
        // SAFETY: By the requirements of this function.
        let this = unsafe { Self::from_driver_data((*set).driver_data) };
        let made = this.making.lock().take();

        made.unwrap_or(Ok(())).inspect_err(|_| {
            // SAFETY: It was made just now, and there are no disks on it.
            unsafe { bindings::blk_mq_free_tag_set(set) }
        })
    }

    /// Makes the data of a request.
    ///
    /// If a request fails while the set is being made, C is not told, and the set given up when
    /// it is there: what C does itself in this case is to free what is still in use by SRCU
    /// callbacks, with a warning.
    ///
    /// # Safety
    ///
    /// There is room for a `Pdu<T>` behind `rq`, valid for writes, which stays until
    /// [`Pdu::clear`].
    pub(super) unsafe fn init_request(&self, rq: *mut bindings::request, queue: u32) -> Result {
        // SAFETY: By the requirements of this function.
        unsafe { Pdu::<T>::prepare(rq) };
        if matches!(*self.making.lock(), Some(Err(_))) {
            return Ok(());
        }
        // SAFETY: By the requirements of this function; it is prepared.
        let made = unsafe { Pdu::<T>::fill(rq, T::new_request_data(self.data(), queue)) };

        match &mut *self.making.lock() {
            Some(all) => {
                *all = made;
                Ok(())
            }
            None => made,
        }
    }

    /// The tag set that C knows by its `driver_data`.
    ///
    /// # Safety
    ///
    /// It is the `driver_data` of a `TagSet<T>` that is not dropped for `'a`. All but its
    /// `inner` is initialised.
    pub(super) unsafe fn from_driver_data<'a>(driver_data: *mut c_void) -> &'a Self {
        // SAFETY: By the requirements of this function. As for `inner`, an `Opaque` may
        // hold anything.
        unsafe { &*driver_data.cast() }
    }

    /// The tag set for C.
    pub(super) fn as_raw(&self) -> *mut bindings::blk_mq_tag_set {
        self.inner.get()
    }

    /// How the hardware queues are shared out.
    pub(super) fn maps(&self) -> QueueMaps {
        self.maps
    }

    /// The data of the driver.
    #[inline]
    pub fn data(&self) -> &T::SetData {
        &self.data
    }

    /// The number of hardware queues: as many as asked for, or as there are CPUs.
    pub fn queues(&self) -> u32 {
        // SAFETY: `inner` is valid, and the number does not change.
        unsafe { (*self.as_raw()).nr_hw_queues }
    }

    /// The number of tags of each hardware queue: as many as asked for, or as there was
    /// memory for.
    pub fn depth(&self) -> u32 {
        // SAFETY: `inner` is valid, and the number does not change.
        unsafe { (*self.as_raw()).queue_depth }
    }

    /// The number of tags of each hardware queue that are reserved.
    pub fn reserved_tags(&self) -> u32 {
        // SAFETY: `inner` is valid, and the number does not change.
        unsafe { (*self.as_raw()).reserved_tags }
    }

    /// Holds back requests: when it returns no [`queue_rq`](Operations::queue_rq) of a disk
    /// on this set runs, and none will before [`unquiesce`](Self::unquiesce).
    ///
    /// Those that the driver already has stay its own, and may end. It holds for disks that
    /// are added meanwhile too. Does nothing if it is so already. May sleep. C:
    /// `blk_mq_quiesce_tagset`.
    pub fn quiesce(&self) {
        let mut quiesced = self.quiesced.lock();

        if !*quiesced {
            // SAFETY: `inner` is valid.
            unsafe { bindings::blk_mq_quiesce_tagset(self.as_raw()) };
            // INVARIANT: That was once for each queue; those that join see to it
            // themselves.
            *quiesced = true;
        }
    }

    /// Lets requests through again. Does nothing if they are not held back. May sleep. C:
    /// `blk_mq_unquiesce_tagset`.
    pub fn unquiesce(&self) {
        let mut quiesced = self.quiesced.lock();

        if *quiesced {
            // SAFETY: `inner` is valid. A queue that is quiesced is so by us: others
            // quiesce only disks that were added, which by the invariant we did as well.
            unsafe { bindings::blk_mq_unquiesce_tagset_quiesced(self.as_raw()) };
            // INVARIANT: That was once for each queue.
            *quiesced = false;
        }
    }

    /// Brings a queue in line with the others, before its disk is added.
    ///
    /// # Safety
    ///
    /// `q` is a valid queue on this set, of a disk that was not added yet.
    pub(super) unsafe fn join_quiesce(&self, q: *mut bindings::request_queue) {
        let quiesced = self.quiesced.lock();

        // SAFETY: By the requirements of this function. Only we quiesce such a queue: it is
        // done already if it was on the set when that was quiesced.
        unsafe {
            if *quiesced && !bindings::blk_queue_quiesced(q) {
                bindings::blk_mq_quiesce_queue(q);
            }
        }
    }

    /// Keeps the data of a hardware queue until [`reap`](Self::reap).
    pub(super) fn retire(&self, queue: KBox<HwQueue<T>>) {
        self.retired.lock().push(queue);
    }

    /// Waits for calls of [`queue_rq`](Operations::queue_rq) and
    /// [`commit_rqs`](Operations::commit_rqs) that are under way, then drops the data of the
    /// hardware queues that were retired before.
    pub(super) fn reap(&self) {
        let retired = self.retired.lock().take();

        // SAFETY: The callers may sleep. The calls are RCU read-side critical sections.
        unsafe { bindings::synchronize_rcu() };
        drop(retired);
    }
}

#[pinned_drop]
impl<T: Operations> PinnedDrop for TagSet<T> {
    fn drop(self: Pin<&mut Self>) {
        // Each disk that was added holds a reference. A disk that failed to be added leaves
        // the set when the last reference to its device goes, which somebody who looked at
        // it in a list of all may have for another moment.
        //
        // SAFETY: `inner` is valid.
        while !unsafe { bindings::blk_mq_tag_set_unused(self.as_raw()) } {
            fsleep(Delta::from_millis(1));
        }
        // SAFETY: `inner` is valid, and as there are no disks on it, not in use.
        unsafe { bindings::blk_mq_free_tag_set(self.as_raw()) };
    }
}
