// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_cq`
//!
//! A queue is polled in one of these ways, and whichever it is, each completion is
//! handed to [`Complete::complete`](super::wr::Complete::complete) of its operation:
//!
//! - by the core, in a context of [`Poll`]: [`CompletionQueue::alloc`] makes one of
//!   one's own, [`CompletionQueue::pool_get`] takes a share of one of the device's;
//! - by the consumer, whenever it likes: a [`DirectQueue`];
//! - by the consumer, when it is woken because there is something: a [`NotifiedQueue`].
//!
//! One of one's own, with an entry for all that its queue pair can have posted:
//!
//! ```ignore
//! // samples/completion_queues.rs
//! let cq = CompletionQueue::alloc(self.0.device(), CAPACITY.completions(), 0, poll, OWNER)
//!     .step("completion queue")?;
//! ```

mod completion;
mod direct;
mod events;
mod failure;
mod notified;
mod registrations;

pub use completion::{
    Completion,
    Invalidation,
    Opcode,
    Received, //
};
pub use direct::DirectQueue;
pub use failure::{
    Failure,
    Status, //
};
pub use notified::{
    NotifiedQueue,
    NotifyMode, //
};

pub(super) use registrations::{
    RegSeq,
    Registrations, //
};

use super::device::DeviceRef;
use crate::{
    bindings,
    sync::{
        Msecs,
        TimedCompletion, //
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
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// In which context the core polls a queue, and completions are handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Poll {
    /// The softirq that the device's interrupt raises: handlers may not sleep.
    SoftIrq,
    /// A workqueue of high priority, on the processor of the interrupt: handlers may
    /// sleep, but not wait for other completions.
    Workqueue,
    /// A workqueue of high priority, on whichever processor is idle, for handlers
    /// that take long. Likewise.
    UnboundWorkqueue,
}

impl Poll {
    fn as_raw(self) -> bindings::ib_poll_context {
        match self {
            Poll::SoftIrq => bindings::ib_poll_context_IB_POLL_SOFTIRQ,
            Poll::Workqueue => bindings::ib_poll_context_IB_POLL_WORKQUEUE,
            Poll::UnboundWorkqueue => bindings::ib_poll_context_IB_POLL_UNBOUND_WORKQUEUE,
        }
    }
}

/// Where a completion queue came from, and goes back to.
enum Origin {
    /// The device's pool (`ib_cq_pool_get`); so many entries of it are ours.
    Pool { entries: u32 },
    /// `ib_alloc_cq`.
    Allocated(Arc<CqEvents>),
    /// `ib_create_cq`.
    Created(Arc<CqEvents>),
}

/// A completion queue, or a share in one.
///
/// A queue pair needs room for every work request that it can have posted, and
/// one more a direction for its drain: an entry that finds the queue full is lost.
///
/// Must be dropped where it may sleep, and not by what handles completions. Who may call
/// it when it dies: the device calls its events, until the queue is destroyed; completions
/// cannot come, for queue pairs hold their queues. A handler of the core that has just ended
/// to complete is waited for, also where the queue goes back to a pool: it may be in the
/// queue, and in the code of whoever is dropping it.
///
/// # Invariants
///
/// `raw` is a queue of `device`; this object owns it, or `entries` of it. Unless it
/// is of a pool, its context is its events.
pub struct CompletionQueue {
    raw: NonNull<bindings::ib_cq>,
    origin: Origin,
    device: DeviceRef,
}

// SAFETY: The verbs on a completion queue may be called from any thread.
unsafe impl Send for CompletionQueue {}
// SAFETY: As above.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// `entries` of a queue that the device shares among its users
    /// (`ib_cq_pool_get`), near completion vector `vector`. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for no entries or more than a queue of the device can have, `ENOMEM`.
    pub fn pool_get(device: DeviceRef, entries: u32, vector: u32, poll: Poll) -> Result<Arc<Self>> {
        // The core itself would look for a large enough queue for ever.
        check_entries(&device, entries)?;
        let hint = vector.try_into()?;
        // SAFETY: The device is registered while `device` lives.
        let raw = from_err_ptr(unsafe {
            bindings::ib_cq_pool_get(device.as_raw(), entries, hint, poll.as_raw())
        })?;
        Self::from_raw(raw, Origin::Pool { entries }, device)
    }

    /// A queue of one's own (`ib_alloc_cq`) on completion vector `vector`, which
    /// is taken modulo the number of vectors. `owner` is what `rdma res show cq`
    /// names. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for no entries or more than a queue of the device can have, `ENOMEM`.
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
        let (entries, vector) = (
            check_entries(&device, entries)?,
            on_device(&device, vector)?,
        );
        let events = CqEvents::new(None)?;
        // SAFETY: The device is registered while `device` lives. The context is the
        // events, which the queue holds.
        let raw = from_err_ptr(unsafe {
            bindings::ib_alloc_cq(
                device.as_raw(),
                events.as_context(),
                entries,
                vector,
                poll,
                Some(CqEvents::event_callback),
                owner.as_char_ptr(),
            )
        })?;
        Self::from_raw(raw, Origin::Allocated(events), device)
    }

    /// A queue that nobody polls but the consumer, and that wakes through `events`
    /// when it is armed.
    fn create(
        device: DeviceRef,
        entries: u32,
        vector: u32,
        events: Arc<CqEvents>,
        owner: &'static CStr,
    ) -> Result<Arc<Self>> {
        let (entries, vector) = (
            check_entries(&device, entries)?,
            on_device(&device, vector)?,
        );
        // SAFETY: As in `allocate`.
        let raw = from_err_ptr(unsafe {
            bindings::ib_create_cq(
                device.as_raw(),
                Some(CqEvents::completion_callback),
                Some(CqEvents::event_callback),
                events.as_context(),
                entries,
                vector,
                owner.as_char_ptr(),
            )
        })?;
        Self::from_raw(raw, Origin::Created(events), device)
    }

    fn from_raw(raw: *mut bindings::ib_cq, origin: Origin, device: DeviceRef) -> Result<Arc<Self>> {
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        // INVARIANT: The callers got `raw` from the device for this object.
        let this = Self {
            raw,
            origin,
            device,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Lets the device put off the interrupt until `count` completions are there, or
    /// the first of them is `period` microseconds old (`rdma_set_cq_moderation`); 0
    /// and 0 is none. May sleep.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device has no moderation, as soft devices have none, or
    /// the queue is a pool's; `EINVAL` beyond what
    /// [`Attributes`](super::device::Attributes) says.
    pub fn set_moderation(&self, count: u16, period: u16) -> Result {
        // SAFETY: By the type invariant.
        to_result(unsafe { bindings::rdma_set_cq_moderation(self.raw.as_ptr(), count, period) })
    }

    /// Whether the device has given the queue up (`IB_EVENT_CQ_ERR`): it had no room,
    /// and a completion is lost. What a request whose completion is lost names can
    /// never be freed: a drain would wait for ever. That of a pool does not tell.
    pub fn is_broken(&self) -> bool {
        match &self.origin {
            Origin::Pool { .. } => false,
            Origin::Allocated(events) | Origin::Created(events) => events.is_broken(),
        }
    }

    /// The device of the queue.
    pub fn device(&self) -> &DeviceRef {
        &self.device
    }

    /// Whether nobody polls the queue but its owner, and whoever drains.
    pub(super) fn is_polled_by_owner(&self) -> bool {
        self.poll_context() == bindings::ib_poll_context_IB_POLL_DIRECT
    }

    fn poll_context(&self) -> bindings::ib_poll_context {
        // SAFETY: By the type invariant; the context of polling is constant.
        unsafe { (*self.raw.as_ptr()).poll_ctx }
    }

    /// Polls for the owner.
    #[inline]
    fn poll_as_owner(&self, budget: u32) -> u32 {
        match &self.origin {
            Origin::Pool { .. } => 0,
            Origin::Allocated(events) | Origin::Created(events) => {
                events.polled_by_owner(|| direct::process(self, budget))
            }
        }
    }

    /// Runs `drain`, which waits for completions in this queue, and polls it if else the
    /// owner does. Afterwards the handlers of all that came before them are over:
    /// whoever polls is alone, and handles one after the other. Sleeps.
    pub(super) fn drain(&self, drain: impl FnOnce()) {
        match &self.origin {
            Origin::Allocated(events) | Origin::Created(events) if self.is_polled_by_owner() => {
                events.polled_by_drain(drain);
            }
            _ => drain(),
        }
    }

    /// Waits for what a completion in this queue completes; if the queue is polled by
    /// its owner, polls meanwhile, within [`drain`](Self::drain). Sleeps.
    pub(super) fn wait(&self, done: &TimedCompletion) {
        if !self.is_polled_by_owner() {
            return done.wait();
        }
        while !done.wait_timeout(Msecs::new(0)) {
            self.pass_time();
        }
    }

    /// Gives a device about as long as it takes to flush what was posted, and handles it if
    /// nobody else does. Sleeps.
    pub(super) fn pass_time(&self) {
        fsleep(Delta::from_micros(200));
        if self.is_polled_by_owner() {
            direct::process(self, u32::MAX);
        }
    }

    /// Waits until whoever handled the last of our completions, in a queue that is shared, is
    /// out of it: the pool, which frees it when the device goes, does not. Others may use it
    /// on, so that it is not disabled. Sleeps; nothing of ours may complete in it any more.
    fn wait_for_shared_handler(&self) {
        match self.poll_context() {
            // SAFETY: May sleep here. A softirq is an RCU read-side critical section.
            bindings::ib_poll_context_IB_POLL_SOFTIRQ => unsafe {
                bindings::synchronize_rcu_expedited()
            },
            // SAFETY: By the type invariant. For the other ways of polling of a pool the core
            // made `work` of the union, and nobody drops a queue in it. May sleep here.
            _ => unsafe {
                let work = &raw mut (*self.raw.as_ptr()).__bindgen_anon_1;
                bindings::flush_work(work.cast::<bindings::work_struct>());
            },
        }
    }

    /// Waits until no softirq polls the queue, nor arms it again: the core's handler does
    /// that, and more, when it has said already that it is over, so that what `ib_free_cq`
    /// waits for itself is too little. Sleeps; nothing may complete in the queue any more.
    fn wait_for_softirq(&self) {
        if self.poll_context() != bindings::ib_poll_context_IB_POLL_SOFTIRQ {
            return;
        }
        // SAFETY: By the type invariant. For this way of polling the core made `iop` of the
        // union, which nobody else disables. May sleep here.
        unsafe {
            let iop = (&raw mut (*self.raw.as_ptr()).__bindgen_anon_1).cast::<bindings::irq_poll>();
            bindings::irq_poll_disable(iop);
            // A softirq is an RCU read-side critical section. Whoever is in the handler now
            // cannot have it called again, for it is disabled.
            bindings::synchronize_rcu_expedited();
            bindings::irq_poll_enable(iop);
        }
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::ib_cq {
        self.raw.as_ptr()
    }
}

/// So many entries, if a queue of the device can have them.
fn check_entries(device: &DeviceRef, entries: u32) -> Result<c_int> {
    if entries == 0 || entries > device.attributes().max_cqe {
        return Err(EINVAL);
    }
    Ok(entries.try_into()?)
}

/// A completion vector of the device.
fn on_device(device: &DeviceRef, vector: u32) -> Result<c_int> {
    let vectors = device.attributes().completion_vectors.max(1);
    Ok((vector % vectors).try_into()?)
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; queue pairs hold their completion queues, so
        // none uses this one any more. The events live longer than the queue.
        unsafe {
            match self.origin {
                Origin::Pool { entries } => {
                    self.wait_for_shared_handler();
                    bindings::ib_cq_pool_put(self.raw.as_ptr(), entries);
                }
                Origin::Allocated(_) => {
                    self.wait_for_softirq();
                    bindings::ib_free_cq(self.raw.as_ptr());
                }
                Origin::Created(_) => bindings::ib_destroy_cq(self.raw.as_ptr()),
            }
        }
    }
}
