// SPDX-License-Identifier: GPL-2.0

use super::*;
use serde_json::{from_value, json, Value};

/// Returns the entry of an NVM subsystem at an RDMA address.
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
        invalid: None,
    }
}

/// Returns a log with these entries.
pub(crate) fn log(entries: Vec<LogEntry>) -> DiscoveryLog {
    DiscoveryLog {
        genctr: 5,
        numrec: entries.len() as u64,
        entries,
    }
}

/// Returns a reply: the entry of [`subsystem`] as the target sends it, with `changes`.
fn message(changes: &[(usize, &[u8])]) -> Value {
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
    json!({"entry": entry.map(|byte| format!("{byte:02x}")).concat()})
}

#[test]
fn reads_an_entry() {
    let entry: LogEntry = from_value(message(&[])).unwrap();
    assert_eq!(entry, subsystem("nqn.x", "10.0.0.9"));
    let tcp: LogEntry = from_value(message(&[(0, &[3])])).unwrap();
    assert_eq!(
        (tcp.trtype, tcp.rdma_prtype, tcp.rdma_pkey),
        (TrType(3), None, None)
    );
}

#[test]
fn an_invalid_text_is_escaped_and_named() {
    let cases: [(usize, &[u8], [&str; 3], &str); 4] = [
        (
            512,
            b"\x1b[2J",
            ["nqn.x", "4420", "\\x1b[2J.0.9"],
            "TRADDR: not printable ASCII",
        ),
        (
            32,
            b"44\xff",
            ["nqn.x", "44\\xff0", "10.0.0.9"],
            "TRSVCID: not printable ASCII",
        ),
        (
            256,
            &[0],
            ["", "4420", "10.0.0.9"],
            "SUBNQN: the name is empty",
        ),
        (
            256,
            b"a\n\xe4",
            ["a\\n\\xe4.x", "4420", "10.0.0.9"],
            "SUBNQN: the name holds a NUL or a newline",
        ),
    ];
    for (at, field, [subnqn, trsvcid, traddr], why) in cases {
        let expected = LogEntry {
            trsvcid: trsvcid.into(),
            invalid: Some(why.into()),
            ..subsystem(subnqn, traddr)
        };
        let entry: LogEntry = from_value(message(&[(at, field)])).unwrap();
        assert_eq!(entry, expected);
    }
    let long: LogEntry = from_value(message(&[(512, &[b'1'; 256]), (32, &[b'2'; 32])])).unwrap();
    assert_eq!(long.traddr, "1".repeat(256));
    assert_eq!(
        long.invalid.as_deref(),
        Some("TRSVCID: not terminated; TRADDR: not terminated")
    );
}

#[test]
fn a_name_may_be_utf8() {
    let name = "nqn.\u{e4}\u{6f22}";
    let entry: LogEntry = from_value(message(&[(256, name.as_bytes())])).unwrap();
    assert_eq!(entry, subsystem(name, "10.0.0.9"));
}

#[test]
fn messages_without_an_entry_are_refused() {
    for invalid in [json!({}), json!({"entry": "0102"}), json!({"entry": "0g"})] {
        assert!(from_value::<LogEntry>(invalid).is_err());
    }
}

#[test]
fn a_discovery_is_under_way_or_over_or_failed() {
    let log = |reply| from_value::<DiscoveryReply>(reply).unwrap().log();
    assert_eq!(log(json!({"discovery_id": 3})).unwrap(), None);
    let over = json!({"discovery_id": 3, "generation": 5, "nr_entries": u64::MAX});
    let over = log(over).unwrap().unwrap();
    assert_eq!((over.genctr, over.numrec), (5, u64::MAX));
    let error = json!({"stage": 13, "errno": libc::ETIMEDOUT, "message": "no answer"});
    let failed = log(json!({"discovery_id": 3, "error": error})).unwrap_err();
    assert_eq!(failed.message, "no answer");
    assert_eq!(failed.ctrl_error.unwrap().next_attempt, None);
    let failed = log(json!({"discovery_id": 3, "error": error, "next_attempt": 250}));
    let ctrl_error = failed.unwrap_err().ctrl_error.unwrap();
    assert_eq!(ctrl_error.next_attempt, Some(250));
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
