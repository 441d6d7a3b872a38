// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::testing::Random;

/// An entry as the kernel's target makes it.
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
    let kind = (entry.transport, entry.family, entry.subsystem_type);
    assert_eq!(kind, (1, 1, 2));
    assert_eq!((entry.requirements, entry.port_id), (4, 4420));
    assert_eq!((entry.controller_id, entry.admin_queue_size), (0xffff, 32));
    assert_eq!(entry.flags, 1);
    assert_eq!((entry.address, entry.service), ("192.0.2.1", "4420"));
    assert_eq!(entry.subsystem.as_str(), "nqn.x");
    let rdma = entry.rdma.unwrap();
    assert_eq!((rdma.queue_pairs, rdma.provider), (1, 5));
    assert_eq!((rdma.connections, rdma.partition), (1, 0xabcd));
}

#[test]
fn only_rdma_has_what_is_particular_to_it() {
    let mut data = entry();
    data[0] = 3;
    assert_eq!(Entry::parse(&data).unwrap().rdma, None);
}

#[test]
fn spaces_fill_texts_to_their_end() {
    let mut data = entry();
    data[32..64].fill(b' ');
    data[32..36].copy_from_slice(b"4420");
    data[512..768].fill(b' ');
    data[512] = b'x';
    let entry = Entry::parse(&data).unwrap();
    assert_eq!((entry.address, entry.service), ("x", "4420"));
}

#[test]
fn broken_texts() {
    let cases: [(usize, &[u8], InvalidEntry); 9] = [
        (32, &[b'1'; 32], InvalidEntry::Endless(Field::Service)),
        (512, &[b'1'; 256], InvalidEntry::Endless(Field::Address)),
        (256, &[b'n'; 256], InvalidEntry::Endless(Field::Subsystem)),
        (
            256,
            &[b'n'; 224],
            InvalidEntry::Name(InvalidNqn::TooLong(224)),
        ),
        (256, &[0], InvalidEntry::Name(InvalidNqn::Empty)),
        (32, b"\n", InvalidEntry::Character(Field::Service)),
        (512, b"\x1b[2J", InvalidEntry::Character(Field::Address)),
        (512, b"\xe4", InvalidEntry::Character(Field::Address)),
        (257, b"\x7f", InvalidEntry::Character(Field::Subsystem)),
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
fn any_bytes_are_printable_or_refused() {
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
            for text in [entry.service, entry.address, entry.subsystem.as_str()] {
                assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            }
        }
    }
    assert!(taken > 1000 && taken < 5000, "{taken}");
}
