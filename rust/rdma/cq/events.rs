// SPDX-License-Identifier: GPL-2.0

//! What a device tells of a completion queue by itself, and who polls it.

use super::Arc;
use crate::{
    bindings,
    rdma::device::Device,
    sync::{
        Claim,
        TimedCompletion, //
    }, //
};
use core::ffi::c_void;
use kernel::{
    new_mutex,
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

/// How long a drain sleeps before it looks again whether an owner is still at it.
const POLLER: Delta = Delta::from_micros(100);

/// Hears what the device tells of a queue.
///
/// Devices tell in any context, and some with the very lock of the queue held: so
/// nothing is done here but to wake whoever does something.
#[pin_data]
pub(super) struct CqEvents {
    broken: AtomicFlag,
    wake: Option<Arc<TimedCompletion>>,
    /// Claimed by whoever polls a queue that the core does not.
    poller: Claim<()>,
    /// A drain polls such a queue, or is about to.
    draining: AtomicFlag,
    /// Held by the drain that does.
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

    /// Polls for an owner; 0 if somebody else is at it.
    #[inline]
    pub(super) fn polled_by_owner(&self, poll: impl FnOnce() -> u32) -> u32 {
        // Owners who poll without a pause would leave a drain no turn.
        if self.draining.load(ordering::Relaxed) {
            return 0;
        }
        self.poller.try_claim().map_or(0, |_alone| poll())
    }

    /// Lets `drain` poll, alone: completions are handled one after the other, in their
    /// order, by whomever. Sleeps.
    pub(super) fn polled_by_drain(&self, drain: impl FnOnce()) {
        let _one_drain = self.drain.lock();
        self.draining.store(true, ordering::Relaxed);
        // What an owner has taken before, it handles first.
        let _alone = loop {
            match self.poller.try_claim() {
                Some(alone) => break alone,
                None => fsleep(POLLER),
            }
        };
        drain();
        self.draining.store(false, ordering::Relaxed);
    }

    /// What the queue is given as its context.
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

    /// # Safety
    ///
    /// Called by the device for a queue whose context is a `CqEvents`, which lives
    /// until the queue is destroyed.
    pub(super) unsafe extern "C" fn completion_callback(
        _cq: *mut bindings::ib_cq,
        context: *mut c_void,
    ) {
        // SAFETY: By the contract.
        unsafe { &*context.cast::<Self>() }.wake();
    }

    /// # Safety
    ///
    /// As [`CqEvents::completion_callback`], with an event of the queue.
    pub(super) unsafe extern "C" fn event_callback(
        event: *mut bindings::ib_event,
        context: *mut c_void,
    ) {
        // SAFETY: By the contract; the device of an event is registered.
        let (events, device) = unsafe {
            (
                &*context.cast::<Self>(),
                Device::from_raw((*event).device).name(),
            )
        };
        if !events.broken.xchg(true, ordering::Relaxed) {
            pr_err!("{device}: a completion queue was too small, a completion is lost\n");
        }
        events.wake();
    }
}
