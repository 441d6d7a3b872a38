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
    request::{
        Pdu,
        RequestRef, //
    },
    Operations,
    QueueCounts,
    QueueKinds, //
};
use crate::{
    bindings,
    sync::{
        new_mutex,
        DropsLater,
        ModuleUse,
        Msecs,
        SleepingDrop, //
    },
};
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
        Jiffies,
    },
    types::Opaque, //
};

/// Configuration of a tag set, for [`TagSet::new`].
#[derive(Clone, Copy, Debug)]
pub struct TagSetConfig {
    /// Number of hardware queues of each kind.
    pub queues: QueueCounts,
    /// Kinds of hardware queues that may exist, now or after [`TagSet::set_queues`].
    pub kinds: QueueKinds,
    /// Number of tags of each hardware queue, including reserved tags: at most 10240. blk-mq
    /// allocates fewer if memory is short.
    pub depth: u32,
    /// Number of tags of each hardware queue that are reserved for [commands](super::Command) of
    /// the driver: less than `depth`.
    pub reserved_tags: u32,
    /// NUMA node to allocate on, or [`TagSetConfig::NO_NODE`].
    pub numa_node: i32,
    /// Timeout of requests, unless the limits of the disk override it.
    pub timeout: Msecs,
}

impl TagSetConfig {
    /// No preference for a NUMA node.
    pub const NO_NODE: i32 = bindings::NUMA_NO_NODE;
}

/// Hardware queues of a device and their tags, shared by its disks.
///
/// Dropping the last reference sleeps. In atomic context, a work item drops the set, and its data.
pub struct TagSet<T: Operations>(SleepingDrop<Pin<KBox<AllocatedSet<T>>>>);

/// The tag set of C with the state of its [`TagSet`]. Dropping this frees the tag set, which sleeps.
///
/// # Invariants
///
/// - `inner` was allocated by `blk_mq_alloc_tag_set()`, with the operations of `T`, with a `Pdu<T>`
///   in each request, and with the address of this structure in `driver_data`.
/// - If `pauses` is not 0, this structure quiesced each queue of an added disk on the set once. If it
///   is 0, it quiesced none.
/// - All counts in `layout` are valid for `kinds`, for which `inner` has maps.
#[pin_data(PinnedDrop)]
pub(super) struct AllocatedSet<T: Operations> {
    data: T::SetData,
    kinds: QueueKinds,
    #[pin]
    layout: Mutex<Layout>,
    /// Held while the layout changes, with `layout` taken inside it.
    #[pin]
    changing: Mutex<()>,
    /// Number of [`Paused`] of the set.
    #[pin]
    pauses: Mutex<usize>,
    #[pin]
    retired: Mutex<RetiredHctxs<T>>,
    #[pin]
    inner: Opaque<bindings::blk_mq_tag_set>,
    module: ModuleUse,
}

/// Number of hardware queues of each kind.
struct Layout {
    now: QueueCounts,
    /// Before the latest change.
    before: QueueCounts,
    /// As last requested.
    wanted: QueueCounts,
}

/// A count of [`TagSet::count_in_flight`].
struct InFlightCount<T: Operations> {
    /// How long a request must have been in flight, in jiffies.
    jiffies: Jiffies,
    counts: fn(&RequestRef<T>) -> bool,
    requests: u32,
}

impl<T: Operations> InFlightCount<T> {
    /// Counts a request. Returns true, to go on with the next one.
    ///
    /// # Safety
    ///
    /// `rq` is a started request of a tag set of `T`, to which C holds a reference. `count` points to an
    /// `InFlightCount<T>` without another user.
    unsafe extern "C" fn count_request(rq: *mut bindings::request, count: *mut c_void) -> bool {
        // SAFETY: By the safety requirements of this function, `rq` is valid, and is not reused before C
        // drops its reference. `count` is valid and has no other user.
        let (request, count) =
            unsafe { (RequestRef::<T>::from_raw(rq), &mut *count.cast::<Self>()) };
        // SAFETY: By the safety requirements of this function, `rq` is valid.
        let is_old = unsafe { bindings::rq_in_flight_for(rq, count.jiffies) };

        if is_old && request.is_under_way() && (count.counts)(&request) {
            count.requests = count.requests.saturating_add(1);
        }
        true
    }
}

// SAFETY: The C functions called with `inner` do their own locking and may be called from any
// thread. The driver data is `Send`, and so is the owned data of the retired hardware queues.
unsafe impl<T: Operations> Send for AllocatedSet<T> {}

