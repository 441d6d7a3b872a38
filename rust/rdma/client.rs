// SPDX-License-Identifier: GPL-2.0

//! Clients: notification of RDMA devices, of their events and of their removal.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_client`
//!
//! The core calls `add` for each device, and `remove` before it unregisters a device. Clients that
//! registered last are called first, so a consumer of the connection manager is called before the
//! connection manager.
//!
//! `remove` must not return while the device is in use. Here, it refuses new references, calls
//! [`Client::removing`], wakes the owners of connections, and waits until the last [`DeviceRef`] is
//! dropped.
//!
//! [`Client::event`] reports events of a device. Of the callbacks for one device, [`Client::added`]
//! begins first. When [`Client::removing`] is called, no other callback runs or will run.
//!
//! A client that logs each device:
//!
//! ```ignore
//! // samples/device_info.rs
//! fn added(_: &Self, device: &DeviceRef) {
//!     pr_info!("{}: added\n", device.name());
//!     log_device(device);
//!     device.ports().for_each(log_port);
//! }
//! ```

mod event;

pub use event::{
    Event,
    EventKind, //
};

use super::device::{
    Device,
    DeviceRef,
    DeviceUsage, //
};
use crate::{
    bindings, memory,
    sync::{
        new_mutex,
        DropsLater,
        ModuleUse,
        SleepingDrop,
        UseKind, //
    },
};
use core::{
    ffi::c_void,
    mem::MaybeUninit,
    panic::Location,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    str::CStr,
    sync::{
        global_lock,
        Arc,
        Mutex, //
    },
    types::Opaque,
};

/// A consumer of RDMA devices (`struct ib_client`).
pub trait Client: Sized + 'static {
    /// The name of the client. Must be unique among the clients of this crate.
    const NAME: &'static CStr;

    /// Data of the client that the callbacks get.
    type Context: Send + Sync;

    /// Called when a device is added. To use the device after this call, clone `device`.
    ///
    /// Process context, may sleep; locks of the core are held.
    fn added(_context: &Self::Context, _device: &DeviceRef) {}

    /// Called for each event of `device`. Several threads may call it at once.
    ///
    /// May be called before [`added`](Self::added) has returned, so that no change goes unnoticed
    /// after `added` has read the state of the device.
    ///
    /// Process context, but locks of the core are held: the lock that the removal of the device
    /// takes and, for [`EventKind::GID_CHANGE`], the lock for changes of the GID table. Functions
    /// that may be called in any context are allowed, such as those that read the GID table. For a
    /// function that may sleep, queue work.
    fn event(_context: &Self::Context, _device: &DeviceRef, _event: Event) {}

    /// Called after `device` was renamed.
    ///
    /// Process context, may sleep. The core holds locks that adding and removing a device take.
    fn renamed(_context: &Self::Context, _device: &DeviceRef) {}

    /// Called before `device` is unregistered. Must make all holders of a [`DeviceRef`] of the
    /// device drop it soon, but need not wait for them: the caller does. No new reference can be
    /// acquired.
    ///
    /// A client that has only connections of the [connection manager](super::cm) on its devices needs
    /// none: after this call, the completion that was given to the connection is completed, and its
    /// steps fail with [`Cause::DeviceRemoved`](super::cm::Cause::DeviceRemoved). The owner of an
    /// established connection looks at [`DeviceRef::is_removing`] when it is woken.
    ///
    /// Process context, may sleep.
    fn removing(_context: &Self::Context, _device: &Device) {}
}

/// A registered client. Dropping it unregisters the client, which removes all devices from it
/// first. Sleeps until all references to the devices are dropped. In atomic context, a work item drops it, and its
/// context.
pub struct Registration<C: Client>(SleepingDrop<Pin<KBox<OwnedClient<C>>>>);

