// SPDX-License-Identifier: GPL-2.0

//! Asynchronous events of a completion queue, and exclusion between its pollers.

use super::Arc;
use crate::{
    bindings,
    rdma::device::Device,
    sync::{
        new_mutex,
        Claim,
        TimedCompletion, //
    },
};
use core::ffi::c_void;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            AtomicFlag, //
        },
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// Time between two attempts of a drain to become the poller.
const POLLER: Delta = Delta::from_micros(100);

/// Event handlers of a completion queue, and the state that decides who polls it.
///
/// Devices call the handlers in any context, and some while they hold a lock of the queue. So the
/// handlers only wake the owner.
#[pin_data]
pub(super) struct CqEvents {
    broken: AtomicFlag,
    wake: Option<Arc<TimedCompletion>>,
    /// Claimed by the thread that polls a queue that the core does not poll.
    poller: Claim<()>,
    /// A drain polls the queue, or waits to do so.
    draining: AtomicFlag,
    /// Held by the drain that polls the queue.
    #[pin]
    drain: Mutex<()>,
}

impl CqEvents {
    pub(super) fn new(wake: Option<Arc<TimedCompletion>>) -> Result<Arc<Self>> {
        let init = pin_init!(Self {
            broken: AtomicFlag::new(false),
            wake,
            poller: Claim::new(()),
            draining: AtomicFlag::new(false),
            drain <- new_mutex!((), "rrdma::cq::CqEvents"),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    /// Runs `poll` for the owner; returns 0 if another thread polls.
    #[inline]
    pub(super) fn polled_by_owner(&self, poll: impl FnOnce() -> u32) -> u32 {
        // A drain waits. Owners that poll without a pause would keep it from becoming the poller.
        if self.draining.load(ordering::Relaxed) {
            return 0;
        }
        self.poller.try_claim().map_or(0, |_alone| poll())
    }

    /// Runs `drain` as the only poller, so that completions are handled one after the other and in
    /// order. May sleep.
    pub(super) fn polled_by_drain<R>(&self, drain: impl FnOnce() -> R) -> R {
        let _one_drain = self.drain.lock();
        self.draining.store(true, ordering::Relaxed);
        // An owner that polls now must first handle the completions that it has fetched.
        let _alone = loop {
            match self.poller.try_claim() {
                Some(alone) => break alone,
                None => fsleep(POLLER),
            }
        };
        let result = drain();
        self.draining.store(false, ordering::Relaxed);
        result
    }

    /// Returns the `cq_context` for C.
    pub(super) fn as_context(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(ordering::Relaxed)
    }

    fn wake(&self) {
        if let Some(wake) = &self.wake {
            wake.complete();
        }
    }

    /// Wakes the owner of an armed queue.
    ///
    /// # Safety
    ///
    /// Called by the device for a queue whose `cq_context` is a `CqEvents` that lives until the
    /// queue is destroyed.
    pub(super) unsafe extern "C" fn completion_callback(
        _cq: *mut bindings::ib_cq,
        context: *mut c_void,
    ) {
        // SAFETY: `context` is valid by the safety requirements of this function.
        unsafe { &*context.cast::<Self>() }.wake();
    }

    /// Marks the queue as failed and wakes its owner (`IB_EVENT_CQ_ERR`).
    ///
    /// # Safety
    ///
    /// Those of [`CqEvents::completion_callback`], and `event` must be an event of the queue.
    pub(super) unsafe extern "C" fn event_callback(
        event: *mut bindings::ib_event,
        context: *mut c_void,
    ) {
        // SAFETY: By the safety requirements of this function. The device of an event is
        // registered.
        let (events, device) =
            unsafe { (&*context.cast::<Self>(), Device::from_raw((*event).device)) };
        // A broken device may report it again and again.
        if !events.broken.xchg(true, ordering::Relaxed) {
            pr_err!(
                "{}: CQ error: completion queue overrun, a completion is lost\n",
                device.name()
            );
        }
        events.wake();
    }
}
