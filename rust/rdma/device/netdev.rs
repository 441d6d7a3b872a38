// SPDX-License-Identifier: GPL-2.0

//! The network devices of ports.

use super::name::{
    copy,
    Name, //
};
use crate::bindings;
use kernel::{
    prelude::*,
    str::CStr, //
};

/// The network device of a port or a GID at the time of the query.
#[derive(Clone, Copy)]
pub struct Netdev {
    /// Interface index, in the network namespace of the network device.
    pub index: u32,
    /// Name. A copy that is made during a rename may mix the old and the new name.
    pub name: Name,
}

impl Netdev {
    /// Converts the result of a C helper. `None` if it found no network device.
    pub(super) fn from_raw(raw: &bindings::rrdma_netdev) -> Option<Self> {
        let index = u32::try_from(raw.index).ok().filter(|index| *index != 0)?;
        // SAFETY: The helpers terminate the name with a NUL.
        let name = copy(unsafe { CStr::from_char_ptr(raw.name.as_ptr()) });
        Some(Self { index, name })
    }
}
