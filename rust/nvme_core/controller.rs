// SPDX-License-Identifier: GPL-2.0

//! Controllers.
//!
//! C header: `drivers/nvme/host/nvme.h`, `struct nvme_ctrl`

use crate::{
    bindings,
    controller_list::ControllerList,
    ctrl_loss::{
        CtrlLossTmo,
        LossTime, //
    },
    hw_queue::HwQueue,
    options::{
        Options,
        RequestedQueues,
        KINDS, //
    },
    transport::{
        ConnectParams,
        Transport, //
    },
    weak_controller::{
        is_deletion,
        WeakController, //
    },
};
use core::{
    cell::UnsafeCell,
    ops::Range,
    ptr::NonNull, //
};
use kernel::{
    device::Device,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};
use rrdma::sync::RelaxedBool;

/// Functions of a controller's work items.
pub(crate) struct WorkFns {
    pub(crate) reset: bindings::work_func_t,
    pub(crate) recovery: bindings::work_func_t,
    pub(crate) abort: bindings::work_func_t,
    pub(crate) reconnect: bindings::work_func_t,
}

/// A controller: the structure of nvme-core, with what its transport needs.
///
/// # Invariants
///
/// - `ctrl` is zeroed, or initialised by `nvme_init_ctrl()`. From then on nvme-core owns this
///   structure, and frees it by `free_ctrl`.
/// - A tag set is in use from its allocation by nvme-core until its removal by nvme-core.
/// - The work items are initialised.
/// - Only one thread at a time changes the numbers of queues, and allocates or removes tag sets: the
///   thread that creates the controller, then a work item. The state of the controller allows one
///   work item to do so. Any thread may disconnect a queue.
#[pin_data]
pub(crate) struct Controller<T: Transport> {
    #[pin]
    ctrl: Opaque<bindings::nvme_ctrl>,
    #[pin]
    pub(crate) admin_tag_set: Opaque<bindings::blk_mq_tag_set>,
    #[pin]
    pub(crate) io_tag_set: Opaque<bindings::blk_mq_tag_set>,
    #[pin]
    pub(crate) recovery_work: Opaque<bindings::work_struct>,
    /// Disconnects the queues, for a sequence that waits for a command.
    #[pin]
    pub(crate) abort_work: Opaque<bindings::work_struct>,
    #[pin]
    pub(crate) reconnect_work: Opaque<bindings::delayed_work>,
    /// In the list of those that wait for changes of the state, from the creation on.
    #[pin]
    pub(crate) state_watch: Opaque<bindings::wait_queue_entry>,
    /// Numbers of I/O queues that the latest connect asked for: those of the options, for the processors that were
    /// online.
    pub(crate) requested_queues: UnsafeCell<RequestedQueues>,
    pub(crate) lost_at: LossTime,
    /// Numbers of I/O queues of each kind that the target grants.
    pub(crate) io_queues: UnsafeCell<[u32; KINDS]>,
    /// The admin queue, then the I/O queues.
    pub(crate) queues: KVec<HwQueue<T>>,
    pub(crate) options: Options,
    pub(crate) list: Arc<ControllerList>,
    pub(crate) weak: Arc<WeakController>,
    /// The creation has succeeded: the options belong to the controller, and others may delete it.
    pub(crate) created: RelaxedBool,
    /// To be deleted when the creation has succeeded.
    pub(crate) doomed: RelaxedBool,
    pub(crate) transport: T,
}

