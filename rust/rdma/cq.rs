// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_cq`
//!
//! A completion queue is polled in one of three ways. In each of them, a completion returns its
//! operation to [`Complete::complete`](super::wr::Complete::complete).
//!
//! - By the core, in a context of [`Poll`]. [`CompletionQueue::alloc`] creates a private queue;
//!   [`CompletionQueue::pool_get`] takes a share of a queue in the device's pool.
//! - By its owner, at any time: [`DirectQueue`].
//! - By its owner, when it is woken: [`NotifiedQueue`].
//!
//! Creates a private queue with an entry for each work request that the queue pair can post:
//!
//! ```ignore
//! // samples/completion_queues.rs
//! let entries = ONE_MESSAGE.completions();
//! let cq = CompletionQueue::alloc(self.device(), entries, 0, poll, task::NAME)
//!     .step("completion queue")?;
//! ```

mod completion;
mod direct;
mod entries;
mod events;
mod notified;
mod registrations;
mod wc_error;

pub use completion::{
    Completion,
    Invalidation,
    Opcode,
    Received, //
};
pub use direct::DirectQueue;
pub use notified::{
    NotifiedQueue,
    NotifyMode, //
};
pub use wc_error::{
    Status,
    WcError, //
};

pub(super) use entries::CqEntries;
pub(super) use registrations::{
    RegSeq,
    Registrations, //
};

use super::{
    credits::Credits,
    device::DeviceRef,
    sleeping_drop::{
        OfDevice,
        SleepingDrop, //
    }, //
};
use crate::{
    bindings,
    sync::{
        Deadline,
        Msecs,
        TimedCompletion,
        SLOW, //
    }, //
};
use core::{
    ffi::c_int,
    ptr::NonNull, //
};
use events::CqEvents;
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    str::CStr,
    sync::Arc,
    task::might_sleep,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// Context in which the core polls a completion queue and runs the handlers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Poll {
    /// Softirq, raised by the device's interrupt. Handlers must not sleep.
    SoftIrq = bindings::ib_poll_context_IB_POLL_SOFTIRQ,
    /// High-priority workqueue, on the processor of the interrupt. Handlers may sleep, but must not
    /// wait for other completions.
    Workqueue = bindings::ib_poll_context_IB_POLL_WORKQUEUE,
    /// High-priority unbound workqueue, for handlers that take long. Handlers may sleep, but must
    /// not wait for other completions.
    UnboundWorkqueue = bindings::ib_poll_context_IB_POLL_UNBOUND_WORKQUEUE,
}

impl Poll {
    fn as_raw(self) -> bindings::ib_poll_context {
        self as bindings::ib_poll_context
    }
}

/// Maximum time to wait for a completion of a work request that the device has to flush. As for the last shared
/// receive.
const FLUSH: Msecs = Msecs::from_secs(60);

/// Why a wait for a completion has ended without it.
pub(super) enum NoCompletion {
    /// The completion queue has lost a completion.
    Lost,
    /// 60 seconds have passed.
    Late,
}

/// Kind of a completion queue, which decides how it is released.
enum CqKind {
    /// From the device's pool (`ib_cq_pool_get`), with so many entries.
    Pool { entries: u32 },
    /// By `ib_alloc_cq`.
    Allocated(Arc<CqEvents>),
    /// By `ib_create_cq`.
    Created(Arc<CqEvents>),
}

/// A completion queue, or a share of one.
///
/// It needs an entry for each work request that its queue pairs can have outstanding, and one more
/// per direction for the drain, see [`QpCap::completions`](super::qp::QpCap::completions). A queue pair takes
/// these entries when it is created, which fails if too few are free: a completion that finds the queue full
/// would be lost.
///
/// May be dropped in any context; a drop in atomic context takes effect later. It must not be dropped by a
/// completion handler in a workqueue. Queue pairs hold references
/// to their completion queues, so no completion can arrive during the drop. But two others may
/// still use the queue:
///
/// - The device may call the event handlers, until the queue is destroyed.
/// - The core's poll function may still run after it handled the last completion. The drop waits
///   for it, also if the queue returns to a pool. Otherwise the function could run in a module that
///   is being removed.
pub struct CompletionQueue {
    owned: SleepingDrop<OwnedCq>,
    /// Entries that no queue pair has taken.
    free: Credits,
}

