// SPDX-License-Identifier: GPL-2.0

//! The counters that a device keeps.
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

/// The counters of a port, or those of the whole device (`struct rdma_hw_stats`).
///
/// What they are called and what they count is the driver's. They are the ones
/// that `rdma statistic show` adds up; if somebody has bound queue pairs to
/// counters of their own (`rdma statistic qp`), theirs are not among them.
///
/// # Invariants
///
/// `raw` was allocated by the driver of `device` for port `port`, and is owned by
/// this object; `device` is registered during `'a`.
pub struct Statistics<'a> {
    raw: NonNull<bindings::rdma_hw_stats>,
    device: &'a Device,
    port: u32,
    _counters: PhantomData<bindings::rdma_hw_stats>,
}

// SAFETY: The counters are a piece of memory that this object owns.
unsafe impl Send for Statistics<'_> {}

impl<'a> Statistics<'a> {
    /// Of port `port`, or of the device if that is 0. May sleep.
    pub(super) fn new(device: &'a Device, port: u32) -> Result<Self> {
        // SAFETY: The device is registered; the port is one of it.
        let raw = from_err_ptr(unsafe { bindings::alloc_hw_stats(device.as_raw(), port) })?;
        // INVARIANT: Just allocated.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            device,
            port,
            _counters: PhantomData,
        })
    }

    /// Asks the device for the values. May sleep, and takes as long as the driver's
    /// way to the hardware: some microseconds in software, a command of the
    /// firmware in others.
    ///
    /// # Errors
    ///
    /// What the driver answers; the values are then the old ones.
    pub fn update(&mut self) -> Result {
        // SAFETY: By the type invariant.
        to_result(unsafe {
            bindings::update_hw_stats(self.device.as_raw(), self.raw.as_ptr(), self.port)
        })
    }

    /// The names of the counters, and their values as of the last
    /// [`update`](Self::update).
    pub fn iter(&self) -> impl Iterator<Item = (&CStr, u64)> {
        // SAFETY: By the type invariant; the driver has set the number.
        let count = unsafe { (*self.raw.as_ptr()).num_counters };
        (0..count).filter_map(|index| {
            let mut value = 0;
            // SAFETY: By the type invariant; the index is one of a counter.
            let name = unsafe { bindings::hw_stats_counter(self.raw.as_ptr(), index, &mut value) };
            let name = NonNull::new(name.cast_mut())?;
            // SAFETY: The name is a text of the driver, which stays for as long as
            // its device is registered.
            Some((unsafe { CStr::from_char_ptr(name.as_ptr()) }, value))
        })
    }
}

impl Drop for Statistics<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody uses the counters any more.
        unsafe { bindings::rdma_free_hw_stats_struct(self.raw.as_ptr()) };
    }
}
