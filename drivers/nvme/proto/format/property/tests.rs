// SPDX-License-Identifier: GPL-2.0

use super::*;

/// CAP of nvmet: 1024 entries, timeout 15, NVM and selectable command sets.
const NVMET: Capabilities = Capabilities((1 << 43) | (1 << 37) | (15 << 24) | (1 << 16) | 1023);

#[test]
fn capabilities() {
    assert_eq!(NVMET.max_queue_entries_zero_based(), 1023);
    assert_eq!(NVMET.timeout_units(), 15);
    assert_eq!(NVMET.min_page_shift(), 12);
    assert!(!NVMET.has_ready_timeouts());
    let all = Capabilities(u64::MAX);
    assert_eq!(all.max_queue_entries_zero_based(), 0xffff);
    assert_eq!(all.timeout_units(), 255);
    assert_eq!(all.min_page_shift(), 27);
    assert!(all.has_ready_timeouts());
}

#[test]
fn configurations() {
    let selectable = NVMET.configure().unwrap();
    assert_eq!(selectable.get(), 0x0046_0060);
    let enabled = selectable.enabled();
    assert_eq!(enabled.get(), 0x0046_0061);
    assert_eq!(enabled.enabled(), enabled);
    assert_eq!(enabled.shut_down().get(), 0x0046_4061);
    assert_eq!(enabled.shut_down().disabled().get(), 0x0046_0060);
    assert_eq!(selectable.shut_down().enabled().get(), 0x0046_0061);
    for sets in [1 << 37, 1 << 44] {
        assert_eq!(Capabilities(sets).configure().unwrap().get(), 0x0046_0000);
    }
}

#[test]
fn refusals() {
    assert_eq!(
        Capabilities(0).configure(),
        Err(Unsupported::CommandSets(0))
    );
    assert_eq!(
        Capabilities(1 << 38).configure(),
        Err(Unsupported::CommandSets(2))
    );
    let large_pages = Capabilities(NVMET.0 | (4 << 48)).configure();
    assert_eq!(large_pages, Err(Unsupported::PageShift(16)));
    assert!(large_pages.unwrap_err().to_string().contains("2^16"));
}

#[test]
fn timeouts() {
    let cases = [
        (0, None, 500),
        (15, None, 7_500),
        (255, None, 127_500),
        (15, Some(0xffff_0010), 8_000),
        (15, Some(0xffff_0002), 7_500),
        (0, Some(0xffff_ffff), 32_767_500),
    ];
    for (units, timeouts, expected) in cases {
        let capabilities = Capabilities(units << 24);
        let ready = capabilities.ready_timeout_ms(timeouts.map(ReadyTimeouts));
        assert_eq!(ready, expected, "{units} {timeouts:?}");
    }
    assert_eq!(NVMET.disable_timeout_ms(), 7_500);
}

#[test]
fn status() {
    use Progress::{Done, Failed, Wait};
    let cases = [
        (0x0000_0000, Wait, Done, Wait),
        (0x0000_0001, Done, Wait, Wait),
        (0x0000_0002, Failed, Done, Failed),
        (0x0000_0003, Failed, Wait, Failed),
        (0x0000_0005, Done, Wait, Wait),
        (0x0000_0009, Done, Wait, Done),
        (0x0000_000c, Wait, Done, Wait),
        (0xffff_ffff, Failed, Failed, Failed),
    ];
    for (value, enabling, disabling, shutting_down) in cases {
        let status = ControllerStatus(value);
        assert_eq!(status.enabling(), enabling, "{value:#x}");
        assert_eq!(status.disabling(), disabling, "{value:#x}");
        assert_eq!(status.shutting_down(), shutting_down, "{value:#x}");
    }
}

#[test]
fn versions() {
    assert_eq!(Version::new(2, 1, 0), Version(0x0002_0100));
    assert!(Version::new(1, 4, 9) < Version::new(2, 0, 0));
    assert_eq!(Version(0x0001_0302).to_string(), "1.3.2");
}
