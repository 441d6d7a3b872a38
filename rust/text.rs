// SPDX-License-Identifier: GPL-2.0

//! Text: messages that need no memory of their own, and how types of the crate are written.
//!
//! The kernel's own [`kernel::fmt::Display`] is what `pr_info!` asks for; plain
//! crates, which know nothing of the kernel, know [`core::fmt::Display`] only.

use core::fmt;

/// A message for people, of at most `BYTES` bytes; what is longer is cut.
///
/// It can be made in any context, and when there is no memory to be had: what tells
/// of that must not need any.
#[derive(Clone, Copy)]
pub struct Message<const BYTES: usize> {
    bytes: [u8; BYTES],
    /// How many bytes are used; the last character is whole.
    length: usize,
}

impl<const BYTES: usize> Message<BYTES> {
    /// The message that `text` makes.
    pub fn new(text: fmt::Arguments<'_>) -> Self {
        let mut message = Self {
            bytes: [0; BYTES],
            length: 0,
        };
        // Writing cuts, and does not fail.
        let _ = fmt::Write::write_fmt(&mut message, text);
        message
    }

    /// The message as text.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        // Only whole characters were written.
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl<const BYTES: usize> fmt::Write for Message<BYTES> {
    /// Writes as much as fits, and succeeds.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        let mut fits = text.len().min(room.len());
        // Whole characters only; a boundary is three bytes away at most.
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

/// Implements [`kernel::fmt::Display`] by means of [`core::fmt::Display`].
macro_rules! kernel_display {
    ($($type:ty),+ $(,)?) => {
        $(
            impl ::kernel::fmt::Display for $type {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    ::core::fmt::Display::fmt(self, f)
                }
            }
        )+
    };
}

pub(crate) use kernel_display;