impl<C: Client> Registration<C> {
    /// Registers the client (`ib_register_client`). Calls [`Client::added`] for each device that
    /// exists. May sleep.
    ///
    /// # Errors
    ///
    /// `EEXIST` if the name is in use; `ENOMEM`; or the error of the core.
    #[track_caller]
    pub fn new(context: C::Context) -> Result<Self> {
        let module = ModuleUse::new(UseKind::RdmaClient, Location::caller())?;
        let registered = KBox::pin_init(OwnedClient::new(context, module), GFP_KERNEL)?;
        Ok(Self(SleepingDrop::new(registered)))
    }

    /// Returns the context that the client was registered with.
    pub fn context(&self) -> &C::Context {
        &self.0.context
    }

    /// Returns a reference to `device`; `None` if it is being removed or was not added to this
    /// client.
    pub fn acquire(&self, device: &Device) -> Option<DeviceRef> {
        let devices = self.0.devices.lock();
        devices.iter().find(|p| p.is(device.as_raw()))?.acquire()
    }
}

/// A client that is registered. Dropping this unregisters it, which sleeps.
///
/// # Invariants
///
/// While the client is registered, `CLIENTS` has an entry with the name `C::NAME` and the address
/// of this object, which is pinned.
#[pin_data(PinnedDrop)]
struct OwnedClient<C: Client> {
    #[pin]
    client: Opaque<bindings::ib_client>,
    #[pin]
    devices: Mutex<KVec<Arc<DeviceUsage>>>,
    context: C::Context,
    module: ModuleUse,
}

// SAFETY: The core synchronises its own access to `client`. The other fields are `Send`.
unsafe impl<C: Client> Send for OwnedClient<C> {}
// SAFETY: The core synchronises its own access to `client`. The other fields are `Sync`.
unsafe impl<C: Client> Sync for OwnedClient<C> {}

impl<C: Client> DropsLater for Pin<KBox<OwnedClient<C>>> {
    fn drop_later(self) {
        self.module.clone().drop_later("RDMA client", self);
    }
}

/// The event handler of a registration for one device (`struct ib_event_handler`).
///
/// # Invariants
///
/// From the end of [`Attachment::attach`] until [`Attachment::detach`], `handler` is pinned and
/// registered with the device of `usage`.
#[pin_data]
struct Attachment<C: Client> {
    #[pin]
    handler: Opaque<bindings::ib_event_handler>,
    usage: Arc<DeviceUsage>,
    registration: NonNull<OwnedClient<C>>,
}

impl<C: Client> Attachment<C> {
    /// Registers an event handler, which is placed in `memory`. May sleep.
    ///
    /// # Safety
    ///
    /// `raw` must be the device of `usage`. The device must stay registered, and `registration`
    /// alive, until [`Attachment::detach`] has returned.
    unsafe fn attach(
        memory: KBox<MaybeUninit<Self>>,
        raw: NonNull<bindings::ib_device>,
        usage: Arc<DeviceUsage>,
        registration: NonNull<OwnedClient<C>>,
    ) -> Pin<KBox<Self>> {
        let Ok(attachment) = memory.write_pin_init(pin_init!(Self {
            handler <- Opaque::ffi_init(|handler: *mut bindings::ib_event_handler| {
                // SAFETY: `handler` points to the field, which is valid for writes.
                unsafe {
                    handler.write(bindings::ib_event_handler {
                        device: raw.as_ptr(),
                        handler: Some(Self::event_callback),
                        ..pin_init::zeroed()
                    })
                }
            }),
            usage,
            registration,
        }));
        // INVARIANT: The attachment is pinned, and registered by the next statement.
        //
        // SAFETY: The handler was initialised above, and its device is registered.
        unsafe { bindings::ib_register_event_handler(attachment.handler.get()) };
        attachment
    }

    /// Unregisters the event handler. When this returns, the callback does not run and will not
    /// run. Sleeps.
    fn detach(self: Pin<KBox<Self>>) -> Arc<DeviceUsage> {
        // SAFETY: By the type invariant, the handler is registered. The call takes the lock that
        // callbacks hold.
        unsafe { bindings::ib_unregister_event_handler(self.handler.get()) };
        self.usage.clone()
    }

    fn registration(&self) -> &OwnedClient<C> {
        // SAFETY: By the safety requirements of `attach`, the registration is alive.
        unsafe { self.registration.as_ref() }
    }

