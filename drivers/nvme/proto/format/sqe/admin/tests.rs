// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::format::sqe::testing::entry;
use crate::format::sqe::Direction;

#[test]
fn identify() {
    let cases = [
        (Identify::Namespace(5), 5, 0x00),
        (Identify::Controller, 0, 0x01),
        (Identify::ActiveNamespacesAfter(9), 9, 0x02),
        (Identify::NamespaceDescriptors(5), 5, 0x03),
        (Identify::NvmNamespace(5), 5, 0x05),
        (Identify::NvmController, 0, 0x06),
        (Identify::NamespaceIndependent(5), 5, 0x08),
    ];
    for (what, nsid, cns) in cases {
        let command = Command::identify(what);
        assert_eq!(*command.as_bytes(), entry(0x06, nsid, [cns, 0, 0, 0, 0, 0]));
        assert_eq!(command.direction(), Direction::FromTarget);
    }
}

#[test]
fn features() {
    let events = AsyncEventConfig::for_io(u32::MAX).unwrap();
    let cases = [
        (Feature::NumberOfQueues(NonZeroU16::MIN), 0x07, 0),
        (
            Feature::NumberOfQueues(NonZeroU16::new(8).unwrap()),
            0x07,
            0x0007_0007,
        ),
        (Feature::NumberOfQueues(NonZeroU16::MAX), 0x07, 0xfffe_fffe),
        (Feature::AsyncEvents(events), 0x0b, events.bits()),
        (Feature::HostBehavior, 0x16, 0),
    ];
    for (feature, id, value) in cases {
        let set = Command::set_feature(feature);
        assert_eq!(*set.as_bytes(), entry(0x09, 0, [id, value, 0, 0, 0, 0]));
    }
}

#[test]
fn behavior_of_the_host() {
    for advanced_retry in [false, true] {
        let mut block = [0xff; HostBehavior::SIZE];
        HostBehavior { advanced_retry }.encode(&mut block);
        let mut expected = [0; 512];
        expected[0] = advanced_retry.into();
        assert_eq!(block, expected);
    }
    let set = Command::set_feature(Feature::HostBehavior);
    assert_eq!(set.direction(), Direction::ToTarget);
}

#[test]
fn log_pages() {
    let part = LogPage::discovery(0x1_0000_0400, 4 * 0x0123_4568).unwrap();
    let longest = LogPage::discovery(0, 1 << 34).unwrap();
    let cases = [
        (part, 4 * 0x0123_4568, [0x4567_0070, 0x123, 0x400, 1, 0, 0]),
        (longest, 1 << 34, [0xffff_0070, 0xffff, 0, 0, 0, 0]),
        (
            LogPage::CHANGED_NAMESPACES,
            4096,
            [0x03ff_0004, 0, 0, 0, 0, 0],
        ),
        (LogPage::EFFECTS, 4096, [0x03ff_0005, 0, 0, 0, 0, 0]),
    ];
    for (page, length, dwords) in cases {
        assert_eq!(page.length(), length);
        let command = Command::get_log_page(page);
        assert_eq!(*command.as_bytes(), entry(0x02, u32::MAX, dwords));
    }
}

#[test]
fn impossible_log_pages() {
    for len in [0, 1, 3, 4097, (1 << 34) + 4, u64::MAX, u64::MAX - 3] {
        assert_eq!(LogPage::discovery(0, len), None, "{len}");
    }
    for offset in [1, 2, 3, u64::MAX] {
        assert_eq!(LogPage::discovery(offset, 4), None);
    }
}

#[test]
fn without_parameters() {
    assert_eq!(
        *Command::async_event_request().as_bytes(),
        entry(0x0c, 0, [0; 6])
    );
    assert_eq!(*Command::keep_alive().as_bytes(), entry(0x18, 0, [0; 6]));
}
