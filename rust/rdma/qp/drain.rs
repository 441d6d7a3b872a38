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
//! A queue pair that was never in the RTR state has taken no receive, so nothing is awaited.
//!
//! Each queue has an entry for the marker beside those of its [`QpCap`](super::QpCap). A device that reports a full
//! queue in spite of that gets the marker when another work request has completed. C's `ib_drain_qp()` then warns
//! and drains nothing.
//!
//! A completion queue that only its owner polls is polled by the drain until the marker completes.
//!
//! A driver may have its own `drain_sq` or `drain_rq` operation (mlx4, mlx5, hns). It posts a marker,
//! too, and also drains a device that has failed and accepts no marker. But it gives up if the queue
//! is full, or if the device refuses the error state, and cannot tell. So it is called only if the device
//! refuses the marker here.
//!
//! A drain that must not wait for ever hands the queue pair to a work item, which does, see
//! [`QueuePair::drain`]. A device may still access the memory of work requests that it has not completed, and
//! the completion queue may still get their completions. So neither the memory nor the queue pair can be freed.

mod marker;

use super::{
    QpContext,
    QueuePair,
    Sealed, //
};
use crate::{
    bindings,
    errno::ENOTCONN,
    rdma::{
        cq::{
            CompletionQueue,
            NoCompletion, //
        },
        device::Device, //
    },
    sync::{
        Deadline,
        Msecs,
        RcuSection,
        RelaxedBool,
        TimedCompletion, //
    }, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
        ArcBorrow, //
    },
    task::might_sleep,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};
pub(super) use marker::Marker;

/// Maximum time to wait for `IB_EVENT_QP_LAST_WQE_REACHED`; the same as in C's `ib_drain_qp()`.
const LAST_RECEIVE: Msecs = Msecs::from_secs(60);

/// Time after which a drain logs that it cannot post the marker.
const WARN_AFTER: Msecs = Msecs::from_secs(60);

/// Time between two attempts to continue a drain that has given up.
const AGAIN: Delta = Delta::from_secs(1);

/// Why a drain gives up.
#[derive(Clone, Copy)]
enum Stuck {
    /// The device has not reported the last shared receive.
    LastReceive,
    /// The completion queue has lost a completion.
    LostCompletion,
    /// The device has not completed all work requests.
    LateCompletion,
    /// The device refuses the error state, and the drain of its driver does not tell if it has drained.
    NoErrorState,
}

impl From<NoCompletion> for Stuck {
    fn from(cause: NoCompletion) -> Self {
        match cause {
            NoCompletion::Lost => Self::LostCompletion,
            NoCompletion::Late => Self::LateCompletion,
        }
    }
}

impl Stuck {
    fn as_str(self) -> &'static str {
        match self {
            Self::LastReceive => "timed out waiting for LAST_WQE_REACHED",
            Self::LostCompletion => "the completion queue has lost a completion",
            Self::LateCompletion => "the device has not completed its work requests within 60 s",
            Self::NoErrorState => "the device refuses the error state",
        }
    }
}

/// Who drains a queue pair.
#[derive(Clone, Copy)]
enum DrainThread {
    /// The caller of [`QueuePair::drain`], which logs that it takes long.
    Caller,
    /// The work item that goes on with a drain that has given up.
    WorkItem,
}

impl DrainThread {
    /// Logs that the device takes long.
    fn report_slow(self, device: &Device, number: u32) {
        match self {
            Self::Caller => pr_warn!(
                "{}: queue pair {number}: the drain has waited for 10 s for the device to flush work requests\n",
                device.name()
            ),
            Self::WorkItem => (),
        }
    }
}

/// State of a queue pair that a drain changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DrainState {
    /// Work requests may be posted.
    Live,
    /// The drain has given up. The queue pair is kept, and a work item continues the drain.
    GivenUp,
    /// No posted work request is outstanding.
    Idle,
}

/// Sends that have not completed, for a service that has no marker ([`Sealed::COUNTS_SENDS`]).
///
/// The count starts at one, which the drain removes. So `none` is not completed before the drain,
/// when further sends may be posted.
#[pin_data]
pub(super) struct Sends {
    count: Atomic<u32>,
    /// The drain has removed its one.
    is_drained: RelaxedBool,
    #[pin]
    none: TimedCompletion,
}

