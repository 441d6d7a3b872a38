// SPDX-License-Identifier: GPL-2.0

//! Names of owners that outlive them.
//!
//! `rdma res show cm_id` reads the name of an id as long as there is the id. One that a
//! handler refuses or gives up is destroyed by the connection manager, afterwards, and
//! nobody is told when it has: the listener may be gone by then, and with it the module
//! of its owner, of which the name is a part. So the ids of listeners, and those of
//! requests, which have the name from them, bear a copy that stays for good.

use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    str::CStr,
    sync::global_lock, //
};

global_lock! {
    // SAFETY: Initialised by `init` below, before there is a listener.
    unsafe(uninit) static NAMES: Mutex<KVec<&'static CStr>> = KVec::new();
}

/// Makes the global state of this file; called once, when the module loads.
pub(crate) fn init() {
    // SAFETY: Called exactly once, by the crate's module init.
    unsafe { NAMES.init() };
}

/// Frees what is not read after this module is gone; called once, when it goes.
pub(crate) fn forget() {
    *NAMES.lock() = KVec::new();
}

/// A copy of the name for good: one, however often it is asked for. Sleeps.
///
/// # Errors
///
/// `ENOMEM`.
pub(super) fn lasting(name: &CStr) -> Result<&'static CStr> {
    let mut names = NAMES.lock();
    if let Some(known) = names.iter().find(|known| ***known == *name) {
        return Ok(known);
    }
    names.reserve(1, GFP_KERNEL)?;
    // SAFETY: The name is a string, and only read.
    let copy = unsafe { bindings::lasting_copy(name.as_char_ptr()) };
    let copy = NonNull::new(copy).ok_or(ENOMEM)?;
    // SAFETY: A string, which is never freed or changed.
    let copy = unsafe { CStr::from_char_ptr(copy.as_ptr()) };
    names.push(copy, GFP_KERNEL)?;
    Ok(copy)
}
