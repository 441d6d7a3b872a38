// SPDX-License-Identifier: GPL-2.0

//! Hardware counters of a device or a port.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct rdma_hw_stats`

use super::Device;
use crate::bindings;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    str::CStr, //
};

/// The counters of a port or of a whole device (`struct rdma_hw_stats`).
///
/// The driver defines their names and meanings. `rdma statistic show` prints the same counters,
/// plus those of queue pairs that are bound to separate counters (`rdma statistic qp`), which are
/// not included here.
///
/// # Invariants
///
/// `raw` was allocated by the driver of `device` for port `port`, and this object owns it. `device`
/// is registered during `'a`.
pub struct Statistics<'a> {
    raw: NonNull<bindings::rdma_hw_stats>,
    device: &'a Device,
    port: u32,
    _counters: PhantomData<bindings::rdma_hw_stats>,
}

// SAFETY: The counters are memory that this object owns.
unsafe impl Send for Statistics<'_> {}

impl<'a> Statistics<'a> {
    /// Allocates the counters of port `port`, or of the device if `port` is 0. May sleep.
    pub(super) fn new(device: &'a Device, port: u32) -> Result<Self> {
        // SAFETY: The device is registered, and the port is 0 or one of its ports.
        let raw = from_err_ptr(unsafe { bindings::alloc_hw_stats(device.as_raw(), port) })?;
        // INVARIANT: Allocated above, for this device and port.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            device,
            port,
            _counters: PhantomData,
        })
    }

    /// Reads the current values from the device.
    ///
    /// May sleep. Takes some microseconds with a soft device, and a firmware command with others.
    ///
    /// # Errors
    ///
    /// The error of the driver; the values are then unchanged.
    pub fn update(&mut self) -> Result {
        // SAFETY: By the type invariant, the counters belong to this device and port.
        to_result(unsafe {
            bindings::update_hw_stats(self.device.as_raw(), self.raw.as_ptr(), self.port)
        })
    }

    /// Returns the names of the counters and their values of the last [`update`](Self::update).
    pub fn iter(&self) -> impl Iterator<Item = (&CStr, u64)> {
        // SAFETY: By the type invariant, the counters are valid. The driver has set their number.
        let count = unsafe { (*self.raw.as_ptr()).num_counters };
        (0..count).filter_map(|index| {
            let mut value = 0;
            // SAFETY: By the type invariant, the counters are valid. `index` is less than their
            // number.
            let name = unsafe { bindings::hw_stats_counter(self.raw.as_ptr(), index, &mut value) };
            let name = NonNull::new(name.cast_mut())?;
            // SAFETY: The name is a string of the driver, which is valid while the device is
            // registered.
            Some((unsafe { CStr::from_char_ptr(name.as_ptr()) }, value))
        })
    }
}

impl Drop for Statistics<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, this object owns the counters.
        unsafe { bindings::rdma_free_hw_stats_struct(self.raw.as_ptr()) };
    }
}
