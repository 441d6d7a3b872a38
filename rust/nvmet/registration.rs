// SPDX-License-Identifier: GPL-2.0

//! Registration of a transport.

use crate::{
    bindings,
    connecting::ConnectingQueues,
    port::{
        Port,
        PortCount,
        PortHold, //
    },
    request::{
        Deferred,
        Request, //
    },
    submission_queue::{
        ControllerId,
        SubmissionQueue, //
    },
    transport::Transport, //
};
use core::{
    mem,
    ptr::{
        self,
        NonNull, //
    },
    sync::atomic::{
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
use rrdma::{
    errno::ENOTCONN,
    net::Address,
    sync::{
        OwnedQueue,
        WorkKind, //
    },
    text::Message, //
};

/// The registration of this module: nvmet passes no pointer to the callbacks.
///
/// It is null, or points to the [`Registration<T>`] whose callbacks nvmet may call.
static REGISTERED: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The private data of a port that is enabled.
struct EnabledPort<T: Transport> {
    listener: T::Listener,
    hold: Arc<PortHold>,
}

/// A registered transport of the type RDMA.
///
/// A port pins the module while it is enabled. Dropping this waits until all queues are destroyed. The
/// transport must end their connections, or the drop never returns.
///
/// # Invariants
///
/// `ops` is registered, and `REGISTERED` points to this. `ops` outlives the ports and their queues.
#[pin_data(PinnedDrop)]
pub struct Registration<T: Transport> {
    #[pin]
    ops: Opaque<bindings::nvmet_fabrics_ops>,
    users: Arc<PortCount>,
    connecting: Arc<ConnectingQueues>,
    /// Sends [`Deferred`] responses.
    deferred: OwnedQueue,
    context: T::Context,
}

// SAFETY: nvmet synchronises its use of `ops`. The context is `Send`.
unsafe impl<T: Transport> Send for Registration<T> {}

// SAFETY: As for `Send`; the context is `Sync`.
unsafe impl<T: Transport> Sync for Registration<T> {}

impl<T: Transport> Registration<T> {
    /// Registers the transport. Sleeps. C: `nvmet_register_transport()`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if another transport of the type RDMA is registered; `EBUSY` if this module has
    /// registered one; `ENOMEM`.
    pub fn new(module: &'static ThisModule, context: T::Context) -> impl PinInit<Self, Error> {
        try_pin_init!(&this in Self {
            users: PortCount::new()?,
            connecting: ConnectingQueues::new()?,
            deferred: OwnedQueue::new(c"nvmet_deferred", WorkKind::MemReclaim, 0)?,
            context,
            ops <- Opaque::ffi_init(|ops: *mut bindings::nvmet_fabrics_ops| {
                // SAFETY: `ffi_init` passes a pointer that is valid for writes.
                unsafe { ops.write(Self::table(module)) }
            }),
            _: {
                let registered = REGISTERED.compare_exchange(
                    ptr::null_mut(),
                    this.as_ptr().cast(),
                    Ordering::SeqCst,
                    Ordering::SeqCst,
                );
                registered.map_err(|_| EBUSY)?;
                // SAFETY: The table was initialised above. It is pinned until `drop` unregisters
                // it.
                let result = to_result(unsafe {
                    bindings::nvmet_register_transport((*this.as_ptr()).ops.get())
                });
                if result.is_err() {
                    REGISTERED.store(ptr::null_mut(), Ordering::SeqCst);
                }
                result?
            },
        }? Error)
    }

    fn table(module: &'static ThisModule) -> bindings::nvmet_fabrics_ops {
        bindings::nvmet_fabrics_ops {
            owner: module.as_ptr(),
            type_: bindings::NVMF_TRTYPE_RDMA,
            msdbd: 1,
            flags: bindings::NVMF_KEYED_SGLS,
            queue_response: Some(Self::queue_response),
            add_port: Some(Self::add_port),
            remove_port: Some(Self::remove_port),
            delete_ctrl: Some(Self::delete_ctrl),
            disc_traddr: Some(Self::disc_traddr),
            host_traddr: Some(Self::host_traddr),
            install_queue: Some(Self::install_queue),
            get_mdts: Some(Self::get_mdts),
            get_max_queue_size: Some(Self::get_max_queue_size),
            ..pin_init::zeroed()
        }
    }

    /// Returns the registration, in a callback.
    ///
    /// # Safety
    ///
    /// The caller is a callback of nvmet, which is not called before the registration, nor after
    /// its drop has waited for all ports and queues.
    unsafe fn get<'a>() -> &'a Self {
        // SAFETY: By the safety requirements and those of `REGISTERED`.
        unsafe { &*REGISTERED.load(Ordering::SeqCst).cast::<Self>() }
    }

    /// # Safety
    ///
    /// `req` must be that of a [`Request<T>`] that nvmet has returned, and does not use any more, unless the caller
    /// is a work item in the request. Called once for each return.
    unsafe extern "C" fn queue_response(req: *mut bindings::nvmet_req) {
        // SAFETY: By the safety requirements of this function.
        if let Some(deferred) = unsafe { Deferred::<T>::of(req) } {
            return Self::defer(deferred);
        }
        // SAFETY: By the safety requirements of this function. If nvmet has parsed the command, it
        // holds a reference to the queue until this returns, or `respond_deferred` does. Otherwise
        // `begin` is the caller, which has a reference to the queue pair.
        let (queue, request) = unsafe {
            let queue = SubmissionQueue::<T>::queue_pair_of((*req).sq);
            (queue, Request::<T>::from_raw(req))
        };
        T::respond(queue, request);
    }

    /// Lets another thread send a response when nvmet does not use the request any more. Any context.
    #[cold]
    fn defer(deferred: Deferred<T>) {
        // SAFETY: The caller is a callback. The registration waits until all requests are dropped.
        let this = unsafe { Self::get() };
        this.deferred
            .enqueue(deferred.into_work(Self::respond_deferred));
    }

    /// # Safety
    ///
    /// Called once, by the work item of [`defer`](Self::defer).
    unsafe extern "C" fn respond_deferred(work: *mut bindings::work_struct) {
        // SAFETY: By the safety requirements of this function.
        let ended = unsafe { Deferred::<T>::from_work(work) }.wait();
        // A call of `respond` here would be its second, and then the compiler would not inline it.
        //
        // SAFETY: nvmet does not use the request any more, and the caller is no work item in it.
        unsafe { Self::queue_response(ended.req) };
        drop(ended.queue);
    }

    /// # Safety
    ///
    /// nvmet calls it, with a port that is being enabled.
    unsafe extern "C" fn add_port(port: *mut bindings::nvmet_port) -> c_int {
        // SAFETY: The caller is nvmet.
        let this = unsafe { Self::get() };
        // SAFETY: By the safety requirements of this function.
        match unsafe { this.add(port) } {
            Ok(()) => 0,
            Err(error) => error.to_errno(),
        }
    }

    /// # Safety
    ///
    /// As for [`add_port`](Self::add_port).
    unsafe fn add(&self, raw: *mut bindings::nvmet_port) -> Result {
        let raw = NonNull::new(raw).ok_or(EINVAL)?;
        let hold = PortHold::new()?;
        // SAFETY: By the safety requirements of this function. `drop` waits for the users of the
        // table. The hold is queued below, or by `remove_port`.
        let port = unsafe {
            let (users, connecting) = (self.users.clone(), self.connecting.clone());
            Port::new(raw, self.ops.get(), hold.clone(), users, connecting)?
        };
        let enabled = T::listen(&self.context, port).and_then(|listener| {
            let hold = hold.clone();
            Ok(KBox::new(EnabledPort::<T> { listener, hold }, GFP_KERNEL)?)
        });
        match enabled {
            Ok(enabled) => {
                // SAFETY: The port is valid. The field is the transport's.
                unsafe { (*raw.as_ptr()).priv_ = KBox::into_raw(enabled).cast() };
                Ok(())
            }
            Err(error) => {
                hold.queue();
                Err(error)
            }
        }
    }

    /// # Safety
    ///
    /// nvmet calls it once, with a port for which `add_port` succeeded.
    unsafe extern "C" fn remove_port(port: *mut bindings::nvmet_port) {
        // SAFETY: `add` has set the field. Nobody uses the listener afterwards: `disc_traddr` finds
        // none, and nvmet's configuration lock keeps it from running now.
        let enabled = unsafe {
            let enabled = mem::replace(&mut (*port).priv_, ptr::null_mut());
            KBox::from_raw(enabled.cast::<EnabledPort<T>>())
        };
        let EnabledPort { listener, hold } = KBox::into_inner(enabled);
        drop(listener);
        hold.queue();
    }

    /// # Safety
    ///
    /// nvmet calls it, with a valid controller.
    unsafe extern "C" fn delete_ctrl(ctrl: *mut bindings::nvmet_ctrl) {
        // SAFETY: The caller is nvmet.
        let this = unsafe { Self::get() };
        if let Some(controller) = ControllerId::new(ctrl) {
            T::delete_controller(&this.context, controller);
        }
    }

    /// Refuses the queues of other transports. Their transport would not end them with the controller, which refers
    /// to this module.
    ///
    /// # Safety
    ///
    /// nvmet calls it, with a queue of any transport that was installed in a controller of this one.
    unsafe extern "C" fn install_queue(sq: *mut bindings::nvmet_sq) -> u16 {
        // SAFETY: The caller is nvmet.
        let this = unsafe { Self::get() };
        if this.connecting.has(sq) {
            return 0;
        }
        pr_warn!("a queue of another transport cannot join a controller of RDMA\n");
        // SAFETY: By the safety requirements of this function, which refuses the queue.
        unsafe { bindings::sq_drop_cq(sq) };
        (bindings::NVME_SC_CONNECT_INVALID_PARAM | bindings::NVME_STATUS_DNR) as u16
    }

    /// # Safety
    ///
    /// nvmet calls it under its configuration lock, with a request that it executes, the port of the
    /// request, and room for an address. The port may have been disabled since.
    unsafe extern "C" fn disc_traddr(
        req: *mut bindings::nvmet_req,
        port: *mut bindings::nvmet_port,
        traddr: *mut c_char,
    ) {
        // SAFETY: By the safety requirements of this function. While the port is one of this
        // transport, `priv_` is null, or the listener that `add` has set. The room has the size of the
        // field in the port.
        unsafe {
            let is_ours = ptr::eq((*port).tr_ops, (*req).ops);
            let enabled = (*port).priv_.cast::<EnabledPort<T>>().as_ref();
            let listener = enabled.filter(|_| is_ours).map(|enabled| &enabled.listener);
            let configured = &(*port).disc_addr.traddr;
            let room = core::slice::from_raw_parts_mut(traddr.cast::<u8>(), configured.len());
            let queue = SubmissionQueue::<T>::queue_pair_of((*req).sq);
            match listener.and_then(|listener| T::discovery_address(listener, queue)) {
                Some(address) => {
                    write(address, room);
                }
                None => traddr.copy_from_nonoverlapping(configured.as_ptr(), configured.len()),
            }
        }
    }

    /// # Safety
    ///
    /// nvmet calls it, with a valid controller and room for `size` bytes.
    unsafe extern "C" fn host_traddr(
        ctrl: *mut bindings::nvmet_ctrl,
        traddr: *mut c_char,
        size: usize,
    ) -> isize {
        // SAFETY: The caller is nvmet.
        let this = unsafe { Self::get() };
        let controller = ControllerId::new(ctrl);
        match controller.and_then(|controller| T::host_address(&this.context, controller)) {
            Some(address) => {
                // SAFETY: By the safety requirements of this function.
                let room = unsafe { core::slice::from_raw_parts_mut(traddr.cast::<u8>(), size) };
                write(address, room) as isize
            }
            None => ENOTCONN.to_errno() as isize,
        }
    }

    /// # Safety
    ///
    /// None; the type is that of the callback.
    unsafe extern "C" fn get_mdts(_ctrl: *const bindings::nvmet_ctrl) -> u8 {
        T::LIMITS.mdts
    }

    /// # Safety
    ///
    /// None; the type is that of the callback.
    unsafe extern "C" fn get_max_queue_size(_ctrl: *const bindings::nvmet_ctrl) -> u16 {
        T::LIMITS.queue_size.max as u16
    }
}

/// Writes the IP address without the port, and zeroes behind it. Returns the length of the address.
fn write(address: Address, room: &mut [u8]) -> usize {
    let text = Message::<64>::new(format_args!("{}", address.ip()));
    room.fill(0);
    let Some((_nul, places)) = room.split_last_mut() else {
        return 0;
    };
    for (place, byte) in places.iter_mut().zip(text.as_str().bytes()) {
        *place = byte;
    }
    text.as_str().len().min(places.len())
}

#[pinned_drop]
impl<T: Transport> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariants, the table is registered.
        unsafe { bindings::nvmet_unregister_transport(self.ops.get()) };
        self.users.wait_for_none();
        // Works of nvmet may still use a controller of this transport. The thread that dropped the
        // last port may have been preempted before it left this module: waiting until every task
        // has slept waits for it.
        //
        // SAFETY: The functions may sleep.
        unsafe {
            bindings::flush_works();
            bindings::synchronize_rcu_tasks();
        }
        REGISTERED.store(ptr::null_mut(), Ordering::SeqCst);
    }
}