    /// The core's callback for an event.
    ///
    /// # Safety
    ///
    /// `handler` must be that of an attached `Attachment<C>`, and `event` a valid event of its
    /// device.
    unsafe extern "C" fn event_callback(
        handler: *mut bindings::ib_event_handler,
        event: *mut bindings::ib_event,
    ) {
        // SAFETY: By the safety requirements, both pointers are valid, and `handler` is the field
        // of an `Attachment`. `Opaque` is a transparent wrapper.
        let (attachment, event) = unsafe {
            (
                &*kernel::container_of!(Opaque::cast_from(handler), Self, handler),
                Event::from_raw(&*event),
            )
        };
        // Never `None`: the removal begins after `detach`.
        if let Some(device) = attachment.usage.acquire() {
            C::event(&attachment.registration().context, &device, event);
        }
    }
}

/// A registered client. Found by its name, because `add` gets no pointer to the client.
struct Entry {
    name: &'static CStr,
    registration: *const c_void,
}

// SAFETY: `registration` points to an `OwnedClient`, which is `Sync`.
unsafe impl Send for Entry {}

global_lock! {
    // SAFETY: `init` initialises it before any client can register.
    unsafe(uninit) static CLIENTS: Mutex<KVec<Entry>> = KVec::new();
}

impl Entry {
    /// Adds the entry of a client. May sleep.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there is one of that name; `ENOMEM`.
    fn add(name: &'static CStr, registration: *const c_void) -> Result {
        let mut clients = CLIENTS.lock();
        if clients.iter().any(|entry| *entry.name == *name) {
            return Err(EEXIST);
        }
        clients.push(Self { name, registration }, GFP_KERNEL)?;
        Ok(())
    }

    /// Removes the entry of a client. May sleep.
    fn remove(name: &CStr) {
        let mut clients = CLIENTS.lock();
        clients.retain(|entry| *entry.name != *name);
        if clients.is_empty() {
            // A static is not dropped when the module is unloaded, so its memory is freed here.
            *clients = KVec::new();
        }
    }

    /// Returns the address of the registration of a client. May sleep.
    fn find(name: &CStr) -> Option<*const c_void> {
        let clients = CLIENTS.lock();
        let entry = clients.iter().find(|entry| *entry.name == *name)?;
        Some(entry.registration)
    }
}

/// Initialises the list of clients. Called once, when this module is loaded.
pub(crate) fn init() {
    // SAFETY: Called exactly once, from the init function of this module.
    unsafe { CLIENTS.init() };
}

impl<C: Client> OwnedClient<C> {
    /// Registers the client. May sleep.
    fn new(context: C::Context, module: ModuleUse) -> impl PinInit<Self, Error> {
        try_pin_init!(&this in Self {
            module,
            client <- Opaque::ffi_init(|client: *mut bindings::ib_client| {
                // SAFETY: `client` points to the field, which is valid for writes.
                unsafe {
                    client.write(bindings::ib_client {
                        name: C::NAME.as_char_ptr(),
                        add: Some(Self::add_callback),
                        remove: Some(Self::remove_callback),
                        rename: Some(Self::rename_callback),
                        ..pin_init::zeroed()
                    })
                }
            }),
            devices <- new_mutex!(KVec::new(), "rrdma::Registration"),
            context,
            _: {
                // INVARIANT: The entry is made before the core can call back.
                Entry::add(C::NAME, this.as_ptr().cast())?;
                // SAFETY: `client` was initialised above. It is pinned until `drop` unregisters it.
                let result = to_result(unsafe {
                    bindings::ib_register_client((*this.as_ptr()).client.get())
                });
                if result.is_err() {
                    Entry::remove(C::NAME);
                }
                result?
            },
        }? Error)
    }

