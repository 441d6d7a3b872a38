// SPDX-License-Identifier: GPL-2.0

//! The end of a queue pair: it stops, and what was posted comes back.
//!
//! C: `ib_drain_sq` and `ib_drain_rq`
//!
//! Each direction is drained by a marker, a last request behind all the others in the
//! error state, where each completes at once: when the marker's completion is
//! handled, those before it have been. That needs a request that can always be
//! posted, which a receive is. For a send the core has a write to nowhere, and a
//! queue pair for datagrams can no more post that than a datagram without an address
//! handle; so it counts its sends, see [`Sends`].
//!
//! A queue pair that shares its receives can post none to mark the last. In the error
//! state it takes no more of them, and says so when it has taken the last
//! (`IB_EVENT_QP_LAST_WQE_REACHED`): their completions are in the queue by then. The
//! marker of the sends is posted afterwards and completes in the same queue, so when
//! it does, they have been handled. The core's way, which `ib_drain_qp` has, is to
//! poll until the queue is empty: that does not tell whether a handler is still at the
//! last completion on another processor.
//!
//! A queue that was posted to beyond its [`QpCap`](super::QpCap), as devices that round it
//! up allow, may be full. The core would say so, and drain nothing; here the marker is one of
//! ours, and is posted when one of the others has completed. Where nobody polls but the owner,
//! we do until the marker is back. A device that has a drain of its own knows why.

mod marker;

use super::{
    QpContext,
    QueuePair,
    Sealed, //
};
use crate::{
    bindings,
    rdma::{
        cq::CompletionQueue,
        device::NodeType, //
    },
    sync::{
        Deadline,
        Msecs,
        TimedCompletion, //
    }, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    }, //
};
use marker::Marker;

/// How long a device may take to say that a queue pair takes no more receives; as long
/// as the core gives it.
const LAST_RECEIVE: Msecs = Msecs::from_secs(60);

/// How long a full queue may take to have room for the marker.
const ROOM: Msecs = Msecs::from_secs(60);

/// How many sends have not completed, with a service that has no marker for them
/// ([`Sealed::COUNTS_SENDS`]).
///
/// The count begins at one, which is the drain's: nobody is told of the last one to
/// complete while the queue pair may be posted to.
#[pin_data]
pub(super) struct Sends {
    count: Atomic<u32>,
    #[pin]
    none: TimedCompletion,
}

impl Sends {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            count: Atomic::new(1),
            none <- TimedCompletion::new(),
        })
    }

    fn add(&self, sends: u32) {
        self.count.add(sends, ordering::Relaxed);
    }

    /// Nothing of the queue pair may be touched afterwards by whoever posted, or
    /// completes, what is counted.
    fn remove(&self, sends: u32) {
        if self.count.fetch_sub(sends, ordering::Full) == sends {
            self.none.complete_all();
        }
    }
}

impl<E: QpContext> QueuePair<E> {
    /// Moves the queue pair to its error state and waits until everything that
    /// was posted has completed, and its handlers are over. Nothing can be posted
    /// afterwards. Sleeps; not from a completion or a connection event.
    ///
    /// That takes a device that works. One that refuses the error state, or the marker
    /// there, is warned of, by the core, and what it has may then complete later; so too
    /// if it does not tell of the last shared receive within a minute, as long as the
    /// core waits. Nobody knows how to take memory back from such a device, and C
    /// consumers do as is done here, and go on.
    pub fn drain(&self) {
        let mut idle = self.idle.lock();
        if *idle {
            return;
        }
        self.close();
        // SAFETY: May sleep here. Afterwards, whoever found the queue pair open
        // has posted: a request behind the drain's own would never be awaited.
        unsafe { bindings::synchronize_rcu_expedited() };
        if self.srq().is_some() {
            self.wait_for_shared_receives();
        }
        self.send_cq().drain(|| self.drain_sends());
        self.receive_cq().drain(|| self.drain_receives());
        // SAFETY: All that was posted has completed, if the device works: see above.
        unsafe { self.partially_posted().flush(self.as_raw()) };
        // INVARIANT: What was posted has completed, and nothing is posted any more.
        *idle = true;
    }

