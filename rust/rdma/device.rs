// SPDX-License-Identifier: GPL-2.0

//! RDMA devices, their ports, and references that delay their removal.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//!
//! Ports are numbered from 1. A connection or datagram starts from a GID of a port:
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
pub(crate) use usage::{
    DeviceUsage,
    RemovalWatch, //
};

use crate::bindings;
use core::ffi::c_int;
use kernel::{
    error::to_result,
    prelude::*,
    str::CStr,
    task::might_sleep,
    time::{
        delay::fsleep,
        Delta, //
    },
    types::Opaque, //
};

/// Time until an object is destroyed again that the device has refused to destroy.
const REFUSED_PAUSE: Delta = Delta::from_millis(100);

/// An RDMA device (`struct ib_device`).
///
/// # Invariants
///
/// The `struct ib_device` is registered for as long as a reference to this object lives.
#[repr(transparent)]
pub struct Device(Opaque<bindings::ib_device>);

// SAFETY: The fields that are read through `Device` are constant while the device is registered, or
// may be read at any time. The verbs that take a device may be called from any thread.
unsafe impl Send for Device {}
// SAFETY: The fields that are read through `Device` are constant while the device is registered, or
// may be read at any time. The verbs that take a device may be called from any thread.
unsafe impl Sync for Device {}

impl Device {
    /// Wraps a pointer to a device.
    ///
    /// # Safety
    ///
    /// `raw` must point to a device that is registered during `'a`.
    #[inline]
    pub(crate) unsafe fn from_raw<'a>(raw: *mut bindings::ib_device) -> &'a Self {
        // SAFETY: By the safety requirements. `Device` is a transparent wrapper.
        unsafe { &*raw.cast() }
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_device {
        self.0.get()
    }

    /// Returns a copy of the device's name, such as `rxe0`. The name may change; a copy that is
    /// made during a rename may mix the old and the new name. Any context.
    pub fn name(&self) -> Name {
        // SAFETY: `self` is a valid device by the type invariant. Its name is an array that
        // contains a NUL at any time, even during a rename.
        let name = unsafe { CStr::from_char_ptr(bindings::ib_device_name(self.as_raw())) };
        name::copy(name)
    }

    /// Returns the limits and capabilities of the device. Any context.
    pub fn attributes(&self) -> Attributes {
        let mut raw = pin_init::zeroed::<bindings::rrdma_device_attributes>();
        // SAFETY: `self` is a valid device by the type invariant, `raw` is writable.
        unsafe { bindings::device_attributes(self.as_raw(), &mut raw) };
        raw.into()
    }

    /// Returns the capabilities, as [`attributes`](Self::attributes) does. Any context.
    pub fn capabilities(&self) -> Capabilities {
        // SAFETY: `self` is a valid device by the type invariant; its capabilities are constant.
        let attrs = unsafe { &(*self.as_raw()).attrs };
        Capabilities::new(attrs.device_cap_flags, attrs.kernel_cap_flags)
    }

    /// Returns whether the device is an iWARP device.
    #[inline]
    pub fn is_rnic(&self) -> bool {
        // SAFETY: `self` is a valid device by the type invariant; its type is constant.
        unsafe { u32::from((*self.as_raw()).node_type) == bindings::RDMA_NODE_RNIC }
    }

    fn driver_id(&self) -> bindings::rdma_driver_id {
        // SAFETY: `self` is a valid device by the type invariant; its operations are
        // constant.
        unsafe { (*self.as_raw()).ops.driver_id }
    }

    /// Returns whether the device is of the soft-iWARP driver.
    fn is_siw(&self) -> bool {
        self.driver_id() == bindings::rdma_driver_id_RDMA_DRIVER_SIW
    }

    /// Returns whether queue pairs can take receives from a shared queue. A device has none if its driver does not
    /// report the last shared receive of a queue pair, for which the drain waits. Any context.
    pub fn has_shared_receives(&self) -> bool {
        self.attributes().max_srq != 0 && self.without_last_receive().is_none()
    }

    /// Returns the driver, if it does not report the last shared receive of a queue pair
    /// (`IB_EVENT_QP_LAST_WQE_REACHED`). iWARP devices need not report it.
    pub(crate) fn without_last_receive(&self) -> Option<&'static str> {
        match self.is_rnic() {
            true => None,
            false => without_last_receive(self.driver_id()),
        }
    }

    /// Returns whether the device is software, without RDMA hardware: soft-RoCE or soft-iWARP. Any
    /// context.
    pub fn is_software(&self) -> bool {
        self.is_siw() || self.driver_id() == bindings::rdma_driver_id_RDMA_DRIVER_RXE
    }

