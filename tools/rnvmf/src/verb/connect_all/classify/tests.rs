// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::model::discovery::tests::subsystem;
use crate::model::discovery::{AdrFam, EFlags};
use uuid::Uuid;

fn discovery(traddr: &str) -> Target {
    Target {
        traddr: traddr.into(),
        trsvcid: 8009,
        subsysnqn: "nqn.2014-08.org.nvmexpress.discovery".into(),
        hostnqn: "nqn.h".into(),
        hostid: Uuid::from_bytes([1; 16]),
        host_traddr: Some("10.0.0.1".into()),
        connect_timeout: 3000,
        tos: Some(9),
    }
}

#[test]
fn a_subsystem_is_reached_as_the_log_was() {
    let entry = subsystem("nqn.x", "10.0.1.9");
    let expected = Target {
        traddr: "10.0.1.9".into(),
        trsvcid: 4420,
        subsysnqn: "nqn.x".into(),
        ..discovery("10.0.0.9")
    };
    assert_eq!(
        classify(&entry, &discovery("10.0.0.9")),
        LogEntryClass::Subsystem(expected)
    );
}

#[test]
fn a_referral_is_followed_unless_it_leads_to_the_same() {
    let entry = |subtype, eflags| LogEntry {
        subtype,
        eflags: EFlags(eflags),
        ..subsystem("nqn.x", "10.0.1.9")
    };
    let sorted = |subtype, eflags| classify(&entry(subtype, eflags), &discovery("10.0.0.9"));
    assert!(matches!(
        sorted(SubType::REFERRAL, 0),
        LogEntryClass::Referral(_)
    ));
    assert_eq!(sorted(SubType::REFERRAL, 1), LogEntryClass::Known);
    assert_eq!(sorted(SubType::CURRENT, 0), LogEntryClass::Known);
    assert!(matches!(
        sorted(SubType(9), 0),
        LogEntryClass::Unsupported(_)
    ));
}

#[test]
fn a_link_local_address_is_on_the_link_of_the_log() {
    for (traddr, at, found) in [
        ("fe80::9", "fe80::1%eth0", Some("fe80::9%eth0")),
        ("fe80::9%eth7", "fe80::1%eth0", Some("fe80::9%eth0")),
        ("2001:db8::9", "fe80::1%eth0", Some("2001:db8::9")),
        ("fe80::9", "2001:db8::1", None),
        ("fe80::9%eth7", "10.0.0.9", None),
    ] {
        let address = address(traddr, &discovery(at)).ok();
        let address = address.map(|address| address.to_string());
        assert_eq!(address.as_deref(), found, "{traddr}");
    }
}

#[test]
fn what_cannot_be_reached_has_a_reason() {
    let good = || subsystem("nqn.x", "10.0.1.9");
    for entry in [
        LogEntry {
            trtype: TrType(3),
            ..good()
        },
        LogEntry {
            adrfam: AdrFam(3),
            ..good()
        },
        LogEntry {
            trsvcid: "none".into(),
            ..good()
        },
        LogEntry {
            trsvcid: "0".into(),
            ..good()
        },
        LogEntry {
            invalid: Some("SUBNQN: the name is not UTF-8".into()),
            ..good()
        },
        subsystem("nqn.x", "nn-0x1:pn-0x2"),
        // The source address has the other family.
        subsystem("nqn.x", "2001:db8::9"),
    ] {
        let sorted = classify(&entry, &discovery("10.0.0.9"));
        assert!(matches!(sorted, LogEntryClass::Unsupported(_)), "{entry:?}");
    }
}