    /// The core's callback for a new device.
    ///
    /// # Safety
    ///
    /// The client must be registered, and `raw` must be a device that the core registers.
    unsafe extern "C" fn add_callback(raw: *mut bindings::ib_device) -> kernel::ffi::c_int {
        let (Some(registration), Some(raw)) = (Entry::find(C::NAME), NonNull::new(raw)) else {
            return ENODEV.to_errno();
        };
        // SAFETY: By the type invariant, the entry has the address of a pinned registration.
        // Unregistering the client waits for this callback.
        let registration = unsafe { &*registration.cast::<Self>() };
        match registration.add(raw) {
            Ok(()) => 0,
            Err(error) => error.to_errno(),
        }
    }

    fn add(&self, raw: NonNull<bindings::ib_device>) -> Result {
        // SAFETY: The core keeps the device registered until `remove_callback` has returned, which
        // calls `DeviceUsage::remove`.
        let usage = unsafe { DeviceUsage::new(raw)? };
        let device = usage.acquire().ok_or(ENODEV)?;
        let client_data = self.client.get();
        let memory = KBox::new_uninit(GFP_KERNEL)?;
        // Added before the first callback, which may acquire the device. From here on the device
        // may be in use, so nothing may fail: the core does not call `remove` for a device whose
        // `add` failed.
        //
        // Allocated without I/O: a thread that reconnects for blocked I/O takes this lock, too.
        memory::without_io(|| self.devices.lock().push(usage.clone(), GFP_KERNEL))?;
        // SAFETY: `raw` is the device of `usage`. `remove_callback` detaches while the device is
        // registered and the registration alive.
        let attachment = unsafe { Attachment::attach(memory, raw, usage, self.into()) };
        // SAFETY: The device and the client are registered. The attachment stays pinned in its box,
        // until `remove_callback` takes the box back.
        unsafe {
            let attachment = KBox::into_raw(Pin::into_inner_unchecked(attachment));
            bindings::ib_set_client_data(raw.as_ptr(), client_data, attachment.cast());
        }
        C::added(&self.context, &device);
        Ok(())
    }

    /// Removes a device from the list, so that it can no longer be acquired.
    fn forget(&self, raw: *mut bindings::ib_device) -> Option<Arc<DeviceUsage>> {
        let mut devices = self.devices.lock();
        let position = devices.iter().position(|p| p.is(raw))?;
        devices.remove(position).ok()
    }

    /// The core's callback for a renamed device.
    ///
    /// # Safety
    ///
    /// `add_callback` must have succeeded for the device, and `data` must be the client data that
    /// it set. `remove_callback` must not have been called for the device.
    unsafe extern "C" fn rename_callback(_raw: *mut bindings::ib_device, data: *mut c_void) {
        let Some(attachment) = NonNull::new(data.cast::<Attachment<C>>()) else {
            return;
        };
        // SAFETY: By the safety requirements, `data` points to the attachment, if it is not null.
        let attachment = unsafe { attachment.as_ref() };
        // Never `None`: the removal has not begun.
        if let Some(device) = attachment.usage.acquire() {
            C::renamed(&attachment.registration().context, &device);
        }
    }

    /// The core's callback for the removal of a device.
    ///
    /// # Safety
    ///
    /// `add_callback` must have succeeded for the device, and `data` must be the client data that
    /// it set. Must be called once.
    unsafe extern "C" fn remove_callback(raw: *mut bindings::ib_device, data: *mut c_void) {
        if data.is_null() {
            return;
        }
        // SAFETY: By the safety requirements, `data` is the box that `add` gave up. Its content was
        // pinned.
        let attachment =
            unsafe { Pin::new_unchecked(KBox::from_raw(data.cast::<Attachment<C>>())) };
        let registration = attachment.registration;
        // SAFETY: Unregistering the client waits for this callback, so the registration is alive.
        let registration = unsafe { registration.as_ref() };
        let usage = attachment.detach();
        registration.forget(raw);
        usage.remove(|device| C::removing(&registration.context, device));
    }
}

#[pinned_drop]
impl<C: Client> PinnedDrop for OwnedClient<C> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `new` has registered the client. When this returns, all devices are removed from
        // the client and no callback runs.
        unsafe { bindings::ib_unregister_client(self.client.get()) };
        Entry::remove(C::NAME);
    }
}