// SAFETY: The C functions called with `inner` do their own locking. The driver data is `Sync`.
unsafe impl<T: Operations> Sync for AllocatedSet<T> {}

impl<T: Operations> DropsLater for Pin<KBox<AllocatedSet<T>>> {
    fn drop_later(self) {
        self.module.clone().drop_later("tag set", self);
    }
}

impl<T: Operations> TagSet<T> {
    /// Creates a tag set with these operations. May sleep.
    ///
    /// # Errors
    ///
    /// Those of [`TagSet::new`].
    ///
    /// # Safety
    ///
    /// `ops` is the table of operations of `T`.
    pub(super) unsafe fn with_ops(
        config: TagSetConfig,
        data: T::SetData,
        ops: &'static bindings::blk_mq_ops,
        module: ModuleUse,
    ) -> Result<Arc<Self>> {
        let total = config.queues.total(config.kinds).ok_or(EINVAL)?;
        let timeout = c_uint::try_from(config.timeout.to_jiffies()).unwrap_or(c_uint::MAX);

        // SAFETY: `numa_node_usable()` accepts any number.
        if !unsafe { bindings::numa_node_usable(config.numa_node) } {
            return Err(EINVAL);
        }
        // INVARIANT: The new tag set has no queue.
        let set = KBox::pin_init(
            try_pin_init!(&this in AllocatedSet {
                data,
                module,
                kinds: config.kinds,
                // INVARIANT: `total` returned `Some`, so the counts are valid for `kinds`.
                layout <- new_mutex!(Layout {
                    now: config.queues,
                    before: config.queues,
                    wanted: config.queues,
                }, "TagSet::layout"),
                changing <- new_mutex!((), "TagSet::changing"),
                pauses <- new_mutex!(0, "TagSet::pauses"),
                retired <- new_mutex!(RetiredHctxs::new(), "TagSet::retired"),
                // Initialised last: the allocation calls back for each request and uses the other
                // fields.
                inner <- Opaque::try_ffi_init(|set: *mut bindings::blk_mq_tag_set| {
                    let raw = bindings::blk_mq_tag_set {
                        ops,
                        driver_data: this.as_ptr().cast(),
                        nr_maps: config.kinds as u32,
                        nr_hw_queues: total,
                        queue_depth: config.depth,
                        reserved_tags: config.reserved_tags,
                        cmd_size: Pdu::<T>::SIZE,
                        numa_node: config.numa_node,
                        timeout,
                        ..pin_init::zeroed()
                    };
                    // SAFETY: `try_ffi_init` passes a `set` that is valid for writes.
                    unsafe { set.write(raw) };
                    // SAFETY: `set` is initialised and pinned; so are all other fields.
                    to_result(unsafe { bindings::blk_mq_alloc_tag_set(set) })
                }),
            }),
            GFP_KERNEL,
        )?;
        Ok(Arc::new(Self(SleepingDrop::new(set)), GFP_KERNEL)?)
    }

    /// Returns the tag set for C.
    pub(super) fn as_raw(&self) -> *mut bindings::blk_mq_tag_set {
        self.0.as_raw()
    }

    /// Returns the driver data of the tag set.
    #[inline]
    pub fn data(&self) -> &T::SetData {
        self.0.data()
    }

    /// Returns the number of hardware queues of each kind. May sleep.
    ///
    /// Another thread may [change](Self::set_queues) it at any time.
    pub fn queues(&self) -> QueueCounts {
        self.0.layout.lock().now
    }

    /// Changes the number of hardware queues of each kind, for all disks on the set. Returns the
    /// new numbers: limited to the number of CPUs if all queues are of one kind, and unchanged if
    /// memory is short. Does nothing if the numbers are already as requested.
    ///
    /// Freezes all disks, and creates all hardware queues anew: calls [`Operations::new_queue`] for
    /// each disk and queue, and [`Operations::new_request_data`] for new tags. Requests in flight
    /// complete on the old queues. The driver must therefore serve the old queues until this
    /// returns, and the new ones from the time of the call.
    ///
    /// Sleeps; without limit while a request is in flight or the set is [paused](Self::pause).
    /// The caller must own no request, and no thread that completes requests may wait for the
    /// caller. C: `blk_mq_update_nr_hw_queues()`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no default queue, or a queue of a kind that is not in
    /// [`kinds`](TagSetConfig::kinds).
    pub fn set_queues(&self, queues: QueueCounts) -> Result<QueueCounts> {
        let total = queues.total(self.0.kinds).ok_or(EINVAL)?;
        let _one_change = self.0.changing.lock();
        {
            let mut layout = self.0.layout.lock();

            if layout.now == queues {
                return Ok(queues);
            }
            // INVARIANT: `total` returned `Some`, so the counts are valid for `kinds`.
            layout.before = layout.now;
            layout.wanted = queues;
        }
        // SAFETY: `inner` is valid. C serialises the call with itself and with added and removed
        // disks, and freezes all queues before it changes anything, so no `queue_rq` holds a
        // request. A `queue_rq` that completed its request may still run; detached data stays until
        // the reap below.
        unsafe { bindings::blk_mq_update_nr_hw_queues(self.as_raw(), total.try_into()?) };
        self.drop_unused(self.0.retired.lock().take());
        Ok(self.queues())
    }

