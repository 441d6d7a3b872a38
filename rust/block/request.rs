// SPDX-License-Identifier: GPL-2.0

//! Block requests.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    Op,
    Operations,
    Status, //
};
use crate::{
    bindings,
    compat,
    sync::Msecs, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    pr_warn_once,
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// Private data behind each `struct request` (`blk_mq_rq_to_pdu()`): the driver data, and the
/// status on its way from [`Request::complete`] to the CPU that ends the request.
///
pub(super) struct Pdu<T: Operations> {
    status: UnsafeCell<Status>,
    data: T::RequestData,
}

impl<T: Operations> Pdu<T> {
    /// Size of the private data, for `cmd_size`.
    pub(super) const SIZE: u32 = {
        assert!(
            align_of::<Self>() <= align_of::<bindings::request>(),
            "the driver data must not need a larger alignment than `struct request`"
        );
        assert!(size_of::<Self>() <= u32::MAX as usize);
        size_of::<Self>() as u32
    };

    /// Returns the private data of a request.
    ///
    /// # Safety
    ///
    /// `rq` has private data of [`SIZE`](Self::SIZE) bytes.
    #[inline]
    pub(super) unsafe fn of(rq: *mut bindings::request) -> *mut Self {
        // SAFETY: By the safety requirements of this function, the result is within the allocation,
        // which is at least aligned for a `struct request`, and so is the end of the request.
        unsafe { rq.add(1).cast() }
    }

    /// Initialises the private data.
    ///
    /// # Safety
    ///
    /// `rq` has private data of [`SIZE`](Self::SIZE) bytes that is valid for writes, has no other
    /// user, and stays allocated until [`Pdu::clear`].
    pub(super) unsafe fn init(rq: *mut bindings::request, data: impl PinInit<T::RequestData>) {
        // SAFETY: By the safety requirements of this function, the private data is valid for
        // writes, and does not move before it is dropped.
        unsafe {
            let pdu = Self::of(rq);

            (&raw mut (*pdu).status).write(UnsafeCell::new(Status::IoError));
            let Ok(()) = compat::raw_pin_init(&raw mut (*pdu).data, data);
        }
    }

    /// Drops the private data.
    ///
    /// # Safety
    ///
    /// The private data of `rq` is [initialised](Self::init), has no other user, and is not used
    /// afterwards.
    pub(super) unsafe fn clear(rq: *mut bindings::request) {
        // SAFETY: By the safety requirements of this function, the private data is initialised and
        // has no other user.
        unsafe { Self::of(rq).drop_in_place() };
    }
}

/// A reference to a request that may have another owner.
///
/// [`Request`] dereferences to it.
///
/// # Invariants
///
/// `request` is a valid request of a [`Disk<T>`](super::Disk). It has a hardware queue and a
/// `Pdu<T>`, and is not reused while this exists.
pub struct RequestRef<T: Operations> {
    request: NonNull<bindings::request>,
    _driver: PhantomData<T>,
}

impl<T: Operations> RequestRef<T> {
    /// Creates a reference to a request.
    ///
    /// # Safety
    ///
    /// The type invariants hold while the result exists.
    #[inline]
    pub(super) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
        // INVARIANT: By the safety requirements of this function.
        Self {
            // SAFETY: A pointer to a valid request is not null.
            request: unsafe { NonNull::new_unchecked(rq) },
            _driver: PhantomData,
        }
    }

    /// Returns the request for C.
    #[inline]
    pub(super) fn as_raw(&self) -> *mut bindings::request {
        self.request.as_ptr()
    }

    /// Returns the `cmd_flags`, which do not change while the request is in use.
    #[inline]
    fn flags(&self) -> bindings::blk_opf_t {
        // SAFETY: By the type invariants, the request is valid.
        unsafe { (*self.as_raw()).cmd_flags }
    }

    /// Returns the driver data of the request.
    #[inline]
    pub fn data(&self) -> Pin<&T::RequestData> {
        // SAFETY: By the type invariants, the driver data is initialised, and is neither moved nor
        // dropped while `self` is borrowed.
        unsafe { Pin::new_unchecked(&(*Pdu::<T>::of(self.as_raw())).data) }
    }

    /// Returns the tag: a number below the depth of the tag set that is unique among the requests
    /// in flight on this hardware queue.
    ///
    /// It is stable for the owner of the request. In [`timeout`](Operations::timeout) it is
    /// `u32::MAX` if the owner has just requeued the request.
    #[inline]
    pub fn tag(&self) -> u32 {
        // SAFETY: By the type invariants, the request is valid. Its owner may change the tag
        // concurrently, hence the volatile read (`READ_ONCE()`).
        let tag = unsafe { (&raw const (*self.as_raw()).tag).read_volatile() };

        tag as u32
    }

    /// Returns whether the request is in flight: started, and neither ended nor requeued since. The
    /// result may be outdated unless the caller owns the request. C: `blk_mq_rq_state()`.
    #[inline]
    pub fn is_under_way(&self) -> bool {
        // SAFETY: By the type invariants, the request is valid. Its owner may change the state
        // concurrently, hence the volatile read (`READ_ONCE()`).
        let state = unsafe { (&raw const (*self.as_raw()).state).read_volatile() };

        state == bindings::mq_rq_state_MQ_RQ_IN_FLIGHT
    }

    /// Returns the operation.
    #[inline]
    pub fn op(&self) -> Op {
        Op::from_flags(self.flags())
    }

    /// Cannot be called: only the owner completes a request, by [`Request::complete`]. The compiler says where
    /// [`timeout`](Operations::timeout) gets the [`Request`] from.
    pub fn complete(&self, _status: Status)
    where
        Self: OwnsRequest,
    {
    }
}

