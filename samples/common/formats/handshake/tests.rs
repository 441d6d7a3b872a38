// SPDX-License-Identifier: GPL-2.0

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

/// Decodes `TEXT` with the bytes from `place` on replaced.
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
    assert_eq!(text(Malformed::Length(5)), "got 5 bytes, expected 52");
    assert_eq!(
        text(Malformed::Digit(7)),
        "not a hexadecimal digit at byte 7"
    );
    assert_eq!(
        text(Malformed::Separator(4)),
        "no field separator at byte 4"
    );
}
