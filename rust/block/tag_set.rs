// SPDX-License-Identifier: GPL-2.0

//! Tag sets.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    hw_queue::{
        HctxKey,
        HwQueue,
        RetiredHctxs, //
    },
    request::Pdu,
    Operations,
    QueueCounts,
    QueueKinds, //
};
use crate::{
    bindings,
    sync::Msecs, //
};
use core::ptr::NonNull;
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
    /// How many hardware queues there are for what.
    pub queues: QueueCounts,
    /// Of which kinds there may be some, now or [later](TagSet::set_queues).
    pub kinds: QueueKinds,
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
/// - All counts in `layout` are possible with `kinds`, for which `inner` has maps.
#[pin_data(PinnedDrop)]
pub struct TagSet<T: Operations> {
    data: T::SetData,
    kinds: QueueKinds,
    #[pin]
    layout: Mutex<Layout>,
    /// Held while the layout changes.
    #[pin]
    changing: Mutex<()>,
    /// While `inner` is being made: whether all went well with the data of requests.
    #[pin]
    making: Mutex<Option<Result>>,
    #[pin]
    quiesced: Mutex<bool>,
    #[pin]
    retired: Mutex<RetiredHctxs<T>>,
    #[pin]
    inner: Opaque<bindings::blk_mq_tag_set>,
}

/// What the hardware queues are for.
struct Layout {
    now: QueueCounts,
    /// Before the change that is under way.
    before: QueueCounts,
    /// What was asked for last.
    wanted: QueueCounts,
}

// SAFETY: All that is done with `inner` C serialises itself; the data is `Send`, and so is that
// of the hardware queues that were retired, which are owned.
unsafe impl<T: Operations> Send for TagSet<T> {}

// SAFETY: As above; the data is `Sync`.
unsafe impl<T: Operations> Sync for TagSet<T> {}

impl<T: Operations> TagSet<T> {
    /// Makes a tag set with these operations. May sleep.
    ///
    /// # Errors
    ///
    /// As [`TagSet::new`].
    ///
    /// # Safety
    ///
    /// `ops` are those of `T`.
    pub(super) unsafe fn with_ops(
        config: TagSetConfig,
        data: T::SetData,
        ops: &'static bindings::blk_mq_ops,
    ) -> Result<Arc<Self>> {
        let total = config.queues.total(config.kinds).ok_or(EINVAL)?;

        // SAFETY: Safe for any number.
        if !unsafe { bindings::numa_node_usable(config.numa_node) } {
            return Err(EINVAL);
        }
        // INVARIANT: No queue is on the new tag set.
        Arc::pin_init(
            try_pin_init!(&this in Self {
                data,
                kinds: config.kinds,
                // INVARIANT: As checked above.
                layout <- new_mutex!(Layout {
                    now: config.queues,
                    before: config.queues,
                    wanted: config.queues,
                }, "TagSet::layout"),
                changing <- new_mutex!((), "TagSet::changing"),
                making <- new_mutex!(Some(Ok(())), "TagSet::making"),
                quiesced <- new_mutex!(false, "TagSet::quiesced"),
                retired <- new_mutex!(RetiredHctxs::new(), "TagSet::retired"),
                // Last: it calls back for the requests, which needs the others.
                inner <- Opaque::try_ffi_init(|set: *mut bindings::blk_mq_tag_set| {
                    let raw = bindings::blk_mq_tag_set {
                        ops,
                        driver_data: this.as_ptr().cast(),
                        ..Self::raw_config(config, total)
                    };
                    // SAFETY: `set` is valid for writes.
                    unsafe { set.write(raw) };
                    // SAFETY: `set` is set up, and does not move. All else is initialised.
                    unsafe { Self::make(set) }
                }),
            }),
            GFP_KERNEL,
        )
    }

