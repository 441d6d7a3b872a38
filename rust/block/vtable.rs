// SPDX-License-Identifier: GPL-2.0

//! The operations of a driver as C calls them.
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
    Operations,
    Request,
    RequestRef,
    Status,
    TagSet,
    TagSetConfig,
    TimeoutAction, //
};
use crate::bindings;
use core::{
    marker::PhantomData,
    mem::{
        ManuallyDrop,
        MaybeUninit, //
    },
};
use kernel::{
    error::from_result,
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
};

impl<T: Operations> TagSet<T> {
    /// Makes a tag set. May sleep. C: `blk_mq_alloc_tag_set`.
    ///
    /// Calls [`Operations::new_request_data`] for each tag.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if a number of `config` is out of its range.
    /// - `ENOMEM`, or the error of `new_request_data`.
    pub fn new(config: TagSetConfig, data: T::SetData) -> Result<Arc<Self>> {
        // SAFETY: They are.
        unsafe { Self::with_ops(config, data, &Vtable::<T>::OPS) }
    }
}

/// The table of operations for C.
///
/// All of its functions are called by blk-mq only, and by their safety requirements
/// with what [`TagSet`] and [`Disk`](super::Disk) made: a tag set that is the `inner`
/// of a `TagSet<T>`, whose `driver_data` points to it; hardware queues of which the
/// `driver_data` is a `HwQueue<T>` after `init_hctx`; disks of which the `queuedata`
/// is a `T::DiskData`; requests with room for a `Pdu<T>` behind them, which is prepared
/// by `init_request` and has data before the request is used.
struct Vtable<T>(PhantomData<T>);