    /// Returns whether the device checks the whole key when a peer's message invalidates a region.
    ///
    /// soft-iWARP ignores the lower 8 bits (`siw_invalidate_stag`). A peer can therefore invalidate
    /// a region before the work request that registers it is executed; the registration then makes
    /// the region accessible again.
    pub(crate) fn checks_invalidated_keys(&self) -> bool {
        !self.is_siw()
    }

    /// Returns whether a queue pair completes all its work requests when the connection manager
    /// ends its connection.
    ///
    /// soft-iWARP does not. If the send in progress fails and no other had begun, the driver takes
    /// the send queue for empty, and the requests behind the failed one never complete
    /// (`siw_qp_sq_process`, `siw_qp_nextstate_from_rts`).
    pub(crate) fn flushes_what_closes(&self) -> bool {
        !self.is_siw()
    }

    /// Returns whether the device has accepted all work requests of a post that fails without the
    /// first one that was not posted (`siw_post_send`, when it cannot start the send queue).
    pub(crate) fn accepts_what_it_cannot_start(&self) -> bool {
        self.is_siw()
    }

    /// Returns whether the device takes virtual addresses, so that nothing is mapped
    /// (`ib_uses_virt_dma`).
    #[inline]
    pub(crate) fn uses_virt_dma(&self) -> bool {
        // SAFETY: `self` is a valid device by the type invariant; its DMA device is constant.
        cfg!(CONFIG_INFINIBAND_VIRT_DMA) && unsafe { (*self.as_raw()).dma_device.is_null() }
    }

    /// Returns whether memory of PCI devices can be mapped for the device (`ib_dma_pci_p2p_dma_supported`). A
    /// mapping may still fail, for example if there is no path between both.
    pub fn supports_pci_p2pdma(&self) -> bool {
        // SAFETY: `self` is a valid device by the type invariant.
        unsafe { bindings::ib_dma_pci_p2p_dma_supported(self.as_raw()) }
    }

    /// Returns whether the device has atomic operations.
    #[inline]
    pub(crate) fn has_atomics(&self) -> bool {
        // SAFETY: `self` is a valid device by the type invariant; its attributes are
        // constant.
        let scope = unsafe { (*self.as_raw()).attrs.atomic_cap };
        scope != bindings::ib_atomic_cap_IB_ATOMIC_NONE
    }

    /// Returns whether the driver drains queue pairs itself.
    pub(crate) fn has_drain(&self) -> bool {
        // SAFETY: `self` is a valid device by the type invariant; its operations are
        // constant.
        let ops = unsafe { &(*self.as_raw()).ops };
        ops.drain_sq.is_some() || ops.drain_rq.is_some()
    }

    /// Calls `destroy` until it succeeds. The device may use the memory of the object until then, so
    /// that memory cannot be freed. Logs the first error, as `cannot {action}`. Sleeps.
    pub(crate) fn insist(&self, action: &str, mut destroy: impl FnMut() -> c_int) {
        might_sleep();
        let mut result = to_result(destroy());
        if let Err(error) = result {
            let device = self.name();
            pr_err!("{device}: cannot {action}: {error:?}; trying again\n");
        }
        while result.is_err() {
            fsleep(REFUSED_PAUSE);
            result = to_result(destroy());
        }
    }

    /// Returns the identity of the device. Any context.
    pub fn id(&self) -> DeviceId {
        DeviceId(self.as_raw().addr())
    }

    /// Returns the firmware version (`ib_get_device_fw_str`); empty if the device has none. May
    /// sleep.
    pub fn firmware_version(&self) -> Name {
        let mut text = [0; bindings::IB_FW_VERSION_NAME_MAX as usize];
        // SAFETY: `self` is a valid device by the type invariant. The driver writes a string that
        // ends with a NUL, and `text` has the size that it expects.
        name::copy(unsafe {
            bindings::ib_get_device_fw_str(self.as_raw(), text.as_mut_ptr());
            CStr::from_char_ptr(text.as_ptr())
        })
    }

    /// Allocates the counters of the whole device. They are zero until they are
    /// [updated](Statistics::update). May sleep.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the driver has no counters; `ENOMEM`.
    pub fn statistics(&self) -> Result<Statistics<'_>> {
        Statistics::new(self, 0)
    }
}

/// Returns the name of a driver that has shared receive queues, and does not report the last receive of a queue
/// pair. As of 7.3, all others report it.
fn without_last_receive(driver: bindings::rdma_driver_id) -> Option<&'static str> {
    match driver {
        bindings::rdma_driver_id_RDMA_DRIVER_IRDMA => Some("irdma"),
        bindings::rdma_driver_id_RDMA_DRIVER_QEDR => Some("qedr"),
        _ => None,
    }
}

/// Identity of a device, only to be compared. It is that of another device once the device was removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceId(usize);

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}