/// An owner of a request. No type implements it, so that [`RequestRef::complete`] is refused with this message.
#[diagnostic::on_unimplemented(
    message = "a `RequestRef` does not own the request, so it cannot complete it",
    label = "complete the `Request` that `queue_rq` received",
    note = "in `timeout`, take that `Request` from where the driver stored it, which `tag()` tells, and complete it",
    note = "if it is no longer stored there, its owner completes it: return `TimeoutAction::Done`"
)]
pub trait OwnsRequest {}

/// A request of the block layer that the driver owns.
///
/// The driver gives it back with [`complete`](Self::complete), [`requeue`](Self::requeue) or
/// [`refuse`](Self::refuse), in any context. Dropping a request is a driver bug. It ends the
/// request with [`Status::IoError`] and logs a warning, so that its submitter does not hang.
///
/// The removal of the disk waits for the request.
///
/// # Invariants
///
/// blk-mq passed the request to the driver, which has not given it back. There is no other
/// `Request` for it.
pub struct Request<T: Operations> {
    inner: RequestRef<T>,
}

// SAFETY: A request is not tied to a thread. The C functions called with it accept any context, and
// the driver data is `Sync`.
unsafe impl<T: Operations> Send for Request<T> {}

impl<T: Operations> Deref for Request<T> {
    type Target = RequestRef<T>;

    #[inline]
    fn deref(&self) -> &RequestRef<T> {
        &self.inner
    }
}

