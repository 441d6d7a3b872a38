// SPDX-License-Identifier: GPL-2.0

//! Completion queues and the completions they deliver.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_cq`, `struct ib_wc`

use super::device::DeviceRef;
use crate::bindings;
use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::from_err_ptr,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// In which context completions are handled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Poll {
    /// The softirq that the device's interrupt raises: handlers may not sleep.
    SoftIrq,
    /// A high-priority workqueue: handlers may sleep, but not wait for other
    /// completions.
    Workqueue,
    /// Whoever calls [`CompletionQueue::poll`]; nothing is handled otherwise.
    Direct,
}

impl Poll {
    fn as_raw(self) -> bindings::ib_poll_context {
        match self {
            Poll::SoftIrq => bindings::ib_poll_context_IB_POLL_SOFTIRQ,
            Poll::Workqueue => bindings::ib_poll_context_IB_POLL_WORKQUEUE,
            Poll::Direct => bindings::ib_poll_context_IB_POLL_DIRECT,
        }
    }
}

/// Where a completion queue came from, and goes back to.
enum Origin {
    /// The device's pool; so many entries of it are ours.
    Pool {
        entries: u32,
    },
    Private,
}

/// A completion queue, or a share in one.
///
/// A queue pair needs room for every work request that it can have posted, and
/// one more a direction for its drain: an entry that finds the queue full is lost.
///
/// # Invariants
///
/// `raw` is a queue of `device`; this object owns it, or `entries` of it.
pub struct CompletionQueue {
    raw: NonNull<bindings::ib_cq>,
    origin: Origin,
    poll: Poll,
    device: DeviceRef,
}

// SAFETY: The verbs on a completion queue may be called from any thread.
unsafe impl Send for CompletionQueue {}
// SAFETY: As above.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// `entries` of a queue that the device shares among its users
    /// (`ib_cq_pool_get`), near completion vector `vector`. Not for [`Poll::Direct`].
    /// May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for more entries than the device has or direct polling, `ENOMEM`.
    pub fn pooled(device: DeviceRef, entries: u32, vector: u32, poll: Poll) -> Result<Arc<Self>> {
        if poll == Poll::Direct {
            return Err(EINVAL);
        }
        let hint = vector.try_into()?;
        // SAFETY: The device is registered while `device` lives.
        let raw = from_err_ptr(unsafe {
            bindings::ib_cq_pool_get(device.as_raw(), entries, hint, poll.as_raw())
        })?;
        Self::from_raw(raw, Origin::Pool { entries }, poll, device)
    }

    /// A queue of one's own (`ib_alloc_cq`) on completion vector `vector`, which
    /// is taken modulo the number of vectors. `owner` is what `rdma res show cq`
    /// names. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for more entries than the device has, `ENOMEM`.
    pub fn private(
        device: DeviceRef,
        entries: u32,
        vector: u32,
        poll: Poll,
        owner: &'static CStr,
    ) -> Result<Arc<Self>> {
        let vectors = device.attributes().completion_vectors.max(1);
        let (entries, vector) = (entries.try_into()?, (vector % vectors).try_into()?);
        // SAFETY: The device is registered while `device` lives.
        let raw = from_err_ptr(unsafe {
            bindings::ib_alloc_cq(
                device.as_raw(),
                entries,
                vector,
                poll.as_raw(),
                owner.as_char_ptr(),
            )
        })?;
        Self::from_raw(raw, Origin::Private, poll, device)
    }

    fn from_raw(
        raw: *mut bindings::ib_cq,
        origin: Origin,
        poll: Poll,
        device: DeviceRef,
    ) -> Result<Arc<Self>> {
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        // INVARIANT: The callers got `raw` from the device for this object.
        let this = Self {
            raw,
            origin,
            poll,
            device,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Handles the completions that are there and says how many they were
    /// (`ib_process_cq_direct`); zero unless the queue is [`Poll::Direct`].
    pub fn poll(&self) -> u32 {
        if self.poll != Poll::Direct {
            return 0;
        }
        // SAFETY: By the type invariant, and the queue is polled directly.
        let handled = unsafe { bindings::ib_process_cq_direct(self.raw.as_ptr(), -1) };
        handled.try_into().unwrap_or(0)
    }

    /// The device of the queue.
    pub fn device(&self) -> &DeviceRef {
        &self.device
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::ib_cq {
        self.raw.as_ptr()
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; queue pairs hold their completion
        // queues, so none uses this one any more.
        unsafe {
            match self.origin {
                Origin::Pool { entries } => bindings::ib_cq_pool_put(self.raw.as_ptr(), entries),
                Origin::Private => bindings::ib_free_cq(self.raw.as_ptr()),
            }
        }
    }
}

/// A work request that failed (`enum ib_wc_status`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Failure(bindings::ib_wc_status);

impl Failure {
    /// The request did not fail by itself: its queue pair was stopped.
    pub fn is_flush(self) -> bool {
        self.0 == bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR
    }

    /// What the verbs call it.
    pub fn message(self) -> &'static str {
        // SAFETY: The function returns a static string for any status.
        let message = unsafe { CStr::from_char_ptr(bindings::ib_wc_status_msg(self.0)) };
        message.to_str().unwrap_or("unknown work completion status")
    }
}

/// The completion of one work request (`struct ib_wc`), as its handler sees it.
///
/// # Invariants
///
/// Wraps a valid `struct ib_wc` whose `qp` is alive.
#[repr(transparent)]
pub struct Completion<'a>(NonNull<bindings::ib_wc>, PhantomData<&'a bindings::ib_wc>);

impl Completion<'_> {
    /// # Safety
    ///
    /// `raw` must be valid, and its `qp` alive, for the lifetime of the result.
    pub(crate) unsafe fn from_raw(raw: NonNull<bindings::ib_wc>) -> Self {
        // INVARIANT: By the contract.
        Self(raw, PhantomData)
    }

    fn wc(&self) -> &bindings::ib_wc {
        // SAFETY: By the type invariant.
        unsafe { self.0.as_ref() }
    }

    /// Whether it is the completion of this entry on this queue pair.
    pub(crate) fn is_of(&self, cqe: *const bindings::ib_cqe, qp: *const bindings::ib_qp) -> bool {
        let wc = self.wc();
        // SAFETY: A completion of ours was posted with an entry, not a number.
        let own = unsafe { wc.__bindgen_anon_1.wr_cqe };
        ptr::eq(own, cqe) && ptr::eq(wc.qp, qp)
    }

    /// Whether the request succeeded. Nothing else of a failed one has a meaning.
    #[inline]
    pub fn result(&self) -> Result<(), Failure> {
        match self.wc().status {
            bindings::ib_wc_status_IB_WC_SUCCESS => Ok(()),
            status => Err(Failure(status)),
        }
    }

    /// Bytes received; of a receive that succeeded.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.wc().byte_len as usize
    }

    /// The invalidation that the peer's message asked for, if it did; of a
    /// receive that succeeded. The device has done it.
    #[inline]
    pub fn invalidation(&self) -> Option<Invalidation> {
        let wc = self.wc();
        if wc.wc_flags as u32 & bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE == 0 {
            return None;
        }
        // SAFETY: The flag says which member of the union is set.
        Some(Invalidation(unsafe { wc.ex.invalidate_rkey }))
    }
}

/// Proof that the device invalidated a key because a peer asked for it.
#[derive(Debug)]
pub struct Invalidation(u32);

impl Invalidation {
    /// The key, which is dead whoever held it.
    #[inline]
    pub fn rkey(&self) -> u32 {
        self.0
    }
}