impl Sends {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            count: Atomic::new(1),
            is_drained: RelaxedBool::new(false),
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
    /// The memory of work requests cannot be taken back from a device. If the device refuses the error state or the
    /// marker, the drain logs an error and tries again, for ever.
    ///
    /// There are four exceptions, in which work requests may complete later, or never:
    ///
    /// - The device does not report the last shared receive within 60 seconds. C's `ib_drain_qp()`
    ///   waits as long.
    /// - The completion queue is [broken](CompletionQueue::is_broken), and does not report the marker within
    ///   10 seconds.
    /// - The device does not flush the work requests within 60 seconds. C's `ib_drain_qp()` waits for ever.
    /// - The driver has its own drain operation, and the device refuses the error state, so that the
    ///   operation may have given up. If the device only refuses the marker, the operation is trusted.
    ///
    /// Then the drain logs an error and returns. The queue pair, its memory, and the operations that are
    /// posted are kept until the device has completed these. That may be for ever; the removal of the device
    /// waits until then.
    pub fn drain(&self) {
        let mut state = self.drain_state.lock();
        if *state != DrainState::Live {
            return;
        }
        self.close();
        might_sleep();
        // Every thread that found the queue pair open has posted when this returns. A work request
        // posted behind the marker would not be awaited.
        // SAFETY: Memory safety has no requirement.
        unsafe { bindings::synchronize_rcu_expedited() };
        // INVARIANT: If the drain succeeds, all posted work requests have completed, and `closed` prevents
        // new ones.
        *state = match self.wait_until_idle(DrainThread::Caller) {
            Ok(()) => DrainState::Idle,
            Err(stuck) => self.drain_later(stuck),
        };
    }

    /// Keeps the queue pair, and drains it in a work item, for as long as that takes. Without memory for a
    /// work item, keeps it for ever. May sleep.
    fn drain_later(&self, stuck: Stuck) -> DrainState {
        pr_err!(
            "{}: queue pair {}: cannot drain: {}; its memory is kept until its work requests have completed\n",
            self.device().name(),
            self.number(),
            stuck.as_str()
        );
        // SAFETY: By the type invariants, this object is in an `Arc`, to which the caller has a reference:
        // the drop does not drain.
        let queue: Arc<Self> = unsafe { ArcBorrow::from_raw(self) }.into();
        let drain = |queue: Arc<Self>| {
            while queue.wait_until_idle(DrainThread::WorkItem).is_err() {
                fsleep(AGAIN);
            }
            // INVARIANT: As in `drain`.
            *queue.drain_state.lock() = DrainState::Idle;
        };
        // Without memory, the reference leaks.
        let _ = self.device().defer(GFP_KERNEL, queue, drain);
        DrainState::GivenUp
    }

    /// Waits until no posted work request is outstanding. Fails in the exceptions of [`drain`](Self::drain),
    /// and may be called again then. Nothing more is posted. May sleep.
    fn wait_until_idle(&self, thread: DrainThread) -> Result<(), Stuck> {
        if self.srq().is_some() {
            self.wait_for_shared_receives()?;
        }
        self.send_cq().drain(|| self.drain_sends(thread))?;
        self.receive_cq().drain(|| self.drain_receives(thread))?;
        // SAFETY: All posted work requests have completed.
        unsafe { self.partially_posted.flush(self.as_raw()) };
        Ok(())
    }

    fn drain_sends(&self, thread: DrainThread) -> Result<(), Stuck> {
        if E::QpType::COUNTS_SENDS {
            return self.wait_for_sends(thread);
        }
        // SAFETY: The queue pair is alive by the type invariant, and has this device. It has taken an entry of
        // its completion queue for the marker. The marker and the functions are those of its sends.
        unsafe {
            drain_by_marker(
                self.as_raw(),
                self.device(),
                self.send_cq(),
                &self.send_marker,
                Marker::post_send,
                bindings::ib_drain_sq,
                thread,
            )
        }
    }

    /// Waits for the posted receives. Those of a shared queue were awaited before the sends.
    fn drain_receives(&self, thread: DrainThread) -> Result<(), Stuck> {
        if self.srq().is_some() {
            return Ok(());
        }
        // SAFETY: As in `drain_sends`, with the marker and the functions of the receives.
        unsafe {
            drain_by_marker(
                self.as_raw(),
                self.device(),
                self.receive_cq(),
                &self.receive_marker,
                Marker::post_receive,
                bindings::ib_drain_rq,
                thread,
            )
        }
    }

    /// Moves the queue pair to its error state and waits until all counted sends have completed.
    /// Nothing more is posted. May sleep.
    fn wait_for_sends(&self, thread: DrainThread) -> Result<(), Stuck> {
        // If the transition fails, the device may still complete the sends. Their memory must not
        // be freed before that, so wait in either case.
        if let Err(error) = self.stop() {
            report_refused(self.device(), self.number(), error);
        }
        if !self.sends.is_drained.get() {
            self.sends.is_drained.set(true);
            self.sends.remove(1);
        }
        self.send_cq().wait(&self.sends.none, || {
            thread.report_slow(self.device(), self.number());
        })?;
        Ok(())
    }

    /// Moves the queue pair to its error state and waits until it takes no more receives. May sleep.
    fn wait_for_shared_receives(&self) -> Result<(), Stuck> {
        // An error is ignored: the drain of the sends, which follows, tries again.
        let stopped = self.stop();
        // iWARP does not have the event. There, a queue pair in the error state takes no receives.
        if self.device().is_rnic() {
            return Ok(());
        }
        // Read in the error state, from which no transition leads to RTR.
        if stopped.is_ok() && !self.has_received.get() {
            return Ok(());
        }
        match self.last_receive.wait_timeout(LAST_RECEIVE) {
            true => Ok(()),
            false => Err(Stuck::LastReceive),
        }
    }

