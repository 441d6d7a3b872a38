// SPDX-License-Identifier: GPL-2.0

//! The passive side: listeners, and the backlog in which connection requests wait.
//!
//! A [`Backlog`] may be called by:
//!
//! - the event handler of the listener, until the listener's CM ID is destroyed;
//! - the event handlers of the CM IDs that wait in it; each CM ID owns a reference to the backlog.
//!
//! The backlog owns a waiting CM ID until the consumer takes it, or until its own handler removes
//! it. Whichever finds the CM ID in the backlog first owns it from then on.

use super::{
    cm_id::{
        create,
        BoundId,
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
    memory::without_io,
    net::Namespace,
    rdma::qp::Sealed,
    sync::{
        drop_later,
        new_mutex,
        DropsLater,
        SleepingDrop,
        TimedCompletion, //
    },
};
use core::{
    ffi::c_int,
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    alloc::kvec::PushError,
    error::to_result,
    prelude::*,
    str::CStr,
    sync::{
        global_lock,
        Arc,
        ArcBorrow,
        Mutex, //
    },
};

/// The CM ID of a listener.
///
/// # Invariants
///
/// The CM ID is valid and owned by this object. Its event handler is [`handler`], and its context
/// points to a [`Backlog`] that outlives it.
struct ListenId(NonNull<bindings::rdma_cm_id>);

// SAFETY: The functions of the connection manager may be called from any thread.
unsafe impl Send for ListenId {}

impl ListenId {
    /// Leaves the CM ID to the connection manager. To be followed by a non-zero return value of its
    /// event handler, which makes the connection manager destroy it.
    fn forget(self) {
        let _id = ManuallyDrop::new(self);
    }
}

impl Drop for ListenId {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, this object owns the CM ID. The call waits for running
        // handlers.
        unsafe { bindings::rdma_destroy_id(self.0.as_ptr()) };
    }
}

struct Queue {
    id: Option<ListenId>,
    /// Reason why no more requests arrive.
    lost: Option<Lost>,
    /// In order of arrival. The capacity is `limit` of the backlog.
    waiting: KVec<CmId>,
}

/// Parameters of a listener.
pub struct ListenParams<'a> {
    /// Most requests that wait to be taken, at least 1. Further ones are rejected with the reason
    /// `no resources`.
    pub backlog: u16,
    /// Private data of these rejections, as for [`Incoming::reject`]; may be empty.
    pub refusal: &'a [u8],
    /// Completed whenever a request arrives, and when the device is removed.
    pub wake: Arc<TimedCompletion>,
    /// The name that `rdma res show cm_id` prints.
    pub owner: &'static CStr,
}

/// The connection requests that the consumer has not taken yet.
#[pin_data]
pub(super) struct Backlog {
    #[pin]
    queue: Mutex<Queue>,
    limit: usize,
    /// Private data of the rejection of a request for which there is no room.
    refusal: KVec<u8>,
    /// The transport service of the listener.
    qp_type: bindings::ib_qp_type,
    wake: Arc<TimedCompletion>,
}

