// SPDX-License-Identifier: GPL-2.0

//! Requests.
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
    mem::{
        ManuallyDrop,
        MaybeUninit, //
    },
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    pr_warn_once,
    prelude::*, //
};

/// What lies behind each `struct request`: the data of the driver, and how the request
/// ends, between [`Request::complete`] and the CPU that the end is told on.
///
/// # Invariants
///
/// `data` is initialised if `ready` is true, which it is for every request that blk-mq
/// gives to a driver.
pub(super) struct Pdu<T: Operations> {
    status: UnsafeCell<Status>,
    ready: bool,
    data: MaybeUninit<T::RequestData>,
}

impl<T: Operations> Pdu<T> {
    /// The room to ask blk-mq for.
    pub(super) const SIZE: u32 = {
        assert!(
            align_of::<Self>() <= align_of::<bindings::request>(),
            "the data of a request is aligned like a `struct request`, not more"
        );
        assert!(size_of::<Self>() <= u32::MAX as usize);
        size_of::<Self>() as u32
    };

    /// The place behind a request.
    ///
    /// # Safety
    ///
    /// There is room for it.
    #[inline]
    pub(super) unsafe fn of(rq: *mut bindings::request) -> *mut Self {
        // SAFETY: By the requirements of this function that is within the allocation,
        // which is at least aligned for a `struct request`, and so is its end.
        unsafe { rq.add(1).cast() }
    }

    /// Prepares the place, without data of the driver.
    ///
    /// # Safety
    ///
    /// There is room for it behind `rq`, valid for writes.
    pub(super) unsafe fn prepare(rq: *mut bindings::request) {
        // SAFETY: By the requirements of this function.
        unsafe {
            Self::of(rq).write(Self {
                status: UnsafeCell::new(Status::IoError),
                ready: false,
                data: MaybeUninit::uninit(),
            })
        };
    }

    /// Makes the data of the driver.
    ///
    /// # Safety
    ///
    /// The place behind `rq` is prepared and has no data, nobody else uses it, and it stays
    /// until [`Pdu::clear`].
    pub(super) unsafe fn fill(
        rq: *mut bindings::request,
        data: impl PinInit<T::RequestData, Error>,
    ) -> Result {
        // SAFETY: By the requirements of this function.
        unsafe {
            let pdu = Self::of(rq);

            compat::raw_pin_init((&raw mut (*pdu).data).cast::<T::RequestData>(), data)?;
            // INVARIANT: It was made just now.
            (*pdu).ready = true;
        }
        Ok(())
    }

    /// Drops the data of the driver, if there is any.
    ///
    /// # Safety
    ///
    /// The place behind `rq` is prepared, and nobody else uses it.
    pub(super) unsafe fn clear(rq: *mut bindings::request) {
        // SAFETY: By the requirements of this function. By the invariants there is data if
        // `ready` is true, which it is not any more before the data goes.
        unsafe {
            let pdu = Self::of(rq);

            if core::mem::take(&mut (*pdu).ready) {
                (*pdu).data.assume_init_drop();
            }
        }
    }
}

/// A look at a request that somebody else owns.
///
/// [`Request`] dereferences to it.
///
/// # Invariants
///
/// `request` is a valid request of a disk that a [`Disk<T>`](super::Disk) made, with a
/// hardware queue and a `Pdu<T>` with data; it is not given to another user while this
/// exists.
pub struct RequestRef<T: Operations> {
    request: NonNull<bindings::request>,
    _driver: PhantomData<T>,
}

