// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_srq`
//!
//! A queue pair with receives of its own needs as many as its peer may ever send at
//! once, and so do all the others. A [`SharedReceiveQueue`] serves many queue pairs:
//! whichever a message arrives at takes the next receive, and the completion is told
//! the queue pair. It is given to them by
//! [`QpInitAttr::with_shared_receives`](super::qp::QpInitAttr::with_shared_receives).
//!
//! ```ignore
//! // samples/srq_pingpong.rs
//! let shared = SharedReceiveQueue::new(pd, depth, move |event| on_event(&teller, event))
//!     .step("shared receive queue")?;
//! fill(&shared, device, depth)?;
//! shared.arm_limit(parameters::limit.get()).step("limit")?;
//! // ...
//! let parts = parts.with_shared_receives(self.shared.clone());
//! ```
//!
//! Who lets peers share should know when it runs short: the queue tells once it falls
//! below a limit that was [armed](SharedReceiveQueue::arm_limit).
//!
//! Receives that no message ever takes do not complete. They come back, without a
//! completion, when the queue is dropped; every queue pair that uses it holds it, so
//! no message can arrive then. The same goes for the receive that a queue pair had
//! taken when it failed in the middle of a message, with devices that do not complete
//! it, such as soft-RoCE: its place is lost until then.

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
        Operation,
        Receive,
        Unposted, //
    },
};
use crate::{
    bindings,
    errno::EOPNOTSUPP,
    rdma::device::Capabilities, //
};
use core::{
    ffi::c_void,
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::Arc, //
};
use table::Table;

/// What a device says of a shared receive queue by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// There are fewer receives than the limit that was armed, which is thereby spent.
    LimitReached,
    /// The device has given the queue up, and puts its queue pairs into their error
    /// state.
    Broken,
}

impl Event {
    /// `None` for what there should not be.
    fn from_raw(event: bindings::ib_event_type) -> Option<Self> {
        match event {
            bindings::ib_event_type_IB_EVENT_SRQ_LIMIT_REACHED => Some(Self::LimitReached),
            bindings::ib_event_type_IB_EVENT_SRQ_ERR => Some(Self::Broken),
            _ => None,
        }
    }
}

/// What a device says of a shared receive queue when it is asked (`struct ib_srq_attr`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// Receives that there is room for; the device may have made more than were asked
    /// for, but no more are posted.
    pub max_wr: u32,
    /// Pieces of memory of one receive.
    pub max_sge: u32,
    /// The limit that is armed; 0 if none is.
    pub limit: u32,
}

/// Receives for any of the queue pairs of context `E` that use it.
///
/// Who may call it when it dies: the device, with an event, as long as the queue is
/// there; destroying the queue waits for that, and what the event is told to goes later.
/// No queue pair, as those hold it.
///
/// # Invariants
///
/// - `raw` is a queue of `pd`, owned by this object, whose `srq_context` is the
///   address of this object, which is pinned.
/// - What is posted is in `table`.
#[pin_data(PinnedDrop)]
pub struct SharedReceiveQueue<E: QpContext> {
    raw: NonNull<bindings::ib_srq>,
    told: KBox<dyn Fn(Event) + Send + Sync>,
    // After the queue, which its drop destroys.
    #[pin]
    table: Table,
    pd: Arc<ProtectionDomain>,
    _context: PhantomData<fn(E)>,
}

// SAFETY: The verbs on the queue may be called from any thread; the rest is `Send`.
unsafe impl<E: QpContext> Send for SharedReceiveQueue<E> {}
// SAFETY: As above, and `Sync`.
unsafe impl<E: QpContext> Sync for SharedReceiveQueue<E> {}

