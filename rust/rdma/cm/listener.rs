// SPDX-License-Identifier: GPL-2.0

//! The passive side: where requests for connections arrive.
//!
//! Who may call a [`Backlog`] when it dies: the listener's handler, which ends with
//! the listener's id; the handlers of the ids that wait in it, each of which owns a
//! reference. Who owns an id that waits: the backlog, until it is taken or until
//! its handler removes it, whichever finds it there first.

use super::{
    cm_id::{
        CmHandler,
        CmId,
        RequestQueue, //
    },
    Address,
    Cause,
    Endpoint,
    Error,
    Incoming,
    Lost,
    Stage, //
};
use crate::{
    bindings,
    errno::EPROTONOSUPPORT,
    net::Namespace,
    rdma::qp::Sealed,
    sync::TimedCompletion, //
};
use core::{
    ffi::{
        c_int,
        c_void, //
    },
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    alloc::kvec::PushError,
    error::{
        from_err_ptr,
        to_result, //
    },
    new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        global_lock,
        Arc,
        ArcBorrow,
        Mutex, //
    },
};

/// The id of a listener.
///
/// # Invariants
///
/// Is an id of the connection manager that this object owns, and whose handler
/// works on a [`Backlog`] that outlives it.
struct ListenId(NonNull<bindings::rdma_cm_id>);

// SAFETY: The connection manager's calls may be made from any thread.
unsafe impl Send for ListenId {}

impl ListenId {
    /// Leaves the id to the connection manager, which destroys it when its handler
    /// returns.
    fn forget(self) {
        let _id = ManuallyDrop::new(self);
    }
}

impl Drop for ListenId {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. This waits for handlers that are running.
        unsafe { bindings::rdma_destroy_id(self.0.as_ptr()) };
    }
}

struct Queue {
    id: Option<ListenId>,
    /// The device that the listener was bound to is gone, or going.
    removed: bool,
    /// In order of arrival; has room for `limit` of the backlog.
    waiting: KVec<CmId>,
}

/// Where requests wait to be taken.
#[pin_data]
pub(super) struct Backlog {
    #[pin]
    queue: Mutex<Queue>,
    limit: usize,
    /// What queue pairs the listener is for.
    qp_type: bindings::ib_qp_type,
    wake: Arc<TimedCompletion>,
}

impl Backlog {
    fn new<S: Sealed>(limit: u16, wake: Arc<TimedCompletion>) -> Result<Arc<Self>> {
        let limit = usize::from(limit);
        let waiting = KVec::with_capacity(limit, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                queue <- new_mutex!(Queue {
                    id: None,
                    removed: false,
                    waiting,
                }, "rrdma::cm::Backlog"),
                limit,
                qp_type: S::QP_TYPE,
                wake,
            }),
            GFP_KERNEL,
        )
    }

    /// Queues the request of a new id, or says why not.
    ///
    /// # Safety
    ///
    /// Must be called by the handler of the listener with the id and the event of
    /// a request. If it fails, the handler must refuse the request.
    unsafe fn request(
        self: &Arc<Self>,
        id: NonNull<bindings::rdma_cm_id>,
        event: *mut bindings::rdma_cm_event,
    ) -> Result {
        // An iWARP device takes what comes to any listener for a connection.
        // SAFETY: By the contract; the type of an id is constant.
        if unsafe { (*id.as_ptr()).qp_type } != self.qp_type {
            return Err(EPROTONOSUPPORT);
        }
        let mut queue = self.queue.lock();
        if queue.waiting.len() >= self.limit {
            return Err(ENOMEM);
        }
        // SAFETY: By the contract; forgotten below if it is refused.
        let id = unsafe { CmId::take_request(id, event, self.clone(), self.wake.clone())? };
        if let Err(PushError(id)) = queue.waiting.push_within_capacity(id) {
            id.forget();
            return Err(ENOMEM);
        }
        self.wake.complete();
        Ok(())
    }

    /// The device of the listener's id is going: says whether the connection
    /// manager is to destroy the id, which nobody else will then.
    fn removed(&self) -> bool {
        let mut queue = self.queue.lock();
        queue.removed = true;
        self.wake.complete();
        match queue.id.take() {
            Some(id) => {
                id.forget();
                true
            }
            None => false,
        }
    }

    /// The oldest id that waits.
    fn take(&self) -> Option<CmId> {
        self.queue.lock().waiting.remove(0).ok()
    }
}

impl RequestQueue for Backlog {
    fn remove(&self, cm_handler: &CmHandler) -> bool {
        let mut queue = self.queue.lock();
        let mut ids = queue.waiting.iter();
        let Some(place) = ids.position(|id| id.has_handler(cm_handler)) else {
            return false;
        };
        let Ok(id) = queue.waiting.remove(place) else {
            return false;
        };
        // Under the lock: whoever finds the id gone awaits the handler, if nobody else.
        id.forget();
        true
    }
}

