// SPDX-License-Identifier: GPL-2.0

//! Submission queues: nvmet's part of a transport's queue.

use crate::{
    bindings,
    port::Port,
    retired::{
        RetiredLink,
        RetiredRequests, //
    },
    types::TransportTypes, //
};
use core::{
    mem,
    ptr::{
        self,
        NonNull, //
    },
    sync::atomic::{
        AtomicBool,
        AtomicPtr,
        Ordering, //
    },
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};
use rrdma::rdma::qp::QueuePair;

/// Identity of a controller, only to be compared with that of a queue. The controller may be freed already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ControllerId(NonNull<bindings::nvmet_ctrl>);

// SAFETY: The pointer is only compared.
unsafe impl Send for ControllerId {}

impl ControllerId {
    pub(crate) fn new(ctrl: *mut bindings::nvmet_ctrl) -> Option<Self> {
        NonNull::new(ctrl).map(Self)
    }
}

/// nvmet's part of a queue: `struct nvmet_sq`, with its `struct nvmet_cq`.
///
/// Each [`Request`](crate::Request) holds a reference. [`destroy`](Self::destroy) makes new commands fail, and
/// waits until all requests are dropped. Other methods fail afterwards.
///
/// # Invariants
///
/// - `sq` and `cq` are initialised. They are destroyed if `is_destroyed`.
/// - While a request exists, `queue_pair` is a reference of an `Arc`. So it is until the queue is
///   destroyed, if it was ever set.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct SubmissionQueue<T: TransportTypes> {
    // The first field, so it has the address of the whole.
    #[pin]
    sq: Opaque<bindings::nvmet_sq>,
    #[pin]
    cq: Opaque<bindings::nvmet_cq>,
    is_destroyed: AtomicBool,
    /// Null before [`attach`](Self::attach), and once destroyed.
    queue_pair: AtomicPtr<QueuePair<T::Endpoint>>,
    port: Arc<Port<T>>,
    retired: RetiredRequests,
}

// SAFETY: nvmet synchronises the use of its structures.
unsafe impl<T: TransportTypes> Send for SubmissionQueue<T> {}

// SAFETY: As for `Send`.
unsafe impl<T: TransportTypes> Sync for SubmissionQueue<T> {}

/// A reference to a submission queue that is not destroyed while it exists.
pub(crate) struct Entered<'a>(&'a Opaque<bindings::nvmet_sq>);

impl Entered<'_> {
    pub(crate) fn as_raw(&self) -> *mut bindings::nvmet_sq {
        self.0.get()
    }

    /// Keeps the reference without the borrow.
    fn hold(self) -> HeldQueue {
        // INVARIANT: `enter` has taken the reference.
        // SAFETY: The pointer is that of a reference.
        HeldQueue(unsafe { NonNull::new_unchecked(self.into_raw()) })
    }

    /// Keeps the reference, which the caller then owns.
    pub(crate) fn into_raw(self) -> *mut bindings::nvmet_sq {
        let sq = self.as_raw();
        mem::forget(self);
        sq
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `enter` has taken the reference.
        unsafe { bindings::sq_put(self.0.get()) };
    }
}

/// A reference to a submission queue that is not tied to a borrow. The queue waits for it when it is
/// [destroyed](SubmissionQueue::destroy).
///
/// # Invariants
///
/// This owns a reference to the queue.
pub(crate) struct HeldQueue(NonNull<bindings::nvmet_sq>);

// SAFETY: The reference count is atomic.
unsafe impl Send for HeldQueue {}

impl HeldQueue {
    /// Takes one more reference. Any context.
    ///
    /// # Safety
    ///
    /// The caller must have a reference to `sq`.
    pub(crate) unsafe fn get(sq: NonNull<bindings::nvmet_sq>) -> Self {
        // SAFETY: By the safety requirements.
        unsafe { bindings::sq_get(sq.as_ptr()) };
        // INVARIANT: Taken above.
        Self(sq)
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::nvmet_sq {
        self.0.as_ptr()
    }
}

impl Drop for HeldQueue {
    fn drop(&mut self) {
        // SAFETY: By the type invariants. The queue may be gone afterwards.
        unsafe { bindings::sq_put(self.0.as_ptr()) };
    }
}

/// Keeps a controller, whose admin queue waits for the drop of this when it is
/// [destroyed](SubmissionQueue::destroy).
pub struct HeldController(HeldQueue);

impl HeldController {
    /// Returns whether the host had to authenticate on the admin queue. nvmet authenticates no I/O queue. Any context.
    pub fn has_key(&self) -> bool {
        // SAFETY: As in `is`. nvmet sets the key when it creates the controller.
        unsafe {
            let ctrl = bindings::sq_ctrl(self.0.as_raw());
            !ctrl.is_null() && bindings::ctrl_has_key(ctrl)
        }
    }