impl<T: Operations> Request<T> {
    /// Takes ownership of a request.
    ///
    /// # Safety
    ///
    /// `rq` is a valid request of a [`Disk<T>`](super::Disk), and the caller passes on its
    /// ownership.
    #[inline]
    pub(super) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
        // INVARIANT: By the safety requirements of this function.
        Self {
            // SAFETY: By the safety requirements of this function, `rq` is a request of a
            // `Disk<T>`. It is not reused before the driver gives it back.
            inner: unsafe { RequestRef::from_raw(rq) },
        }
    }

    /// Releases the ownership, to C or to the caller.
    #[inline]
    fn into_raw(self) -> *mut bindings::request {
        ManuallyDrop::new(self).as_raw()
    }

    /// Returns the driver data of the request's disk.
    #[inline]
    pub fn disk_data(&self) -> &T::DiskData {
        // SAFETY: By the invariants, the request is valid and belongs to a `Disk<T>`, whose data is
        // dropped after all its requests have been given back.
        unsafe { &*(*(*self.as_raw()).q).queuedata.cast() }
    }

    /// Returns the first sector, in units of 512 bytes. Undefined for a flush or a command of the
    /// driver. C: `blk_rq_pos()`.
    #[inline]
    pub fn sector(&self) -> u64 {
        // SAFETY: By the invariants, the request is valid and owned, so nobody else changes it.
        unsafe { (*self.as_raw()).__sector }
    }

    /// Returns the length in bytes. C: `blk_rq_bytes()`.
    #[inline]
    pub fn bytes(&self) -> u32 {
        // SAFETY: By the invariants, the request is valid and owned, so nobody else changes it.
        unsafe { (*self.as_raw()).__data_len }
    }

    /// Returns an upper bound of the number of segments of the data, which also bounds the entries
    /// of its [`ScatterTable`](crate::scatter::ScatterTable). C: `blk_rq_nr_phys_segments()`.
    #[inline]
    pub fn segments(&self) -> u16 {
        // SAFETY: By the invariants, the request is valid and owned, so nobody else changes it.
        unsafe { (*self.as_raw()).nr_phys_segments }
    }

    /// Returns whether data goes to the device, or data of the device changes. C: `op_is_write()`.
    #[inline]
    pub fn is_write(&self) -> bool {
        self.flags() & 1 != 0
    }

    /// Returns whether a write must be on the medium when it completes (`REQ_FUA`).
    #[inline]
    pub fn is_fua(&self) -> bool {
        self.flags() & (1 << bindings::req_flag_bits___REQ_FUA) != 0
    }

    /// Returns whether zeroed space must stay allocated (`REQ_NOUNMAP`).
    #[inline]
    pub fn no_unmap(&self) -> bool {
        self.flags() & (1 << bindings::req_flag_bits___REQ_NOUNMAP) != 0
    }

    /// Returns whether the request must fail rather than be retried. C: `blk_noretry_request()`.
    #[inline]
    pub fn no_retry(&self) -> bool {
        const NO_RETRY: bindings::blk_opf_t = (1 << bindings::req_flag_bits___REQ_FAILFAST_DEV)
            | (1 << bindings::req_flag_bits___REQ_FAILFAST_TRANSPORT)
            | (1 << bindings::req_flag_bits___REQ_FAILFAST_DRIVER);

        self.flags() & NO_RETRY != 0
    }

    /// Returns whether the disk is being removed without write-back, so that a retry is useless. C:
    /// `blk_queue_dying()`.
    pub fn is_disk_dying(&self) -> bool {
        // SAFETY: By the invariants, the request is valid, and so is its queue.
        unsafe { bindings::blk_queue_dying((*self.as_raw()).q) }
    }

    /// Returns whether errors of the request must not be logged (`RQF_QUIET`): its submitter
    /// expects them.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        // SAFETY: By the invariants, the request is valid and owned, so nobody else changes it.
        unsafe { (*self.as_raw()).rq_flags & bindings::rrdma_RQF_QUIET != 0 }
    }

    /// Returns whether the request has pages with data or for data. C: `blk_rq_has_data()`.
    #[inline]
    pub(super) fn has_data(&self) -> bool {
        let is_about_space = matches!(
            self.flags() & Op::MASK,
            bindings::req_op_REQ_OP_DISCARD
                | bindings::req_op_REQ_OP_SECURE_ERASE
                | bindings::req_op_REQ_OP_WRITE_ZEROES
        );

        self.bytes() != 0 && !is_about_space
    }

    /// Starts the request and its timeout. Must be called before the device or another thread can
    /// complete it.
    ///
    /// Does nothing if the request is already started. A request may be completed without a start.
    /// Any context. C: `blk_mq_start_request()`.
    #[inline]
    pub fn start(&self) {
        let rq = self.as_raw();

        // SAFETY: By the invariants, the request is valid. Only its owner starts it or makes it
        // idle, and `Request` is not `Sync`, so this thread is the only one to do so.
        unsafe {
            if (*rq).state == bindings::mq_rq_state_MQ_RQ_IDLE {
                bindings::blk_mq_start_request(rq);
            }
        }
    }

    /// Completes the whole request with a status.
    ///
    /// The block layer ends it on the submitting CPU, or on a CPU that shares its cache. The memory
    /// of the request may be reused at once. Any context, also in
    /// [`queue_rq`](Operations::queue_rq), whether the request was started or not. C:
    /// `blk_mq_complete_request()`.
    #[inline(always)]
    pub fn complete(self, status: Status) {
        let rq = self.into_raw();

        // SAFETY: By the invariants, the request is valid and owned, so nobody else accesses the
        // status.
        unsafe { *(*Pdu::<T>::of(rq)).status.get() = status };
        // SAFETY: By the invariants, the request is valid and owned. C owns it from here on if the
        // call returns true.
        if !unsafe { bindings::blk_mq_complete_request_remote(rq) } {
            // SAFETY: The request is still owned. C expects the caller to end it instead of calling
            // `complete`.
            unsafe { bindings::blk_mq_end_request(rq, status.as_raw()) };
        }
    }

    /// Gives the request back, to be passed to [`queue_rq`](Operations::queue_rq) again: at once,
    /// or after `delay`, or together with another request of the disk that is due earlier.
    ///
    /// It may have been merged with adjacent requests by then. Any context. C:
    /// `blk_mq_requeue_request()`.
    pub fn requeue(self, delay: Option<Msecs>) {
        let rq = self.into_raw();

        // SAFETY: By the invariants, the request and its queue are valid, and the request keeps the
        // queue in use, so another usage reference can be taken. The queue must outlive the kick:
        // once the request is on the requeue list, another CPU may complete it and the disk may be
        // removed.
        unsafe {
            let q = (*rq).q;

            bindings::blk_queue_usage_get(q);
            bindings::blk_mq_requeue_request(rq, false);
            bindings::blk_mq_kick_within(q, delay.map_or(0, Msecs::get));
            bindings::blk_queue_usage_put(q);
        }
    }

    /// Gives the request back, to be passed to [`queue_rq`](Operations::queue_rq) again after
    /// [`TagSet::kick_requeued`](super::TagSet::kick_requeued), or together with another requeued
    /// request of the disk. Any context. C: `blk_mq_requeue_request()`.
    pub fn hold(self) {
        // SAFETY: By the invariants, the request is valid and owned. C owns it from here on.
        unsafe { bindings::blk_mq_requeue_request(self.into_raw(), false) };
    }

    /// Refuses the request; [`queue_rq`](Operations::queue_rq) returns the result as its error.
    #[inline]
    pub fn refuse(self, status: Status) -> Refused<T> {
        Refused {
            request: self,
            status,
        }
    }
}