/// A completion queue of the device (`struct ib_cq`), or entries of one. Dropping it sleeps.
///
/// # Invariants
///
/// `raw` is a completion queue of `device`. This object owns the queue, or `entries` entries of a
/// pool's queue. If it owns the queue, `cq_context` is the address of its `CqEvents`.
struct OwnedCq {
    raw: NonNull<bindings::ib_cq>,
    kind: CqKind,
    device: DeviceRef,
}

// SAFETY: The verbs on a completion queue may be called from any thread.
unsafe impl Send for OwnedCq {}
// SAFETY: The verbs on a completion queue may be called by several threads at once.
unsafe impl Sync for OwnedCq {}

impl CompletionQueue {
    /// Takes `entries` entries of a queue that the device shares among its users
    /// (`ib_cq_pool_get`). `vector` is the preferred completion vector. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `entries` is 0, or exceeds the device's limit.
    /// - `ENOMEM`.
    pub fn pool_get(device: DeviceRef, entries: u32, vector: u32, poll: Poll) -> Result<Arc<Self>> {
        // The core would try for ever to create a queue that is large enough.
        sizes(&device, entries, 0)?;
        let hint = vector.try_into()?;
        // SAFETY: The device is registered while `device` lives.
        let raw = from_err_ptr(unsafe {
            bindings::ib_cq_pool_get(device.as_raw(), entries, hint, poll.as_raw())
        })?;
        Self::from_raw(raw, entries, CqKind::Pool { entries }, device)
    }

    /// Creates a private queue (`ib_alloc_cq`) on completion vector `vector`, which is taken modulo
    /// the number of vectors. `owner` is the name that `rdma res show cq` prints. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `entries` is 0, or exceeds the device's limit.
    /// - `ENOMEM`.
    pub fn alloc(
        device: DeviceRef,
        entries: u32,
        vector: u32,
        poll: Poll,
        owner: &'static CStr,
    ) -> Result<Arc<Self>> {
        Self::alloc_with(device, entries, vector, poll.as_raw(), owner)
    }

    fn alloc_with(
        device: DeviceRef,
        entries: u32,
        vector: u32,
        poll: bindings::ib_poll_context,
        owner: &'static CStr,
    ) -> Result<Arc<Self>> {
        let (length, vector) = sizes(&device, entries, vector)?;
        let events = CqEvents::new(None)?;
        // SAFETY: The device is registered while `device` lives. The context is the address of
        // `events`, which the queue object owns.
        let raw = from_err_ptr(unsafe {
            bindings::ib_alloc_cq(
                device.as_raw(),
                events.as_context(),
                length,
                vector,
                poll,
                Some(CqEvents::event_callback),
                owner.as_char_ptr(),
            )
        })?;
        Self::from_raw(raw, entries, CqKind::Allocated(events), device)
    }

    /// Creates a queue that only its owner polls (`ib_create_cq`). If armed, it wakes the owner
    /// through `events`. May sleep.
    fn create(
        device: DeviceRef,
        entries: u32,
        vector: u32,
        events: Arc<CqEvents>,
        owner: &'static CStr,
    ) -> Result<Arc<Self>> {
        let (length, vector) = sizes(&device, entries, vector)?;
        // SAFETY: The device is registered while `device` lives. The context is the address of
        // `events`, which the queue object owns.
        let raw = from_err_ptr(unsafe {
            bindings::ib_create_cq(
                device.as_raw(),
                Some(CqEvents::completion_callback),
                Some(CqEvents::event_callback),
                events.as_context(),
                length,
                vector,
                owner.as_char_ptr(),
            )
        })?;
        Self::from_raw(raw, entries, CqKind::Created(events), device)
    }

