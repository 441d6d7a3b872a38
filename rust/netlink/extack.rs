// SPDX-License-Identifier: GPL-2.0

//! Extended acks: message and attribute of a failed request.
//!
//! C header: [`include/linux/netlink.h`](srctree/include/linux/netlink.h)

use crate::bindings;
use core::{fmt, marker::PhantomData};

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
        let mut text = Text::new();
        // Fails only if a `Display` implementation fails; then the message is incomplete.
        let _ = fmt::write(&mut text, message);
        // SAFETY: By the type invariants, the pointer is valid or null, which the callee checks.
        // The callee reads `len()` bytes.
        unsafe { bindings::nl_set_err_msg(self.0, text.bytes.as_ptr().cast(), text.len()) };
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

    /// Sets the missing attribute, in `nest`, or at the top level if `nest` is null.
    ///
    /// # Safety
    ///
    /// `nest` is null or points into the message that is being handled.
    pub(super) unsafe fn set_missing(self, nest: *const bindings::nlattr, id: u16) {
        // SAFETY: By the type invariants, the pointer is valid or null, which the callee checks. By
        // the safety requirements of this function, `nest` is null or valid while the message is
        // handled.
        unsafe { bindings::nl_set_err_attr_miss(self.0, nest, id) };
    }
}

/// Formats a message into a fixed buffer, and truncates it at the end.
struct Text {
    bytes: [u8; Self::SIZE],
    used: usize,
}

impl Text {
    /// More than the kernel keeps, so that the truncated message is complete in the log.
    const SIZE: usize = 256;

    fn new() -> Self {
        Self {
            bytes: [0; Self::SIZE],
            used: 0,
        }
    }

    fn len(&self) -> i32 {
        // At most `SIZE`, so it fits.
        self.used as i32
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.used..).unwrap_or_default();
        let mut len = text.len().min(room.len());
        while !text.is_char_boundary(len) {
            len = len.saturating_sub(1);
        }
        for (to, from) in room.iter_mut().zip(text.bytes().take(len)) {
            *to = from;
        }
        self.used = self.used.saturating_add(len);
        Ok(())
    }
}
