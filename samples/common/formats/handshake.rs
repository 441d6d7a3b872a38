// SPDX-License-Identifier: GPL-2.0

//! How the ping-pong programs of libibverbs write down the end of a connection.
//!
//! A text of fixed length and the NUL after it, `LID:QPN:PSN:GID` in hexadecimal:
//!
//! ```text
//! 0000:000011:3f60a5:00000000000000000000ffffc0000201\0
//! ```
//!
//! So `libibverbs/examples/rc_pingpong.c` of rdma-core sends it, and
//! `srq_pingpong.c` one for each queue pair. The programs read it with `sscanf`,
//! which takes much else; here only this is taken, but with digits of either case.

use core::{
    fmt,
    net::Ipv6Addr, //
};

/// Bytes of a [`PingpongDest`] as it is sent, the NUL included.
pub const DEST_BYTES: usize = 52;

/// What the client says when it is ready for data, the NUL included.
pub const DONE: &[u8; 5] = b"done\0";

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// One end of a connection: what the other has to know of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingpongDest {
    /// The LID of the port; zero with RoCE.
    pub lid: u16,
    /// The number of the queue pair, 24 bits.
    pub qpn: u32,
    /// The first packet sequence number that it sends, 24 bits.
    pub psn: u32,
    /// The GID of the port, in the order of the wire.
    pub gid: [u8; 16],
}

impl fmt::Display for PingpongDest {
    /// As the programs print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lid, qpn, psn, gid } = self;
        let gid = Ipv6Addr::from(*gid);
        write!(
            f,
            "LID {lid:#06x}, QPN {qpn:#08x}, PSN {psn:#08x}, GID {gid}"
        )
    }
}

/// What is wrong with bytes that should be a [`PingpongDest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// There are so many, and not [`DEST_BYTES`].
    Length(usize),
    /// There is no colon between the fields, or no NUL at the end, at this byte.
    Separator(usize),
    /// The byte at this place is no hexadecimal digit.
    Digit(usize),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "{length} bytes and not {DEST_BYTES}"),
            Self::Separator(place) => write!(f, "the field does not end at byte {place}"),
            Self::Digit(place) => write!(f, "no hexadecimal digit at byte {place}"),
        }
    }
}

impl PingpongDest {
    /// The bytes to send. Of the numbers only the lower 24 bits count.
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

    /// Reads what [`encode`](Self::encode) writes.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with the bytes.
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

/// Writes a field of two digits a byte, and what ends it.
fn put<'a>(rest: &mut impl Iterator<Item = &'a mut u8>, field: &[u8], end: u8) {
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or_default();
    let digits = field
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]);
    // The field is first, so that it takes nothing from `rest` when it is over.
    for (text, place) in digits.chain([end]).zip(rest) {
        *place = text;
    }
}

/// Reads a field of two digits a byte, and what ends it.
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