impl<T: Operations> Vtable<T> {
    const OPS: bindings::blk_mq_ops = bindings::blk_mq_ops {
        queue_rq: Some(Self::queue_rq),
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

    /// # Safety
    ///
    /// `hctx` and `bd` are valid; the request of `bd` is the driver's from here on,
    /// unless an error is returned. Called within an RCU read-side critical section.
    unsafe extern "C" fn queue_rq(
        hctx: *mut bindings::blk_mq_hw_ctx,
        bd: *const bindings::blk_mq_queue_data,
    ) -> bindings::blk_status_t {
        // SAFETY: By the requirements of this function.
        let (rq, last) = unsafe { ((*bd).rq, (*bd).last) };
        // SAFETY: By the requirements of this function `hctx` is set up. Its data
        // outlives the critical section that we are called in, and so does that of
        // the disk: see `Disk::drop`.
        let (queue, disk) = unsafe {
            (
                HwQueue::<T>::data(hctx),
                &*(*(*hctx).queue).queuedata.cast::<T::DiskData>(),
            )
        };
        // SAFETY: By the requirements of this function the request is ours.
        let request = unsafe { Request::from_raw(rq) };

        // SAFETY: By the requirements of this function; it does not end before we return.
        let guard = unsafe { rcu_guard() };

        match T::queue_rq(queue, disk, request, last, &guard) {
            Ok(()) => Status::Ok.as_raw(),
            Err(refused) => refused.give_back(rq),
        }
    }

    /// # Safety
    ///
    /// `hctx` is valid. Called within an RCU read-side critical section.
    unsafe extern "C" fn commit_rqs(hctx: *mut bindings::blk_mq_hw_ctx) {
        // SAFETY: As in `queue_rq`.
        let (queue, guard) = unsafe { (HwQueue::<T>::data(hctx), rcu_guard()) };

        T::commit_rqs(queue, &guard);
    }

    /// # Safety
    ///
    /// `rq` is valid, was under way a moment ago, and is not used for anything else
    /// before this returns.
    unsafe extern "C" fn timeout(rq: *mut bindings::request) -> bindings::blk_eh_timer_return {
        // SAFETY: By the requirements of this function; `mq_hctx` stays while the
        // request is not freed. blk-mq holds a reference to the queue while it looks
        // for time-outs, so the data of the hardware queue stays too.
        let (queue, request) =
            unsafe { (HwQueue::<T>::data((*rq).mq_hctx), RequestRef::from_raw(rq)) };

        match T::timeout(queue, &request) {
            TimeoutAction::Done => bindings::blk_eh_timer_return_BLK_EH_DONE,
            TimeoutAction::ResetTimer => bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER,
        }
    }

    /// # Safety
    ///
    /// `hctx` is valid, and whoever polls holds a reference to its queue or a request
    /// on it.
    unsafe extern "C" fn poll(
        hctx: *mut bindings::blk_mq_hw_ctx,
        _batch: *mut bindings::io_comp_batch,
    ) -> c_int {
        // SAFETY: By the requirements of this function the disk cannot go away.
        let completed = T::poll(unsafe { HwQueue::<T>::data(hctx) });

        c_int::try_from(completed).unwrap_or(c_int::MAX)
    }

    /// # Safety
    ///
    /// `rq` was handed over by [`Request::complete`], and nobody else has it.
    unsafe extern "C" fn complete(rq: *mut bindings::request) {
        // SAFETY: By the requirements of this function.
        unsafe { request::end::<T>(rq) };
    }

    /// # Safety
    ///
    /// `hctx` is valid and not set up, but to be hardware queue `index`; `set` is the
    /// `driver_data` of its tag set.
    unsafe extern "C" fn init_hctx(
        hctx: *mut bindings::blk_mq_hw_ctx,
        set: *mut c_void,
        index: c_uint,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the requirements of this function and the invariants of
            // `TagSet`.
            let set = unsafe { TagSet::<T>::from_driver_data(set) };

            // SAFETY: By the requirements of this function.
            let key = unsafe { HctxKey::of(hctx, index) };
            let queue = T::new_queue(set.data(), index)
                .and_then(|data| HwQueue::<T>::new(data, key))
                // C cannot cope with a hardware queue that there is no more.
                .or_else(|error| set.take_back(key).ok_or(error))?;

            // SAFETY: By the requirements of this function; it is ours.
            unsafe { HwQueue::<T>::attach(hctx, queue) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `hctx` is set up, and gets no requests any more. Calls for the hardware
    /// queues of one disk do not overlap.
    unsafe extern "C" fn exit_hctx(hctx: *mut bindings::blk_mq_hw_ctx, _index: c_uint) {
        // SAFETY: By the requirements of this function; the tag set is there until no
        // disk is on it: see `TagSet::drop`.
        let set = unsafe { TagSet::<T>::from_driver_data((*(*(*hctx).queue).tag_set).driver_data) };

        // SAFETY: By the requirements of this function; what is detached is ours.
        unsafe { set.retire(HwQueue::<T>::detach(hctx)) };
    }

    /// # Safety
    ///
    /// `set` is a tag set, maybe one that is not yet complete; `rq` is valid for
    /// writes, also behind it, where there is room for the `cmd_size` of the set.
    unsafe extern "C" fn init_request(
        set: *mut bindings::blk_mq_tag_set,
        rq: *mut bindings::request,
        index: c_uint,
        _node: c_int,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the requirements of this function and the invariants of
            // `TagSet`.
            let set = unsafe { TagSet::<T>::from_driver_data((*set).driver_data) };

            // SAFETY: By the requirements of this function.
            unsafe { set.init_request(rq, index) }?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `rq` went through `init_request`, and nobody uses it any more.
    unsafe extern "C" fn exit_request(
        _set: *mut bindings::blk_mq_tag_set,
        rq: *mut bindings::request,
        _index: c_uint,
    ) {
        // SAFETY: By the requirements of this function.
        unsafe { Pdu::<T>::clear(rq) };
    }

    /// # Safety
    ///
    /// `set` is a tag set, maybe one that is not yet complete, with its maps
    /// allocated, and nobody else uses them.
    unsafe extern "C" fn map_queues(set: *mut bindings::blk_mq_tag_set) {
        // SAFETY: By the requirements of this function.
        let (driver_data, queues) = unsafe { ((*set).driver_data, (*set).nr_hw_queues) };
        // SAFETY: By the invariants of `TagSet`.
        let counts = unsafe { TagSet::<T>::from_driver_data(driver_data) }.update_layout(queues);

        // SAFETY: By the requirements of this function; there are queues only of kinds that
        // the set was made for.
        unsafe { counts.map(set) };
    }
}

/// Stands for a read-side critical section of RCU that somebody else began, and will end.
///
/// # Safety
///
/// The caller must be in one, for as long as the result is used.
#[inline]
unsafe fn rcu_guard() -> ManuallyDrop<rcu::Guard> {
    const { assert!(size_of::<rcu::Guard>() == 0) };

    // SAFETY: A guard has no data. By the requirements of this function there is what it says,
    // and it is not dropped, which would end that.
    ManuallyDrop::new(unsafe { MaybeUninit::uninit().assume_init() })
}
