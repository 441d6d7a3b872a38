// SPDX-License-Identifier: GPL-2.0

//! The format in which the ping-pong programs of libibverbs exchange queue pair addresses.
//!
//! A text of fixed length, `LID:QPN:PSN:GID` in hexadecimal, terminated by NUL:
//!
//! ```text
//! 0000:000011:3f60a5:00000000000000000000ffffc0000201\0
//! ```
//!
//! It is sent by `libibverbs/examples/rc_pingpong.c` of rdma-core; `srq_pingpong.c` sends one for
//! each queue pair. The programs parse it with `sscanf()`, which accepts other formats as well.
//! [`PingpongDest::decode`] only accepts this one, with digits in upper or lower case.

use core::{
    fmt,
    net::Ipv6Addr, //
};

/// Length of an encoded [`PingpongDest`] in bytes, including the NUL.
pub const DEST_BYTES: usize = 52;

/// Last message of the client: it is ready for data. Includes the NUL.
pub const DONE: &[u8; 5] = b"done\0";

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Address of a queue pair, as the peer needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingpongDest {
    /// LID of the port; 0 with RoCE.
    pub lid: u16,
    /// Queue pair number, 24 bits.
    pub qpn: u32,
    /// Packet sequence number of the first packet that it sends, 24 bits.
    pub psn: u32,
    /// GID of the port, in network byte order.
    pub gid: [u8; 16],
}

impl fmt::Display for PingpongDest {
    /// Prints the address as the programs do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lid, qpn, psn, gid } = self;
        let gid = Ipv6Addr::from(*gid);
        write!(
            f,
            "LID {lid:#06x}, QPN {qpn:#08x}, PSN {psn:#08x}, GID {gid}"
        )
    }
}

/// Why bytes are not a valid [`PingpongDest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The length is not [`DEST_BYTES`].
    Length(usize),
    /// At this offset, a colon or the final NUL is missing.
    Separator(usize),
    /// The byte at this offset is not a hexadecimal digit.
    Digit(usize),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "got {length} bytes, expected {DEST_BYTES}"),
            Self::Separator(place) => write!(f, "no field separator at byte {place}"),
            Self::Digit(place) => write!(f, "not a hexadecimal digit at byte {place}"),
        }
    }
}

impl PingpongDest {
    /// Returns the bytes to send. Drops bits of `qpn` and `psn` above the lower 24.
    pub fn encode(&self) -> [u8; DEST_BYTES] {
        let [_, qpn @ ..] = self.qpn.to_be_bytes();
        let [_, psn @ ..] = self.psn.to_be_bytes();
        let mut bytes = [0; DEST_BYTES];
        let mut rest = bytes.iter_mut();
        put(&mut rest, &self.lid.to_be_bytes(), b':');
        put(&mut rest, &qpn, b':');
        put(&mut rest, &psn, b':');
        put(&mut rest, &self.gid, 0);
        bytes
    }

    /// Parses the output of [`encode`](Self::encode).
    ///
    /// # Errors
    ///
    /// The first invalid byte, or the wrong length.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() != DEST_BYTES {
            return Err(Malformed::Length(bytes.len()));
        }
        let mut rest = (0..DEST_BYTES).zip(bytes.iter().copied());
        let lid = take(&mut rest, b':')?;
        let [qpn_high, qpn_middle, qpn_low] = take(&mut rest, b':')?;
        let [psn_high, psn_middle, psn_low] = take(&mut rest, b':')?;
        let gid = take(&mut rest, 0)?;
        Ok(Self {
            lid: u16::from_be_bytes(lid),
            qpn: u32::from_be_bytes([0, qpn_high, qpn_middle, qpn_low]),
            psn: u32::from_be_bytes([0, psn_high, psn_middle, psn_low]),
            gid,
        })
    }
}

/// Writes a field, two digits for each byte, and the terminator `end`.
fn put<'a>(rest: &mut impl Iterator<Item = &'a mut u8>, field: &[u8], end: u8) {
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or_default();
    let digits = field
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]);
    // `zip()` takes from its first iterator first. So it takes no place from `rest` when the field
    // has ended.
    for (text, place) in digits.chain([end]).zip(rest) {
        *place = text;
    }
}

/// Reads a field, two digits for each byte, and the terminator `end`.
fn take<const N: usize>(
    rest: &mut impl Iterator<Item = (usize, u8)>,
    end: u8,
) -> Result<[u8; N], Malformed> {
    let mut field = [0; N];
    for byte in &mut field {
        for (place, text) in rest.by_ref().take(2) {
            let digit = char::from(text)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok());
            *byte = (*byte << 4) | digit.ok_or(Malformed::Digit(place))?;
        }
    }
    match rest.next() {
        Some((_, text)) if text == end => Ok(field),
        Some((place, _)) => Err(Malformed::Separator(place)),
        None => Err(Malformed::Separator(DEST_BYTES)),
    }
}

#[cfg(test)]
mod tests;
