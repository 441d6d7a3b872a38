// SPDX-License-Identifier: GPL-2.0

//! Requests of nvme-core.
//!
//! C header: `drivers/nvme/host/nvme.h`, `struct nvme_request`

use crate::{
    bindings,
    weak_controller::WeakController, //
};
use core::{
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    pr_warn_once,
    prelude::*, //
};
use rrdma::scatter::{
    Direction,
    Scatter,
    ScatterTable, //
};

/// Size of a command in bytes.
pub const COMMAND_SIZE: usize = 64;

/// A started request that the transport owns.
///
/// Its private data begins with a `struct nvme_request`, whose `cmd` points to the command behind
/// it. The transport gives a request back with [`end`](Self::end), [`cancel`](Self::cancel) or
/// [`refuse`](Self::refuse), in any context. Dropping a request is a bug of the transport: it
/// cancels the request and logs a warning.
///
/// # Invariants
///
/// nvme-core started the request and passed it to the transport, which has not given it back. There
/// is no other `Request` for it. Only transports cancel requests, and this crate does so only with
/// a `Request`, so the request stays in flight while this exists.
pub struct Request {
    // One pointer, which is passed by value through several functions: copies of its fields, even if
    // they are read twice, cost more than they save.
    request: NonNull<bindings::request>,
}

// SAFETY: A request is not tied to a thread. The C functions that end it accept any context.
unsafe impl Send for Request {}

impl Request {
    /// Takes ownership of a request.
    ///
    /// # Safety
    ///
    /// The type invariants hold for `request`.
    #[inline]
    pub(crate) unsafe fn from_raw(request: NonNull<bindings::request>) -> Self {
        // INVARIANT: By the safety requirements of this function.
        Self { request }
    }

    #[inline]
    fn as_raw(&self) -> *mut bindings::request {
        self.request.as_ptr()
    }

    /// Releases the ownership, to C or to the caller.
    #[inline]
    fn into_raw(self) -> *mut bindings::request {
        ManuallyDrop::new(self).as_raw()
    }

    #[inline]
    fn raw(&self) -> &bindings::request {
        // SAFETY: By the type invariants, the request is valid and owned.
        unsafe { self.request.as_ref() }
    }

    /// Returns the tag: a number below the depth of the tag set that is unique among the requests
    /// in flight on this queue.
    #[inline]
    pub fn tag(&self) -> u32 {
        self.raw().tag as u32
    }

    /// Returns the command. Its identifier is that of nvme-core; it has no SGL.
    #[inline(always)]
    pub fn command(&self) -> &[u8; COMMAND_SIZE] {
        const { assert!(size_of::<bindings::nvme_command>() == COMMAND_SIZE) };

        // SAFETY: By the type invariants, the private data behind the request begins with a
        // `struct nvme_request`, whose command is set up and valid as long as the request.
        unsafe {
            &*(*self.as_raw().add(1).cast::<bindings::nvme_request>())
                .cmd
                .cast()
        }
    }

    /// Returns whether data goes to the target. C: `op_is_write()`.
    #[inline]
    pub fn is_write(&self) -> bool {
        self.raw().cmd_flags & 1 != 0
    }

    /// Returns whether the data is a payload that nvme-core allocated, such as the ranges of a
    /// discard, in place of the pages of the request.
    #[inline]
    fn has_special_payload(&self) -> bool {
        self.raw().rq_flags & bindings::nvme_core_const_SPECIAL_PAYLOAD != 0
    }

    /// Returns the size of the data in bytes; 0 if the command transfers none. C:
    /// `blk_rq_payload_bytes()`.
    #[inline]
    pub fn length(&self) -> u32 {
        if self.has_special_payload() {
            // SAFETY: By the type invariants, the request is valid and owned. The flag says that
            // `special_vec` is the valid member of the union.
            return unsafe { self.raw().__bindgen_anon_3.special_vec.bv_len };
        }
        match self.raw().nr_phys_segments {
            0 => 0,
            _ => self.raw().__data_len,
        }
    }

    /// Returns the number of segments of the data. C: `blk_rq_nr_phys_segments()`.
    #[inline]
    fn segments(&self) -> u32 {
        match self.has_special_payload() {
            true => 1,
            false => self.raw().nr_phys_segments.into(),
        }
    }

    /// Ends the request with the status and the result of its completion queue entry. `status` has 15 bits,
    /// without the phase tag. Any context.
    ///
    /// nvme-core then completes, retries or fails it over, possibly on another CPU. C:
    /// `nvme_try_complete_req()`.
    #[inline]
    pub fn end(self, status: u16, result: u64) {
        // SAFETY: By the type invariants, the request is owned. C owns it from here on.
        unsafe { end(self.into_raw(), status, result) };
    }

    /// Ends the request without a response, because its connection has ended. C:
    /// `nvme_cancel_request()`.
    pub fn cancel(self) {
        // SAFETY: By the type invariants, the request is owned and in flight. C owns it from here
        // on.
        unsafe { bindings::cancel_request(self.into_raw()) };
    }

    /// Refuses a request that was not sent; `queue_rq` returns the result as its error.
    pub fn refuse(self, refusal: Refusal) -> Refused {
        Refused {
            request: self,
            refusal,
        }
    }
}

