// SPDX-License-Identifier: GPL-2.0

//! RDMA devices and counted use of them.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use crate::{
    bindings, new_irq_lock,
    sync::{
        IrqLock,
        TimedCompletion, //
    },
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc,
    types::Opaque, //
};

/// An RDMA device (`struct ib_device`), borrowed.
///
/// # Invariants
///
/// Wraps a registered `struct ib_device` for as long as the reference lives.
#[repr(transparent)]
pub struct Device(Opaque<bindings::ib_device>);

// SAFETY: What is read through `Device` is constant while the device is
// registered, and the verbs that take a device may be called from any thread.
unsafe impl Send for Device {}
// SAFETY: As above.
unsafe impl Sync for Device {}

/// What a consumer asks of a device before it plans queues (`struct
/// ib_device_attr`), all in the units of the verbs.
#[derive(Clone, Copy)]
pub struct Attributes {
    /// The node's GUID; not unique among soft devices that share a MAC address.
    pub node_guid: u64,
    /// Work requests one queue of a queue pair can hold.
    pub max_qp_wr: u32,
    /// Entries one completion queue can hold.
    pub max_cqe: u32,
    /// Scatter/gather entries of one send request.
    pub max_send_sge: u32,
    /// Scatter/gather entries of one receive request.
    pub max_recv_sge: u32,
    /// RDMA reads and atomics a queue pair can have outstanding as responder.
    pub max_qp_rd_atom: u32,
    /// Pages one fast registration can cover.
    pub max_fast_reg_page_list_len: u32,
    /// Completion vectors (interrupts) to spread completion queues over.
    pub completion_vectors: u32,
    /// Memory node the device is nearest to, or -1.
    pub numa_node: i32,
    /// Fast registration and invalidation by work request are supported.
    pub memory_management_extensions: bool,
}

