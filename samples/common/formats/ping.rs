// SPDX-License-Identifier: GPL-2.0

//! Messages between `rping` and its peers.
//!
//! The client advertises memory by a message of 16 bytes: address, key and length, in network byte
//! order. The server acknowledges with a message of the same length, whose content has no meaning.
//! The format is that of `librdmacm/examples/rping.c` of rdma-core, including the data: a text that
//! starts with the number of the ping.

use core::fmt;

/// Length of a message in bytes.
pub const MESSAGE_BYTES: usize = 16;

/// Memory that the peer may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advert {
    /// Start address.
    pub address: u64,
    /// Remote key.
    pub rkey: u32,
    /// Length in bytes.
    pub length: u32,
}

impl Advert {
    /// Returns the message to send.
    pub fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let [a, b, c, d, e, f, g, h] = self.address.to_be_bytes();
        let [i, j, k, l] = self.rkey.to_be_bytes();
        let [m, n, o, p] = self.length.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
    }

    /// Parses a message. Returns `None` if its length is not [`MESSAGE_BYTES`].
    pub fn decode(message: &[u8]) -> Option<Self> {
        let (address, rest) = message.split_first_chunk()?;
        let (rkey, rest) = rest.split_first_chunk()?;
        Some(Self {
            address: u64::from_be_bytes(*address),
            rkey: u32::from_be_bytes(*rkey),
            length: u32::from_be_bytes(rest.try_into().ok()?),
        })
    }
}

/// Fills `data` with the text of a ping.
///
/// The text is the number, then the characters from `A` to `z` in turn, then a NUL. The first
/// character depends on the number. A server of `rping` writes back the data up to the first NUL,
/// and the NUL.
pub fn fill(data: &mut [u8], ping: u32) {
    let first = usize::try_from(ping % 58).unwrap_or_default();
    let letters = (b'A'..=b'z').cycle().skip(first);
    let mut rest = Rest(data.iter_mut());
    // Ignore the error: a text that is too long is truncated.
    let _ = fmt::write(&mut rest, format_args!("rdma-ping-{ping}: "));
    for (byte, letter) in rest.0.zip(letters) {
        *byte = letter;
    }
    if let Some(last) = data.last_mut() {
        *last = 0;
    }
}

/// The rest of a buffer, still to be written.
struct Rest<'a>(core::slice::IterMut<'a, u8>);

impl fmt::Write for Rest<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.bytes() {
            *self.0.next().ok_or(fmt::Error)? = letter;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVERT: Advert = Advert {
        address: 0x0102_0304_0506_0708,
        rkey: 0x090a_0b0c,
        length: 0x0d0e_0f10,
    };

    #[test]
    fn is_in_network_order() {
        let message: Vec<u8> = (1..=16).collect();
        assert_eq!(ADVERT.encode()[..], message);
        assert_eq!(Advert::decode(&message), Some(ADVERT));
    }

    #[test]
    fn short_and_long_is_refused() {
        let message = [7; 32];
        for length in (0..32).filter(|length| *length != MESSAGE_BYTES) {
            assert_eq!(Advert::decode(&message[..length]), None, "{length}");
        }
    }

    fn filled(length: usize, ping: u32) -> Vec<u8> {
        let mut data = vec![0xff; length];
        fill(&mut data, ping);
        data
    }

    #[test]
    fn data_is_that_of_rping() {
        // Output of `rping -v -S 48` for the pings 0, 1 and 58.
        let text = b"rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`ab\0";
        assert_eq!(filled(text.len(), 0), text);
        assert!(filled(48, 1).starts_with(b"rdma-ping-1: BCDE"));
        assert!(filled(48, 57).starts_with(b"rdma-ping-57: zABC"));
        assert!(filled(48, 58).starts_with(b"rdma-ping-58: ABCD"));
    }

    #[test]
    fn letters_start_again() {
        let data = filled(200, 0);
        let again = data.windows(2).find(|pair| pair[0] == b'z');
        assert_eq!(again, Some(&b"zA"[..]));
        assert_eq!(data.iter().filter(|byte| **byte == 0).count(), 1);
        assert_eq!(data.last(), Some(&0));
    }

    #[test]
    fn any_length_is_filled() {
        assert_eq!(filled(0, 3), b"");
        assert_eq!(filled(1, 3), b"\0");
        assert_eq!(filled(5, 3), b"rdma\0");
        assert_eq!(filled(13, 3), b"rdma-ping-3:\0");
        assert_eq!(filled(15, u32::MAX), b"rdma-ping-4294\0");
    }
}