    /// What C wants to know of a tag set.
    fn raw_config(config: TagSetConfig, queues: u32) -> bindings::blk_mq_tag_set {
        bindings::blk_mq_tag_set {
            nr_maps: config.kinds.maps(),
            nr_hw_queues: queues,
            queue_depth: config.depth,
            reserved_tags: config.reserved_tags,
            cmd_size: Pdu::<T>::SIZE,
            numa_node: config.numa_node,
            timeout: c_uint::try_from(config.timeout.to_jiffies()).unwrap_or(c_uint::MAX),
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

    /// What so many hardware queues are for, which C has when it makes its maps. If it has not
    /// as many as were asked for, it is as it was before, for want of memory, or there are no
    /// more CPUs.
    pub(super) fn update_layout(&self, queues: u32) -> QueueCounts {
        let mut layout = self.layout.lock();

        layout.now = if layout.wanted.total(self.kinds) == Some(queues) {
            layout.wanted
        } else if self.kinds == QueueKinds::Default {
            QueueCounts {
                default: queues,
                ..QueueCounts::default()
            }
        } else {
            layout.before
        };
        layout.now
    }

    /// The data of the driver.
    #[inline]
    pub fn data(&self) -> &T::SetData {
        &self.data
    }

    /// How many hardware queues there are for what. May sleep.
    ///
    /// Another thread may [change](Self::set_queues) it at any moment.
    pub fn queues(&self) -> QueueCounts {
        self.layout.lock().now
    }

    /// Changes how many hardware queues there are for what, for all disks on the set. Returns
    /// what there is then: no more than CPUs if they are all of one kind, and as before if
    /// memory is short. Does nothing if it is so already.
    ///
    /// Waits until every request to every disk has ended, keeps new ones out, and makes all
    /// hardware queues anew: [`Operations::new_queue`] is called for each disk and queue,
    /// [`Operations::new_request_data`] for the tags that come. Requests that were under way
    /// when it was called end on the old queues, so the driver has to serve those until it
    /// returns, and the new ones from the moment that it is called.
    ///
    /// Sleeps; as long as a request takes, or the set is [quiesced](Self::quiesce). The caller
    /// must hold no request, and must not be waited for by who ends them. C:
    /// `blk_mq_update_nr_hw_queues`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are none for all requests, or some of a
    /// [kind](TagSetConfig::kinds) that there were never to be.
    pub fn set_queues(&self, queues: QueueCounts) -> Result<QueueCounts> {
        let total = queues.total(self.kinds).ok_or(EINVAL)?;
        let _one_change = self.changing.lock();
        {
            let mut layout = self.layout.lock();

            if layout.now == queues {
                return Ok(queues);
            }
            // INVARIANT: That was checked above.
            layout.before = layout.now;
            layout.wanted = queues;
        }
        // SAFETY: `inner` is valid; C serialises it with itself and with disks that come and
        // go. It freezes all queues before it changes anything, so that nobody is in one of
        // ours with a request; for who is still in `queue_rq` with one that has ended, what
        // is taken off stays until it is reaped below.
        unsafe { bindings::blk_mq_update_nr_hw_queues(self.as_raw(), total.try_into()?) };
        self.drop_unused(self.retired.lock().take());
        Ok(self.queues())
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

    /// Has requests that were [requeued](super::Request::requeue) with a delay come now, whatever
    /// is left of it. Any context. C: `blk_mq_kick_requeue_list`.
    pub fn kick_requeued(&self) {
        // SAFETY: `inner` is valid.
        unsafe { bindings::blk_mq_kick_tagset(self.as_raw()) };
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

    /// Keeps what was taken off a hardware queue until [`reap`](Self::reap), or a change of the layout
    /// that is under way is over.
    ///
    /// # Safety
    ///
    /// It was [detached](HwQueue::detach) from one of this set, and is the caller's.
    pub(super) unsafe fn retire(&self, queue: NonNull<HwQueue<T>>) {
        // SAFETY: By the requirements of this function.
        unsafe { self.retired.lock().push(queue) };
    }

    /// Takes back what was taken off the hardware queue of a place, if it is still there: while the
    /// layout changes, what it had before.
    pub(super) fn take_back(&self, key: HctxKey) -> Option<NonNull<HwQueue<T>>> {
        self.retired.lock().take_back(key)
    }

    /// Waits for calls of [`queue_rq`](Operations::queue_rq) and
    /// [`commit_rqs`](Operations::commit_rqs) that are under way, then drops the data of the
    /// hardware queues that were retired before. While the layout changes, which may need that data
    /// again, it is dropped only then.
    pub(super) fn reap(&self) {
        let retired = match self.changing.try_lock() {
            Some(_no_change) => self.retired.lock().take(),
            None => RetiredHctxs::new(),
        };
        self.drop_unused(retired);
    }

    fn drop_unused(&self, retired: RetiredHctxs<T>) {
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
