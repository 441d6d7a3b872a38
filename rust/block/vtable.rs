// SPDX-License-Identifier: GPL-2.0

//! Table of block operations: calls from C to [`Operations`].
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    hw_queue::{
        HctxKey,
        HwQueue, //
    },
    request::{
        self,
        Pdu, //
    },
    tag_set::AllocatedSet,
    Operations,
    Request,
    RequestRef,
    Status,
    TagSet,
    TagSetConfig,
    TimeoutAction, //
};
use crate::{
    bindings,
    sync::{
        ModuleUse,
        RcuSection,
        UseKind, //
    },
};
use core::{
    iter,
    marker::PhantomData,
    panic::Location,
    ptr, //
};
use kernel::{error::from_result, prelude::*, sync::Arc};

impl<T: Operations> TagSet<T> {
    /// Creates a tag set. May sleep. C: `blk_mq_alloc_tag_set()`.
    ///
    /// Calls [`Operations::new_request_data`] for each tag.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if a number of `config` is out of range.
    /// - `ENOMEM`.
    #[track_caller]
    pub fn new(config: TagSetConfig, data: T::SetData) -> Result<Arc<Self>> {
        let module = ModuleUse::new(UseKind::TagSet, Location::caller())?;
        // SAFETY: `OPS` is the table of `T`.
        unsafe { Self::with_ops(config, data, &Vtable::<T>::OPS, module) }
    }
}

/// Table of operations for C.
///
/// Only blk-mq calls its functions, and only with objects of [`TagSet`] and [`Disk`](super::Disk):
///
/// - A tag set is the `inner` of an `AllocatedSet<T>`, and its `driver_data` points to that.
/// - The `driver_data` of a hardware queue is an `HwQueue<T>` after `init_hctx`.
/// - The `queuedata` of a disk's queue is a `T::DiskData`.
/// - A request has a `Pdu<T>` behind it, which `init_request` initialises.
struct Vtable<T>(PhantomData<T>);

impl<T: Operations> Vtable<T> {
    const OPS: bindings::blk_mq_ops = bindings::blk_mq_ops {
        queue_rq: Some(Self::queue_rq),
        queue_rqs: Some(Self::queue_rqs),
        commit_rqs: Some(Self::commit_rqs),
        timeout: Some(Self::timeout),
        poll: Some(Self::poll),
        complete: Some(Self::complete),
        init_hctx: Some(Self::init_hctx),
        exit_hctx: Some(Self::exit_hctx),
        init_request: Some(Self::init_request),
        exit_request: Some(Self::exit_request),
        map_queues: Some(Self::map_queues),
        ..pin_init::zeroed()
    };

    /// Passes a request to [`Operations::queue_rq`].
    ///
    /// # Safety
    ///
    /// `hctx` and `bd` are valid. The driver owns the request of `bd` from here on, unless an error
    /// is returned. Called in an RCU read-side critical section.
    unsafe extern "C" fn queue_rq(
        hctx: *mut bindings::blk_mq_hw_ctx,
        bd: *const bindings::blk_mq_queue_data,
    ) -> bindings::blk_status_t {
        // SAFETY: By the safety requirements of this function, `bd` is valid.
        let (rq, last) = unsafe { ((*bd).rq, (*bd).last) };
        // SAFETY: By the safety requirements of this function, `hctx` is initialised. Its data and
        // that of the disk outlive the RCU read-side critical section: `Disk::drop` and
        // `TagSet::set_queues` wait for it before they drop data.
        let (queue, disk) = unsafe {
            (
                HwQueue::<T>::data(hctx),
                &*(*(*hctx).queue).queuedata.cast::<T::DiskData>(),
            )
        };
        // SAFETY: By the safety requirements of this function, the driver owns the request.
        let request = unsafe { Request::from_raw(rq) };

        // SAFETY: By the safety requirements of this function, the caller's critical section lasts
        // until this function returns.
        let section = unsafe { RcuSection::of_caller() };

        match T::queue_rq(queue, disk, request, last, section) {
            Ok(()) => Status::Ok.as_raw(),
            Err(refused) => refused.give_back(rq, hctx),
        }
    }

