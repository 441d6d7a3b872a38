// SPDX-License-Identifier: GPL-2.0

//! Extended acks: what an error tells beyond its number.
//!
//! C header: [`include/linux/netlink.h`](srctree/include/linux/netlink.h)

use crate::bindings;
use core::{fmt, marker::PhantomData};

/// The extended ack of a request that is being handled.
///
/// # Invariants
///
/// The pointer is null, or valid for `'a` and used by this thread only.
#[derive(Clone, Copy)]
pub(super) struct Extack<'a>(
    *mut bindings::netlink_ext_ack,
    PhantomData<&'a bindings::netlink_ext_ack>,
);

impl Extack<'_> {
    /// # Safety
    ///
    /// `extack` must be null, or valid for `'a` and used by this thread only.
    pub(super) unsafe fn from_raw(extack: *mut bindings::netlink_ext_ack) -> Self {
        // INVARIANT: The caller says so.
        Self(extack, PhantomData)
    }

    /// Sets the message. The kernel has room for 79 bytes; what is longer is cut,
    /// and logged.
    pub(super) fn set_message(self, message: fmt::Arguments<'_>) {
        let mut text = Text::new();
        // It fails only if a `Display` fails; what that left is the message.
        let _ = fmt::write(&mut text, message);
        // SAFETY: By the invariant of the type the pointer may be null, which the
        // callee checks, or is valid. It reads no more than the length it gets.
        unsafe { bindings::nl_set_err_msg(self.0, text.bytes.as_ptr().cast(), text.len()) };
    }

    /// Names the attribute that is wrong.
    ///
    /// # Safety
    ///
    /// `attribute` must point into the message that is being handled.
    pub(super) unsafe fn set_bad_attribute(self, attribute: *const bindings::nlattr) {
        // SAFETY: By the invariant of the type the pointer may be null, which the
        // callee checks, or is valid; the caller answers for `attribute`, which is
        // only read as long as the message lives.
        unsafe { bindings::nl_set_bad_attr(self.0, attribute) };
    }

    /// Names the attribute that is missing, in `nest` or, if that is null, at the
    /// top.
    ///
    /// # Safety
    ///
    /// `nest` must be null or point into the message that is being handled.
    pub(super) unsafe fn set_missing(self, nest: *const bindings::nlattr, id: u16) {
        // SAFETY: As in `set_bad_attribute`.
        unsafe { bindings::nl_set_err_attr_miss(self.0, nest, id) };
    }
}

/// A message as it is being formatted, cut where it is full.
struct Text {
    bytes: [u8; Self::SIZE],
    used: usize,
}

impl Text {
    /// More than the kernel keeps, so that its log has the rest.
    const SIZE: usize = 256;

    fn new() -> Self {
        Self {
            bytes: [0; Self::SIZE],
            used: 0,
        }
    }

    fn len(&self) -> i32 {
        // No larger than `SIZE`.
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
