// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::format::sqe::testing::entry;
use crate::format::sqe::Direction;

const RANGE: BlockRange = BlockRange {
    start: 0x1122_3344_5566_7788,
    count: BlockCount(0xff),
};

#[test]
fn kinds_are_of_io_queues() {
    let range = RANGE;
    let hints = RwFlags::default();
    let commands = [
        (Command::read(1, range, hints), IoOp::Read),
        (Command::write(1, range, hints), IoOp::Write),
        (Command::flush(1), IoOp::Flush),
        (
            Command::write_zeroes(1, range, Deallocate::Allowed, Protection::None),
            IoOp::Other,
        ),
    ];
    for (command, kind) in commands {
        assert_eq!(command.io_op(1), kind);
        assert_eq!(command.io_op(u16::MAX), kind);
        assert_eq!(command.io_op(0), IoOp::Other);
    }
    let connect = Command::with_fabrics_type(1);
    assert_eq!(connect.io_op(1), IoOp::Other);
}

#[test]
fn a_kind_is_an_index_below_the_number_of_kinds() {
    let kinds = [IoOp::Read, IoOp::Write, IoOp::Flush, IoOp::Other];
    assert!(kinds
        .into_iter()
        .map(|kind| kind as usize)
        .eq(0..IoOp::COUNT));
}

#[test]
fn block_counts() {
    assert_eq!(BlockCount::new(0), None);
    assert_eq!(BlockCount::new(1), Some(BlockCount(0)));
    assert_eq!(BlockCount::new(65536), Some(BlockCount(0xffff)));
    assert_eq!(BlockCount::new(65537), None);
    assert_eq!(BlockCount::new(u32::MAX), None);
    for count in [1, 2, 255, 256, 65535, 65536] {
        assert_eq!(BlockCount::new(count).unwrap().get(), count);
    }
}

#[test]
fn read_and_write() {
    let plain = RwFlags::default();
    let all = RwFlags {
        force_unit_access: true,
        limited_retry: true,
        ..plain
    };
    let fua = RwFlags {
        force_unit_access: true,
        ..plain
    };
    let cases = [
        (Command::read(7, RANGE, plain), 0x02, 0x0000_00ff),
        (Command::read(7, RANGE, all), 0x02, 0xc000_00ff),
        (Command::write(7, RANGE, plain), 0x01, 0x0000_00ff),
        (Command::write(7, RANGE, fua), 0x01, 0x4000_00ff),
    ];
    for (command, opcode, dword12) in cases {
        let dwords = [0x5566_7788, 0x1122_3344, dword12, 0, 0, 0];
        assert_eq!(*command.as_bytes(), entry(opcode, 7, dwords));
    }
    assert_eq!(
        Command::read(1, RANGE, plain).direction(),
        Direction::FromTarget
    );
    assert_eq!(
        Command::write(1, RANGE, plain).direction(),
        Direction::ToTarget
    );
}

#[test]
fn without_data() {
    assert_eq!(*Command::flush(9).as_bytes(), entry(0x00, 9, [0; 6]));
    for (deallocate, dword12) in [
        (Deallocate::Forbidden, 0x0000_00ff),
        (Deallocate::Allowed, 0x0200_00ff),
    ] {
        assert_eq!(
            *Command::write_zeroes(9, RANGE, deallocate, Protection::None).as_bytes(),
            entry(0x08, 9, [0x5566_7788, 0x1122_3344, dword12, 0, 0, 0])
        );
    }
}

#[test]
fn protection() {
    for (protection, size, action, tag) in [
        (Protection::None, 0, 0, 0),
        (Protection::Guard, 8, 0x2000_0000, 0),
        (Protection::ReferenceTag, 8, 0x2000_0000, 0x5566_7788),
    ] {
        assert_eq!(protection.metadata_size(), size);
        let flags = RwFlags {
            force_unit_access: true,
            protection,
            ..RwFlags::default()
        };
        let dwords = |dword12: u32| [0x5566_7788, 0x1122_3344, dword12 | action, 0, tag, 0];
        assert_eq!(
            *Command::write(7, RANGE, flags).as_bytes(),
            entry(0x01, 7, dwords(0x4000_00ff))
        );
        assert_eq!(
            *Command::read(7, RANGE, flags).as_bytes(),
            entry(0x02, 7, dwords(0x4000_00ff))
        );
        assert_eq!(
            *Command::write_zeroes(7, RANGE, Deallocate::Allowed, protection).as_bytes(),
            entry(0x08, 7, dwords(0x0200_00ff))
        );
    }
}

#[test]
fn range_of_a_command() {
    let plain = RwFlags::default();
    let commands = [
        Command::read(1, RANGE, plain),
        Command::write(1, RANGE, plain),
        Command::write_zeroes(1, RANGE, Deallocate::Allowed, Protection::None),
    ];
    for command in commands {
        assert_eq!(command.range(1), Some(RANGE));
        assert_eq!(command.range(0), None);
    }
    for opcode in 0..=u8::MAX {
        let command = Command::with_namespace(opcode, 1);
        let has_range = [0x01, 0x02, 0x04, 0x05, 0x08, 0x0c].contains(&opcode);
        assert_eq!(command.range(1).is_some(), has_range, "{opcode:#x}");
    }
}

#[test]
fn deallocate() {
    let ranges = RangeCount::new(256).unwrap();
    let command = Command::deallocate(9, ranges);
    assert_eq!(*command.as_bytes(), entry(0x09, 9, [255, 4, 0, 0, 0, 0]));
    assert_eq!(command.direction(), Direction::ToTarget);
}
