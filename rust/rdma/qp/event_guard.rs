// SPDX-License-Identifier: GPL-2.0

//! Handlers of the asynchronous events of a queue pair that are running.
//!
//! `ib_destroy_qp()` waits for them, and sleeps. A thread that drops the last reference to a queue pair in atomic
//! context unregisters the handler instead, and spins until none is running. The handlers run with local interrupts
//! disabled, so none of them is interrupted by that thread.

use crate::bindings;
use core::{
    hint,
    ptr::NonNull,
    sync::atomic::{
        AtomicU32,
        Ordering, //
    },
};
use kernel::ffi::c_ulong;

/// Number of event handlers of a queue pair that are running.
pub(super) struct RunningEvents(AtomicU32);

impl RunningEvents {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Unregisters the event handler of `qp`, and waits until none is running. Any context, except in such a handler,
    /// or with a lock held that a handler takes.
    ///
    /// # Safety
    ///
    /// `qp` must be alive, and these must be the handlers of its events.
    pub(super) unsafe fn end(&self, qp: NonNull<bindings::ib_qp>) {
        // SAFETY: The lock is released below.
        let flags = unsafe { bindings::lock_qp_events() };
        // SAFETY: `qp` is alive by the safety requirements. The lock is held. The core only reads the field.
        unsafe { (&raw mut (*qp.as_ptr()).registered_event_handler).write_volatile(None) };
        // SAFETY: Locked above.
        unsafe {
            bindings::unlock_qp_events();
            bindings::local_irq_restore(flags);
        }
        // Pairs with the drop of the guard.
        while self.0.load(Ordering::Acquire) != 0 {
            hint::spin_loop();
        }
    }
}

/// A running event handler. Local interrupts are disabled while this exists.
///
/// # Invariants
///
/// The handler is counted in `running`, which is alive until it is not counted any more.
pub(super) struct EventGuard {
    running: NonNull<RunningEvents>,
    flags: c_ulong,
}

impl EventGuard {
    /// Counts a handler in `running`, which stays alive as long as the guard exists; `None` if the handler is not
    /// registered any more, and `running` may be freed. Any context.
    ///
    /// # Safety
    ///
    /// `qp` must be alive. Before `running` is freed, [`RunningEvents::end`] must have returned, or `qp` must be
    /// destroyed. The guard must be dropped by the same thread.
    pub(super) unsafe fn enter(
        qp: *mut bindings::ib_qp,
        running: NonNull<RunningEvents>,
    ) -> Option<Self> {
        // SAFETY: The lock is released below.
        let flags = unsafe { bindings::lock_qp_events() };
        // SAFETY: `qp` is alive by the safety requirements.
        let handler = unsafe { (&raw const (*qp).registered_event_handler).read_volatile() };
        if handler.is_some() {
            // SAFETY: By the safety requirements: `end` needs the lock.
            unsafe { running.as_ref() }
                .0
                .fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: Locked above.
        unsafe { bindings::unlock_qp_events() };
        if handler.is_none() {
            // SAFETY: Disabled above.
            unsafe { bindings::local_irq_restore(flags) };
            return None;
        }
        // INVARIANT: Counted above.
        Some(Self { running, flags })
    }
}

impl Drop for EventGuard {
    fn drop(&mut self) {
        // SAFETY: By the type invariants. The queue pair may be freed afterwards.
        unsafe { self.running.as_ref() }
            .0
            .fetch_sub(1, Ordering::Release);
        // SAFETY: Disabled in `enter`, by this thread.
        unsafe { bindings::local_irq_restore(self.flags) };
    }
}