impl<T: Operations> RequestRef<T> {
    /// A look at a request.
    ///
    /// # Safety
    ///
    /// The invariants of the type hold as long as the result exists.
    #[inline]
    pub(super) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
        // INVARIANT: By the requirements of this function.
        Self {
            // SAFETY: A valid request is not at address 0.
            request: unsafe { NonNull::new_unchecked(rq) },
            _driver: PhantomData,
        }
    }

    /// The request for C.
    #[inline]
    pub(super) fn as_raw(&self) -> *mut bindings::request {
        self.request.as_ptr()
    }

    /// The `cmd_flags`: they do not change while the request is in use.
    #[inline]
    fn flags(&self) -> bindings::blk_opf_t {
        // SAFETY: The request is valid.
        unsafe { (*self.as_raw()).cmd_flags }
    }

    /// The data of the driver.
    #[inline]
    pub fn data(&self) -> Pin<&T::RequestData> {
        // SAFETY: By the invariants of the type it is initialised, and neither moves nor
        // is it dropped while we are borrowed.
        unsafe { Pin::new_unchecked((*Pdu::<T>::of(self.as_raw())).data.assume_init_ref()) }
    }

    /// The tag: a number below the depth of the tag set that no other request on this
    /// hardware queue has at the same time.
    ///
    /// The owner of the request always finds the same one. In
    /// [`timeout`](Operations::timeout) it is `u32::MAX` if the owner has just requeued
    /// the request.
    #[inline]
    pub fn tag(&self) -> u32 {
        // SAFETY: The request is valid. If we are not the owner it may change meanwhile,
        // hence volatile: C's `READ_ONCE`.
        let tag = unsafe { (&raw const (*self.as_raw()).tag).read_volatile() };

        tag as u32
    }

    /// Whether it is under way: started, and neither ended nor requeued since. Not its owner
    /// learns only what was so a moment ago. C: `blk_mq_rq_state`.
    #[inline]
    pub fn is_under_way(&self) -> bool {
        // SAFETY: The request is valid. If we are not the owner it may change meanwhile,
        // hence volatile: C's `READ_ONCE`.
        let state = unsafe { (&raw const (*self.as_raw()).state).read_volatile() };

        state == bindings::mq_rq_state_MQ_RQ_IN_FLIGHT
    }

    /// The index of the hardware queue that the request is on.
    #[inline]
    pub fn queue_index(&self) -> u32 {
        // SAFETY: The request is valid and has a hardware queue.
        unsafe { (*(*self.as_raw()).mq_hctx).queue_num }
    }

    /// What the request asks for.
    #[inline]
    pub fn op(&self) -> Op {
        Op::from_flags(self.flags())
    }
}

/// A request of the block layer that the driver owns.
///
/// There is one `Request` for it. It is given back by [`complete`](Self::complete),
/// [`requeue`](Self::requeue) or [`refuse`](Self::refuse), in any context. One that is
/// dropped ends with [`Status::IoError`], and the kernel log says so: it is a mistake of
/// the driver, but nobody waits for ever.
///
/// The disk that it belongs to is not gone before.
///
/// # Invariants
///
/// blk-mq gave the request to the driver, which has not given it back, and there is no
/// other `Request` for it.
pub struct Request<T: Operations> {
    inner: RequestRef<T>,
}

// SAFETY: A request has no ties to a thread. What of it can be reached is C's, which
// copes with any context, and the data of the driver, which is `Sync`.
unsafe impl<T: Operations> Send for Request<T> {}

impl<T: Operations> Deref for Request<T> {
    type Target = RequestRef<T>;

    #[inline]
    fn deref(&self) -> &RequestRef<T> {
        &self.inner
    }
}

impl<T: Operations> Request<T> {
    /// Takes over a request.
    ///
    /// # Safety
    ///
    /// `rq` is a valid request of a [`Disk<T>`](super::Disk), and becomes the driver's.
    #[inline]
    pub(super) unsafe fn from_raw(rq: *mut bindings::request) -> Self {
        // INVARIANT: By the requirements of this function.
        Self {
            // SAFETY: By the requirements of this function, and it stays until the driver
            // gives it back.
            inner: unsafe { RequestRef::from_raw(rq) },
        }
    }

