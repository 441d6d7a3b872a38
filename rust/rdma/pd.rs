// SPDX-License-Identifier: GPL-2.0

//! Protection domains.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_pd`
//!
//! A protection domain is the first object that a consumer creates on a device:
//!
//! ```ignore
//! // samples/key_ping/connection.rs
//! let pd = ProtectionDomain::new(device.clone(), NAME).step("protection domain")?;
//! ```

use super::{
    device::DeviceRef,
    sleeping_drop::{
        OfDevice,
        SleepingDrop, //
    }, //
};
use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
    task::might_sleep, //
};

/// A protection domain (`struct ib_pd`).
///
/// A queue pair can use memory regions of its own domain only. With a domain for each peer, the
/// keys of one peer are useless to the others.
///
/// No domain has a key that covers all memory (`IB_PD_UNSAFE_GLOBAL_RKEY`).
///
/// May be dropped in any context; a drop in atomic context takes effect later.
pub struct ProtectionDomain(SleepingDrop<OwnedPd>);

/// A protection domain of the device (`struct ib_pd`). Dropping it sleeps.
///
/// # Invariants
///
/// `raw` is a valid domain of `device` that this object owns.
struct OwnedPd {
    raw: NonNull<bindings::ib_pd>,
    device: DeviceRef,
    serial: u64,
}

/// Serial number of the next domain. 64 bits do not wrap around.
static SERIAL: Atomic<u64> = Atomic::new(0);

// SAFETY: The verbs that take a domain may be called from any thread.
unsafe impl Send for OwnedPd {}
// SAFETY: The verbs that take a domain may be called from any thread.
unsafe impl Sync for OwnedPd {}

impl ProtectionDomain {
    /// Allocates a domain (`ib_alloc_pd`). May sleep.
    ///
    /// `owner` is the name that `rdma res show pd` prints.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of the device.
    pub fn new(device: DeviceRef, owner: &'static CStr) -> Result<Arc<Self>> {
        // SAFETY: `device` keeps the device registered. The name is static.
        let raw = unsafe { bindings::ib_alloc_pd(device.as_raw(), owner.as_char_ptr()) };
        let raw = NonNull::new(from_err_ptr(raw)?).ok_or(ENOMEM)?;
        // INVARIANT: `ib_alloc_pd` has allocated `raw` on `device` for this object.
        let this = OwnedPd {
            raw,
            device,
            serial: SERIAL.fetch_add(1, ordering::Relaxed),
        };
        Ok(Arc::new(Self(SleepingDrop::new(this)), GFP_KERNEL)?)
    }

    /// Returns the device of the domain. Any context.
    #[inline]
    pub fn device(&self) -> &DeviceRef {
        &self.0.device
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_pd {
        self.0.raw.as_ptr()
    }

    /// Returns what work requests need to access memory that is mapped for the device.
    #[inline]
    pub(crate) fn local_memory(&self) -> LocalMemory {
        LocalMemory {
            device: self.0.device.as_raw(),
            // SAFETY: `raw` is valid by the invariant of `OwnedPd`, and the key never changes.
            lkey: unsafe { (*self.0.raw.as_ptr()).local_dma_lkey },
            domain: self.0.serial,
        }
    }
}

/// Local access to all memory that is mapped for a device, by work requests of a domain.
#[derive(Clone, Copy)]
pub(crate) struct LocalMemory {
    /// The device. Only compared.
    pub(in crate::rdma) device: *mut bindings::ib_device,
    /// The key (`local_dma_lkey`).
    pub(in crate::rdma) lkey: u32,
    /// Serial number of the domain, which no other domain ever has.
    pub(in crate::rdma) domain: u64,
}

impl OfDevice for OwnedPd {
    fn device(&self) -> &DeviceRef {
        &self.device
    }
}

impl Drop for OwnedPd {
    fn drop(&mut self) {
        might_sleep();
        // SAFETY: By the type invariant, this object owns the domain. Queue pairs and regions hold
        // a reference to the domain, so none of them exists any more.
        unsafe { bindings::ib_dealloc_pd(self.raw.as_ptr()) };
    }
}