    /// Sends a list of requests. Those that stay in the list are passed to `queue_rq`.
    ///
    /// The list may be that of the thread's plug. The end of a request may then add requests of other
    /// disks to it.
    ///
    /// # Safety
    ///
    /// `list` and its requests are valid. The first one belongs to a disk of `T`, and the driver owns
    /// what it takes from the list of this disk. Called in an RCU read-side critical section.
    unsafe extern "C" fn queue_rqs(list: *mut bindings::rq_list) {
        // SAFETY: By the safety requirements of this function.
        let (disk_queue, section) = unsafe { ((*(*list).head).q, RcuSection::of_caller()) };
        let mut before = ptr::null_mut();

        loop {
            // SAFETY: By the safety requirements of this function, the list and its requests are valid.
            let Some(first) = (unsafe { (*list).head.as_ref() }) else {
                return;
            };
            let hctx = first.mq_hctx;
            if hctx == before || first.q != disk_queue {
                return;
            }
            // SAFETY: A request has an initialised hardware queue of its disk, which is one of `T`.
            // Their data outlives the critical section, as in `queue_rq`.
            let (queue, disk) = unsafe {
                (
                    HwQueue::<T>::data(hctx),
                    &*(*disk_queue).queuedata.cast::<T::DiskData>(),
                )
            };
            // SAFETY: By the safety requirements of this function.
            let requests = iter::from_fn(|| unsafe { Self::take_first(hctx, list) });

            T::queue_rqs(queue, disk, requests, section);
            before = hctx;
        }
    }

    /// Takes the first request out of a list, if it is for this hardware queue.
    ///
    /// # Safety
    ///
    /// The list is that of a call of `queue_rqs`, and the hardware queue that of a disk of `T`.
    #[inline(always)]
    unsafe fn take_first(
        hctx: *mut bindings::blk_mq_hw_ctx,
        list: *mut bindings::rq_list,
    ) -> Option<Request<T>> {
        // SAFETY: By the safety requirements of this function, the list and its requests are valid.
        // The driver owns the one that it takes.
        unsafe {
            let rq = (*list).head;
            if rq.is_null() || (*rq).mq_hctx != hctx {
                return None;
            }
            (*list).head = (*rq).__bindgen_anon_1.rq_next;
            if (*list).head.is_null() {
                (*list).tail = ptr::null_mut();
            }
            Some(Request::from_raw(rq))
        }
    }

    /// Passes the end of a batch to [`Operations::commit_rqs`].
    ///
    /// # Safety
    ///
    /// `hctx` is valid. Called within an RCU read-side critical section.
    unsafe extern "C" fn commit_rqs(hctx: *mut bindings::blk_mq_hw_ctx) {
        // SAFETY: By the safety requirements of this function, `hctx` is initialised, and its data
        // outlives the RCU read-side critical section of the caller, as in `queue_rq`.
        let (queue, section) = unsafe { (HwQueue::<T>::data(hctx), RcuSection::of_caller()) };

        T::commit_rqs(queue, section);
    }

    /// Passes the time-out of a request to [`Operations::timeout`]. Work item of blk-mq.
    ///
    /// # Safety
    ///
    /// `rq` is valid, was in flight a moment ago, and is not reused before this returns.
    unsafe extern "C" fn timeout(rq: *mut bindings::request) -> bindings::blk_eh_timer_return {
        // SAFETY: By the safety requirements of this function, `rq` is valid. Its `mq_hctx` does
        // not change before the request is freed. blk-mq holds a reference to the queue while it
        // checks for timeouts, so the data of the hardware queue is not dropped.
        let (queue, request) =
            unsafe { (HwQueue::<T>::data((*rq).mq_hctx), RequestRef::from_raw(rq)) };

        match T::timeout(queue, &request) {
            TimeoutAction::Done => bindings::blk_eh_timer_return_BLK_EH_DONE,
            TimeoutAction::ResetTimer => bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER,
        }
    }

    /// Polls a hardware queue by [`Operations::poll`].
    ///
    /// # Safety
    ///
    /// `hctx` is valid, and the poller holds a reference to its queue or has a request on it.
    unsafe extern "C" fn poll(
        hctx: *mut bindings::blk_mq_hw_ctx,
        _batch: *mut bindings::io_comp_batch,
    ) -> c_int {
        // SAFETY: By the safety requirements of this function, the disk is not removed meanwhile.
        let completed = T::poll(unsafe { HwQueue::<T>::data(hctx) });

        c_int::try_from(completed).unwrap_or(c_int::MAX)
    }

    /// Ends a completed request, in the context that blk-mq has chosen.
    ///
    /// # Safety
    ///
    /// [`Request::complete`] passed on the ownership of `rq`.
    unsafe extern "C" fn complete(rq: *mut bindings::request) {
        // SAFETY: By the safety requirements of this function, `complete` was called for `rq`.
        unsafe { request::end::<T>(rq) };
    }

