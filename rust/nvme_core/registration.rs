// SPDX-License-Identifier: GPL-2.0

//! Registration of a transport.

use crate::{
    bindings,
    controller::Controller,
    controller_list::ControllerList,
    options::Options,
    stock_driver::StockDriver,
    transport::Transport,
    works::{
        self,
        CtrlOps, //
    }, //
};
use core::{
    marker::PhantomData,
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
use rrdma::errno;

/// Size of the name of a transport, with the NUL at its end.
const NAME_SIZE: usize = 16;

/// Options of `/dev/nvme-fabrics` that transports of this crate support.
const OPTIONS: u32 = bindings::NVMF_OPT_TRSVCID
    | bindings::NVMF_OPT_RECONNECT_DELAY
    | bindings::NVMF_OPT_HOST_TRADDR
    | bindings::NVMF_OPT_CTRL_LOSS_TMO
    | bindings::NVMF_OPT_NR_WRITE_QUEUES
    | bindings::NVMF_OPT_NR_POLL_QUEUES
    | bindings::NVMF_OPT_TOS;

/// The registration of this module: nvme-fabrics passes no pointer to `create_ctrl`.
///
/// It is null, or points to the [`Registration<T>`] whose `create_ctrl` nvme-fabrics may call.
static REGISTERED: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The controllers of a transport.
pub struct Controllers<T> {
    list: Arc<ControllerList>,
    _transport: PhantomData<fn(T)>,
}

impl<T: Transport> Controllers<T> {
    /// Creates an empty set, for a [`Registration`]. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new() -> Result<Self> {
        Ok(Self {
            list: ControllerList::new()?,
            _transport: PhantomData,
        })
    }

    /// Deletes the controllers that `test` selects, and waits for deletions in progress. A
    /// controller that is being created is deleted when it has been. Sleeps. C:
    /// `nvme_delete_ctrl()`.
    pub fn delete(&self, test: impl Fn(&T) -> bool) {
        self.any(|controller| {
            if test(&controller.transport) {
                controller.doomed.set(true);
                if controller.created.get() {
                    // SAFETY: The controller is initialised.
                    unsafe { bindings::nvme_delete_ctrl(controller.as_raw()) };
                }
            }
            false
        });
        // SAFETY: The function has no requirements.
        unsafe { bindings::flush_delete_wq() };
    }

    /// Returns whether a controller has the same host, subsystem and addresses.
    fn has_duplicate(&self, options: &Options) -> bool {
        self.any(|controller| {
            let (ctrl, options) = (controller.as_raw(), options.as_raw());
            // SAFETY: A created controller is initialised, and its options belong to it.
            controller.created.get() && unsafe { bindings::nvmf_ip_options_match(ctrl, options) }
        })
    }

    fn any(&self, mut test: impl FnMut(&Controller<T>) -> bool) -> bool {
        self.list.any(|entry| {
            // SAFETY: All controllers in the list are of this transport: only `Registration<T>`
            // adds them. They are not freed while it is locked.
            test(unsafe { Controller::from_raw(entry.0.as_ptr()) })
        })
    }
}

impl<T> Clone for Controllers<T> {
    fn clone(&self) -> Self {
        Self {
            list: self.list.clone(),
            _transport: PhantomData,
        }
    }
}

/// A registered transport. Dropping it deletes its controllers, and waits until they are freed.
///
/// # Invariants
///
/// `ops` is registered, and `REGISTERED` points to this. `ctrl_ops` outlives the controllers.
#[pin_data(PinnedDrop)]
pub struct Registration<T: Transport> {
    #[pin]
    ops: Opaque<bindings::nvmf_transport_ops>,
    #[pin]
    ctrl_ops: Opaque<bindings::nvme_ctrl_ops>,
    /// The name, with a NUL at the end.
    name: [u8; NAME_SIZE],
    controllers: Controllers<T>,
    context: T::Context,
    #[pin]
    stock_driver: StockDriver,
}

// SAFETY: nvme-fabrics synchronises its use of `ops`; `ctrl_ops` does not change. The context is
// `Send`.
unsafe impl<T: Transport> Send for Registration<T> {}

// SAFETY: As for `Send`; the context is `Sync`.
unsafe impl<T: Transport> Sync for Registration<T> {}