    /// Returns whether the controller has this identifier, and its host connected to it through `port`. Any
    /// context.
    pub(crate) fn is<T: TransportTypes>(&self, id: u16, port: &Port<T>) -> bool {
        // SAFETY: The queue has a controller, and a reference to it until it is destroyed, which waits for
        // `self`. These fields do not change.
        unsafe {
            let ctrl = bindings::sq_ctrl(self.0.as_raw());
            !ctrl.is_null() && (*ctrl).cntlid == id && (*ctrl).port == port.as_raw()
        }
    }
}

impl<T: TransportTypes> SubmissionQueue<T> {
    /// Initialises the queue of a connection through `port`. May sleep. C: `nvmet_sq_init()`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(port: Arc<Port<T>>) -> impl PinInit<Self, Error> {
        try_pin_init!(&this in Self {
            sq <- Opaque::zeroed(),
            cq <- Opaque::zeroed(),
            is_destroyed: AtomicBool::new(false),
            queue_pair: AtomicPtr::new(ptr::null_mut()),
            port,
            retired: RetiredRequests::new(),
            // INVARIANT: Both are initialised here. No later step can fail.
            _: {
                // SAFETY: The fields are zeroed, and pinned until `drop`.
                to_result(unsafe {
                    let (sq, cq) = ((*this.as_ptr()).sq.get(), (*this.as_ptr()).cq.get());
                    bindings::nvmet_cq_init(cq);
                    bindings::nvmet_sq_init(sq, cq)
                })?
            },
        }? Error)
    }

    /// Sets the queue pair, which requests need. It is kept until the queue is destroyed, so that
    /// responses can be posted; do not call this afterwards. Any context.
    pub fn attach(&self, queue: Arc<QueuePair<T::Endpoint>>) {
        let queue = Arc::into_raw(queue).cast_mut();
        // INVARIANT: The reference is kept.
        let kept = self.queue_pair.compare_exchange(
            ptr::null_mut(),
            queue,
            Ordering::Release,
            Ordering::Relaxed,
        );
        if kept.is_err() {
            // SAFETY: It is the result of `into_raw` above, and was not kept.
            drop(unsafe { Arc::from_raw(queue) });
        }
    }

    /// Returns the queue pair, if there is one.
    #[inline]
    pub(crate) fn queue_pair(&self) -> *const QueuePair<T::Endpoint> {
        self.queue_pair.load(Ordering::Acquire)
    }

