// SPDX-License-Identifier: GPL-2.0

//! Text in fields of fixed size.

use core::fmt;

/// Text of a field of `N` bytes that is safe to print: without padding, and with a question mark in
/// place of each byte that is not printable ASCII.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    /// Decodes a field. A NUL ends the text, and spaces or NULs pad it.
    pub(crate) fn new(field: [u8; N]) -> Self {
        let mut bytes = field;
        let mut len = 0usize;
        let mut end = 0usize;
        for byte in &mut bytes {
            if *byte == 0 {
                break;
            }
            if !matches!(*byte, b' '..=b'~') {
                *byte = b'?';
            }
            end = end.saturating_add(1);
            if *byte != b' ' {
                len = end;
            }
        }
        Self { bytes, len }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        let text = self.bytes.get(..self.len).unwrap_or_default();
        // `bytes` is ASCII up to `len`.
        core::str::from_utf8(text).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn fields() {
        let cases: [(&[u8; 6], &str); 8] = [
            (b"Linux ", "Linux"),
            (b"ab cd\0", "ab cd"),
            (b"ab\0cd ", "ab"),
            (b"  ab  ", "  ab"),
            (b"      ", ""),
            (b"\0\0\0\0\0\0", ""),
            (b"a\n\x1b\x7f\xffz", "a????z"),
            (b"abcdef", "abcdef"),
        ];
        for (field, text) in cases {
            let decoded = Text::new(*field);
            assert_eq!(decoded.as_str(), text);
            assert_eq!(format!("{decoded:8}|"), format!("{text:8}|"));
            assert_eq!(format!("{decoded:?}"), format!("{text:?}"));
        }
    }

    #[test]
    fn any_bytes_are_printable() {
        let mut random = Random::new(3);
        for _ in 0..1000 {
            let mut field = [0; 40];
            random.fill(&mut field);
            let text = Text::new(field);
            assert!(text
                .as_str()
                .bytes()
                .all(|byte| matches!(byte, b' '..=b'~')));
            assert!(!text.as_str().ends_with(' '));
        }
    }
}