    /// Returns the number of tags of each hardware queue: the configured depth, or less if memory
    /// was short.
    pub fn depth(&self) -> u32 {
        // SAFETY: By the type invariants, `inner` is valid. The number is constant after the
        // allocation.
        unsafe { (*self.as_raw()).queue_depth }
    }

    /// Returns the number of reserved tags of each hardware queue.
    pub fn reserved_tags(&self) -> u32 {
        // SAFETY: By the type invariants, `inner` is valid. The number is constant after the
        // allocation.
        unsafe { (*self.as_raw()).reserved_tags }
    }

    /// Quiesces all disks on the set, also those that are added later, until the result is dropped: when
    /// this returns, no [`queue_rq`](Operations::queue_rq) runs, and none starts while the set is paused.
    /// [Held](super::Request::hold) requests stay held.
    ///
    /// The driver keeps its requests and may complete them. May sleep. C: `blk_mq_quiesce_tagset()`.
    pub fn pause(&self) -> Paused<'_, T> {
        let mut pauses = self.0.pauses.lock();

        if *pauses == 0 {
            // SAFETY: By the type invariants, `inner` is valid.
            unsafe { bindings::blk_mq_quiesce_tagset(self.as_raw()) };
        }
        // INVARIANT: Each queue was quiesced once; new disks use `join_quiesce`. A pause that is never
        // dropped keeps the number from 0, and so does one that saturates it.
        *pauses = pauses.saturating_add(1);
        Paused(self)
    }

    /// Ends a pause.
    fn resume(&self) {
        let mut pauses = self.0.pauses.lock();

        if *pauses == 1 {
            // SAFETY: By the type invariants, `inner` is valid. C quiesces only added disks, and by
            // the type invariants this structure quiesced each of these once, so each count is at
            // least 1.
            unsafe { bindings::blk_mq_unquiesce_tagset_quiesced(self.as_raw()) };
        }
        // INVARIANT: If it is 0 now, each queue was unquiesced once.
        *pauses = match *pauses {
            usize::MAX => usize::MAX,
            count => count.saturating_sub(1),
        };
    }

    /// Sends [held](super::Request::hold) and delayed [requeued](super::Request::requeue) requests
    /// now. Any context. C:
    /// `blk_mq_kick_requeue_list()`.
    pub fn kick_requeued(&self) {
        // SAFETY: By the type invariants, `inner` is valid.
        unsafe { bindings::blk_mq_kick_tagset(self.as_raw()) };
    }

    /// Returns the number of requests that have been in flight for `span` or longer, and that `counts`
    /// accepts. A request that timed out is in flight since its last time-out. The result may be outdated.
    ///
    /// Any context but NMI, also while another thread [changes the queues](Self::set_queues). C:
    /// `blk_mq_tagset_busy_iter()`.
    pub fn count_in_flight(&self, span: Msecs, counts: fn(&RequestRef<T>) -> bool) -> u32 {
        let mut count = InFlightCount {
            jiffies: span.to_jiffies(),
            counts,
            requests: 0,
        };
        // SAFETY: By the type invariants, `inner` is valid. `count_request` is called with requests of the
        // set, and only until the function returns, with a pointer to `count`, which has no other user.
        unsafe {
            bindings::blk_mq_iter_started(
                self.as_raw(),
                Some(InFlightCount::<T>::count_request),
                (&raw mut count).cast(),
            );
        }
        count.requests
    }

    /// Quiesces the queue of a new disk if the set is paused.
    ///
    /// # Safety
    ///
    /// `q` is a valid queue on this set, of a disk that is not added.
    pub(super) unsafe fn join_quiesce(&self, q: *mut bindings::request_queue) {
        let pauses = self.0.pauses.lock();

        // SAFETY: By the safety requirements of this function, `q` is valid. Only this structure
        // quiesces the queue of a disk that is not added. It has done so if the queue was on the
        // set before.
        unsafe {
            if *pauses != 0 && !bindings::blk_queue_quiesced(q) {
                bindings::blk_mq_quiesce_queue(q);
            }
        }
    }

    /// Waits for running calls of [`queue_rq`](Operations::queue_rq) and
    /// [`commit_rqs`](Operations::commit_rqs), then drops the data of retired hardware queues.
    /// During a change of the layout it drops none, because the change may take the data back;
    /// `set_queues` drops it.
    pub(super) fn reap(&self) {
        let retired = match self.0.changing.try_lock() {
            Some(_no_change) => self.0.retired.lock().take(),
            None => RetiredHctxs::new(),
        };
        self.drop_unused(retired);
    }

    fn drop_unused(&self, retired: RetiredHctxs<T>) {
        // SAFETY: The callers may sleep. `queue_rq` and `commit_rqs` run in RCU read-side critical
        // sections, so none that uses the data runs afterwards.
        unsafe { bindings::synchronize_rcu() };
        drop(retired);
    }
}