impl<T: Transport> Controller<T> {
    /// Allocates a controller that nvme-core does not know yet. Sleeps.
    ///
    /// # Errors
    ///
    /// Those of the transport; `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The options stay valid as long as the controller. `fns` are functions for the work items of
    /// a `Controller<T>`.
    pub(crate) unsafe fn new(
        context: &T::Context,
        options: NonNull<bindings::nvmf_ctrl_options>,
        list: Arc<ControllerList>,
        fns: WorkFns,
    ) -> Result<Pin<KBox<Self>>> {
        // SAFETY: By the safety requirements of this function.
        let options = unsafe { Options::from_raw(options) };
        options.set_default_port(T::DEFAULT_PORT)?;
        // SAFETY: The function has no requirements.
        options.limit_queues(unsafe { bindings::possible_cpus() });
        let weak = WeakController::new()?;
        let transport = T::new(context, &options, weak.clone())?;
        KBox::try_pin_init(
            try_pin_init!(&this in Self {
                ctrl <- zeroed(),
                admin_tag_set <- zeroed(),
                io_tag_set <- zeroed(),
                recovery_work <- zeroed(),
                abort_work <- zeroed(),
                reconnect_work <- zeroed(),
                state_watch <- zeroed(),
                requested_queues: UnsafeCell::new(RequestedQueues::default()),
                lost_at: LossTime::new(),
                io_queues: UnsafeCell::new([0; KINDS]),
                queues: Self::new_queues(&transport, &options, Self::ctrl_of(this))?,
                options,
                list,
                weak,
                created: RelaxedBool::new(false),
                doomed: RelaxedBool::new(false),
                transport,
                _: {
                    // SAFETY: The fields were zeroed above, and are pinned.
                    unsafe { Self::prepare(this, fns) };
                },
            }? Error),
            GFP_KERNEL,
        )
    }

    fn new_queues(
        transport: &T,
        options: &Options,
        ctrl: NonNull<bindings::nvme_ctrl>,
    ) -> Result<KVec<HwQueue<T>>> {
        let count = options.queues().total().saturating_add(1);
        let mut queues = KVec::with_capacity(count.try_into()?, GFP_KERNEL)?;
        for qid in 0..u16::try_from(count)? {
            // SAFETY: The queue becomes part of the controller.
            let queue = unsafe { HwQueue::new(ctrl, qid, transport.new_queue(qid)?) };
            queues.push(queue, GFP_KERNEL)?;
        }
        Ok(queues)
    }

    /// Sets what nvme-core expects of a transport before `nvme_init_ctrl()`.
    ///
    /// # Safety
    ///
    /// All fields of `this` are initialised, and nobody else uses them.
    unsafe fn prepare(this: NonNull<Self>, fns: WorkFns) {
        // SAFETY: By the safety requirements of this function, all fields are initialised.
        unsafe {
            let this = this.as_ref();
            let ctrl = this.as_raw();
            let options = this.options.as_raw();

            (*ctrl).opts = options;
            (*ctrl).queue_count = this.queues.len() as u32;
            // nvme-fabrics limits the size of queues to 1024.
            (*ctrl).sqsize = (*options).queue_size.saturating_sub(1) as u16;
            (*ctrl).kato = (*options).kato;
            bindings::init_works(
                &raw mut (*ctrl).reset_work,
                fns.reset,
                this.recovery_work.get(),
                fns.recovery,
                this.abort_work.get(),
                fns.abort,
                this.reconnect_work.get(),
                fns.reconnect,
            );
        }
    }

    /// Returns the structure of nvme-core in a controller.
    fn ctrl_of(this: NonNull<Self>) -> NonNull<bindings::nvme_ctrl> {
        // SAFETY: The field is within the allocation of `this`, so its address is not null.
        unsafe { NonNull::new_unchecked(Opaque::cast_into(&raw const (*this.as_ptr()).ctrl)) }
    }

    /// Returns the controller that a structure of nvme-core is part of.
    ///
    /// # Safety
    ///
    /// `ctrl` is the field of a `Controller<T>` that is not freed for `'a`.
    #[inline]
    pub(crate) unsafe fn from_raw<'a>(ctrl: *mut bindings::nvme_ctrl) -> &'a Self {
        // SAFETY: By the safety requirements of this function.
        unsafe { &*kernel::container_of!(Opaque::cast_from(ctrl), Self, ctrl) }
    }

    /// Returns the structure of nvme-core, for C.
    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::nvme_ctrl {
        self.ctrl.get()
    }

    /// As [`as_raw`](Self::as_raw); it is not null.
    pub(crate) fn as_non_null(&self) -> NonNull<bindings::nvme_ctrl> {
        Self::ctrl_of(self.into())
    }

