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

use super::device::{
    Device,
    DeviceRef,
    Presence, //
};
use crate::bindings;
use core::{
    ffi::c_void,
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

    /// A device has appeared. Process context, may sleep.
    fn added(_context: &Self::Context, _device: &Device) {}

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
    devices: Mutex<KVec<Arc<Presence>>>,
    context: C::Context,
}

// SAFETY: The client structure belongs to the core; the rest is `Sync`.
unsafe impl<C: Client> Send for Registration<C> {}
// SAFETY: As above.
unsafe impl<C: Client> Sync for Registration<C> {}

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
        CLIENTS.lock().retain(|entry| *entry.name != *C::NAME);
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
        // which calls `Presence::remove`, has returned.
        let presence = unsafe { Presence::new(raw)? };
        let client_data = self.client.get();
        self.devices.lock().push(presence, GFP_KERNEL)?;
        // SAFETY: The device is registered, and so is the client.
        unsafe {
            bindings::ib_set_client_data(
                raw.as_ptr(),
                client_data,
                core::ptr::from_ref(self).cast_mut().cast(),
            )
        };
        // SAFETY: The device is registered during this call.
        C::added(&self.context, unsafe { Device::from_raw(raw.as_ptr()) });
        Ok(())
    }

    /// # Safety
    ///
    /// Called by the core with a device for which `add_callback` was called, and
    /// the client data set by it, or NULL if it failed.
    unsafe extern "C" fn remove_callback(raw: *mut bindings::ib_device, data: *mut c_void) {
        let Some(registration) = NonNull::new(data.cast::<Self>()) else {
            return;
        };
        // SAFETY: `add` set the client data to the registration, which is alive
        // until unregistered, and unregistering waits for this callback.
        let registration = unsafe { registration.as_ref() };
        let presence = {
            let mut devices = registration.devices.lock();
            let position = devices.iter().position(|p| p.is(raw));
            position.and_then(|i| devices.remove(i).ok())
        };
        if let Some(presence) = presence {
            presence.remove(|device| C::removing(&registration.context, device));
        }
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
