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
    assert_eq!((entry.traddr, entry.trsvcid), ("192.0.2.1", "4420"));
    assert_eq!(entry.subnqn.as_str(), "nqn.x");
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
    assert_eq!((entry.traddr, entry.trsvcid), ("x", "4420"));
}

#[test]
fn invalid_strings_are_refused() {
    let cases: [(usize, &[u8], InvalidEntry); 9] = [
        (32, &[b'1'; 32], InvalidEntry::Unterminated("TRSVCID")),
        (512, &[b'1'; 256], InvalidEntry::Unterminated("TRADDR")),
        (256, &[b'n'; 256], InvalidEntry::Unterminated("SUBNQN")),
        (
            256,
            &[b'n'; 224],
            InvalidEntry::Name(InvalidNqn::TooLong(224)),
        ),
        (256, &[0], InvalidEntry::Name(InvalidNqn::Empty)),
        (32, b"\n", InvalidEntry::NotPrintable("TRSVCID")),
        (512, b"\x1b[2J", InvalidEntry::NotPrintable("TRADDR")),
        (512, b"\xe4", InvalidEntry::NotPrintable("TRADDR")),
        (257, b"\x7f", InvalidEntry::NotPrintable("SUBNQN")),
    ];
    for (at, bytes, why) in cases {
        let mut data = entry();
        data[at..at + bytes.len()].copy_from_slice(bytes);
        assert_eq!(Entry::parse(&data), Err(why), "{at}");
        assert!(!why.to_string().is_empty());
    }
    let short = InvalidEntry::Short(1023);
    assert_eq!(Entry::parse(&entry()[1..]), Err(short));
    let nothing = [0; Entry::SIZE];
    assert!(Entry::parse(&nothing).is_err());
}

#[test]
fn strings_are_printable_or_refused() {
    let mut random = Random::new(70);
    let mut taken = 0;
    for _ in 0..5000 {
        let mut data = entry();
        for _ in 0..random.below(4) {
            let at = random.below(Entry::SIZE);
            random.fill(&mut data[at..at + 1]);
        }
        if let Ok(entry) = Entry::parse(&data) {
            taken += 1;
            for text in [entry.trsvcid, entry.traddr, entry.subnqn.as_str()] {
                assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            }
        }
    }
    assert!(taken > 1000 && taken < 5000, "{taken}");
}