impl Backlog {
    fn new<S: Sealed>(params: ListenParams<'_>) -> Result<Arc<Self>> {
        let limit = usize::from(params.backlog);
        let mut refusal = KVec::new();
        refusal.extend_from_slice(params.refusal, GFP_KERNEL)?;
        let waiting = KVec::with_capacity(limit, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                queue <- new_mutex!(Queue {
                    id: None,
                    lost: None,
                    waiting,
                }, "rrdma::cm::Backlog"),
                limit,
                refusal,
                qp_type: S::QP_TYPE,
                wake: params.wake,
            }),
            GFP_KERNEL,
        )
    }

    /// Queues the CM ID of a new request. May sleep.
    ///
    /// Fails with `EPROTONOSUPPORT` for a request of another service and with `ENOMEM` if the
    /// backlog is full.
    ///
    /// # Safety
    ///
    /// The caller must be the listener's event handler, with the arguments of a
    /// `RDMA_CM_EVENT_CONNECT_REQUEST`. If this fails, the handler must return non-zero.
    unsafe fn request(
        self: &Arc<Self>,
        id: NonNull<bindings::rdma_cm_id>,
        event: *mut bindings::rdma_cm_event,
    ) -> Result {
        // For iWARP, the connection manager makes a CM ID of type RC even if the listener is for
        // datagrams.
        // SAFETY: `id` is valid by the safety requirements, and its type never changes.
        if unsafe { (*id.as_ptr()).qp_type } != self.qp_type {
            return Err(EPROTONOSUPPORT);
        }
        let mut queue = self.queue.lock();
        if queue.waiting.len() >= self.limit {
            return Err(ENOMEM);
        }
        // SAFETY: The safety requirements are those of this function. If the request is refused,
        // the result is forgotten below.
        let id = unsafe { CmId::take_request(id, event, self.clone(), self.wake.clone())? };
        if let Err(PushError(id)) = queue.waiting.push_within_capacity(id) {
            id.forget();
            return Err(ENOMEM);
        }
        self.wake.complete();
        Ok(())
    }

    /// Handles a change of the link address of the listener's interface.
    fn address_changed(&self) {
        let mut queue = self.queue.lock();
        queue.lost.get_or_insert(Lost::AddressChanged);
        self.wake.complete();
    }

    /// Handles the removal of the listener's device. Returns whether the connection manager must
    /// destroy the listener's CM ID: then the backlog owned it, and nobody else destroys it.
    fn removed(&self) -> bool {
        let mut queue = self.queue.lock();
        queue.lost = Some(Lost::DeviceRemoved);
        self.wake.complete();
        match queue.id.take() {
            Some(id) => {
                id.forget();
                true
            }
            None => false,
        }
    }

    /// Takes the CM ID that has waited longest.
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
        // Under the lock: the owner of the listener does not wait for the handler of a CM ID that
        // it finds gone.
        id.forget();
        true
    }
}

/// The event handler of a listener (`rdma_cm_event_handler`). Returns non-zero to have the CM ID
/// destroyed.
///
/// # Safety
///
/// The caller is the connection manager. `event` must be an event of a listener whose context is a
/// `Backlog` in an `Arc` that lives until the listener's CM ID is destroyed. `id` must be the
/// listener's CM ID or, for a request, a new one with the same context.
// Not inlined into the consumer's module, which may be unloaded before this returns.
#[inline(never)]
unsafe extern "C" fn handler(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: By the safety requirements, the context is a `Backlog` in a live `Arc`. The reference
    // is our own, because the listener may drop its reference once its CM ID is given up.
    let (backlog, kind): (Arc<Backlog>, _) = unsafe {
        (
            ArcBorrow::from_raw((*id).context.cast::<Backlog>()).into(),
            (*event).event,
        )
    };
    match (kind, NonNull::new(id)) {
        (bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST, Some(new)) => {
            // SAFETY: The arguments are those of a request. On failure, `refuse` returns non-zero.
            match unsafe { backlog.request(new, event) } {
                Ok(()) => 0,
                // SAFETY: `id` is the new CM ID of a request, and this is its handler.
                Err(error) => unsafe { refuse(id, error, &backlog.refusal) },
            }
        }
        (bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL, _) => backlog.removed().into(),
        (bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE, _) => {
            backlog.address_changed();
            0
        }
        _ => 0,
    }
}

/// Rejects a request for lack of resources. Returns the negative error number that makes the
/// connection manager destroy the CM ID.
///
/// # Safety
///
/// `id` must be the new CM ID of a request, and the caller its event handler.
unsafe fn refuse(
    id: *mut bindings::rdma_cm_id,
    error: kernel::error::Error,
    private_data: &[u8],
) -> c_int {
    let reason = match private_data.is_empty() {
        true => bindings::ib_cm_rej_reason_IB_CM_REJ_NO_RESOURCES,
        false => bindings::ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED,
    };
    let length = u8::try_from(private_data.len()).unwrap_or(0);
    // SAFETY: `id` is valid by the safety requirements. The private data has `length` bytes at least, and is copied
    // before the call returns. If this fails, destroying the CM ID rejects the request.
    unsafe { bindings::rdma_reject(id, private_data.as_ptr().cast(), length, reason as u8) };
    error.to_errno()
}

/// A listener for any transport service. Dropping it rejects the requests that wait.
pub(super) struct RawListener {
    backlog: Arc<Backlog>,
    address: Address,
}