impl<E: QpContext> SharedReceiveQueue<E> {
    /// Creates a queue of `pd` with room for so many receives (`ib_create_srq`). May
    /// sleep.
    ///
    /// `told` is called with what the device says of it: in any context, so it may not
    /// sleep, nor take a lock under which the queue is used. What it holds lives as
    /// long as the queue, which it should therefore not hold in turn.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device has no such queues; `EINVAL` for no receives or more
    /// than a queue of the device can have; `ENOMEM`.
    pub fn new(
        pd: Arc<ProtectionDomain>,
        receives: u32,
        told: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Arc<Self>> {
        let limits = pd.device().attributes();
        if limits.max_srq == 0 {
            return Err(EOPNOTSUPP);
        }
        if receives == 0 || receives > limits.max_srq_wr {
            return Err(EINVAL);
        }
        let told: KBox<dyn Fn(Event) + Send + Sync> = KBox::new(told, GFP_KERNEL)?;
        let init = try_pin_init!(&this in Self {
            told,
            table <- Table::new(),
            _: { table.grow::<E>(receives as usize, |_| Ok(()))? },
            // INVARIANT: Created with the address of this object as context. Last but
            // for moves, so that no later step can fail and leave it.
            raw: create(&pd, receives, Some(Self::event), this.as_ptr().cast())?,
            pd,
            _context: PhantomData,
        }? Error);
        Arc::pin_init(init, GFP_KERNEL)
    }

    /// Posts a receive for whichever queue pair needs one (`ib_post_srq_recv`). Any
    /// context.
    ///
    /// # Errors
    ///
    /// Gives the operation back: `ENOMEM` if there is no room, `EINVAL` for memory
    /// mapped for another device, or what the device answers.
    #[inline]
    pub fn post<T: Receive<E>>(&self, operation: Operation<T>) -> Result<(), Unposted<T>> {
        let fail = |(error, operation)| Unposted { error, operation };
        let mut sge = match operation.buffer().as_sink(&self.pd) {
            Ok(sge) => sge,
            Err(error) => return Err(fail((error, operation))),
        };
        let post = |cqe| {
            let mut request = bindings::ib_recv_wr {
                sg_list: &mut sge,
                num_sge: 1,
                ..pin_init::zeroed()
            };
            request.__bindgen_anon_1.wr_cqe = cqe;
            // SAFETY: By the type invariant. The request is well-formed; the memory
            // that it names is the operation's, which the table has.
            to_result(unsafe { bindings::ib_post_srq_recv(self.raw.as_ptr(), &request) })
        };
        // SAFETY: The queue pairs that use this queue are of context `E`; the table is
        // dropped after all of them, and the queue, are destroyed.
        unsafe { self.table.post(operation, post) }.map_err(fail)
    }

    /// Asks to be told once when fewer than `limit` receives are posted
    /// (`ib_modify_srq`); 0 takes that back. Also if it is so already, but then no
    /// device has to tell before the next message. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a limit above what there is room for; what the device answers.
    pub fn arm_limit(&self, limit: u32) -> Result {
        if limit as usize > self.table.len() {
            return Err(EINVAL);
        }
        let attributes = bindings::ib_srq_attr {
            srq_limit: limit,
            ..pin_init::zeroed()
        };
        self.modify(attributes, bindings::ib_srq_attr_mask_IB_SRQ_LIMIT)
    }

    /// Makes room for so many receives more (`ib_modify_srq`). Sleeps.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device cannot; `EINVAL` beyond what a queue of it can have;
    /// `ENOMEM`, or what the device answers.
    pub fn grow(&self, receives: u32) -> Result {
        let limits = self.pd.device().attributes();
        if !limits.capabilities.contains(Capabilities::SRQ_RESIZE) {
            return Err(EOPNOTSUPP);
        }
        // Before memory is allocated for them.
        if receives > limits.max_srq_wr {
            return Err(EINVAL);
        }
        self.table.grow::<E>(receives as usize, |total| {
            let max_wr = u32::try_from(total)?;
            if max_wr > limits.max_srq_wr {
                return Err(EINVAL);
            }
            let attributes = bindings::ib_srq_attr {
                max_wr,
                ..pin_init::zeroed()
            };
            self.modify(attributes, bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR)
        })
    }

    fn modify(
        &self,
        mut attributes: bindings::ib_srq_attr,
        which: bindings::ib_srq_attr_mask,
    ) -> Result {
        // SAFETY: By the type invariant; the attributes are ours.
        to_result(unsafe { bindings::ib_modify_srq(self.raw.as_ptr(), &mut attributes, which) })
    }

    /// Asks the device (`ib_query_srq`). May sleep.
    ///
    /// # Errors
    ///
    /// What the device answers.
    pub fn query(&self) -> Result<Attributes> {
        let mut raw = bindings::ib_srq_attr::default();
        // SAFETY: By the type invariant; the attributes are ours.
        to_result(unsafe { bindings::ib_query_srq(self.raw.as_ptr(), &mut raw) })?;
        Ok(Attributes {
            max_wr: raw.max_wr,
            max_sge: raw.max_sge,
            limit: raw.srq_limit,
        })
    }

    /// The protection domain, which is that of its queue pairs.
    pub fn protection_domain(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }

    /// The queue that a queue pair takes its receives from.
    ///
    /// # Safety
    ///
    /// `srq` must be a queue made by `Self::new`, which is not dropped for `'a`.
    #[inline]
    unsafe fn of<'a>(srq: *const bindings::ib_srq) -> &'a Self {
        // SAFETY: By the contract and the type invariant.
        unsafe { &*(*srq).srq_context.cast::<Self>() }
    }

    fn table(&self) -> &Table {
        &self.table
    }

    /// # Safety
    ///
    /// Called by the device with an event of a queue made by `Self::new`, whose
    /// `srq_context` is `context`.
    unsafe extern "C" fn event(event: *mut bindings::ib_event, context: *mut c_void) {
        // SAFETY: By the contract. An event may come with no queue pair left, for a limit;
        // destroying the queue waits until it is over, and the fields go after that.
        let (queue, kind) = unsafe { (&*context.cast::<Self>(), (*event).event) };
        if let Some(event) = Event::from_raw(kind) {
            (queue.told)(event);
        }
    }
}

impl<E: QpContext> Srq for SharedReceiveQueue<E> {
    fn as_raw(&self) -> *mut bindings::ib_srq {
        self.raw.as_ptr()
    }

