// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_srq`
//!
//! A queue pair with its own receives needs as many as its peer may send at once, and so does every
//! other queue pair. A [`SharedReceiveQueue`] serves many queue pairs. A message takes the next
//! receive, and the completion has the queue pair at which the message arrived. Queue pairs use it
//! by [`QpInitAttr::with_shared_receives`](super::qp::QpInitAttr::with_shared_receives).
//!
//! ```ignore
//! // samples/srq_pingpong.rs
//! let queue = SharedReceiveQueue::new(pd.clone(), depth, move |event| match event {
//!     Event::LimitReached => teller.set_short(),
//! // ...
//! });
//! // ...
//! shared.fill(depth)?;
//! shared.queue.arm_limit(limit).step("limit")?;
//! // ...
//! parts.with_shared_receives(self.queue.clone())
//! ```
//!
//! A shared queue may run short of receives. It reports when their number falls below a limit that
//! was [armed](SharedReceiveQueue::arm_limit).
//!
//! Receives that no message takes do not complete. They are returned without a completion when the
//! queue is dropped. Every queue pair that uses the queue holds a reference to it, so no message
//! can arrive then.
//!
//! The same holds for a receive that was taken by a queue pair that failed in the middle of a
//! message, on devices that do not complete it, such as soft-RoCE. Its slot is not free until then.

mod table;

use super::{
    pd::ProtectionDomain,
    qp::{
        Connected,
        QpContext,
        QpInitAttr,
        QueuePair,
        Srq, //
    },
    wr::{
        with_receive_wr,
        Operation,
        Receive,
        Unposted, //
    },
};
use crate::{
    bindings,
    errno::EOPNOTSUPP,
    rdma::{
        cq::{
            CompletionQueue,
            CqEntries, //
        },
        device::{
            Capabilities,
            Device,
            DeviceRef, //
        },
        sleeping_drop::{
            OfDevice,
            SleepingDrop, //
        },
    },
    sync::new_mutex, //
};
use core::{
    ffi::c_void,
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};
use table::Table;

/// Asynchronous event of a shared receive queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// There are fewer receives than the armed limit. The limit is no longer armed.
    LimitReached,
    /// The device gave up the queue. It moves the queue pairs that use it to their error state.
    Broken,
}

impl Event {
    /// Returns the event, or `None` if shared receive queues do not have it.
    fn from_raw(event: bindings::ib_event_type) -> Option<Self> {
        match event {
            bindings::ib_event_type_IB_EVENT_SRQ_LIMIT_REACHED => Some(Self::LimitReached),
            bindings::ib_event_type_IB_EVENT_SRQ_ERR => Some(Self::Broken),
            _ => None,
        }
    }
}

/// Attributes of a shared receive queue at the time of the query (`struct ib_srq_attr`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// Maximum number of receives in the device. May exceed the number that was requested; no more than that
    /// number are posted.
    pub max_wr: u32,
    /// Memory pieces of one receive.
    pub max_sge: u32,
    /// The armed limit; 0 if none is armed.
    pub limit: u32,
}

/// A completion queue in which the receives of a shared receive queue may complete, and the number of queue
/// pairs that use both. All receives may complete on one queue pair.
struct Destination {
    entries: CqEntries,
    users: usize,
}

/// A queue of receives that several queue pairs with context `E` share.
///
/// Dropping it sleeps. In atomic context, a work item drops it, and its operations.
pub struct SharedReceiveQueue<E: QpContext>(SleepingDrop<Pin<KBox<OwnedSrq<E>>>>);

/// A shared receive queue of a device. Dropping this sleeps.
///
/// Only the device can still use a queue that is being dropped, with an event. Destroying the queue
/// waits for the event handler, and the closure that handles events is freed afterwards. Queue
/// pairs hold references to the queue.
///
/// # Invariants
///
/// - `raw` is a queue of `pd`, owned by this object. Its `srq_context` is the address of this
///   object, which is pinned.
/// - `table` owns all posted operations.
#[pin_data(PinnedDrop)]
struct OwnedSrq<E: QpContext> {
    raw: NonNull<bindings::ib_srq>,
    told: KBox<dyn Fn(Event) + Send + Sync>,
    // Dropped after `raw` was destroyed, because posted receives name the operations in it.
    #[pin]
    table: Table,
    #[pin]
    destinations: Mutex<KVec<Destination>>,
    pd: Arc<ProtectionDomain>,
    _context: PhantomData<fn(E)>,
}