    /// Gives the request to C, or to whoever the caller hands it on to.
    #[inline]
    fn into_raw(self) -> *mut bindings::request {
        ManuallyDrop::new(self).as_raw()
    }

    /// The data of the driver of the disk that the request is for.
    #[inline]
    pub fn disk_data(&self) -> &T::DiskData {
        // SAFETY: By the invariants the request is valid, and one of a `Disk<T>`, whose data stays
        // until all its requests have been given back.
        unsafe { &*(*(*self.as_raw()).q).queuedata.cast() }
    }

    /// The first sector, in units of 512 bytes. Means nothing for a flush or a command of
    /// the driver, of which it may be any number. C: `blk_rq_pos`.
    #[inline]
    pub fn sector(&self) -> u64 {
        // SAFETY: By the invariants the request is valid, and nobody else changes it.
        unsafe { (*self.as_raw()).__sector }
    }

    /// The length in bytes. C: `blk_rq_bytes`.
    #[inline]
    pub fn bytes(&self) -> u32 {
        // SAFETY: By the invariants the request is valid, and nobody else changes it.
        unsafe { (*self.as_raw()).__data_len }
    }

    /// An upper bound of the number of pieces of memory that the data is in, and of the
    /// entries of a [`ScatterTable`](crate::scatter::ScatterTable) of it. C:
    /// `blk_rq_nr_phys_segments`.
    #[inline]
    pub fn segments(&self) -> u16 {
        // SAFETY: By the invariants the request is valid, and nobody else changes it.
        unsafe { (*self.as_raw()).nr_phys_segments }
    }

    /// Whether a write must be on the medium, not only in a cache, when it ends.
    #[inline]
    pub fn is_fua(&self) -> bool {
        self.flags() & (1 << bindings::req_flag_bits___REQ_FUA) != 0
    }

    /// Whether zeroes must be written to space that stays allocated.
    #[inline]
    pub fn no_unmap(&self) -> bool {
        self.flags() & (1 << bindings::req_flag_bits___REQ_NOUNMAP) != 0
    }

    /// Whether the request should rather fail than be tried again. C:
    /// `blk_noretry_request`.
    #[inline]
    pub fn no_retry(&self) -> bool {
        const NO_RETRY: bindings::blk_opf_t = (1 << bindings::req_flag_bits___REQ_FAILFAST_DEV)
            | (1 << bindings::req_flag_bits___REQ_FAILFAST_TRANSPORT)
            | (1 << bindings::req_flag_bits___REQ_FAILFAST_DRIVER);

        self.flags() & NO_RETRY != 0
    }

    /// Whether the disk is being removed, and nobody writes back to it any more: no use in another
    /// attempt. C: `blk_queue_dying`.
    pub fn is_disk_dying(&self) -> bool {
        // SAFETY: By the invariants the request is valid, and so is its queue.
        unsafe { bindings::blk_queue_dying((*self.as_raw()).q) }
    }