    /// Moves the queue pair to its error state (`ib_modify_qp`). May sleep.
    ///
    /// # Errors
    ///
    /// Any error of the driver.
    pub(in crate::rdma) fn stop(&self) -> Result {
        // SAFETY: The queue pair is alive by the type invariant.
        unsafe { stop(self.as_raw()) }
    }

    /// Counts sends that are about to be posted, if the service counts sends. Each is an operation
    /// of its own.
    ///
    /// The drain waits for the RCU read-side critical section of `_section` before it removes its own
    /// one. So the count reaches zero only once, by the last thread that accesses the queue pair.
    ///
    /// # Errors
    ///
    /// `ENOTCONN` if the queue pair is closed and the service counts sends.
    #[inline]
    pub(in crate::rdma) fn count_sends(&self, sends: u32, _section: &RcuSection) -> Result {
        if E::QpType::COUNTS_SENDS {
            if self.is_closed() {
                return Err(ENOTCONN);
            }
            self.sends.add(sends);
        }
        Ok(())
    }

    /// Removes counted sends that were not posted, or whose completion was handled. The caller must
    /// not access the queue pair afterwards on behalf of these sends.
    #[inline]
    pub(in crate::rdma) fn forget_sends(&self, sends: u32) {
        if E::QpType::COUNTS_SENDS && sends != 0 {
            self.sends.remove(sends);
        }
    }
}

/// Moves a queue pair to its error state, posts `marker` behind the work requests of one direction, and
/// waits for its completion in `cq`. If the device refuses that, calls `by_driver` if the driver
/// has its own drain, and tries again otherwise.
///
/// If only its owner polls `cq`, this thread polls it meanwhile: the caller is within
/// [`CompletionQueue::drain`]. May sleep.
///
/// # Safety
///
/// The queue pair must be alive, and `marker` as long as it is posted. `device` must be the device, `marker` that
/// of the direction of `post` and `by_driver`, and `cq` the completion queue of that direction, with an entry
/// for the marker. One thread at a time may use the marker.
unsafe fn drain_by_marker(
    queue: *mut bindings::ib_qp,
    device: &Device,
    cq: &CompletionQueue,
    marker: &Marker,
    post: unsafe fn(&Marker, *mut bindings::ib_qp) -> Result,
    by_driver: unsafe extern "C" fn(*mut bindings::ib_qp),
    thread: DrainThread,
) -> Result<(), Stuck> {
    let mut warn_at = Some(Deadline::after(WARN_AFTER));
    while !marker.is_posted() {
        // SAFETY: By the safety requirements the queue pair is alive.
        let stopped = unsafe { stop(queue) };
        let posted = stopped.and_then(|()| {
            // SAFETY: By the safety requirements the queue pair is alive, and the completion queue has
            // an entry for the marker, which stays valid. The queue pair is in the error state.
            unsafe { post(marker, queue) }
        });
        let Err(error) = posted else {
            break;
        };
        // The queue is full. The work requests before the marker complete meanwhile.
        let is_full = error == ENOMEM;
        if !is_full && device.has_drain() {
            // SAFETY: As for the marker.
            unsafe { by_driver(queue) };
            return stopped.map_err(|_| Stuck::NoErrorState);
        }
        if warn_at.is_some_and(|warn_at| !is_full || warn_at.left() == Msecs::new(0)) {
            warn_at = None;
            // SAFETY: By the safety requirements the queue pair is alive. Its number is constant.
            report_refused(device, unsafe { (*queue).qp_num }, error);
        }
        cq.pass_time();
    }
    // SAFETY: By the safety requirements the queue pair is alive. Its number is constant.
    let number = unsafe { (*queue).qp_num };
    cq.wait(&marker.handled, || thread.report_slow(device, number))?;
    Ok(())
}

#[cold]
fn report_refused(device: &Device, number: u32, error: Error) {
    pr_err!(
        "{}: queue pair {number}: cannot drain: {error:?}; waiting for the device\n",
        device.name()
    );
}

/// Moves a queue pair to its error state, as [`QueuePair::stop`] does. May sleep.
///
/// # Safety
///
/// The queue pair must be alive.
unsafe fn stop(queue: *mut bindings::ib_qp) -> Result {
    let mut attributes = bindings::ib_qp_attr {
        qp_state: bindings::ib_qp_state_IB_QPS_ERR,
        ..pin_init::zeroed()
    };
    // SAFETY: The queue pair is alive by the safety requirements, and the attributes are valid for the
    // call.
    to_result(unsafe {
        bindings::ib_modify_qp(
            queue,
            &mut attributes,
            bindings::ib_qp_attr_mask_IB_QP_STATE as i32,
        )
    })
}
