// SPDX-License-Identifier: GPL-2.0

//! The network devices behind ports.

use super::Name;
use crate::bindings;
use kernel::{
    prelude::*,
    str::CStr, //
};

/// Which network device it is that a port or a GID belongs to, as of when it was
/// asked for.
#[derive(Clone, Copy)]
pub struct Netdev {
    /// Its index, which is of its network namespace.
    pub index: u32,
    /// Its name; one that is being changed meanwhile may be half the old one.
    pub name: Name,
}

impl Netdev {
    /// What a helper has found, if it has.
    pub(super) fn from_raw(raw: &bindings::rrdma_netdev) -> Option<Self> {
        let index = u32::try_from(raw.index).ok().filter(|index| *index != 0)?;
        // SAFETY: The helpers end the name with a NUL.
        let name = Name::copy(unsafe { CStr::from_char_ptr(raw.name.as_ptr()) });
        Some(Self { index, name })
    }
}