impl<T: Operations> Drop for Request<T> {
    fn drop(&mut self) {
        pr_warn_once!(
            "driver bug: request ({:?}) dropped without completion\n",
            self.op()
        );
        // SAFETY: By the invariants, the driver owns the request, and `self` is not used
        // afterwards.
        unsafe { Self::from_raw(self.as_raw()) }.complete(Status::IoError);
    }
}

/// Ends a request with the status that [`Request::complete`] stored.
///
/// # Safety
///
/// `complete` was called for `rq`, a valid request of a [`Disk<T>`](super::Disk), and the caller
/// owns it.
#[inline]
pub(super) unsafe fn end<T: Operations>(rq: *mut bindings::request) {
    // SAFETY: By the safety requirements of this function, `rq` is valid and owned, and its status
    // is set.
    unsafe {
        let status = *(*Pdu::<T>::of(rq)).status.get();

        bindings::blk_mq_end_request(rq, status.as_raw());
    }
}

/// A request that the driver refuses, with the reason. Created by [`Request::refuse`].
#[must_use = "a refused request that is not returned ends with an error"]
pub struct Refused<T: Operations> {
    request: Request<T>,
    status: Status,
}

impl<T: Operations> Refused<T> {
    /// Gives the request back to the caller of `queue_rq`, which passed `rq` of `hctx`.
    ///
    /// A driver may return a request other than `rq` that it had kept, or the status `Ok`. Both are
    /// valid, and are handled by [`finish`](Self::finish).
    ///
    /// The request may have been completed by another thread, reused and queued again meanwhile, and
    /// then be returned here. If it was queued to the same hardware queue, the caller does with it what
    /// the later caller would. It may also have been queued to another disk of the tag set, whose request
    /// the caller must not get.
    pub(super) fn give_back(
        self,
        rq: *mut bindings::request,
        hctx: *mut bindings::blk_mq_hw_ctx,
    ) -> bindings::blk_status_t {
        let Self { request, status } = self;
        // SAFETY: By the invariants, the driver owns the request, so its hardware queue does not change.
        let is_of_caller = request.as_raw() == rq && unsafe { (*rq).mq_hctx } == hctx;

        if is_of_caller && status != Status::Ok {
            request.into_raw();
            return status.as_raw();
        }
        Self { request, status }.finish();
        Status::Ok.as_raw()
    }

    /// Requeues or completes a request, as its refusal in [`queue_rq`](Operations::queue_rq) would
    /// have. For requests that an earlier `queue_rq` took. Any context.
    pub fn finish(self) {
        match self.status {
            Status::Resource => self.request.requeue(None),
            status => self.request.complete(status),
        }
    }
}

/// Polls for a request of a polled hardware queue that timed out: its user may have stopped polling, for
/// example because the process was stopped. Returns whether the request has ended. Sleeps.
///
/// `poll` polls the hardware queue. `has_ended` returns whether the request has ended.
pub fn poll_timed_out(poll: impl Fn(), has_ended: impl Fn() -> bool) -> bool {
    /// More than one: another thread may be polling, and a driver may need several completions for a request.
    const TURNS: u32 = 10;

    for _ in 0..TURNS {
        poll();
        if has_ended() {
            return true;
        }
        fsleep(Delta::from_millis(1));
    }
    false
}
