// SPDX-License-Identifier: GPL-2.0

//! Responses that wait until nvmet has ended its use of the request.
//!
//! `nvmet_passthru_execute_cmd_work()` runs in a work item in the request's memory. It completes the command,
//! and then passes the command to `nvme_passthru_end()`, which may sleep. Another work item waits for its end.

use super::Memory;
use crate::{
    bindings,
    submission_queue::HeldQueue,
    types::TransportTypes, //
};
use core::{
    mem,
    ptr::NonNull, //
};
use kernel::workqueue::RawWorkItem;

/// A request whose command nvmet has completed, and that a work item of nvmet still uses.
///
/// # Invariants
///
/// The memory is that of a [`Request`](super::Request) that nvmet has returned. `p.work` in it was queued for the
/// command, and ends without any further step of this module. Nobody else uses the memory when it has ended.
pub(crate) struct Deferred<T: TransportTypes>(NonNull<Memory<T>>);

// SAFETY: As for `Request`.
unsafe impl<T: TransportTypes> Send for Deferred<T> {}

impl<T: TransportTypes> Deferred<T> {
    /// Returns the request if nvmet completes it in a work item that uses it afterwards; `None` if nvmet does not
    /// use it any more. Any context.
    ///
    /// # Safety
    ///
    /// `req` must be that of a [`Request`](super::Request) of this transport, for which nvmet has called
    /// `queue_response`.
    #[inline(always)]
    pub(crate) unsafe fn of(req: *mut bindings::nvmet_req) -> Option<Self> {
        // A command of a passthrough subsystem has no namespace of nvmet. Most commands have one.
        //
        // SAFETY: By the safety requirements.
        match unsafe { (*req).ns.is_null() } {
            // SAFETY: By the safety requirements.
            true => unsafe { Self::without_namespace(req) },
            false => None,
        }
    }

    /// # Safety
    ///
    /// As for [`of`](Self::of).
    #[cold]
    unsafe fn without_namespace(req: *mut bindings::nvmet_req) -> Option<Self> {
        // INVARIANT: The caller is this work item. By the safety requirements.
        //
        // SAFETY: By the safety requirements. `req` is the first field of the memory.
        unsafe {
            bindings::req_is_in_passthru_work(req).then(|| Self(NonNull::new_unchecked(req.cast())))
        }
    }

    /// Waits until nvmet does not use the request any more, which the caller then owns. Sleeps.
    pub(crate) fn wait(self) -> Ended {
        // SAFETY: By the type invariants, the memory is valid, and has a work item that ends. A request has a
        // reference to its submission queue, which is not null.
        unsafe {
            let req = self.0.as_ref().req.get();
            bindings::req_flush_passthru_work(req);
            Ended {
                req,
                queue: HeldQueue::get(NonNull::new_unchecked((*req).sq)),
            }
        }
    }

    /// Returns a work item that calls `run` with the address to pass to [`from_work`](Self::from_work).
    pub(crate) fn into_work(
        self,
        run: unsafe extern "C" fn(*mut bindings::work_struct),
    ) -> Work<T> {
        Work {
            deferred: self,
            run,
        }
    }

    /// Takes the request back from its work item.
    ///
    /// # Safety
    ///
    /// `work` must be the argument of the function of [`into_work`](Self::into_work), which calls this once.
    pub(crate) unsafe fn from_work(work: *mut bindings::work_struct) -> Self {
        // INVARIANT: By the safety requirements, a `Deferred` was passed on.
        //
        // SAFETY: By the safety requirements, the work item is a field of the memory.
        unsafe {
            let memory = work.byte_sub(mem::offset_of!(Memory<T>, deferred));
            Self(NonNull::new_unchecked(memory.cast()))
        }
    }
}

/// A request that nvmet has returned, and does not use any more.
pub(crate) struct Ended {
    pub(crate) req: *mut bindings::nvmet_req,
    /// Keeps the submission queue, and so the queue pair, which is used after the request.
    pub(crate) queue: HeldQueue,
}

/// The work item of a [`Deferred`] response.
pub(crate) struct Work<T: TransportTypes> {
    deferred: Deferred<T>,
    run: unsafe extern "C" fn(*mut bindings::work_struct),
}

// SAFETY: The pointer is that of an initialised work item in memory that is valid until the function that it
// calls takes it back, see `Deferred::from_work`.
unsafe impl<T: TransportTypes> RawWorkItem<0> for Work<T> {
    type EnqueueOutput = ();

    unsafe fn __enqueue<F>(self, queue_work_on: F)
    where
        F: FnOnce(*mut bindings::work_struct) -> bool,
    {
        // SAFETY: By the type invariants of `Deferred`, nobody else uses the work item.
        let work = unsafe { self.deferred.0.as_ref().deferred.get() };
        // SAFETY: As above.
        unsafe { bindings::init_work(work, Some(self.run)) };
        // It was not queued before.
        let _ = queue_work_on(work);
    }
}
