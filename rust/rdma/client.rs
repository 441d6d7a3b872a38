// SPDX-License-Identifier: GPL-2.0

//! Clients: how a consumer learns of RDMA devices and of their removal.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_client`
//!
//! The core calls `add` for every device there is and every one to come, and
//! `remove` before a device goes, clients that registered last first: a consumer
//! of the connection manager is told before the connection manager is. `remove`
//! may not return while anything of the device is in use, and here it does not:
//! it refuses new uses, tells the client, and waits for the last
//! [`DeviceRef`] to be dropped.
//!
//! What happens to a device is told by [`Client::event`]. Of the callbacks for one
//! device, [`Client::added`] begins before all others, and [`Client::removing`]
//! when no other runs or ever will.
//!
//! One that only looks at devices as they come:
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

pub use event::Event;

use super::device::{
    Device,
    DeviceRef,
    DeviceUsage, //
};
use crate::{
    bindings,
    memory, //
};
use core::{
    ffi::c_void,
    mem::MaybeUninit,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        global_lock,
        Arc,
        Mutex, //
    },
    types::Opaque,
};

/// A consumer of RDMA devices.
pub trait Client: Sized + 'static {
    /// The client's name; must be unique among the clients of this crate.
    const NAME: &'static CStr;

    /// What the callbacks work on.
    type Context: Send + Sync;

    /// A device has appeared. To use it beyond this call, clone `device`, whose use
    /// is counted. Process context, may sleep.
    fn added(_context: &Self::Context, _device: &DeviceRef) {}

    /// Something has happened to `device`. May be called for the first time while
    /// [`added`](Self::added) runs, so that nothing which happens after that has
    /// looked goes unseen; and from several threads at once.
    ///
    /// Process context, but called with locks of the core held, among them the one
    /// that the removal of the device takes, and for [`Event::GidChange`] the one
    /// under which the GID table changes. What may be called in any context, such
    /// as reading that table, is fine here; for what may sleep, queue work.
    fn event(_context: &Self::Context, _device: &DeviceRef, _event: Event) {}

    /// `device` has got another name. Process context, may sleep, but with locks of
    /// the core held, which the coming and going of devices takes.
    fn renamed(_context: &Self::Context, _device: &DeviceRef) {}

    /// `device` is to go: make every holder of a
    /// [`DeviceRef`] of it drop it soon. Need not wait
    /// for them, the caller does. New references are refused from here on.
    /// Process context, may sleep.
    fn removing(context: &Self::Context, device: &Device);
}

/// A registered client; dropping it unregisters, which removes every device
/// from it first and so waits for all uses of them.
///
/// # Invariants
///
/// While registered, `CLIENTS` has an entry of `C::NAME` with the address of
/// this object, which is pinned.
#[pin_data(PinnedDrop)]
pub struct Registration<C: Client> {
    #[pin]
    client: Opaque<bindings::ib_client>,
    #[pin]
    devices: Mutex<KVec<Arc<DeviceUsage>>>,
    context: C::Context,
}

// SAFETY: The client structure belongs to the core; the rest is `Sync`.
unsafe impl<C: Client> Send for Registration<C> {}
// SAFETY: As above.
unsafe impl<C: Client> Sync for Registration<C> {}

/// What a registration has for each device.
///
/// # Invariants
///
/// From the end of [`Attachment::attach`] to [`Attachment::detach`], `handler` is
/// registered with the device of `usage`, and is pinned.
#[pin_data]
struct Attachment<C: Client> {
    #[pin]
    handler: Opaque<bindings::ib_event_handler>,
    usage: Arc<DeviceUsage>,
    registration: NonNull<Registration<C>>,
}

