// SPDX-License-Identifier: GPL-2.0

//! Copies of the short texts that devices have.

use crate::{
    bindings,
    text::kernel_display, //
};
use core::fmt;
use kernel::str::CStr;

/// A copy of the name of an RDMA or network device, or of another text as short.
///
/// Names change while a device is used (`rdma dev set DEV name NEW`): a copy is
/// for people to read, and no key to find the device by.
#[derive(Clone, Copy)]
pub struct Name {
    bytes: [u8; Self::SIZE],
    length: usize,
}

impl Name {
    /// The longest of what is copied is the name of an RDMA device.
    const SIZE: usize = bindings::IB_DEVICE_NAME_MAX as usize;

    /// Copies what there is room for.
    pub(super) fn copy(text: &CStr) -> Self {
        let mut bytes = [0; Self::SIZE];
        let mut length = 0;
        for (to, from) in bytes.iter_mut().zip(text.to_bytes()) {
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

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

kernel_display!(Name);
