// SPDX-License-Identifier: GPL-2.0

//! Drains a queue pair: stops it and waits until all posted work requests have completed.
//!
//! C: `ib_drain_sq` and `ib_drain_rq` in `drivers/infiniband/core/verbs.c`
//!
//! In the error state, work requests complete in order, as flushed. The drain posts a marker behind
//! them in each direction. When the handler of the marker has run, so have the handlers of all work
//! requests before it.
//!
//! Each direction needs a work request that a queue pair in the error state accepts:
//!
//! - Receives: an empty receive.
//! - Sends of a connected queue pair: an RDMA write of zero bytes.
//! - Sends of a queue pair for datagrams: none, since an RDMA write is invalid, and so is a
//!   datagram without an address handle. Such a queue pair counts its sends instead, see [`Sends`].
//! - Receives of a shared queue: none. See below.
//!
//! A queue pair in the error state takes no more receives from a shared queue. The device reports
//! this by `IB_EVENT_QP_LAST_WQE_REACHED`, when the completions of the receives taken before are in
//! the completion queue. The drain posts the marker of the sends after that event, to the same
//! completion queue. So the handlers of these receives have run before the marker's. C's
//! `ib_drain_qp()` polls the completion queue until it is empty instead. That is not enough: the
//! handler of the last completion may still run on another processor.
//!
//! The send or receive queue may be full: a device may round up its [`QpCap`](super::QpCap), and
//! then accept more work requests than were asked for. C's `ib_drain_qp()` then warns and drains
//! nothing. The drain here retries to post the marker until another work request has completed.
//!
//! A completion queue that only its owner polls is polled by the drain until the marker completes.
//!
//! A driver with its own `drain_sq` or `drain_rq` operation drains through that operation.

mod marker;

use super::{
    QpContext,
    QueuePair,
    Sealed, //
};
use crate::{
    bindings,
    rdma::cq::CompletionQueue,
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

/// Maximum time to wait for `IB_EVENT_QP_LAST_WQE_REACHED`; the same as in C's `ib_drain_qp()`.
const LAST_RECEIVE: Msecs = Msecs::from_secs(60);

/// Maximum time to wait until a full queue has an entry for the marker.
const ROOM: Msecs = Msecs::from_secs(60);

/// Sends that have not completed, for a service that has no marker ([`Sealed::COUNTS_SENDS`]).
///
/// The count starts at one, which the drain removes. So `none` is not completed before the drain,
/// when further sends may be posted.
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

    /// Removes `sends` from the count. The caller must not access the queue pair afterwards on
    /// behalf of these sends: the drain may have ended.
    fn remove(&self, sends: u32) {
        if self.count.fetch_sub(sends, ordering::Full) == sends {
            self.none.complete_all();
        }
    }
}

impl<E: QpContext> QueuePair<E> {
    /// Moves the queue pair to its error state and waits until all posted work requests have
    /// completed and their handlers have returned. Nothing can be posted afterwards. May sleep.
    ///
    /// Must not be called from a completion or connection event handler, as it waits for these.
    ///
    /// The drain depends on a device that works. It logs an error and returns early in these
    /// cases, as C consumers do, since memory cannot be taken back from such a device:
    ///
    /// - The device rejects the error state, or the marker in that state.
    /// - It does not report the last shared receive within 60 seconds.
    ///
    /// Work requests that the device still has may then complete later. The exception is a queue
    /// pair that counts its sends: the drain waits for these in any case.
    pub fn drain(&self) {
        let mut idle = self.idle.lock();
        if *idle {
            return;
        }
        self.close();
        // SAFETY: May sleep here. Every thread that found the queue pair open has posted when this
        // returns. A work request posted behind the marker would not be awaited.
        unsafe { bindings::synchronize_rcu_expedited() };
        if self.srq().is_some() {
            self.wait_for_shared_receives();
        }
        self.send_cq().drain(|| self.drain_sends());
        self.receive_cq().drain(|| self.drain_receives());
        // SAFETY: All posted work requests have completed, if the device works (see the doc
        // comment).
        unsafe { self.partially_posted.flush(self.as_raw()) };
        // INVARIANT: All posted work requests have completed, and `closed` prevents new ones.
        *idle = true;
    }