impl RawListener {
    /// Listens at `address` for requests of the service `S`, see [`Listener::new`]. Sleeps.
    pub(super) fn new<S: Sealed>(
        namespace: &Namespace,
        address: &Address,
        params: ListenParams<'_>,
    ) -> Result<Self, Error> {
        if params.backlog == 0 {
            return Err(Stage::Listen.failed(EINVAL));
        }
        let (backlog, owner) = (params.backlog, params.owner);
        let fail = |error| Stage::Listen.failed(error);
        let mut listener = Self {
            backlog: Backlog::new::<S>(params).map_err(fail)?,
            address: *address,
        };
        let id = listener.id::<S>(namespace, owner).map_err(fail)?;
        listener.listen(&id, backlog)?;
        listener.set_id(id)?;
        Ok(listener)
    }

    /// Creates a CM ID whose handler works on the backlog.
    fn id<S: Sealed>(&self, namespace: &Namespace, owner: &'static CStr) -> Result<ListenId> {
        let owner = lasting_name(owner)?;
        // SAFETY: The `Arc` pins the backlog, and `drop` destroys the CM ID before it drops the
        // `Arc`.
        let raw = unsafe { create::<S, _>(namespace, handler, Arc::as_ptr(&self.backlog), owner)? };
        // INVARIANT: Created with this handler and this context; nobody else has it.
        let id = ListenId(raw);
        // SAFETY: By the invariants of `ListenId`, the CM ID is valid.
        to_result(unsafe { bindings::rdma_set_afonly(id.0.as_ptr(), 1) })?;
        Ok(id)
    }

    /// Binds the CM ID to the address and listens. Sets the port of the address.
    fn listen(&mut self, id: &ListenId, backlog: u16) -> Result<(), Error> {
        let raw = id.0.as_ptr();
        // SAFETY: By the invariants of `ListenId`, the CM ID is valid. The address is only read.
        to_result(unsafe { bindings::rdma_bind_addr(raw, self.address.as_raw()) })
            .map_err(|error| Stage::Address.failed(error))?;
        // SAFETY: The CM ID is valid. Binding has set its source address, which does not change any
        // more.
        self.address = unsafe { Address::from_raw(&raw const (*raw).route.addr.src_addr) };
        // SAFETY: The CM ID is valid.
        to_result(unsafe { bindings::rdma_listen(raw, backlog.into()) })
            .map_err(|error| Stage::Listen.failed(error))
    }

    /// Hands the CM ID to the backlog, whose handler may give it up from then on.
    fn set_id(&self, id: ListenId) -> Result<(), Error> {
        let mut queue = self.backlog.queue.lock();
        if queue.lost != Some(Lost::DeviceRemoved) {
            queue.id = Some(id);
            return Ok(());
        }
        // Destroying the CM ID waits for its handler, which takes the lock.
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

    /// Takes the CM ID of the oldest request that waits.
    pub(super) fn next(&self) -> Result<Option<BoundId>, Lost> {
        match self.backlog.take() {
            // SAFETY: The CM ID of a request has a device.
            Some(id) => Ok(Some(unsafe { BoundId::new(id) })),
            None => match self.backlog.queue.lock().lost {
                Some(lost) => Err(lost),
                None => Ok(None),
            },
        }
    }
}

impl Drop for RawListener {
    fn drop(&mut self) {
        drop(SleepingDrop::new(OpenBacklog(self.backlog.clone())));
    }
}

/// The backlog of a listener that is to be closed. Dropping this destroys the CM ID of the listener, and rejects the
/// requests that wait. That sleeps.
struct OpenBacklog(Arc<Backlog>);

impl Drop for OpenBacklog {
    fn drop(&mut self) {
        // Destroying the CM ID waits for its handler, which takes the lock: release the lock first.
        let id = self.0.queue.lock().id.take();
        drop(id);
        // No more requests arrive. Those that wait and the backlog hold references to each other.
        while let Some(id) = self.0.take() {
            drop(id);
        }
    }
}

impl DropsLater for OpenBacklog {
    #[inline(never)]
    fn drop_later(self) {
        drop_later("listener", self);
    }
}

// `rdma res show cm_id` reads the name of a CM ID's owner as long as the CM ID exists. If a handler
// refuses or gives up a CM ID, the connection manager destroys it after the handler has returned,
// and notifies nobody. By then, the listener may be gone, and so may the consumer's module, which
// contains the name. The CM IDs of listeners therefore have a copy of the name that is never freed;
// the CM IDs of requests inherit it.
global_lock! {
    // SAFETY: `init` initialises it before any listener is created.
    unsafe(uninit) static NAMES: Mutex<KVec<&'static CStr>> = KVec::new();
}

/// Initialises the table of names. Called once, when this module is loaded.
pub(crate) fn init() {
    // SAFETY: Called exactly once, from the init function of this module.
    unsafe { NAMES.init() };
}

/// Frees the table of names, but not the names. Called once, when this module is unloaded.
pub(crate) fn forget_names() {
    *NAMES.lock() = KVec::new();
}

/// Returns a copy of `name` that is never freed; equal names share one copy. Sleeps.
///
/// # Errors
///
/// `ENOMEM`.
pub(super) fn lasting_name(name: &CStr) -> Result<&'static CStr> {
    // A thread that reconnects for blocked I/O may wait for the lock.
    without_io(|| copied_name(name))
}

