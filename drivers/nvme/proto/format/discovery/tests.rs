// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::testing::Random;

/// An entry as the Linux target makes it.
fn entry() -> Vec<u8> {
    let mut data = vec![0; Entry::SIZE];
    data[..4].copy_from_slice(&[1, 1, 2, 0x04]);
    data[4..12].copy_from_slice(&[0x44, 0x11, 0xff, 0xff, 32, 0, 1, 0]);
    data[32..36].copy_from_slice(b"4420");
    data[256..261].copy_from_slice(b"nqn.x");
    data[512..521].copy_from_slice(b"192.0.2.1");
    data[768..771].copy_from_slice(&[1, 5, 1]);
    data[776..778].copy_from_slice(&[0xcd, 0xab]);
    data
}

#[test]
fn headers() {
    let mut data = vec![0; 1024];
    data[..16].copy_from_slice(&[7, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0x80]);
    let header = Header::parse(&data).unwrap();
    assert_eq!(header.generation, 0x0100_0000_0000_0007);
    assert_eq!(header.entries, 0x8000_0000_0000_0003);
    data[16] = 1;
    assert_eq!(Header::parse(&data), Err(InvalidLog::Format(1)));
    assert_eq!(Header::parse(&data[1..]), Err(InvalidLog::Short(1023)));
}

#[test]
fn entries() {
    let data = entry();
    let entry = Entry::parse(&data).unwrap();
    let kind = (entry.trtype, entry.adrfam, entry.subtype);
    assert_eq!(kind, (1, 1, 2));
    assert_eq!((entry.treq, entry.portid), (4, 4420));
    assert_eq!((entry.cntlid, entry.asqsz), (0xffff, 32));
    assert_eq!(entry.eflags, 1);
    assert_eq!((entry.traddr, entry.trsvcid), (Ok("192.0.2.1"), Ok("4420")));
    assert_eq!(entry.subnqn.unwrap().as_str(), "nqn.x");
    let tsas = entry.tsas.unwrap();
    assert_eq!((tsas.qptype, tsas.prtype), (1, 5));
    assert_eq!((tsas.cms, tsas.pkey), (1, 0xabcd));
}

#[test]
fn only_rdma_entries_have_its_tsas() {
    let mut data = entry();
    data[0] = 3;
    assert_eq!(Entry::parse(&data).unwrap().tsas, None);
}

#[test]
fn spaces_pad_strings() {
    let mut data = entry();
    data[32..64].fill(b' ');
    data[32..36].copy_from_slice(b"4420");
    data[512..768].fill(b' ');
    data[512] = b'x';
    let entry = Entry::parse(&data).unwrap();
    assert_eq!((entry.traddr, entry.trsvcid), (Ok("x"), Ok("4420")));
}

#[test]
fn names_are_utf8() {
    let name = "nqn.2024-01.example:\u{e4}\u{6f22}";
    let mut data = entry();
    data[256..256 + name.len()].copy_from_slice(name.as_bytes());
    assert_eq!(Entry::parse(&data).unwrap().subnqn.unwrap().as_str(), name);
}

#[test]
fn an_invalid_text_spoils_no_other_field() {
    use InvalidTextReason::{Control, Name, NotAscii, Unterminated};
    let cases: [(usize, &[u8], InvalidTextReason); 11] = [
        (32, &[b'1'; 32], Unterminated),
        (32, b"\n", NotAscii),
        (32, b"\xff", NotAscii),
        (512, &[b'1'; 256], Unterminated),
        (512, b"\x1b[2J", NotAscii),
        (512, b"\xe4", NotAscii),
        (256, &[b'n'; 256], Name(InvalidNqn::TooLong(256))),
        (256, &[0], Name(InvalidNqn::Empty)),
        (256, b"\xe4", Name(InvalidNqn::NotUtf8)),
        (256, b"\x7f", Control),
        (256, "\u{9b}".as_bytes(), Control),
    ];
    for (at, bytes, why) in cases {
        let mut data = entry();
        data[at..at + bytes.len()].copy_from_slice(bytes);
        let entry = Entry::parse(&data).unwrap();
        let errors = [
            (32, entry.trsvcid.err()),
            (256, entry.subnqn.err()),
            (512, entry.traddr.err()),
        ];
        for (field, error) in errors {
            let expected = (field == at).then_some(why);
            assert_eq!(error.map(|error| error.why), expected, "{at} {bytes:?}");
        }
        let found = errors.into_iter().find_map(|(_, error)| error).unwrap();
        let kept = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        assert!(found.bytes.starts_with(kept), "{found:?}");
        assert!(!why.to_string().is_empty());
        assert_eq!(entry.portid, 4420);
    }
    assert_eq!(Entry::parse(&entry()[1..]), None);
}

#[test]
fn valid_texts_are_printable() {
    let mut random = Random::new(70);
    let mut valid = 0;
    for _ in 0..5000 {
        let mut data = entry();
        for _ in 0..random.below(4) {
            let at = random.below(Entry::SIZE);
            random.fill(&mut data[at..at + 1]);
        }
        let entry = Entry::parse(&data).unwrap();
        for text in [entry.trsvcid, entry.traddr].into_iter().flatten() {
            valid += 1;
            assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        }
        if let Ok(name) = entry.subnqn {
            assert!(!name.as_str().contains(char::is_control));
        }
    }
    assert!(valid > 5000 && valid < 10000, "{valid}");
}

#[test]
fn errors_of_a_log_name_their_cause() {
    assert_eq!(
        InvalidLog::Short(9).to_string(),
        "9 bytes are too short for a header"
    );
    assert_eq!(InvalidLog::Format(2).to_string(), "unknown record format 2");
}