impl<C: Client> Attachment<C> {
    /// Starts to hear of events, with memory for the attachment. May sleep.
    ///
    /// # Safety
    ///
    /// `raw` must be the device of `usage`, and stay registered, and
    /// `registration` alive, until [`Attachment::detach`] has returned.
    unsafe fn attach(
        memory: KBox<MaybeUninit<Self>>,
        raw: NonNull<bindings::ib_device>,
        usage: Arc<DeviceUsage>,
        registration: NonNull<Registration<C>>,
    ) -> Pin<KBox<Self>> {
        let Ok(attachment) = memory.write_pin_init(pin_init!(Self {
            handler <- Opaque::ffi_init(|handler: *mut bindings::ib_event_handler| {
                // SAFETY: `handler` is the memory of the field to be written.
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
        // INVARIANT: Registered here, and pinned.
        // SAFETY: The handler was written above; its device is registered.
        unsafe { bindings::ib_register_event_handler(attachment.handler.get()) };
        attachment
    }

    /// Ends the hearing of events: when this returns, the callback does not run, and
    /// will not. Sleeps.
    fn detach(self: Pin<KBox<Self>>) -> Arc<DeviceUsage> {
        // SAFETY: By the type invariant. Takes the lock that callbacks run under.
        unsafe { bindings::ib_unregister_event_handler(self.handler.get()) };
        self.usage.clone()
    }

    fn registration(&self) -> &Registration<C> {
        // SAFETY: By the contract of `attach`.
        unsafe { self.registration.as_ref() }
    }

    /// # Safety
    ///
    /// Called by the core with the handler of an `Attachment<C>` that is attached,
    /// and an event of its device.
    unsafe extern "C" fn event_callback(
        handler: *mut bindings::ib_event_handler,
        event: *mut bindings::ib_event,
    ) {
        // SAFETY: By the contract; the field is transparent.
        let (attachment, event) = unsafe {
            (
                &*kernel::container_of!(Opaque::cast_from(handler), Self, handler),
                Event::from_raw(&*event),
            )
        };
        // There is one: a removal begins after `detach`.
        if let Some(device) = attachment.usage.acquire() {
            C::event(&attachment.registration().context, &device, event);
        }
    }
}

/// A client that is registered, by name, because `add` is told the device only.
struct Entry {
    name: &'static CStr,
    registration: *const c_void,
}

// SAFETY: The pointer is to a `Registration`, which is `Sync`.
unsafe impl Send for Entry {}

global_lock! {
    // SAFETY: Initialised by `init` below, before any client can register.
    unsafe(uninit) static CLIENTS: Mutex<KVec<Entry>> = KVec::new();
}

/// Makes the global state of this file; called once, when the module loads.
pub(crate) fn init() {
    // SAFETY: Called exactly once, by the crate's module init.
    unsafe { CLIENTS.init() };
}

impl<C: Client> Registration<C> {
    /// Registers the client, which calls [`Client::added`] for every device there is.
    /// May sleep.
    ///
    /// # Errors
    ///
    /// `EEXIST` for a name in use, `ENOMEM`, or what the core answers.
    pub fn new(context: C::Context) -> impl PinInit<Self, Error> {
        try_pin_init!(&this in Self {
            client <- Opaque::ffi_init(|client: *mut bindings::ib_client| {
                // SAFETY: `client` is the memory of the field to be written.
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
                // INVARIANT: Entered before the core can call back.
                Self::enter(this.as_ptr().cast())?;
                // SAFETY: `this.client` was written above and is pinned until unregistered.
                let result = to_result(unsafe {
                    bindings::ib_register_client((*this.as_ptr()).client.get())
                });
                if result.is_err() {
                    Self::leave();
                }
                result?
            },
        }? Error)
    }

    /// The context given at registration.
    pub fn context(&self) -> &C::Context {
        &self.context
    }

    /// A use of `device`, or `None` if it is being removed or is not this client's.
    pub fn acquire(&self, device: &Device) -> Option<DeviceRef> {
        let devices = self.devices.lock();
        devices.iter().find(|p| p.is(device.as_raw()))?.acquire()
    }

    fn enter(registration: *const c_void) -> Result {
        let mut clients = CLIENTS.lock();
        if clients.iter().any(|entry| *entry.name == *C::NAME) {
            return Err(EEXIST);
        }
        clients.push(
            Entry {
                name: C::NAME,
                registration,
            },
            GFP_KERNEL,
        )?;
        Ok(())
    }

    fn leave() {
        let mut clients = CLIENTS.lock();
        clients.retain(|entry| *entry.name != *C::NAME);
        if clients.is_empty() {
            // A static is not dropped when the module goes, and so would keep its memory.
            *clients = KVec::new();
        }
    }

    /// # Safety
    ///
    /// Called by the core with a device that it registers, while the client is
    /// registered.
    unsafe extern "C" fn add_callback(raw: *mut bindings::ib_device) -> kernel::ffi::c_int {
        let found = CLIENTS
            .lock()
            .iter()
            .find(|entry| *entry.name == *C::NAME)
            .map(|entry| entry.registration.cast::<Self>());
        let (Some(registration), Some(raw)) = (found, NonNull::new(raw)) else {
            return ENODEV.to_errno();
        };
        // SAFETY: By the type invariant, the entry is the address of a pinned
        // registration; unregistering waits for this callback.
        let registration = unsafe { &*registration };
        match registration.add(raw) {
            Ok(()) => 0,
            Err(error) => error.to_errno(),
        }
    }

    fn add(&self, raw: NonNull<bindings::ib_device>) -> Result {
        // SAFETY: The core keeps the device registered until `remove_callback`,
        // which calls `DeviceUsage::remove`, has returned.
        let usage = unsafe { DeviceUsage::new(raw)? };
        let device = usage.acquire().ok_or(ENODEV)?;
        let client_data = self.client.get();
        let memory = KBox::new_uninit(GFP_KERNEL)?;
        // Ahead of the first callback, which may ask for it. From here on it may be in use,
        // so nothing may fail: of a device that was not added, no removal would be told.
        // The lock is also taken by who has to make a connection for I/O that waits.
        memory::without_io(|| self.devices.lock().push(usage.clone(), GFP_KERNEL))?;
        // SAFETY: The device is that of `usage`, and `remove_callback` detaches;
        // until that has returned, the registration is alive.
        let attachment = unsafe { Attachment::attach(memory, raw, usage, self.into()) };
        // SAFETY: The device is registered, and so is the client. Nobody moves what
        // is in the box, `remove_callback` takes it back.
        unsafe {
            let attachment = KBox::into_raw(Pin::into_inner_unchecked(attachment));
            bindings::ib_set_client_data(raw.as_ptr(), client_data, attachment.cast());
        }
        C::added(&self.context, &device);
        Ok(())
    }

    /// Forgets a device: it cannot be acquired any more.
    fn forget(&self, raw: *mut bindings::ib_device) -> Option<Arc<DeviceUsage>> {
        let mut devices = self.devices.lock();
        let position = devices.iter().position(|p| p.is(raw))?;
        devices.remove(position).ok()
    }

    /// # Safety
    ///
    /// Called by the core with a device for which `add_callback` has succeeded, and
    /// the client data set by it; not while or after `remove_callback` is called.
    unsafe extern "C" fn rename_callback(_raw: *mut bindings::ib_device, data: *mut c_void) {
        let Some(attachment) = NonNull::new(data.cast::<Attachment<C>>()) else {
            return;
        };
        // SAFETY: By the contract, the data is the attachment.
        let attachment = unsafe { attachment.as_ref() };
        // There is one: the removal has not begun.
        if let Some(device) = attachment.usage.acquire() {
            C::renamed(&attachment.registration().context, &device);
        }
    }

    /// # Safety
    ///
    /// Called by the core, once, with a device for which `add_callback` has
    /// succeeded, and the client data set by it.
    unsafe extern "C" fn remove_callback(raw: *mut bindings::ib_device, data: *mut c_void) {
        if data.is_null() {
            return;
        }
        // SAFETY: By the contract, the data is the box that `add` has given up, which
        // was pinned.
        let attachment =
            unsafe { Pin::new_unchecked(KBox::from_raw(data.cast::<Attachment<C>>())) };
        let registration = attachment.registration;
        // SAFETY: The registration is alive until unregistered, and unregistering
        // waits for this callback.
        let registration = unsafe { registration.as_ref() };
        let usage = attachment.detach();
        registration.forget(raw);
        usage.remove(|device| C::removing(&registration.context, device));
    }
}

#[pinned_drop]
impl<C: Client> PinnedDrop for Registration<C> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The client was registered by `new`; this returns when every
        // device has been removed from it and no callback runs any more.
        unsafe { bindings::ib_unregister_client(self.client.get()) };
        Self::leave();
    }
}