impl Device {
    /// # Safety
    ///
    /// `raw` must be a registered device for as long as `'a`.
    pub(crate) unsafe fn from_raw<'a>(raw: *mut bindings::ib_device) -> &'a Self {
        // SAFETY: By the contract, and `Device` is a transparent wrapper.
        unsafe { &*raw.cast() }
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::ib_device {
        self.0.get()
    }

    /// The device's name, such as `rxe0`. A rename changes it, hence a copy.
    pub fn name(&self) -> Name {
        // SAFETY: `self` is a valid device by the type invariant; its name is NUL-terminated.
        let name = unsafe { CStr::from_char_ptr(bindings::ib_device_name(self.as_raw())) };
        Name::copy(name)
    }

    /// The device's limits and capabilities.
    pub fn attributes(&self) -> Attributes {
        let mut raw = bindings::rrdma_device_attributes::default();
        // SAFETY: `self` is a valid device by the type invariant, `raw` is writable.
        unsafe { bindings::device_attributes(self.as_raw(), &mut raw) };
        Attributes {
            node_guid: raw.node_guid,
            max_qp_wr: raw.max_qp_wr,
            max_cqe: raw.max_cqe,
            max_send_sge: raw.max_send_sge,
            max_recv_sge: raw.max_recv_sge,
            max_qp_rd_atom: raw.max_qp_rd_atom,
            max_fast_reg_page_list_len: raw.max_fast_reg_page_list_len,
            completion_vectors: raw.completion_vectors,
            numa_node: raw.numa_node,
            memory_management_extensions: raw.memory_management_extensions,
        }
    }

    /// Whether port `port` (counted from 1) is active.
    pub fn port_active(&self, port: u32) -> bool {
        // SAFETY: `self` is a valid device by the type invariant; the core checks the port.
        unsafe { bindings::ib_port_active(self.as_raw(), port) }
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

/// A copy of a device's name.
#[derive(Clone, Copy)]
pub struct Name {
    bytes: [u8; bindings::IB_DEVICE_NAME_MAX as usize],
    length: usize,
}

impl Name {
    fn copy(name: &CStr) -> Self {
        let mut bytes = [0; bindings::IB_DEVICE_NAME_MAX as usize];
        let mut length = 0;
        for (to, from) in bytes.iter_mut().zip(name.to_bytes()) {
            *to = *from;
            length += 1;
        }
        Self { bytes, length }
    }

    /// The name as text; empty should it not be UTF-8, which the core refuses.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl kernel::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many use a device, and whether it is going away.
struct Users {
    count: usize,
    removing: bool,
}

/// One device as one client sees it, from `add` to the end of `remove`.
///
/// # Invariants
///
/// `raw` is registered until [`Presence::remove`] has returned, which waits for
/// `users.count` to reach zero.
#[pin_data]
pub(crate) struct Presence {
    raw: NonNull<bindings::ib_device>,
    #[pin]
    users: IrqLock<Users>,
    #[pin]
    idle: TimedCompletion,
}

// SAFETY: `raw` is used under the rules of `Device`, which is `Send` and `Sync`.
unsafe impl Send for Presence {}
// SAFETY: As above.
unsafe impl Sync for Presence {}

impl Presence {
    /// # Safety
    ///
    /// `raw` must stay registered until [`Presence::remove`] has returned.
    pub(crate) unsafe fn new(raw: NonNull<bindings::ib_device>) -> Result<Arc<Self>> {
        Arc::pin_init(
            // INVARIANT: By the contract.
            pin_init!(Self {
                raw,
                users <- new_irq_lock!(Users { count: 0, removing: false }, "rrdma::Presence"),
                idle <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )
    }

    pub(crate) fn is(&self, raw: *mut bindings::ib_device) -> bool {
        self.raw.as_ptr() == raw
    }

    /// A use of the device, unless it is being removed.
    pub(crate) fn acquire(self: &Arc<Self>) -> Option<DeviceRef> {
        let mut users = self.users.lock();
        if users.removing {
            return None;
        }
        users.count = users.count.checked_add(1)?;
        Some(DeviceRef(self.clone()))
    }

    /// Refuses new uses; `tell` is called once, then the last use is awaited.
    pub(crate) fn remove(self: &Arc<Self>, tell: impl FnOnce(&Device)) {
        // The removal is a use of its own, so that `idle` fires after `tell`.
        let own = {
            let mut users = self.users.lock();
            users.removing = true;
            users.count = users.count.saturating_add(1);
            DeviceRef(self.clone())
        };
        tell(&own);
        drop(own);
        self.idle.wait();
    }
}

/// A counted use of a device: while one exists, the device stays registered.
///
/// Every verbs object holds one. Dropping the last one lets a removal of the
/// device that is waiting go on. May be cloned and dropped in any context.
///
/// # Invariants
///
/// Is counted in `users` of its `Presence`.
pub struct DeviceRef(Arc<Presence>);

impl DeviceRef {
    /// Whether a removal of the device waits for this reference, and others.
    pub fn is_removing(&self) -> bool {
        self.0.users.lock().removing
    }
}

impl core::ops::Deref for DeviceRef {
    type Target = Device;

    fn deref(&self) -> &Device {
        // SAFETY: By the invariants of `Presence` and `self`, the device is
        // registered while `self` lives.
        unsafe { Device::from_raw(self.0.raw.as_ptr()) }
    }
}

impl Clone for DeviceRef {
    fn clone(&self) -> Self {
        // A use that exists may beget others while the removal waits for all.
        let mut users = self.0.users.lock();
        users.count = users.count.saturating_add(1);
        // INVARIANT: Counted above.
        Self(self.0.clone())
    }
}

impl Drop for DeviceRef {
    fn drop(&mut self) {
        let mut users = self.0.users.lock();
        users.count = users.count.saturating_sub(1);
        if users.count == 0 && users.removing {
            self.0.idle.complete_all();
        }
    }
}
