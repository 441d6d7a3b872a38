// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::nlattr::tests::{attributes, bytes, nest, number, text};
use crate::uapi::error;

/// An NVM subsystem at an address of RDMA.
pub(crate) fn subsystem(subnqn: &str, traddr: &str) -> LogEntry {
    LogEntry {
        trtype: TrType::RDMA,
        adrfam: AdrFam(1),
        subtype: SubType::NVM,
        treq: Treq(4),
        portid: 1,
        trsvcid: "4420".into(),
        subnqn: subnqn.into(),
        traddr: traddr.into(),
        eflags: EFlags(0),
        rdma_prtype: Some(PrType(4)),
        rdma_qptype: Some(QpType(1)),
        rdma_cms: Some(Cms(1)),
        rdma_pkey: Some(0),
    }
}

/// A log with these entries.
pub(crate) fn log(entries: Vec<LogEntry>) -> DiscoveryLog {
    DiscoveryLog {
        genctr: 5,
        numrec: entries.len() as u64,
        entries,
    }
}

/// A message of the dump: the entry of [`subsystem`] as the target sends it, with `changes`.
fn message(changes: &[(usize, &[u8])]) -> Attributes {
    let mut entry = [0; Entry::SIZE];
    let fields: [(usize, &[u8]); 7] = [
        (0, &[1, 1, 2, 4, 1, 0]),
        (6, &[0xff, 0xff, 32, 0]),
        (32, b"4420"),
        (256, b"nqn.x"),
        (512, b"10.0.0.9"),
        (768, &[1, 4, 1]),
        (776, &[0, 0]),
    ];
    for (at, field) in fields.iter().chain(changes) {
        entry[*at..at + field.len()].copy_from_slice(field);
    }
    attributes(vec![bytes(attribute::ENTRY, &entry)])
}

#[test]
fn reads_an_entry() {
    let entry = LogEntry::read(&message(&[])).unwrap();
    assert_eq!(entry, subsystem("nqn.x", "10.0.0.9"));
    let tcp = LogEntry::read(&message(&[(0, &[3])])).unwrap();
    assert_eq!(
        (tcp.trtype, tcp.rdma_prtype, tcp.rdma_pkey),
        (TrType(3), None, None)
    );
}

#[test]
fn invalid_entries_are_refused() {
    let invalid = Err(Malformed::Value(attribute::ENTRY));
    let cases: [(usize, &[u8]); 4] = [
        (512, b"\x1b[2J"),
        (512, &[b'1'; 256]),
        (32, &[b'1'; 32]),
        (256, &[0]),
    ];
    for change in cases {
        assert_eq!(LogEntry::read(&message(&[change])), invalid, "{change:?}");
    }
    let short = attributes(vec![bytes(attribute::ENTRY, &[0; Entry::SIZE - 1])]);
    assert_eq!(LogEntry::read(&short), invalid);
    assert_eq!(
        LogEntry::read(&attributes(vec![])),
        Err(Malformed::Missing("entry"))
    );
}

#[test]
fn a_discovery_is_under_way_or_over_or_failed() {
    let id = || number(attribute::DISCOVERY_ID, 3u32);
    assert_eq!(DiscoveryLog::read(&attributes(vec![id()])).unwrap(), None);
    let over = attributes(vec![
        id(),
        number(attribute::GENERATION, 5u32),
        bytes(attribute::NR_ENTRIES, &u64::MAX.to_ne_bytes()),
    ]);
    let log = DiscoveryLog::read(&over).unwrap().unwrap();
    assert_eq!((log.genctr, log.numrec), (5, u64::MAX));
    let nest = nest(
        attribute::ERROR,
        vec![
            number(error::STAGE, 13u32),
            number(error::ERRNO, libc::ETIMEDOUT),
            text(error::MESSAGE, "no answer"),
        ],
    );
    let failed = DiscoveryLog::read(&attributes(vec![id(), nest])).unwrap_err();
    assert_eq!(failed.message, "no answer");
    assert!(failed.ctrl_error.is_some());
}

#[test]
fn what_is_not_known_has_its_number() {
    assert_eq!(TrType(9).to_string(), "trtype-9");
    assert_eq!(EFlags(0x8001).to_string(), "eflags-32769");
}

#[test]
fn places_are_those_of_any_transport() {
    let place = |traddr: &str, trsvcid: &str| {
        let entry = LogEntry {
            trsvcid: trsvcid.into(),
            ..subsystem("nqn.x", traddr)
        };
        entry.endpoint().to_string()
    };
    assert_eq!(place("2001:db8::1", "4420"), "[2001:db8::1]:4420");
    assert_eq!(place("nn-0x1:pn-0x2", "none"), "nn-0x1:pn-0x2 none");
    assert_eq!(place("0", ""), "0");
}