    fn drain_sends(&self) {
        if E::QpType::COUNTS_SENDS {
            return self.wait_for_sends();
        }
        if !self.device().has_drain() {
            return self.drain_by_marker(self.send_cq(), Marker::post_send);
        }
        // SAFETY: The queue pair is alive by the type invariant. The completion queue has an entry
        // for the marker, see `QpCap::completions`.
        unsafe { bindings::ib_drain_sq(self.as_raw()) };
    }

    /// Waits for the posted receives. Those of a shared queue were awaited before the sends.
    fn drain_receives(&self) {
        if self.srq().is_some() {
            return;
        }
        if !self.device().has_drain() {
            return self.drain_by_marker(self.receive_cq(), Marker::post_receive);
        }
        // SAFETY: The queue pair is alive by the type invariant. The completion queue has an entry
        // for the marker, see `QpCap::completions`.
        unsafe { bindings::ib_drain_rq(self.as_raw()) };
    }

    /// Moves the queue pair to its error state, posts a marker behind the work requests of one
    /// direction, and waits for the marker's completion in `cq`. If only its owner polls `cq`, this
    /// thread polls it meanwhile: the caller is within [`CompletionQueue::drain`]. May sleep.
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
            // SAFETY: The queue pair is alive by the type invariant, and in the error state. The
            // completion queue has an entry for the marker, see `QpCap::completions`. The marker is
            // awaited below.
            match unsafe { post(&marker, self.as_raw()) } {
                // The queue is full. The work requests before the marker complete meanwhile.
                Err(error) if error == ENOMEM && deadline.left() > Msecs::new(0) => cq.pass_time(),
                other => break other,
            }
        };
        match posted {
            Ok(()) => cq.wait(&marker.handled),
            Err(error) => pr_err!(
                "{}: queue pair {}: drain failed: cannot post the marker: {error:?}\n",
                self.device().name(),
                self.number()
            ),
        }
    }

    /// Moves the queue pair to its error state and waits until all counted sends have completed.
    /// Nothing more is posted. May sleep.
    fn wait_for_sends(&self) {
        // If the transition fails, the device may still complete the sends. Their memory must not
        // be freed before that, so wait in either case.
        self.stop();
        self.sends.remove(1);
        self.send_cq().wait(&self.sends.none);
    }

    /// Moves the queue pair to its error state and waits until it takes no more receives. May
    /// sleep.
    fn wait_for_shared_receives(&self) {
        self.stop();
        // iWARP does not have the event. There, a queue pair in the error state takes no receives.
        if self.device().is_rnic() {
            return;
        }
        if !self.last_receive.wait_timeout(LAST_RECEIVE) {
            pr_warn!(
                "{}: queue pair {}: drain: timed out waiting for LAST_WQE_REACHED\n",
                self.device().name(),
                self.number()
            );
        }
    }

    /// Moves the queue pair to its error state (`ib_modify_qp`). Returns whether that succeeded.
    /// May sleep.
    pub(in crate::rdma) fn stop(&self) -> bool {
        let mut attributes = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_ERR,
            ..pin_init::zeroed()
        };
        // SAFETY: The queue pair is alive, and the attributes are valid for the call.
        let stopped = to_result(unsafe {
            bindings::ib_modify_qp(
                self.as_raw(),
                &mut attributes,
                bindings::ib_qp_attr_mask_IB_QP_STATE as i32,
            )
        });
        if let Err(error) = stopped {
            pr_err!(
                "{}: queue pair {}: cannot move to the error state: {error:?}\n",
                self.device().name(),
                self.number()
            );
        }
        stopped.is_ok()
    }

    /// Counts sends that are about to be posted, if the service counts sends. Each is an operation
    /// of its own.
    #[inline]
    pub(in crate::rdma) fn count_sends(&self, sends: usize) {
        if E::QpType::COUNTS_SENDS {
            // At most the number of entries of a send queue, so this does not truncate.
            self.sends.add(sends as u32);
        }
    }

    /// Removes counted sends that were not posted, or whose completion was handled. The caller must
    /// not access the queue pair afterwards on behalf of these sends.
    #[inline]
    pub(in crate::rdma) fn forget_sends(&self, sends: usize) {
        if E::QpType::COUNTS_SENDS && sends != 0 {
            self.sends.remove(sends as u32);
        }
    }
}
