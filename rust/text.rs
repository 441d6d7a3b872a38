// SPDX-License-Identifier: GPL-2.0

//! Messages in fixed buffers, and [`kernel::fmt::Display`] for types of this crate.
//!
//! `pr_info!` requires the kernel's [`kernel::fmt::Display`]. Crates that do not depend on the
//! kernel implement only [`core::fmt::Display`].

use core::fmt;

/// A message of at most `BYTES` bytes; a longer one is truncated.
///
/// Needs no allocation, so it can be created in any context, also to report that memory is short.
#[derive(Clone, Copy)]
pub struct Message<const BYTES: usize> {
    bytes: [u8; BYTES],
    /// Number of bytes in use; ends at a character boundary.
    length: usize,
}

impl<const BYTES: usize> Message<BYTES> {
    /// Formats a message.
    pub fn new(text: fmt::Arguments<'_>) -> Self {
        let mut message = Self {
            bytes: [0; BYTES],
            length: 0,
        };
        // `write_str` truncates and never fails.
        let _ = fmt::Write::write_fmt(&mut message, text);
        message
    }

    /// Returns the message.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        // `write_str` stores only whole characters.
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl<const BYTES: usize> fmt::Write for Message<BYTES> {
    /// Appends the part of `text` that fits. Never fails.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        let mut fits = text.len().min(room.len());
        // Store only whole characters; a boundary is at most three bytes away.
        while !text.is_char_boundary(fits) {
            fits = fits.saturating_sub(1);
        }
        for (to, from) in room.iter_mut().zip(text.bytes().take(fits)) {
            *to = from;
        }
        self.length = self.length.saturating_add(fits);
        Ok(())
    }
}

impl<const BYTES: usize> fmt::Display for Message<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<const BYTES: usize> kernel::fmt::Display for Message<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Displays what a function writes.
pub(crate) struct FromFn<F>(pub(crate) F);

impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> kernel::fmt::Display for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0)(f)
    }
}

/// Implements [`kernel::fmt::Display`] by [`core::fmt::Display`].
macro_rules! kernel_display {
    ($($type:ty),+ $(,)?) => {
        $(
            impl ::kernel::fmt::Display for $type {
                // Inlined: otherwise rrdma.ko would export one more symbol for each type.
                #[inline]
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    ::core::fmt::Display::fmt(self, f)
                }
            }
        )+
    };
}

pub(crate) use kernel_display;