    /// Returns the queue pair of a request.
    ///
    /// # Safety
    ///
    /// `sq` must be that of a `SubmissionQueue<T>` with a request. For `'a`, nvmet must hold a
    /// reference to it for a command, or the queue pair must be alive for another reason.
    #[inline]
    pub(crate) unsafe fn queue_pair_of<'a>(
        sq: *mut bindings::nvmet_sq,
    ) -> &'a QueuePair<T::Endpoint> {
        // SAFETY: `sq` is the first field. By the type invariants there is a queue pair. It is kept
        // until the queue is destroyed, which waits for the reference of nvmet.
        unsafe { &*(*sq.cast::<Self>()).queue_pair() }
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::nvmet_sq {
        self.sq.get()
    }

    /// Returns the port that the host connected to. Any context.
    #[inline]
    pub fn port(&self) -> &Port<T> {
        &self.port
    }

    /// Takes a reference, unless the queue is being destroyed. Any context.
    pub(crate) fn enter(&self) -> Option<Entered<'_>> {
        // SAFETY: `sq` was initialised. A destroyed one has a dead reference count, which the call
        // may test.
        let is_live = unsafe { bindings::sq_tryget_live(self.sq.get()) };
        is_live.then_some(Entered(&self.sq))
    }

    /// Keeps the memory of a dropped request until the queue is destroyed. The caller returns the reference of
    /// the request to the queue only afterwards. Any context.
    ///
    /// # Safety
    ///
    /// Those of [`RetiredRequests::push`].
    pub(crate) unsafe fn retire(&self, link: NonNull<RetiredLink>) {
        // SAFETY: By the safety requirements.
        unsafe { self.retired.push(link) };
    }

    /// Returns the controller, once a Connect command has succeeded. Any context.
    pub fn controller(&self) -> Option<ControllerId> {
        // SAFETY: `sq` was initialised.
        ControllerId::new(unsafe { bindings::sq_ctrl(self.sq.get()) })
    }

    /// Returns whether this is a queue of a controller that its host has enabled. That needs authentication, if the
    /// host has a key. Discovery controllers, which any host may create, do not count. Any context.
    pub fn is_in_use(&self) -> bool {
        let Some(entered) = self.enter() else {
            return false;
        };
        // SAFETY: As in `fail_controller`. The subsystem of a controller stays as long as the controller.
        unsafe { bindings::sq_is_in_use(entered.as_raw()) }
    }

    /// Returns whether nvmet ends the controller if its host falls silent. Any context.
    pub fn has_keep_alive(&self) -> bool {
        let Some(entered) = self.enter() else {
            return false;
        };
        // SAFETY: As in `fail_controller`.
        unsafe { bindings::sq_has_keep_alive(entered.as_raw()) }
    }

    /// Holds the controller of this admin queue if it has this identifier, and the host connected to it through
    /// `port`. Any context.
    pub fn hold_controller(&self, port: &Port<T>, id: u16) -> Option<HeldController> {
        let entered = self.enter()?;
        // SAFETY: As in `fail_controller`. The identifier of a controller does not change.
        let is_wanted = unsafe {
            let ctrl = bindings::sq_ctrl(entered.as_raw());
            !ctrl.is_null() && (*ctrl).cntlid == id && ptr::eq(port, self.port())
        };
        is_wanted.then(|| HeldController(entered.hold()))
    }

    /// Reports a fatal error of the controller: nvmet deletes it, with all its queues. Returns `false` if
    /// there is no controller. Sleeps. C: `nvmet_ctrl_fatal_error()`.
    pub fn fail_controller(&self) -> bool {
        let Some(entered) = self.enter() else {
            return false;
        };
        // SAFETY: `sq` is initialised. It holds a reference to its controller until it is
        // destroyed, which waits for `entered`.
        unsafe {
            let ctrl = bindings::sq_ctrl(entered.as_raw());
            if ctrl.is_null() {
                return false;
            }
            bindings::nvmet_ctrl_fatal_error(ctrl);
        }
        true
    }

    /// Makes new commands fail, ends outstanding asynchronous event requests, and waits until no request is
    /// left. Then frees the memory of the requests. Sleeps. C: `nvmet_sq_destroy()`.
    pub fn destroy(&self) {
        if self.is_destroyed.swap(true, Ordering::Relaxed) {
            return;
        }
        // SAFETY: By the type invariants, both are initialised, and destroyed once.
        unsafe {
            bindings::nvmet_sq_destroy(self.sq.get());
            bindings::nvmet_cq_put(self.cq.get());
        }
        if let Some(retired) = self.retired.take() {
            // No request is left, so the list is complete. nvmet may put its last reference for a command
            // in the completion of a bio, and then use the memory for some instructions. The drain has waited for
            // an expedited grace period, too: queues that end at once share them.
            //
            // SAFETY: The function may sleep.
            unsafe { bindings::synchronize_rcu_expedited() };
            drop(retired);
        }
        let queue = self.queue_pair.swap(ptr::null_mut(), Ordering::AcqRel);
        if !queue.is_null() {
            // SAFETY: By the type invariants it is a reference of an `Arc`. No request is left.
            drop(unsafe { Arc::from_raw(queue) });
        }
    }
}

#[pinned_drop]
impl<T: TransportTypes> PinnedDrop for SubmissionQueue<T> {
    fn drop(self: Pin<&mut Self>) {
        self.destroy();
    }
}