    fn protection_domain(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }
}

impl<E: QpContext> QpInitAttr<E> {
    /// Lets the queue pair take receives from this queue and have none of its own, whatever the
    /// capacity says. Its completion queue, which has to be one for both directions,
    /// needs room for all receives of the shared one.
    pub fn with_shared_receives(self, shared: Arc<SharedReceiveQueue<E>>) -> Self
    where
        E::QpType: Connected,
    {
        // SAFETY: By the type invariant of the queue.
        unsafe { self.with_srq(shared) }
    }
}

impl<E: QpContext> QueuePair<E> {
    /// The queue that its receives are taken from, if that is shared.
    #[inline]
    pub fn shared_receives(&self) -> Option<&SharedReceiveQueue<E>> {
        let srq = self.srq()?;
        // SAFETY: By the contract of `with_srq`; the queue pair holds the queue.
        Some(unsafe { SharedReceiveQueue::of(srq.as_raw()) })
    }
}

type Handler = Option<unsafe extern "C" fn(*mut bindings::ib_event, *mut c_void)>;

fn create(
    pd: &ProtectionDomain,
    receives: u32,
    handler: Handler,
    context: *mut c_void,
) -> Result<NonNull<bindings::ib_srq>> {
    let mut attributes = bindings::ib_srq_init_attr {
        event_handler: handler,
        srq_context: context,
        attr: bindings::ib_srq_attr {
            max_wr: receives,
            max_sge: 1,
            ..pin_init::zeroed()
        },
        srq_type: bindings::ib_srq_type_IB_SRQT_BASIC,
        ..pin_init::zeroed()
    };
    // SAFETY: The domain is alive; the attributes are valid, and those of the queue are
    // the caller's to keep.
    let raw = from_err_ptr(unsafe { bindings::ib_create_srq(pd.as_raw(), &mut attributes) })?;
    NonNull::new(raw).ok_or(ENOMEM)
}

#[pinned_drop]
impl<E: QpContext> PinnedDrop for SharedReceiveQueue<E> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant; queue pairs hold the queue, so none uses it
        // any more. This waits for events. The table gives back what is still in it afterwards.
        unsafe { bindings::ib_destroy_srq(self.raw.as_ptr()) };
    }
}