    /// Creates the data of a hardware queue by [`Operations::new_queue`], or keeps that from before.
    ///
    /// # Safety
    ///
    /// `hctx` is valid, is not yet initialised, and becomes hardware queue `index`. `set` is the
    /// `driver_data` of its tag set.
    unsafe extern "C" fn init_hctx(
        hctx: *mut bindings::blk_mq_hw_ctx,
        set: *mut c_void,
        index: c_uint,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements of this function and the invariants of `TagSet`,
            // `set` points to an `AllocatedSet<T>`.
            let set = unsafe { AllocatedSet::<T>::from_driver_data(set) };

            // SAFETY: By the safety requirements of this function, `hctx` becomes hardware queue
            // `index`.
            let key = unsafe { HctxKey::of(hctx, index) };
            let queue = T::new_queue(set.data(), index)
                .and_then(|data| HwQueue::<T>::new(data, key))
                // C cannot handle the loss of a hardware queue that existed before.
                .or_else(|error| set.take_back(key).ok_or(error))?;

            // SAFETY: By the safety requirements of this function, `hctx` is valid and has no data.
            // `queue` is owned.
            unsafe { HwQueue::<T>::attach(hctx, queue) };
            Ok(0)
        })
    }

    /// Detaches the data of a hardware queue. The tag set keeps it for a while, or drops it.
    ///
    /// # Safety
    ///
    /// `hctx` is initialised and gets no more requests. Calls for the hardware queues of one disk
    /// do not overlap.
    unsafe extern "C" fn exit_hctx(hctx: *mut bindings::blk_mq_hw_ctx, _index: c_uint) {
        // SAFETY: By the safety requirements of this function, `hctx` is valid. `TagSet::drop`
        // waits until no disk is on the set, so the set exists.
        let set =
            unsafe { AllocatedSet::<T>::from_driver_data((*(*(*hctx).queue).tag_set).driver_data) };

        // SAFETY: By the safety requirements of this function, `hctx` has data. `detach` passes on
        // its ownership.
        unsafe { set.retire(HwQueue::<T>::detach(hctx)) };
    }

    /// Creates the data of a request by [`Operations::new_request_data`].
    ///
    /// # Safety
    ///
    /// `set` is a tag set, perhaps still being allocated. `rq` and the `cmd_size` bytes behind it
    /// are valid for writes.
    unsafe extern "C" fn init_request(
        set: *mut bindings::blk_mq_tag_set,
        rq: *mut bindings::request,
        index: c_uint,
        _node: c_int,
    ) -> c_int {
        // SAFETY: By the safety requirements of this function and the invariants of `TagSet`,
        // `driver_data` points to an `AllocatedSet<T>`.
        let set = unsafe { AllocatedSet::<T>::from_driver_data((*set).driver_data) };

        // SAFETY: By the safety requirements of this function, `cmd_size` bytes, a `Pdu<T>`, behind
        // `rq` are valid for writes. C calls `exit_request` before it frees them.
        unsafe { Pdu::<T>::init(rq, T::new_request_data(set.data(), index)) };
        0
    }

    /// Drops the data of a request.
    ///
    /// # Safety
    ///
    /// `rq` was initialised by `init_request`, and nobody uses it any more.
    unsafe extern "C" fn exit_request(
        _set: *mut bindings::blk_mq_tag_set,
        rq: *mut bindings::request,
        _index: c_uint,
    ) {
        // SAFETY: By the safety requirements of this function, the private data of `rq` is prepared
        // and unused.
        unsafe { Pdu::<T>::clear(rq) };
    }

    /// Maps CPUs to the hardware queues of each kind.
    ///
    /// # Safety
    ///
    /// `set` is a tag set, perhaps still being allocated. Its maps are allocated and nobody else
    /// uses them.
    unsafe extern "C" fn map_queues(set: *mut bindings::blk_mq_tag_set) {
        // SAFETY: By the safety requirements of this function, `set` is valid.
        let (driver_data, queues) = unsafe { ((*set).driver_data, (*set).nr_hw_queues) };
        // SAFETY: By the invariants of `TagSet`, `driver_data` points to an `AllocatedSet<T>`.
        let tag_set = unsafe { AllocatedSet::<T>::from_driver_data(driver_data) };
        let counts = tag_set.update_layout(queues);

        // SAFETY: By the safety requirements of this function, the maps are unused. By the
        // invariants of `TagSet`, each kind of queue in `counts` has an allocated map.
        unsafe { counts.map(set) };
    }
}
