// SPDX-License-Identifier: GPL-2.0

//! Copies of the names and other short strings of devices.

use crate::{
    bindings,
    text::Message, //
};
use kernel::str::CStr;

/// A copy of the name of an RDMA or network device, or of another short string.
///
/// The name of a device may change while the device is in use (`rdma dev set DEV name NEW`), so use
/// a copy in messages only, not to find the device.
// The longest string that is copied is the name of an RDMA device.
pub type Name = Message<{ bindings::IB_DEVICE_NAME_MAX as usize }>;

/// Copies as much of `text` as fits; nothing if it is not UTF-8.
pub(super) fn copy(text: &CStr) -> Name {
    Name::new(format_args!("{}", text.to_str().unwrap_or_default()))
}