    fn drain_sends(&self) {
        if E::QpType::COUNTS_SENDS {
            return self.wait_for_sends();
        }
        if !self.device().has_drain() {
            return self.drain_by_marker(self.send_cq(), Marker::post_send);
        }
        // SAFETY: By the type invariants. The completion queue has room for the
        // marker, see `QpCap::completions`.
        unsafe { bindings::ib_drain_sq(self.as_raw()) };
    }

    /// Those of a shared queue were awaited before the sends.
    fn drain_receives(&self) {
        if self.srq().is_some() {
            return;
        }
        if !self.device().has_drain() {
            return self.drain_by_marker(self.receive_cq(), Marker::post_receive);
        }
        // SAFETY: As in `drain_sends`.
        unsafe { bindings::ib_drain_rq(self.as_raw()) };
    }

    /// Stops the queue pair, posts a marker behind the requests of one direction, and waits
    /// until it has completed in `cq`, which is this thread's to poll if it is the owner's.
    fn drain_by_marker(
        &self,
        cq: &CompletionQueue,
        post: unsafe fn(&Marker, *mut bindings::ib_qp) -> Result,
    ) {
        if !self.stop() {
            return;
        }
        pin_init::stack_pin_init!(let marker = Marker::new());
        let deadline = Deadline::after(ROOM);
        let posted = loop {
            // SAFETY: By the type invariants; it is stopped. The completion queue has room for
            // the marker, see `QpCap::completions`, which is awaited below.
            match unsafe { post(&marker, self.as_raw()) } {
                // What is before it completes now.
                Err(error) if error == ENOMEM && deadline.left() > Msecs::new(0) => cq.pass_time(),
                other => break other,
            }
        };
        match posted {
            Ok(()) => cq.wait(&marker.handled),
            Err(error) => pr_err!(
                "{}: queue pair {}: cannot be drained: {error:?}\n",
                self.device().name(),
                self.number()
            ),
        }
    }

    /// Stops the queue pair, and waits until none of the sends that are counted is
    /// left. Nothing is posted any more.
    fn wait_for_sends(&self) {
        // If it cannot be stopped, what it has may complete nevertheless: it cannot be
        // freed before.
        self.stop();
        self.sends.remove(1);
        self.send_cq().wait(&self.sends.none);
    }

    /// Stops the queue pair, and waits until it takes no more receives.
    fn wait_for_shared_receives(&self) {
        self.stop();
        // iWARP does not have the event: there a queue pair that is stopped takes none.
        if self.device().attributes().node_type == NodeType::Rnic {
            return;
        }
        if !self.last_receive.wait_timeout(LAST_RECEIVE) {
            pr_warn!(
                "{}: queue pair {}: no word of its last receive\n",
                self.device().name(),
                self.number()
            );
        }
    }

    /// Moves the queue pair to its error state (`ib_modify_qp`); whether that worked. Sleeps.
    pub(in crate::rdma) fn stop(&self) -> bool {
        let mut attributes = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_ERR,
            ..pin_init::zeroed()
        };
        // SAFETY: The queue pair is alive; the attributes are ours.
        let stopped = to_result(unsafe {
            bindings::ib_modify_qp(
                self.as_raw(),
                &mut attributes,
                bindings::ib_qp_attr_mask_IB_QP_STATE as i32,
            )
        });
        if let Err(error) = stopped {
            pr_err!(
                "{}: queue pair {}: cannot be stopped: {error:?}\n",
                self.device().name(),
                self.number()
            );
        }
        stopped.is_ok()
    }

    /// Counts sends that are about to be posted, if the service needs that: each is
    /// an operation of its own.
    #[inline]
    pub(in crate::rdma) fn count_sends(&self, sends: usize) {
        if E::QpType::COUNTS_SENDS {
            // No more than a send queue has places.
            self.sends.add(sends as u32);
        }
    }

    /// Sends that were counted were not posted, or their completion has been handled:
    /// the last access to the queue pair on their account.
    #[inline]
    pub(in crate::rdma) fn forget_sends(&self, sends: usize) {
        if E::QpType::COUNTS_SENDS && sends != 0 {
            self.sends.remove(sends as u32);
        }
    }
}
