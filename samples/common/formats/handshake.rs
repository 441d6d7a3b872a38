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
mod tests {
    use super::*;

    const TEXT: &[u8; DEST_BYTES] = b"0012:0000ab:3f60a5:20010db8000000000000ffffc0000201\0";

    fn end() -> PingpongDest {
        PingpongDest {
            lid: 0x12,
            qpn: 0xab,
            psn: 0x3f60a5,
            gid: 0x2001_0db8_0000_0000_0000_ffff_c000_0201_u128.to_be_bytes(),
        }
    }

    /// `TEXT` with the bytes from `place` on replaced.
    fn with(place: usize, bytes: &[u8]) -> Result<PingpongDest, Malformed> {
        let mut text = *TEXT;
        for (text, byte) in text[place..].iter_mut().zip(bytes) {
            *text = *byte;
        }
        PingpongDest::decode(&text)
    }

    #[test]
    fn is_written_as_sprintf_does() {
        assert_eq!(end().encode(), *TEXT);
        let ones = PingpongDest {
            lid: u16::MAX,
            qpn: 0xffffff,
            psn: 0xffffff,
            gid: [0xff; 16],
        };
        let text = b"ffff:ffffff:ffffff:ffffffffffffffffffffffffffffffff\0";
        assert_eq!(ones.encode(), *text);
        assert_eq!(PingpongDest::decode(text), Ok(ones));
    }

    #[test]
    fn numbers_have_24_bits() {
        let large = PingpongDest {
            qpn: 0xff00_0001,
            psn: u32::MAX,
            ..end()
        };
        let read = PingpongDest::decode(&large.encode());
        assert_eq!(read.map(|end| (end.qpn, end.psn)), Ok((1, 0xffffff)));
    }

    #[test]
    fn is_read_back() {
        assert_eq!(PingpongDest::decode(TEXT), Ok(end()));
        assert_eq!(PingpongDest::decode(&TEXT.to_ascii_uppercase()), Ok(end()));
    }

    #[test]
    fn short_and_long_is_refused() {
        for length in [0, 1, 5, DEST_BYTES - 1] {
            let wrong = Err(Malformed::Length(length));
            assert_eq!(PingpongDest::decode(&TEXT[..length]), wrong);
        }
        let long = [&TEXT[..], b"\0"].concat();
        assert_eq!(
            PingpongDest::decode(&long),
            Err(Malformed::Length(DEST_BYTES + 1))
        );
    }

    #[test]
    fn what_is_no_digit_is_refused() {
        for wrong in [b"g", b" ", b"-", b"+", b"x", b":", b"\0", b"\xff"] {
            for place in [0, 3, 5, 10, 12, 17, 19, 50] {
                assert_eq!(with(place, wrong), Err(Malformed::Digit(place)));
            }
        }
        assert_eq!(with(5, b"0x00ab"), Err(Malformed::Digit(6)));
    }

    #[test]
    fn fields_that_are_longer_or_end_elsewhere_are_refused() {
        assert_eq!(with(4, b"0"), Err(Malformed::Separator(4)));
        assert_eq!(with(11, b"1"), Err(Malformed::Separator(11)));
        assert_eq!(with(18, b"f"), Err(Malformed::Separator(18)));
        assert_eq!(with(51, b"0"), Err(Malformed::Separator(51)));
        assert_eq!(with(4, b";"), Err(Malformed::Separator(4)));
    }

    #[test]
    fn is_shown_as_the_programs_do() {
        let end = PingpongDest {
            gid: 0xffff_c000_0201_u128.to_be_bytes(),
            ..end()
        };
        let text = "LID 0x0012, QPN 0x0000ab, PSN 0x3f60a5, GID ::ffff:192.0.2.1";
        assert_eq!(end.to_string(), text);
    }

    #[test]
    fn says_what_is_wrong() {
        let text = |wrong: Malformed| wrong.to_string();
        assert_eq!(text(Malformed::Length(5)), "5 bytes and not 52");
        assert_eq!(text(Malformed::Digit(7)), "no hexadecimal digit at byte 7");
        assert_eq!(
            text(Malformed::Separator(4)),
            "the field does not end at byte 4"
        );
    }
}