    /// Returns the device of the controller, for messages. Only after `nvme_init_ctrl()`.
    pub(crate) fn device(&self) -> &Device {
        // SAFETY: `nvme_init_ctrl()` sets the device, which lives as long as the controller.
        unsafe { Device::from_raw((*self.as_raw()).device) }
    }

    /// Returns the state.
    pub(crate) fn state(&self) -> bindings::nvme_ctrl_state {
        // SAFETY: By the type invariants, the controller is valid. Any context.
        unsafe { bindings::ctrl_state(self.as_raw()) }
    }

    /// Returns whether the controller is being deleted.
    pub(crate) fn is_deleted(&self) -> bool {
        is_deletion(self.state())
    }

    /// Returns the `ctrl_loss_tmo` of the controller. Any context.
    pub(crate) fn ctrl_loss_tmo(&self) -> CtrlLossTmo<'_> {
        CtrlLossTmo::new(&self.lost_at, &self.options)
    }

    /// Returns the admin queue.
    pub(crate) fn admin_queue(&self) -> Option<&HwQueue<T>> {
        self.queues.first()
    }

    /// Returns queues by their identifiers.
    pub(crate) fn queues(&self, qids: Range<u32>) -> impl Iterator<Item = &HwQueue<T>> + Clone {
        let queues = self.queues.iter();
        queues.filter(move |queue| qids.contains(&queue.qid.into()))
    }

    /// Returns the parameters for connecting queues of `entries` entries.
    pub(crate) fn connect_params(&self, entries: u16, requests: u16) -> ConnectParams<'_> {
        let ctrl = self.as_raw();
        // SAFETY: By the type invariants, only the calling thread changes the numbers.
        let io_queues = unsafe { *self.io_queues.get() };
        let interrupt = io_queues
            .get(..bindings::hctx_type_HCTX_TYPE_POLL as usize)
            .unwrap_or_default()
            .iter()
            .fold(1u32, |sum, count| sum.saturating_add(*count));
        // SAFETY: By the type invariants, only the calling thread changes these fields.
        unsafe {
            ConnectParams {
                association: self.weak.association(),
                instance: (*ctrl).instance,
                controller_id: (*ctrl).cntlid,
                ctrl_loss_tmo: self.ctrl_loss_tmo(),
                entries,
                requests,
                capsule_size: (*ctrl).ioccsz,
                in_capsule_data_offset: (*ctrl).icdoff,
                sgl_support: (*ctrl).sgls,
                first_polled: u16::try_from(interrupt).unwrap_or(u16::MAX),
            }
        }
    }

    /// Frees a controller.
    ///
    /// # Safety
    ///
    /// `this` was leaked by the creation, and nobody uses it any more.
    pub(crate) unsafe fn free(this: *mut Self) {
        // SAFETY: By the safety requirements of this function.
        let this = unsafe { Pin::new_unchecked(KBox::from_raw(this)) };
        let list = this.list.clone();

        list.free(this.as_non_null(), || {
            this.weak.unbind();
            // SAFETY: The creation has added the entry.
            unsafe { bindings::unwatch_state(this.as_raw(), this.state_watch.get()) };
            // SAFETY: The work items are initialised. None can be queued any more: the controller
            // has been deleted, or was never live, and the reference of the queues is empty.
            unsafe {
                bindings::cancel_work_sync(this.recovery_work.get());
                bindings::cancel_work_sync(this.abort_work.get());
                bindings::cancel_delayed_work_sync(this.reconnect_work.get());
                bindings::cancel_core_works(this.as_raw());
            }
            if this.created.get() {
                // SAFETY: The options belong to the controller, and `this` is their last user.
                unsafe { bindings::nvmf_free_options(this.options.as_raw()) };
            }
            drop(this);
        });
    }
}

/// Zeroes a structure of C.
fn zeroed<S>() -> impl PinInit<Opaque<S>> {
    Opaque::ffi_init(|slot: *mut S| {
        // SAFETY: `ffi_init` passes a `slot` that is valid for writes.
        unsafe { slot.write_bytes(0, 1) }
    })
}