/// # Safety
///
/// Called by the connection manager with an event of a listener whose context is a
/// `Backlog` in an `Arc` that lives until the listener's id is destroyed, and the
/// id of the listener or, with a request, a new one with the same context.
// Not code of the consumer's module, which may be gone when this returns.
#[inline(never)]
unsafe extern "C" fn handler(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: By the contract. A reference of its own, because the listener may
    // go as soon as its id is given up.
    let (backlog, kind): (Arc<Backlog>, _) = unsafe {
        (
            ArcBorrow::from_raw((*id).context.cast::<Backlog>()).into(),
            (*event).event,
        )
    };
    match (kind, NonNull::new(id)) {
        (bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST, Some(new)) => {
            // SAFETY: By the contract, and refused below if it fails.
            match unsafe { backlog.request(new, event) } {
                Ok(()) => 0,
                // SAFETY: By the contract, the id is a new one.
                Err(error) => unsafe { refuse(id, error) },
            }
        }
        (bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL, _) => backlog.removed().into(),
        // A change of the address leaves a listener deaf on it, but whole.
        _ => 0,
    }
}

/// Tells the peer that there is no room, and the connection manager to destroy
/// the id.
///
/// # Safety
///
/// `id` must be a new id in the handler of its request.
unsafe fn refuse(id: *mut bindings::rdma_cm_id, error: kernel::error::Error) -> c_int {
    let reason = bindings::ib_cm_rej_reason_IB_CM_REJ_NO_RESOURCES as u8;
    // SAFETY: By the contract. Should it fail, then destroying the id rejects.
    unsafe { bindings::rdma_reject(id, ptr::null(), 0, reason) };
    error.to_errno()
}

/// A listener of whichever service; dropping it rejects the requests that wait.
pub(super) struct RawListener {
    backlog: Arc<Backlog>,
    address: Address,
}

impl RawListener {
    /// Listens at `address` for requests of the service `S`, see [`Listener::new`].
    pub(super) fn new<S: Sealed>(
        namespace: &Namespace,
        address: &Address,
        backlog: u16,
        wake: Arc<TimedCompletion>,
        owner: &'static CStr,
    ) -> Result<Self, Error> {
        if backlog == 0 {
            return Err(Stage::Listen.failed(EINVAL));
        }
        let fail = |error| Stage::Listen.failed(error);
        let mut listener = Self {
            backlog: Backlog::new::<S>(backlog, wake).map_err(fail)?,
            address: *address,
        };
        let id = listener.id::<S>(namespace, owner).map_err(fail)?;
        listener.listen(&id, backlog)?;
        listener.set_id(id)?;
        Ok(listener)
    }

    /// A new id whose handler works on the backlog.
    fn id<S: Sealed>(&self, namespace: &Namespace, owner: &'static CStr) -> Result<ListenId> {
        let context: *const Backlog = &*self.backlog;
        let owner = lasting_name(owner)?;
        // SAFETY: The namespace is alive; the backlog is pinned on the heap, and
        // goes after the id, see `Drop`.
        let raw = from_err_ptr(unsafe {
            bindings::__rdma_create_kernel_id(
                namespace.as_ptr(),
                Some(handler),
                context.cast_mut().cast::<c_void>(),
                S::PORT_SPACE,
                S::QP_TYPE,
                owner.as_char_ptr(),
            )
        })?;
        // INVARIANT: As created.
        let id = ListenId(NonNull::new(raw).ok_or(ENOMEM)?);
        // SAFETY: The id is ours, and not bound, which is all that could be wrong.
        to_result(unsafe { bindings::rdma_set_afonly(id.0.as_ptr(), 1) })?;
        Ok(id)
    }

    /// Lets the id listen at the address, which gets its port.
    fn listen(&mut self, id: &ListenId, backlog: u16) -> Result<(), Error> {
        let raw = id.0.as_ptr();
        // SAFETY: The id is ours, new, and the address is only read.
        to_result(unsafe { bindings::rdma_bind_addr(raw, self.address.as_raw()) })
            .map_err(|error| Stage::Address.failed(error))?;
        // SAFETY: The id is ours and bound, which set its address; nobody changes
        // it any more.
        self.address = unsafe { Address::from_raw(&raw const (*raw).route.addr.src_addr) };
        // SAFETY: The id is ours and bound.
        to_result(unsafe { bindings::rdma_listen(raw, backlog.into()) })
            .map_err(|error| Stage::Listen.failed(error))
    }

    /// Gives the id to the backlog, whose handler may give it up from then on.
    fn set_id(&self, id: ListenId) -> Result<(), Error> {
        let mut queue = self.backlog.queue.lock();
        if !queue.removed {
            queue.id = Some(id);
            return Ok(());
        }
        // The id is destroyed without the lock, which its handler may wait for.
        drop(queue);
        drop(id);
        Err(Error {
            stage: Stage::Listen,
            cause: Cause::DeviceRemoved,
        })
    }