// SAFETY: The verbs on the queue may be called from any thread; the other fields are `Send`.
unsafe impl<E: QpContext> Send for OwnedSrq<E> {}
// SAFETY: The verbs on the queue may be called by several threads at once; the other fields are
// `Sync`.
unsafe impl<E: QpContext> Sync for OwnedSrq<E> {}

impl<E: QpContext> OfDevice for Pin<KBox<OwnedSrq<E>>> {
    fn device(&self) -> &DeviceRef {
        self.pd.device()
    }
}

impl<E: QpContext> SharedReceiveQueue<E> {
    /// Creates a queue of `pd` with room for `receives` receives of one piece (`ib_create_srq`). May
    /// sleep.
    ///
    /// `told` is called with each event, in any context. It must not sleep, nor take a lock under
    /// which the queue is used. It lives as long as the queue, so it must not own a reference to
    /// the queue.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: the device has no shared receive queues, or
    ///   [none that can be used](crate::rdma::device::Device::has_shared_receives), which is logged.
    /// - `EINVAL`: `receives` is 0, or exceeds the device's limit.
    /// - `ENOMEM`.
    pub fn new(
        pd: Arc<ProtectionDomain>,
        receives: u32,
        told: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Arc<Self>> {
        Self::with_sges(pd, receives, 1, told)
    }

    /// Creates a queue as [`new`](Self::new) does, for receives of up to `sges` pieces. May sleep.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new), and the error of the device for too many pieces.
    pub fn with_sges(
        pd: Arc<ProtectionDomain>,
        receives: u32,
        sges: u32,
        told: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Arc<Self>> {
        let limits = pd.device().attributes();
        if limits.max_srq == 0 {
            return Err(EOPNOTSUPP);
        }
        check_last_receive(pd.device())?;
        if receives == 0 || receives > limits.max_srq_wr {
            return Err(EINVAL);
        }
        let told: KBox<dyn Fn(Event) + Send + Sync> = KBox::new(told, GFP_KERNEL)?;
        let init = try_pin_init!(&this in OwnedSrq {
            told,
            table <- Table::new(),
            _: { table.grow::<E>(receives as usize, |_| Ok(()))? },
            destinations <- new_mutex!(KVec::new(), "rrdma::SharedReceiveQueue"),
            // INVARIANT: Created with the address of this object as `srq_context`. Only moves
            // follow, so no later step can fail and leak the queue.
            raw: {
                let attr = bindings::ib_srq_attr {
                    max_wr: receives,
                    max_sge: sges,
                    ..pin_init::zeroed()
                };
                create(&pd, attr, Some(OwnedSrq::<E>::event), this.as_ptr().cast())?
            },
            pd,
            _context: PhantomData,
        }? Error);
        let owned = KBox::pin_init(init, GFP_KERNEL)?;
        Ok(Arc::new(Self(SleepingDrop::new(owned)), GFP_KERNEL)?)
    }

    /// Posts a receive for any of the queue pairs (`ib_post_srq_recv`). Any context.
    ///
    /// # Errors
    ///
    /// Returns the operation with the error:
    ///
    /// - `ENOMEM`: the queue is full.
    /// - `EINVAL`: the buffer is mapped for another device, or not for writing by the device.
    /// - Any error of the driver.
    #[inline]
    pub fn post<T: Receive<E>>(&self, operation: Operation<T>) -> Result<(), Unposted<T>> {
        let fail = |(error, operation)| Unposted { error, operation };
        let post = |body: &mut T, cqe| {
            with_receive_wr(body, self.0.pd.local_memory(), cqe, |request| {
                // SAFETY: `raw` is alive by the type invariant. The work request is well-formed. The
                // memory that it names belongs to the operation, which `table` owns.
                to_result(unsafe { bindings::ib_post_srq_recv(self.0.raw.as_ptr(), request) })
            })
        };
        // SAFETY: The queue pairs that use this queue have context `E`. The table is dropped after
        // all of them and the queue were destroyed.
        unsafe { self.0.table.post(operation, post) }.map_err(fail)
    }

    /// Arms the limit (`ib_modify_srq`): [`Event::LimitReached`] is reported once when fewer than
    /// `limit` receives are posted. 0 disarms it. May sleep.
    ///
    /// If fewer are posted already, a device may report it only with the next message.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `limit` exceeds the capacity, or any error of the driver.
    pub fn arm_limit(&self, limit: u32) -> Result {
        if limit as usize > self.0.table.len() {
            return Err(EINVAL);
        }
        let attributes = bindings::ib_srq_attr {
            srq_limit: limit,
            ..pin_init::zeroed()
        };
        self.modify(attributes, bindings::ib_srq_attr_mask_IB_SRQ_LIMIT)
    }

    /// Adds room for `receives` receives (`ib_modify_srq`). May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOSPC`: the completion queue of a queue pair has too few entries for them.
    /// - `EOPNOTSUPP`: the device cannot resize shared receive queues.
    /// - `EINVAL`: the new size exceeds the device's limit.
    /// - `ENOMEM`, or any error of the driver.
    pub fn grow(&self, receives: u32) -> Result {
        let limits = self.0.pd.device().attributes();
        if !limits.capabilities.contains(Capabilities::SRQ_RESIZE) {
            return Err(EOPNOTSUPP);
        }
        // Check before memory is allocated.
        if receives > limits.max_srq_wr {
            return Err(EINVAL);
        }
        // Held until the queue has grown: a queue pair that is created meanwhile needs entries for all.
        let mut destinations = self.0.destinations.lock();
        grow_all(&mut destinations, receives)?;
        let grown = self.0.table.grow::<E>(receives as usize, |total| {
            let max_wr = u32::try_from(total)?;
            if max_wr > limits.max_srq_wr {
                return Err(EINVAL);
            }
            let attributes = bindings::ib_srq_attr {
                max_wr,
                ..pin_init::zeroed()
            };
            self.modify(attributes, bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR)
        });
        if grown.is_err() {
            shrink_all(destinations.iter_mut(), receives);
        }
        grown
    }

    fn modify(
        &self,
        mut attributes: bindings::ib_srq_attr,
        which: bindings::ib_srq_attr_mask,
    ) -> Result {
        // SAFETY: `raw` is alive by the type invariant, and the attributes are valid for the call.
        to_result(unsafe { bindings::ib_modify_srq(self.0.raw.as_ptr(), &mut attributes, which) })
    }

    /// Queries the attributes from the device (`ib_query_srq`). May sleep.
    ///
    /// # Errors
    ///
    /// Any error of the driver.
    pub fn query(&self) -> Result<Attributes> {
        let mut raw = pin_init::zeroed::<bindings::ib_srq_attr>();
        // SAFETY: `raw` is alive by the type invariant, and the attributes are valid for writes.
        to_result(unsafe { bindings::ib_query_srq(self.0.raw.as_ptr(), &mut raw) })?;
        Ok(Attributes {
            max_wr: raw.max_wr,
            max_sge: raw.max_sge,
            limit: raw.srq_limit,
        })
    }

    /// Returns the number of receives that the queue has room for. May sleep.
    pub fn receives(&self) -> u32 {
        // At most the number of receives that the device allows.
        self.0.table.len() as u32
    }

    /// Returns the protection domain, which the queue pairs share.
    pub fn protection_domain(&self) -> &Arc<ProtectionDomain> {
        &self.0.pd
    }
}

impl<E: QpContext> OwnedSrq<E> {
    /// Returns the object of a shared receive queue.
    ///
    /// # Safety
    ///
    /// `srq` must be a queue made by `SharedReceiveQueue::new`, with the context `E`, that is not dropped for `'a`.
    #[inline]
    unsafe fn of<'a>(srq: *const bindings::ib_srq) -> &'a Self {
        // SAFETY: By the safety requirements `srq` is alive. By the type invariant its
        // `srq_context` is the address of its object.
        unsafe { &*(*srq).srq_context.cast::<Self>() }
    }

    /// Passes an asynchronous event to `told`.
    ///
    /// # Safety
    ///
    /// Called by the device with an event of a queue made by `SharedReceiveQueue::new`, whose
    /// `srq_context` is `context`.
    unsafe extern "C" fn event(event: *mut bindings::ib_event, context: *mut c_void) {
        // SAFETY: `context` is valid by the safety requirements. A limit may be reported with no
        // queue pair left. Destroying the queue waits for this handler, and the fields are dropped
        // after that.
        let (queue, kind) = unsafe { (&*context.cast::<Self>(), (*event).event) };
        if let Some(event) = Event::from_raw(kind) {
            (queue.told)(event);
        }
    }
}

impl<E: QpContext> Srq for SharedReceiveQueue<E> {
    fn as_raw(&self) -> *mut bindings::ib_srq {
        self.0.raw.as_ptr()
    }

    fn protection_domain(&self) -> &Arc<ProtectionDomain> {
        &self.0.pd
    }

    fn take_entries(&self, cq: &Arc<CompletionQueue>) -> Result {
        let mut destinations = self.0.destinations.lock();
        if let Some(known) = destinations.iter_mut().find(|it| it.entries.are_of(cq)) {
            known.users = known.users.saturating_add(1);
            return Ok(());
        }
        destinations.reserve(1, GFP_KERNEL)?;
        let entries = CqEntries::take(cq, self.receives())?;
        destinations.push(Destination { entries, users: 1 }, GFP_KERNEL)?;
        Ok(())
    }

    fn put_entries(&self, cq: &CompletionQueue) {
        let mut destinations = self.0.destinations.lock();
        if let Some(known) = destinations.iter_mut().find(|it| it.entries.are_of(cq)) {
            known.users = known.users.saturating_sub(1);
        }
        destinations.retain(|it| it.users != 0);
    }
}

/// Takes `more` entries of each completion queue, or of none.
///
/// # Errors
///
/// `ENOSPC` if one has too few; logged.
fn grow_all(destinations: &mut [Destination], more: u32) -> Result {
    let mut grown = 0usize;
    let mut result = Ok(());
    for destination in destinations.iter_mut() {
        result = destination.entries.grow(more);
        if result.is_err() {
            break;
        }
        grown = grown.saturating_add(1);
    }
    if result.is_err() {
        shrink_all(destinations.iter_mut().take(grown), more);
    }
    result
}

/// Returns `fewer` entries of each completion queue.
fn shrink_all<'a>(destinations: impl Iterator<Item = &'a mut Destination>, fewer: u32) {
    for destination in destinations {
        destination.entries.shrink(fewer);
    }
}

impl<E: QpContext> QpInitAttr<E> {
    /// Takes receives from `shared`. The queue pair has none of its own, whatever the capacity
    /// says.
    ///
    /// It must have one completion queue for both directions, with room for all receives of
    /// `shared`. Several queue pairs with that completion queue need the room once.
    pub fn with_shared_receives(self, shared: Arc<SharedReceiveQueue<E>>) -> Self
    where
        E::QpType: Connected,
    {
        // SAFETY: `shared` is a `SharedReceiveQueue<E>`.
        unsafe { self.with_srq(shared) }
    }
}

impl<E: QpContext> QueuePair<E> {
    /// Returns the shared queue that the queue pair takes its receives from, if it has one.
    #[inline]
    pub fn shared_receives(&self) -> Option<&SharedReceiveQueue<E>> {
        let srq = self.srq()?;
        let srq: *const SharedReceiveQueue<E> = ptr::from_ref(&**srq).cast();
        // SAFETY: By the safety requirements of `with_srq` it is of this type. The queue pair holds a
        // reference to it.
        Some(unsafe { &*srq })
    }
}

/// Refuses a device that does not report the last receive of a queue pair. The drain would wait for it for 60 s,
/// and keep each queue pair.
fn check_last_receive(device: &Device) -> Result {
    let Some(driver) = device.without_last_receive() else {
        return Ok(());
    };
    pr_err!(
        "{}: no shared receive queues: the driver {driver} does not report the last receive of a queue pair\n",
        device.name()
    );
    Err(EOPNOTSUPP)
}

type Handler = Option<unsafe extern "C" fn(*mut bindings::ib_event, *mut c_void)>;

fn create(
    pd: &ProtectionDomain,
    attr: bindings::ib_srq_attr,
    handler: Handler,
    context: *mut c_void,
) -> Result<NonNull<bindings::ib_srq>> {
    let mut attributes = bindings::ib_srq_init_attr {
        event_handler: handler,
        srq_context: context,
        attr,
        srq_type: bindings::ib_srq_type_IB_SRQT_BASIC,
        ..pin_init::zeroed()
    };
    // SAFETY: The protection domain is alive. The attributes are valid for the call. The caller
    // keeps `srq_context` valid until the queue is destroyed.
    let raw = from_err_ptr(unsafe { bindings::ib_create_srq(pd.as_raw(), &mut attributes) })?;
    NonNull::new(raw).ok_or(ENOMEM)
}

#[pinned_drop]
impl<E: QpContext> PinnedDrop for OwnedSrq<E> {
    fn drop(self: Pin<&mut Self>) {
        let device = self.pd.device();
        device.insist("destroy a shared receive queue", || {
            // SAFETY: `raw` is owned by the type invariant. Queue pairs hold references to the
            // queue, so none uses it. The call waits for event handlers. The table drops the
            // remaining operations afterwards.
            unsafe { bindings::ib_destroy_srq_user(self.raw.as_ptr(), ptr::null_mut()) }
        });
    }
}
