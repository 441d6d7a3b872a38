// SPDX-License-Identifier: GPL-2.0

use super::*;

#[test]
fn events_have_words() {
    let cases = [
        (0x0004_0002, "namespaces changed"),
        (0x0001_0300, "persistent internal error"),
        (0x0001_0400, "transient internal error (log page 0x01)"),
        (0x0001_0900, "error 0x9 (log page 0x01)"),
        (
            0x0002_0101,
            "health: temperature beyond a threshold (log page 0x02)",
        ),
        (0x0003_0102, "firmware activation starting (log page 0x03)"),
        (0x000c_0302, "asymmetric namespace access changed"),
        (0x0070_f002, "discovery log changed"),
        (0x0070_f102, "event 0xf1 of type 2 (log page 0x70)"),
    ];
    for (result, words) in cases {
        assert_eq!(AsyncEvent::from_result(result).to_string(), words);
    }
}

#[test]
fn only_supported_events_are_asked_for() {
    assert_eq!(AsyncEventConfig::for_io(0), None);
    assert_eq!(AsyncEventConfig::for_io(!0x900), None);
    assert_eq!(AsyncEventConfig::for_io(0x8000_0900).unwrap().bits(), 0x900);
    assert_eq!(AsyncEventConfig::for_io(0x100).unwrap().bits(), 0x100);
    assert_eq!(AsyncEventConfig::for_discovery(!0x8000_0000), None);
    let events = AsyncEventConfig::for_discovery(0x8000_0900).unwrap();
    assert_eq!(events.bits(), 0x8000_0000);
}

#[test]
fn results() {
    let cases = [
        (0x0004_0002, AsyncEvent::NamespacesChanged),
        (
            0x0003_0102,
            AsyncEvent::Other {
                kind: 2,
                information: 1,
                log_page: 3,
            },
        ),
        (0x0001_0300, AsyncEvent::PersistentError),
        (0xff04_00fa, AsyncEvent::NamespacesChanged),
        (0x000c_0302, AsyncEvent::AnaChanged),
        (0x0070_f002, AsyncEvent::DiscoveryChanged),
        (
            0x0070_f001,
            AsyncEvent::Other {
                kind: 1,
                information: 0xf0,
                log_page: 0x70,
            },
        ),
        (
            0x0002_0101,
            AsyncEvent::Other {
                kind: 1,
                information: 1,
                log_page: 2,
            },
        ),
        (
            0x0000_0000,
            AsyncEvent::Other {
                kind: 0,
                information: 0,
                log_page: 0,
            },
        ),
        (
            0x0004_0307,
            AsyncEvent::Other {
                kind: 7,
                information: 3,
                log_page: 4,
            },
        ),
    ];
    for (result, event) in cases {
        assert_eq!(AsyncEvent::from_result(result), event, "{result:#x}");
    }
}
