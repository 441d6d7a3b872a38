// SPDX-License-Identifier: GPL-2.0

//! Copies of the names and other short strings of devices.

use crate::{
    bindings,
    text::kernel_display, //
};
use core::fmt;
use kernel::str::CStr;

/// A copy of the name of an RDMA or network device, or of another short string.
///
/// The name of a device may change while the device is in use (`rdma dev set DEV name NEW`), so use
/// a copy in messages only, not to find the device.
#[derive(Clone, Copy)]
pub struct Name {
    bytes: [u8; Self::SIZE],
    length: usize,
}

impl Name {
    /// The longest string that is copied is the name of an RDMA device.
    const SIZE: usize = bindings::IB_DEVICE_NAME_MAX as usize;

    /// Copies as much of `text` as fits.
    pub(super) fn copy(text: &CStr) -> Self {
        let mut bytes = [0; Self::SIZE];
        let mut length = 0;
        for (to, from) in bytes.iter_mut().zip(text.to_bytes()) {
            *to = *from;
            length += 1;
        }
        Self { bytes, length }
    }

    /// Returns the string; empty if it is not UTF-8.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

kernel_display!(Name);
