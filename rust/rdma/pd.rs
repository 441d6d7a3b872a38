// SPDX-License-Identifier: GPL-2.0

//! Protection domains.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_pd`
//!
//! It comes first of what a consumer makes on a device:
//!
//! ```ignore
//! // samples/key_ping/connection.rs
//! let pd = ProtectionDomain::new(device.clone(), NAME).step("protection domain")?;
//! ```

use super::device::DeviceRef;
use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// A protection domain: queue pairs and memory regions of one domain may be
/// used together, those of different ones may not. A consumer that gives every
/// peer a domain of its own keeps each peer's keys useless to the others.
///
/// No domain has a key that covers all memory (`IB_PD_UNSAFE_GLOBAL_RKEY`).
///
/// # Invariants
///
/// `raw` is a domain of `device`, owned by this object, and `lkey` its key for local use.
pub struct ProtectionDomain {
    raw: NonNull<bindings::ib_pd>,
    /// Asked twice with each I/O, so kept near.
    lkey: u32,
    device: DeviceRef,
}

// SAFETY: The verbs on a domain may be called from any thread.
unsafe impl Send for ProtectionDomain {}
// SAFETY: As above.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    /// Allocates a domain (`ib_alloc_pd`). `owner` is what `rdma res show pd`
    /// names. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what the device answers.
    pub fn new(device: DeviceRef, owner: &'static CStr) -> Result<Arc<Self>> {
        // SAFETY: The device is registered while `device` lives.
        let raw = unsafe { bindings::ib_alloc_pd(device.as_raw(), owner.as_char_ptr()) };
        let raw = NonNull::new(from_err_ptr(raw)?).ok_or(ENOMEM)?;
        // SAFETY: Allocated above; the key is constant.
        let lkey = unsafe { (*raw.as_ptr()).local_dma_lkey };
        // INVARIANT: Allocated above, owned by nobody else.
        let this = Self { raw, lkey, device };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// The device of the domain.
    #[inline]
    pub fn device(&self) -> &DeviceRef {
        &self.device
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_pd {
        self.raw.as_ptr()
    }

    /// The key for memory mapped for this device and used locally.
    #[inline]
    pub(crate) fn local_dma_lkey(&self) -> u32 {
        self.lkey
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; queue pairs and regions of the domain
        // hold it, so there is none left.
        unsafe { bindings::ib_dealloc_pd(self.raw.as_ptr()) };
    }
}