    /// Whether nothing is to be logged of its failure: its submitter expects that it may fail.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        // SAFETY: By the invariants the request is valid, and nobody else changes it.
        unsafe { (*self.as_raw()).rq_flags & bindings::rrdma_RQF_QUIET != 0 }
    }

    /// Whether it has pages that data is in, or is for. C: `blk_rq_has_data`.
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

    /// Tells the block layer that the device is about to get the request, which starts
    /// the time that it has. Must come before the device, or another thread, can end it.
    ///
    /// Does nothing if it was started before. A request may end without. Any context.
    /// C: `blk_mq_start_request`.
    #[inline]
    pub fn start(&self) {
        let rq = self.as_raw();

        // SAFETY: By the invariants the request is valid. As the driver has it, it
        // becomes idle or started only by us; `Request` is not `Sync`, so there is one
        // of us.
        unsafe {
            if (*rq).state == bindings::mq_rq_state_MQ_RQ_IDLE {
                bindings::blk_mq_start_request(rq);
            }
        }
    }

    /// Ends the request, all of it, with a status.
    ///
    /// Its memory may be used for something else from here on. The block layer is told on
    /// the CPU, or one near the CPU, that sent it. Any context, within
    /// [`queue_rq`](Operations::queue_rq) too, and whether it was started or not. C:
    /// `blk_mq_complete_request`.
    #[inline(always)]
    pub fn complete(self, status: Status) {
        let rq = self.into_raw();

        // SAFETY: By the invariants the request is valid and only ours, so nobody else
        // looks at its status.
        unsafe { *(*Pdu::<T>::of(rq)).status.get() = status };
        // SAFETY: As above; the request is C's from here on.
        if !unsafe { bindings::blk_mq_complete_request_remote(rq) } {
            // SAFETY: C leaves it to us, in `complete`'s stead.
            unsafe { bindings::blk_mq_end_request(rq, status.as_raw()) };
        }
    }

    /// Gives the request back, to come to [`queue_rq`](Operations::queue_rq) again: at
    /// once, or after `delay`, or before that with another one of the disk that was to come earlier.
    ///
    /// By then it may have grown by others that adjoin it. Any context. C:
    /// `blk_mq_requeue_request`.
    pub fn requeue(self, delay: Option<Msecs>) {
        let rq = self.into_raw();

        // SAFETY: By the invariants the request and its queue are valid, and while the
        // request is ours the queue is in use, so its use can be prolonged: once the
        // request is on the list another CPU may see it through, and the disk go away,
        // while the list is about to be kicked.
        unsafe {
            let q = (*rq).q;

            bindings::blk_queue_usage_get(q);
            bindings::blk_mq_requeue_request(rq, delay.is_none());
            if let Some(delay) = delay {
                bindings::blk_mq_kick_within(q, delay.get());
            }
            bindings::blk_queue_usage_put(q);
        }
    }

    /// Refuses the request: what [`queue_rq`](Operations::queue_rq) returns as its error.
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
            "a driver dropped a request ({:?}) without ending it\n",
            self.op()
        );
        // SAFETY: By the invariants the request is the driver's; `self` is not used any
        // more.
        unsafe { Self::from_raw(self.as_raw()) }.complete(Status::IoError);
    }
}

/// Ends a request with the status that [`Request::complete`] left in it.
///
/// # Safety
///
/// `rq` is a valid request of a [`Disk<T>`](super::Disk) that `complete` was called for,
/// and it is the caller's.
#[inline]
pub(super) unsafe fn end<T: Operations>(rq: *mut bindings::request) {
    // SAFETY: By the requirements of this function.
    unsafe {
        let status = *(*Pdu::<T>::of(rq)).status.get();

        bindings::blk_mq_end_request(rq, status.as_raw());
    }
}

/// A request that the driver does not take, and why. Made by [`Request::refuse`].
#[must_use = "a request that is not returned ends with an error"]
pub struct Refused<T: Operations> {
    request: Request<T>,
    status: Status,
}

impl<T: Operations> Refused<T> {
    /// Gives the request back to the caller of `queue_rq`, who asked about `rq`.
    ///
    /// A driver may return another request than the one it was asked about, which it kept
    /// then; and it may call a success an error. Both have a meaning, so they are done.
    pub(super) fn give_back(self, rq: *mut bindings::request) -> bindings::blk_status_t {
        let Self { request, status } = self;

        if request.as_raw() == rq && status != Status::Ok {
            request.into_raw();
            return status.as_raw();
        }
        Self { request, status }.finish();
        Status::Ok.as_raw()
    }

    /// Does with a request that [`queue_rq`](Operations::queue_rq) took before what its refusal
    /// would have done: it comes again, or ends. Any context.
    pub fn finish(self) {
        match self.status {
            Status::Resource => self.request.requeue(None),
            status => self.request.complete(status),
        }
    }
}