/// Ends a request.
///
/// # Safety
///
/// `raw` is a request that the caller owns, and is not used afterwards.
#[cfg(any(CONFIG_FAULT_INJECTION_DEBUG_FS, CONFIG_FAIL_IO_TIMEOUT))]
unsafe fn end(raw: *mut bindings::request, status: u16, result: u64) {
    // SAFETY: By the safety requirements of this function.
    unsafe { bindings::end_request(raw, status, result) };
}

/// Ends a request, as the C helper does in a kernel that cannot inject errors.
///
/// # Safety
///
/// `raw` is a request that the caller owns, and is not used afterwards.
#[cfg(not(any(CONFIG_FAULT_INJECTION_DEBUG_FS, CONFIG_FAIL_IO_TIMEOUT)))]
#[inline]
unsafe fn end(raw: *mut bindings::request, status: u16, result: u64) {
    // SAFETY: By the safety requirements of this function, the request is valid, and its private
    // data begins with a `struct nvme_request`. Its controller is valid as long as the request.
    unsafe {
        let request = &mut *raw.add(1).cast::<bindings::nvme_request>();
        if (*request.ctrl).quirks & bindings::nvme_core_const_SKIP_CID_GEN == 0 {
            request.genctr = request.genctr.wrapping_add(1);
        }
        // A completion has the phase tag in bit 0 of the field, so the status has 15 bits.
        request.status = status & 0x7fff;
        request.result.u64_ = result;
        if !bindings::blk_mq_complete_request_remote(raw) {
            bindings::nvme_complete_rq(raw);
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        pr_warn_once!("transport bug: request dropped without completion\n");
        // SAFETY: By the type invariants, the request is owned, and `self` is not used afterwards.
        unsafe { Self::from_raw(self.request) }.cancel();
    }
}

// SAFETY: nvme-core and the submitter do not free the data before the request ends, and `end`,
// `cancel` and `refuse` consume `self`. A device may read the data of a write, and write that of a
// read; `allows` permits nothing else.
unsafe impl Scatter for Request {
    #[inline(always)]
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result {
        let (request, count) = (self.as_raw(), self.segments());
        let list = |sgl| {
            let mut last = ptr::null_mut();

            // SAFETY: `request` is valid and owned. `sgl` has an entry for each of its segments.
            unsafe { bindings::__blk_rq_map_sg(request, sgl, &mut last) as u32 }
        };
        // SAFETY: `list` fills at most `count` entries, ends the list, and returns their number.
        unsafe { table.fill_with(count, list) }
    }

    #[inline(always)]
    fn allows(&self, direction: Direction) -> bool {
        direction
            == match self.is_write() {
                true => Direction::ToDevice,
                false => Direction::FromDevice,
            }
    }
}

/// Reason why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Out of memory or of room: blk-mq sends the request again.
    Busy,
    /// There is no connection: nvme-core retries the request, on another path if there is one. C:
    /// `nvme_host_path_error()`.
    NoPath,
    /// The request cannot be sent.
    Invalid,
}

/// A request that was not sent, with the reason. Created by [`Request::refuse`].
#[must_use = "a refused request that is not returned is cancelled"]
pub struct Refused {
    request: Request,
    refusal: Refusal,
}

impl Refused {
    /// Returns the reason.
    pub(crate) fn refusal(&self) -> Refusal {
        self.refusal
    }

    /// Gives the request back to the caller of `queue_rq`, which passed `raw` of `hctx`. The transport
    /// may return another request, which it had kept for a batch. Another thread may have completed `raw`
    /// meanwhile; then it may have been queued again, also to another namespace.
    ///
    /// nvme-core ends a request that cannot be sent: blk-mq would not undo what nvme-core counted when the request
    /// was started, such as the requests of a path (`NVME_MPATH_CNT_ACTIVE`). nvme-rdma leaves that to blk-mq.
    pub(crate) fn give_back(
        self,
        raw: *mut bindings::request,
        hctx: *mut bindings::blk_mq_hw_ctx,
    ) -> bindings::blk_status_t {
        // SAFETY: The request is owned, so its hardware queue does not change.
        let is_of_caller = self.request.as_raw() == raw && unsafe { (*raw).mq_hctx } == hctx;
        if !is_of_caller || self.refusal != Refusal::Busy {
            self.dispose();
            return bindings::nvme_core_const_STS_OK;
        }
        // SAFETY: The request is owned. `queue_rq` returns an error, which passes it to blk-mq.
        unsafe { bindings::cleanup_cmd(self.request.into_raw()) };
        bindings::nvme_core_const_STS_RESOURCE
    }

    /// Requeues or ends a request that does not go back to the caller of `queue_rq`. Any context.
    ///
    /// As [`queue_rq`](crate::Transport::queue_rq) does, starts error recovery if the connection was
    /// lost before the controller became live.
    pub fn finish(self, controller: &WeakController) {
        let refusal = self.refusal;

        self.dispose();
        if refusal == Refusal::NoPath {
            controller.recover_if_lost();
        }
    }

    fn dispose(self) {
        let raw = self.request.into_raw();
        // SAFETY: The request was owned. C owns it from here on.
        unsafe {
            match self.refusal {
                Refusal::Busy => bindings::requeue_request(raw),
                Refusal::NoPath => bindings::path_error(raw),
                Refusal::Invalid => bindings::fail_request(raw),
            }
        }
    }
}
