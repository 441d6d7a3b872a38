// SPDX-License-Identifier: GPL-2.0

//! RDMA devices and counted use of them.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//!
//! Ports are counted from 1; a port has GIDs, of which a connection begins at one:
//!
//! ```ignore
//! // samples/common/port_gid.rs
//! let port = device.port(1).ok_or(ENODEV).step("port")?;
//! // ...
//! source: port.gid(gid_index).step("GID")?,
//! ```

mod attributes;
mod capabilities;
mod gid;
mod mtu;
mod name;
mod netdev;
mod pkey;
pub mod port;
mod statistics;
mod usage;

pub use attributes::{
    AtomicScope,
    Attributes,
    NodeType, //
};
pub use capabilities::Capabilities;
pub use gid::{
    Gid,
    GidEntry,
    GidKind, //
};
pub use mtu::Mtu;
pub use name::Name;
pub use netdev::Netdev;
pub use pkey::Pkey;
pub use port::Port;
pub use statistics::Statistics;
pub use usage::DeviceRef;
pub(crate) use usage::DeviceUsage;

use crate::bindings;
use kernel::{
    prelude::*,
    str::CStr,
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

impl Device {
    /// # Safety
    ///
    /// `raw` must be a registered device for as long as `'a`.
    #[inline]
    pub(crate) unsafe fn from_raw<'a>(raw: *mut bindings::ib_device) -> &'a Self {
        // SAFETY: By the contract, and `Device` is a transparent wrapper.
        unsafe { &*raw.cast() }
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_device {
        self.0.get()
    }

    /// The device's name, such as `rxe0`. A rename changes it, hence a copy; one
    /// that is under way may show in it. Any context.
    pub fn name(&self) -> Name {
        // SAFETY: `self` is a valid device by the type invariant; its name is an
        // array in it that ends with a NUL, whoever changes it.
        let name = unsafe { CStr::from_char_ptr(bindings::ib_device_name(self.as_raw())) };
        Name::copy(name)
    }

    /// The device's limits and capabilities. Any context.
    pub fn attributes(&self) -> Attributes {
        let mut raw = bindings::rrdma_device_attributes::default();
        // SAFETY: `self` is a valid device by the type invariant, `raw` is writable.
        unsafe { bindings::device_attributes(self.as_raw(), &mut raw) };
        raw.into()
    }

    /// Whether it is of iWARP.
    #[inline]
    pub(crate) fn is_rnic(&self) -> bool {
        // SAFETY: `self` is a valid device by the type invariant; its type is constant.
        unsafe { u32::from((*self.as_raw()).node_type) == bindings::RDMA_NODE_RNIC }
    }

    /// Whether it is soft-iWARP.
    fn is_siw(&self) -> bool {
        // SAFETY: `self` is a valid device by the type invariant; its operations are
        // constant.
        let driver = unsafe { (*self.as_raw()).ops.driver_id };
        driver == bindings::rdma_driver_id_RDMA_DRIVER_SIW
    }

    /// Whether it looks at the key that a peer's message invalidates. Soft-iWARP does at its upper
    /// 24 bits only, and so a peer can end a registration ahead of its posting: that is open
    /// again afterwards (`siw_invalidate_stag`).
    pub(crate) fn checks_invalidated_keys(&self) -> bool {
        !self.is_siw()
    }

    /// Whether a queue pair whose connection the connection manager ends gives back all that is
    /// posted. One of soft-iWARP does not: what is being sent then fails, and if that was the last
    /// that was begun, the queue pair is taken for one that has nothing to do, and what waits behind
    /// it never completes (`siw_qp_sq_process`, `siw_qp_nextstate_from_rts`).
    pub(crate) fn flushes_what_closes(&self) -> bool {
        !self.is_siw()
    }

    /// Whether it is given addresses as the processor knows them, and there is nothing to map:
    /// C's `ib_uses_virt_dma`.
    #[inline]
    pub(crate) fn uses_virt_dma(&self) -> bool {
        // SAFETY: `self` is a valid device by the type invariant; the device that does its DMA
        // is constant.
        cfg!(CONFIG_INFINIBAND_VIRT_DMA) && unsafe { (*self.as_raw()).dma_device.is_null() }
    }

    /// Whether it has atomic operations.
    #[inline]
    pub(crate) fn has_atomics(&self) -> bool {
        // SAFETY: `self` is a valid device by the type invariant; its attributes are
        // constant.
        let scope = unsafe { (*self.as_raw()).attrs.atomic_cap };
        scope != bindings::ib_atomic_cap_IB_ATOMIC_NONE
    }

    /// Whether it drains queue pairs in a way of its own.
    pub(crate) fn has_drain(&self) -> bool {
        // SAFETY: `self` is a valid device by the type invariant; its operations are
        // constant.
        let ops = unsafe { &(*self.as_raw()).ops };
        ops.drain_sq.is_some() || ops.drain_rq.is_some()
    }

    /// The version of the firmware (`ib_get_device_fw_str`); empty if there is none.
    /// May sleep.
    pub fn firmware_version(&self) -> Name {
        let mut text = [0; bindings::IB_FW_VERSION_NAME_MAX as usize];
        // SAFETY: `self` is a valid device by the type invariant; the driver writes
        // a text that ends with a NUL into an array of this size.
        Name::copy(unsafe {
            bindings::ib_get_device_fw_str(self.as_raw(), text.as_mut_ptr());
            CStr::from_char_ptr(text.as_ptr())
        })
    }

    /// The counters of the device as a whole, all zero before they are
    /// [updated](Statistics::update). May sleep.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the driver has none, `ENOMEM`.
    pub fn statistics(&self) -> Result<Statistics<'_>> {
        Statistics::new(self, 0)
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}