impl<T: Operations> AllocatedSet<T> {
    /// Returns the tag set of a `driver_data`.
    ///
    /// # Safety
    ///
    /// `driver_data` points to an `AllocatedSet<T>` that is not dropped for `'a`, and whose fields are all
    /// initialised except perhaps `inner`.
    pub(super) unsafe fn from_driver_data<'a>(driver_data: *mut c_void) -> &'a Self {
        // SAFETY: By the safety requirements of this function, it points to an `AllocatedSet<T>`. `inner`
        // is an `Opaque`, which may be uninitialised.
        unsafe { &*driver_data.cast() }
    }

    /// Returns the tag set for C.
    pub(super) fn as_raw(&self) -> *mut bindings::blk_mq_tag_set {
        self.inner.get()
    }

    /// Returns the driver data of the tag set.
    #[inline]
    pub(super) fn data(&self) -> &T::SetData {
        &self.data
    }

    /// Updates and returns the number of queues of each kind, for the `queues` hardware queues that
    /// C has when it sets up its maps. If C has fewer than requested, memory was short and the
    /// previous layout applies, or the number is limited to that of the CPUs.
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

    /// Keeps data that was detached from a hardware queue until [`reap`](TagSet::reap) or the end of
    /// the present change of the layout.
    ///
    /// # Safety
    ///
    /// `queue` was [detached](HwQueue::detach) from a hardware queue of this set, and the caller
    /// passes on its ownership.
    pub(super) unsafe fn retire(&self, queue: NonNull<HwQueue<T>>) {
        // SAFETY: By the safety requirements of this function, `queue` is detached and owned.
        unsafe { self.retired.lock().push(queue) };
    }

    /// Returns the data that was detached from this hardware queue, if it is not yet dropped.
    /// During a change of the layout, this is the data from before the change.
    pub(super) fn take_back(&self, key: HctxKey) -> Option<NonNull<HwQueue<T>>> {
        self.retired.lock().take_back(key)
    }
}

/// A pause of the disks on a tag set, by [`TagSet::pause`]. Dropping the last one unquiesces them, and sends
/// [held](super::Request::hold) and delayed [requeued](super::Request::requeue) requests. May sleep then. C:
/// `blk_mq_unquiesce_tagset()`, `blk_mq_kick_requeue_list()`.
#[must_use = "the disks run again at once if this is unused"]
pub struct Paused<'a, T: Operations>(&'a TagSet<T>);

impl<T: Operations> Drop for Paused<'_, T> {
    fn drop(&mut self) {
        self.0.resume();
        self.0.kick_requeued();
    }
}

#[pinned_drop]
impl<T: Operations> PinnedDrop for AllocatedSet<T> {
    fn drop(self: Pin<&mut Self>) {
        // Added disks hold references to the set, so none is left. A disk that failed to be added
        // leaves the set with the last reference to its device, which another thread may hold for a
        // moment while it iterates over devices.
        //
        // SAFETY: By the type invariants, `inner` is valid.
        while !unsafe { bindings::blk_mq_tag_set_unused(self.as_raw()) } {
            fsleep(Delta::from_millis(1));
        }
        // SAFETY: By the type invariants, `inner` is valid. No disk is on it any more.
        unsafe { bindings::blk_mq_free_tag_set(self.as_raw()) };
    }
}
