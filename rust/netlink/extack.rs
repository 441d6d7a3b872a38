// SPDX-License-Identifier: GPL-2.0

//! Extended acks: message and attribute of a failed request.
//!
//! C header: [`include/linux/netlink.h`](srctree/include/linux/netlink.h)

use crate::{bindings, text};
use core::{fmt, marker::PhantomData, ptr::null};

/// Extended ack of a request that is being handled. C: `struct netlink_ext_ack`.
///
/// # Invariants
///
/// The pointer is null, or valid for `'a` and used only by this thread.
#[derive(Clone, Copy)]
pub(super) struct Extack<'a>(
    *mut bindings::netlink_ext_ack,
    PhantomData<&'a bindings::netlink_ext_ack>,
);

impl Extack<'_> {
    /// Wraps the extended ack of a request.
    ///
    /// # Safety
    ///
    /// `extack` is null, or valid for `'a` and used only by this thread.
    pub(super) unsafe fn from_raw(extack: *mut bindings::netlink_ext_ack) -> Self {
        // INVARIANT: By the safety requirements of this function.
        Self(extack, PhantomData)
    }

    /// Sets the message. The kernel keeps 79 bytes of it. It truncates a longer one and logs it.
    pub(super) fn set_message(self, message: fmt::Arguments<'_>) {
        // More than the kernel keeps, so that the truncated message is complete in the log.
        let message = text::Message::<256>::new(message);
        let text = message.as_str();
        // SAFETY: By the type invariants, the pointer is valid or null, which the callee checks.
        // The callee reads the given number of bytes, at most 256.
        unsafe { bindings::nl_set_err_msg(self.0, text.as_ptr().cast(), text.len() as i32) };
    }

    /// Sets the invalid attribute.
    ///
    /// # Safety
    ///
    /// `attribute` points into the message that is being handled.
    pub(super) unsafe fn set_bad_attribute(self, attribute: *const bindings::nlattr) {
        // SAFETY: By the type invariants, the pointer is valid or null, which the callee checks. By
        // the safety requirements of this function, `attribute` is valid while the message is
        // handled, and C does not use it for longer.
        unsafe { bindings::nl_set_bad_attr(self.0, attribute) };
    }

    /// Sets the missing attribute.
    pub(super) fn set_missing(self, id: u16) {
        // SAFETY: By the type invariants, the pointer is valid or null, which the callee checks.
        // Null for the nest selects the top level.
        unsafe { bindings::nl_set_err_attr_miss(self.0, null(), id) };
    }
}