    pub(super) fn local_address(&self) -> &Address {
        &self.address
    }

    /// The id of the oldest request that waits, which has a device.
    pub(super) fn next(&self) -> Result<Option<CmId>, Lost> {
        match self.backlog.take() {
            None if self.backlog.queue.lock().removed => Err(Lost::DeviceRemoved),
            id => Ok(id),
        }
    }
}

impl Drop for RawListener {
    fn drop(&mut self) {
        // Destroying waits for handlers, which take the lock: not under it.
        let id = self.backlog.queue.lock().id.take();
        drop(id);
        // No more can come. Those that wait have the backlog, and it has them.
        while let Some(id) = self.backlog.take() {
            drop(id);
        }
    }
}

// `rdma res show cm_id` reads the name of an id as long as there is the id. One that a
// handler refuses or gives up is destroyed by the connection manager, afterwards, and
// nobody is told when it has: the listener may be gone by then, and with it the module
// of its owner, of which the name is a part. So the ids of listeners, and those of
// requests, which have the name from them, bear a copy that stays for good.
global_lock! {
    // SAFETY: Initialised by `init` below, before there is a listener.
    unsafe(uninit) static NAMES: Mutex<KVec<&'static CStr>> = KVec::new();
}

/// Makes the table of names; called once, when the module loads.
pub(crate) fn init() {
    // SAFETY: Called exactly once, by the crate's module init.
    unsafe { NAMES.init() };
}

/// Frees what is not read after this module is gone; called once, when it goes.
pub(crate) fn forget_names() {
    *NAMES.lock() = KVec::new();
}

/// A copy of the name of an owner for good: one, however often it is asked for. Sleeps.
///
/// # Errors
///
/// `ENOMEM`.
fn lasting_name(name: &CStr) -> Result<&'static CStr> {
    let mut names = NAMES.lock();
    if let Some(known) = names.iter().find(|known| ***known == *name) {
        return Ok(known);
    }
    names.reserve(1, GFP_KERNEL)?;
    // SAFETY: The name is a string, and only read.
    let copy = unsafe { bindings::lasting_copy(name.as_char_ptr()) };
    let copy = NonNull::new(copy).ok_or(ENOMEM)?;
    // SAFETY: A string, which is never freed or changed.
    let copy = unsafe { CStr::from_char_ptr(copy.as_ptr()) };
    names.push(copy, GFP_KERNEL)?;
    Ok(copy)
}

/// Listens for requests for connections; dropping it rejects those that wait.
///
/// Requests are taken with [`next`](Self::next), in whichever thread the consumer
/// likes. When a device goes away, requests that came through it and wait are
/// dropped, and a listener on an address of that device hears no more; one on the
/// unspecified address (`0.0.0.0`, `::`) goes on with the other devices, and with
/// those to come.
pub struct Listener<E: Endpoint> {
    raw: RawListener,
    _endpoint: PhantomData<fn(E)>,
}

impl<E: Endpoint> Listener<E> {
    /// Listens at `address` in `namespace` (`rdma_bind_addr`, `rdma_listen`). It and
    /// the connections that come of it hold the namespace, which does not go before
    /// they do, even if it is deleted. With port 0 it gets a free one. IPv6 is IPv6
    /// only, the unspecified address included.
    ///
    /// At most `backlog` requests wait to be taken; those beyond are rejected, the
    /// peer hears that there are no resources. `wake` is completed whenever there
    /// is something to take; `owner` is what `rdma res show cm_id` names. Sleeps.
    ///
    /// # Errors
    ///
    /// Of [`Stage::Address`]: `EADDRINUSE`; `EADDRNOTAVAIL` for an address of no
    /// interface, `ENODEV` if the interface has no RDMA device. Of
    /// [`Stage::Listen`]: `EINVAL` for no backlog, `ENOMEM`, or what the device
    /// answers.
    pub fn new(
        namespace: &Namespace,
        address: &Address,
        backlog: u16,
        wake: Arc<TimedCompletion>,
        owner: &'static CStr,
    ) -> Result<Self, Error> {
        Ok(Self {
            raw: RawListener::new::<E::QpType>(namespace, address, backlog, wake, owner)?,
            _endpoint: PhantomData,
        })
    }

    /// The address that it listens at, with the port that it got.
    pub fn local_address(&self) -> &Address {
        self.raw.local_address()
    }

    /// Takes the oldest request that waits; `None` if there is none. To be called
    /// again until there is none whenever the listener's completion has fired: it
    /// may have fired once for several. May sleep, but waits for nobody.
    ///
    /// # Errors
    ///
    /// [`Lost::DeviceRemoved`] when the device of the listener's address is gone;
    /// nothing more will come.
    pub fn next(&self) -> Result<Option<Incoming<E>>, Lost> {
        Ok(self.raw.next()?.map(Incoming::new))
    }
}