/// Returns the copy of a name, which it makes if there is none. May sleep.
fn copied_name(name: &CStr) -> Result<&'static CStr> {
    let mut names = NAMES.lock();
    if let Some(known) = names.iter().find(|known| ***known == *name) {
        return Ok(known);
    }
    names.reserve(1, GFP_KERNEL)?;
    // SAFETY: `name` is NUL-terminated and only read.
    let copy = unsafe { bindings::lasting_copy(name.as_char_ptr()) };
    let copy = NonNull::new(copy).ok_or(ENOMEM)?;
    // SAFETY: `copy` is NUL-terminated, and never freed or changed.
    let copy = unsafe { CStr::from_char_ptr(copy.as_ptr()) };
    names.push(copy, GFP_KERNEL)?;
    Ok(copy)
}

/// Listens for connection requests. Dropping it rejects the requests that wait.
///
/// Any thread may take requests, with [`next`](Self::next).
///
/// When a device is removed, the waiting requests that came through it are dropped. A listener at
/// an address of that device receives no more requests. A listener at the unspecified address
/// (`0.0.0.0`, `::`) continues with the other devices and with those added later.
pub struct Listener<E: Endpoint> {
    raw: RawListener,
    _endpoint: PhantomData<fn(E)>,
}

impl<E: Endpoint> Listener<E> {
    /// Listens at `address` in `namespace` (`rdma_bind_addr`, `rdma_listen`). Sleeps.
    ///
    /// - Port 0 selects a free port. A listener at an IPv6 address accepts IPv6 only, even at the
    ///   unspecified address.
    /// - The listener and its connections hold a reference to the namespace, so it outlives them
    ///   even if it is deleted.
    ///
    /// # Errors
    ///
    /// - [`Stage::Address`]: `EADDRINUSE`; `EADDRNOTAVAIL` if no interface has the address;
    ///   `ENODEV` if the interface has no RDMA device.
    /// - [`Stage::Listen`]: `EINVAL` for a backlog of 0; `ENOMEM`; or the error of the device.
    pub fn new(
        namespace: &Namespace,
        address: &Address,
        params: ListenParams<'_>,
    ) -> Result<Self, Error> {
        Ok(Self {
            raw: RawListener::new::<E::QpType>(namespace, address, params)?,
            _endpoint: PhantomData,
        })
    }

    /// Returns the address that the listener is bound to, with its port.
    pub fn local_address(&self) -> &Address {
        self.raw.local_address()
    }

    /// Takes the oldest request that waits; `None` if there is none. May sleep, but does not wait
    /// for a request.
    ///
    /// Several requests may complete `wake` before it is waited for once, so call this until it
    /// returns `None`.
    ///
    /// # Errors
    ///
    /// No more requests will arrive: listen again.
    ///
    /// - [`Lost::DeviceRemoved`]: the device of the listener's address was removed.
    /// - [`Lost::AddressChanged`]: the link address of the interface changed, as when a bond fails
    ///   over.
    pub fn next(&self) -> Result<Option<Incoming<E>>, Lost> {
        Ok(self.raw.next()?.map(Incoming::new))
    }
}