impl<T: Transport> Registration<T> {
    /// Registers a transport under a name, which user space passes as `transport=NAME`. Sleeps. C:
    /// `nvmf_register_transport()`.
    ///
    /// nvme-fabrics does not look for duplicates: of two transports with a name, the first serves.
    /// The kernel log tells which, if the other one is the kernel's.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a name that is too long; `EBUSY` if the module has registered a transport
    /// already; `ENOMEM`.
    pub fn new<'a>(
        name: &'a str,
        module: &'static ThisModule,
        controllers: Controllers<T>,
        context: T::Context,
    ) -> impl PinInit<Self, Error> + use<'a, T> {
        try_pin_init!(&this in Self {
            stock_driver <- StockDriver::watch(name, module),
            name: terminated(name)?,
            ops <- Opaque::ffi_init(|ops: *mut bindings::nvmf_transport_ops| {
                // SAFETY: `ffi_init` passes a pointer that is valid for writes.
                unsafe {
                    ops.write(bindings::nvmf_transport_ops {
                        module: module.as_ptr(),
                        name: name_of(this),
                        required_opts: bindings::NVMF_OPT_TRADDR as c_int,
                        allowed_opts: OPTIONS as c_int,
                        create_ctrl: Some(Self::create_ctrl),
                        ..pin_init::zeroed()
                    })
                }
            }),
            ctrl_ops <- Opaque::ffi_init(|ops: *mut bindings::nvme_ctrl_ops| {
                // SAFETY: `ffi_init` passes a pointer that is valid for writes.
                unsafe { ops.write(CtrlOps::<T>::table(name_of(this), module)) }
            }),
            controllers,
            context,
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
                    bindings::nvmf_register_transport((*this.as_ptr()).ops.get())
                });
                if result.is_err() {
                    REGISTERED.store(ptr::null_mut(), Ordering::SeqCst);
                }
                result?
            },
        }? Error)
    }

    /// # Safety
    ///
    /// nvme-fabrics calls it, with the options of a controller of this transport. It frees them if
    /// this fails.
    unsafe extern "C" fn create_ctrl(
        device: *mut bindings::device,
        options: *mut bindings::nvmf_ctrl_options,
    ) -> *mut bindings::nvme_ctrl {
        // SAFETY: nvme-fabrics calls this only while the transport is registered, see
        // `REGISTERED`. It holds a reference to the module, whose exit unregisters the transport.
        let this = unsafe { &*REGISTERED.load(Ordering::SeqCst).cast::<Self>() };
        let Some(options) = NonNull::new(options) else {
            return EINVAL.to_ptr();
        };
        // SAFETY: By the safety requirements of this function.
        let created = unsafe { this.create(device, options) };
        created.unwrap_or_else(|error| error.to_ptr())
    }

    /// # Safety
    ///
    /// As for [`create_ctrl`](Self::create_ctrl).
    unsafe fn create(
        &self,
        device: *mut bindings::device,
        options: NonNull<bindings::nvmf_ctrl_options>,
    ) -> Result<*mut bindings::nvme_ctrl> {
        // SAFETY: By the safety requirements of this function, the options are those of a new
        // controller, which is freed before they are.
        let controller = unsafe {
            let list = self.controllers.list.clone();
            Controller::<T>::new(&self.context, options, list, CtrlOps::<T>::works())?
        };
        // SAFETY: As above.
        let duplicates_allowed = unsafe { (*options.as_ptr()).duplicate_connect };
        if !duplicates_allowed && self.controllers.has_duplicate(&controller.options) {
            return Err(errno::EALREADY);
        }
        // SAFETY: By the safety requirements of this function and the type invariants.
        unsafe { works::create(device, self.ctrl_ops.get(), controller) }
    }
}

/// Copies a name, and ends it with a NUL.
fn terminated(name: &str) -> Result<[u8; NAME_SIZE]> {
    let mut terminated = [0; NAME_SIZE];
    let place = terminated
        .split_last_mut()
        .and_then(|(_nul, place)| place.get_mut(..name.len()));
    place.ok_or(EINVAL)?.copy_from_slice(name.as_bytes());
    Ok(terminated)
}

/// Returns the name of a registration, for C.
fn name_of<T: Transport>(this: NonNull<Registration<T>>) -> *const c_char {
    // SAFETY: The field is within the allocation of `this`.
    unsafe { (&raw const (*this.as_ptr()).name).cast() }
}

#[pinned_drop]
impl<T: Transport> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariants, the table is registered.
        unsafe { bindings::nvmf_unregister_transport(self.ops.get()) };
        self.controllers.delete(|_| true);
        self.controllers.list.wait_until_freed();
        REGISTERED.store(ptr::null_mut(), Ordering::SeqCst);
        // The thread that freed the last controller may have been preempted before it left this
        // module. Waiting until every task has slept waits for it.
        //
        // SAFETY: The function may sleep.
        unsafe { bindings::synchronize_rcu_tasks() };
    }
}