    fn from_raw(
        raw: *mut bindings::ib_cq,
        entries: u32,
        kind: CqKind,
        device: DeviceRef,
    ) -> Result<Arc<Self>> {
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        // INVARIANT: The callers got `raw` from `device`, and created it with the events in
        // `kind`.
        let owned = OwnedCq { raw, kind, device };
        let this = Self {
            owned: SleepingDrop::new(owned),
            free: Credits::new(entries),
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Sets interrupt moderation (`rdma_set_cq_moderation`). The device may delay the interrupt
    /// until there are `count` completions, or the oldest is `period` microseconds old. Zeros
    /// disable it. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: the device has no moderation (no soft device has), or the queue is a pool's.
    /// - `EINVAL`: a value exceeds the device's limit, see
    ///   [`Attributes`](super::device::Attributes).
    pub fn set_moderation(&self, count: u16, period: u16) -> Result {
        // SAFETY: `raw` is alive by the invariant of `OwnedCq`.
        to_result(unsafe {
            bindings::rdma_set_cq_moderation(self.owned.raw.as_ptr(), count, period)
        })
    }

    /// Returns whether the queue failed (`IB_EVENT_CQ_ERR`): it overran, and a completion is lost.
    /// Always `false` for a queue of a pool.
    ///
    /// The memory of a work request without completion can never be freed, see
    /// [`QueuePair::drain`](super::qp::QueuePair::drain). The completion queue has an entry for each work
    /// request that can be posted, so the device or its driver is at fault.
    pub fn is_broken(&self) -> bool {
        match &self.owned.kind {
            CqKind::Pool { .. } => false,
            CqKind::Allocated(events) | CqKind::Created(events) => events.is_broken(),
        }
    }

    /// Returns the device.
    pub fn device(&self) -> &DeviceRef {
        &self.owned.device
    }

    /// Returns whether only the owner and drains poll the queue.
    pub(super) fn is_polled_by_owner(&self) -> bool {
        self.owned.poll_context() == bindings::ib_poll_context_IB_POLL_DIRECT
    }

    /// Polls the queue on behalf of its owner. Returns the number of handled completions.
    #[inline]
    fn poll_as_owner(&self, budget: u32) -> u32 {
        match &self.owned.kind {
            CqKind::Pool { .. } => 0,
            CqKind::Allocated(events) | CqKind::Created(events) => {
                events.polled_by_owner(|| direct::process(self, budget))
            }
        }
    }

    /// Runs `drain`, which waits for completions in this queue. If only the owner polls the queue,
    /// keeps the owner from polling meanwhile, so that `drain` can.
    ///
    /// When this returns, the handlers of all earlier completions have returned: there is one
    /// poller at a time, which handles completions in order. May sleep.
    pub(super) fn drain<R>(&self, drain: impl FnOnce() -> R) -> R {
        match &self.owned.kind {
            CqKind::Allocated(events) | CqKind::Created(events) if self.is_polled_by_owner() => {
                events.polled_by_drain(drain)
            }
            _ => drain(),
        }
    }

    /// Waits for `done`, which a completion in this queue completes. Polls the queue meanwhile if
    /// only its owner does; the caller must then be in [`drain`](Self::drain). Calls `slow` once if that
    /// takes longer than 10 s. May sleep.
    ///
    /// # Errors
    ///
    /// `NoCompletion`: `done` may never be completed. Either 10 s have passed, and the queue has lost a completion; or
    /// 60 s have passed.
    pub(super) fn wait(
        &self,
        done: &TimedCompletion,
        slow: impl FnOnce(),
    ) -> Result<(), NoCompletion> {
        let end = Deadline::after(FLUSH);
        let mut slow = Some(slow);
        while !self.wait_for_some_time(done) {
            if self.is_broken() {
                return Err(NoCompletion::Lost);
            }
            if end.left() == Msecs::ZERO {
                return Err(NoCompletion::Late);
            }
            if let Some(slow) = slow.take() {
                slow();
            }
        }
        Ok(())
    }

    /// Waits as [`wait`](Self::wait) does, for at most 10 s. Returns whether `done` was completed.
    fn wait_for_some_time(&self, done: &TimedCompletion) -> bool {
        if !self.is_polled_by_owner() {
            return done.wait_timeout(SLOW);
        }
        let end = Deadline::after(SLOW);
        while !done.wait_timeout(Msecs::new(0)) {
            if end.left() == Msecs::new(0) {
                return false;
            }
            self.pass_time();
        }
        true
    }

    /// Sleeps for about the time that a device needs to flush posted work requests. Then polls the
    /// queue if only its owner does.
    pub(super) fn pass_time(&self) {
        fsleep(Delta::from_micros(200));
        if self.is_polled_by_owner() {
            direct::process(self, u32::MAX);
        }
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::ib_cq {
        self.owned.raw.as_ptr()
    }
}

/// Returns the number of entries and the completion vector for C, if a queue of the device can have
/// that many entries. The vector is taken modulo the number of vectors.
fn sizes(device: &DeviceRef, entries: u32, vector: u32) -> Result<(c_int, c_int)> {
    let limits = device.attributes();
    if entries == 0 || entries > limits.max_cqe {
        return Err(EINVAL);
    }
    let vector = vector % limits.completion_vectors.max(1);
    Ok((entries.try_into()?, vector.try_into()?))
}

impl OwnedCq {
    fn poll_context(&self) -> bindings::ib_poll_context {
        // SAFETY: `raw` is alive by the type invariant, and `poll_ctx` is constant.
        unsafe { (*self.raw.as_ptr()).poll_ctx }
    }

    /// Waits until the core's poll function has left a shared queue after our last completion. The
    /// pool does not wait for it, and frees the queue with the device. The queue is not disabled,
    /// as it has other users. None of our completions may still arrive. May sleep.
    fn wait_for_shared_handler(&self) {
        match self.poll_context() {
            // SAFETY: May sleep here. A softirq is an RCU read-side critical section.
            bindings::ib_poll_context_IB_POLL_SOFTIRQ => unsafe {
                bindings::synchronize_rcu_expedited()
            },
            // SAFETY: `raw` is alive by the type invariant. For the other contexts of a pool, the
            // core initialised `work` of the union. No completion handler drops a queue, so `work`
            // does not wait for itself. May sleep here.
            _ => unsafe {
                let work = &raw mut (*self.raw.as_ptr()).__bindgen_anon_1;
                bindings::flush_work(work.cast::<bindings::work_struct>());
            },
        }
    }

    /// Waits until no softirq uses the queue. `ib_free_cq()` does not wait long enough: after
    /// `irq_poll_complete()`, the core's poll function still arms the queue and may schedule itself
    /// again. No further completion may arrive. May sleep.
    fn wait_for_softirq(&self) {
        if self.poll_context() != bindings::ib_poll_context_IB_POLL_SOFTIRQ {
            return;
        }
        // SAFETY: `raw` is alive by the type invariant. For this context, the core initialised
        // `iop` of the union. Nothing else disables it. May sleep here.
        unsafe {
            let iop = (&raw mut (*self.raw.as_ptr()).__bindgen_anon_1).cast::<bindings::irq_poll>();
            bindings::irq_poll_disable(iop);
            // A softirq is an RCU read-side critical section. A poll function that runs now cannot
            // be scheduled again, because `iop` is disabled.
            bindings::synchronize_rcu_expedited();
            bindings::irq_poll_enable(iop);
        }
    }
}

impl OfDevice for OwnedCq {
    fn device(&self) -> &DeviceRef {
        &self.device
    }
}

impl Drop for OwnedCq {
    fn drop(&mut self) {
        might_sleep();
        // SAFETY: `raw` is owned by the type invariant. Queue pairs hold references to their
        // completion queues, so none uses this one. The events are freed after the queue.
        unsafe {
            match self.kind {
                CqKind::Pool { entries } => {
                    self.wait_for_shared_handler();
                    bindings::ib_cq_pool_put(self.raw.as_ptr(), entries);
                }
                CqKind::Allocated(_) => {
                    self.wait_for_softirq();
                    bindings::ib_free_cq(self.raw.as_ptr());
                }
                CqKind::Created(_) => bindings::ib_destroy_cq(self.raw.as_ptr()),
            }
        }
    }
}
