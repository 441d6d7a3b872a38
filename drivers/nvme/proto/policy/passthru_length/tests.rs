// SPDX-License-Identifier: GPL-2.0

use super::*;

const FORMAT: BlockFormat = BlockFormat {
    size: 512,
    metadata: 0,
};
const IO: PassthruQueue = PassthruQueue::Io(Some(FORMAT));
const ADMIN: PassthruQueue = PassthruQueue::Admin;

/// A command with these dwords from 10 on.
fn command(opcode: u8, dwords: &[u32]) -> Command {
    let mut bytes = [0; Command::SIZE];
    bytes[0] = opcode;
    for (at, dword) in dwords.iter().enumerate() {
        bytes[40 + 4 * at..][..4].copy_from_slice(&dword.to_le_bytes());
    }
    Command::from_bytes(bytes)
}

fn refusing(command: Command, queue: PassthruQueue, given: u32) -> Result<(), Code> {
    check(&command, queue, given, UnknownLength::Refuse)
}

/// The command transfers exactly this many bytes, more than a page.
fn has_length(command: Command, queue: PassthruQueue, length: u32) {
    assert!(length > 4096);
    assert_eq!(refusing(command, queue, length), Ok(()));
    for given in [0, 512, length - 1, length + 1, 1 << 20] {
        let refused = Err(Code::INVALID_DATA_SGL_LENGTH);
        assert_eq!(refusing(command, queue, given), refused, "{given}");
    }
}

/// The command transfers this many bytes, at most a page. More in a page does no harm.
fn has_short_length(command: Command, queue: PassthruQueue, length: u32) {
    for given in [length, 4096] {
        assert_eq!(refusing(command, queue, given), Ok(()), "{given}");
    }
    for given in [length.saturating_sub(1), 4097, 8192] {
        if given != length {
            let refused = Err(Code::INVALID_DATA_SGL_LENGTH);
            assert_eq!(refusing(command, queue, given), refused, "{given}");
        }
    }
}

fn is_unknown(command: Command, queue: PassthruQueue, code: Code) {
    for given in [0, 512, 4096, 1 << 20] {
        assert_eq!(refusing(command, queue, given), Err(code));
        assert_eq!(check(&command, queue, given, UnknownLength::Allow), Ok(()));
    }
}

#[test]
fn blocks_of_a_command() {
    // Write, Read, Compare, Zone Append. The other bits of dword 12 are no part of the number.
    for opcode in [0x01, 0x02, 0x05, 0x7d] {
        has_short_length(command(opcode, &[0, 0, 0]), IO, 512);
        has_short_length(command(opcode, &[8, 0, 0x4000_0007]), IO, 4096);
        has_length(command(opcode, &[0, 0, 1023]), IO, 512 << 10);
        has_length(command(opcode, &[0, 0, 0xffff]), IO, 32 << 20);
    }
    let large = PassthruQueue::Io(Some(BlockFormat {
        size: 4096,
        metadata: 0,
    }));
    has_length(command(0x02, &[0, 0, 1]), large, 8192);
}

#[test]
fn length_is_compared_though_it_may_be_unknown() {
    let write = command(0x01, &[0, 0, 1023]);
    let refused = Err(Code::INVALID_DATA_SGL_LENGTH);
    assert_eq!(check(&write, IO, 8192, UnknownLength::Allow), refused);
}

#[test]
fn blocks_with_metadata() {
    let format = BlockFormat {
        size: 512,
        metadata: 8,
    };
    let queue = PassthruQueue::Io(Some(format));
    is_unknown(command(0x02, &[]), queue, Code::INVALID_FIELD);
    has_short_length(command(0x00, &[]), queue, 0);
}

#[test]
fn no_namespace() {
    let queue = PassthruQueue::Io(None);
    is_unknown(command(0x02, &[]), queue, Code::INVALID_NAMESPACE);
}

#[test]
fn io_commands_without_data() {
    // Flush, Write Uncorrectable, Write Zeroes, Verify, Cancel; vendor specific.
    for opcode in [0x00, 0x04, 0x08, 0x0c, 0x18, 0x80] {
        has_short_length(command(opcode, &[0, 0, 0xffff]), IO, 0);
    }
}

#[test]
fn ranges() {
    has_short_length(command(0x09, &[0, 4]), IO, 16);
    has_short_length(command(0x09, &[255, 4]), IO, 4096);
    has_short_length(command(0x19, &[0, 0, 0]), IO, 32);
    has_short_length(command(0x19, &[0, 0, 0x201]), IO, 64);
    has_short_length(command(0x19, &[0, 0, 0x101]), IO, 80);
    has_length(command(0x19, &[0, 0, 0x1ff]), IO, 10240);
    is_unknown(command(0x19, &[0, 0, 0x500]), IO, Code::INVALID_FIELD);
}

#[test]
fn zones() {
    // Zone Management Send: Reset Zone, Set Zone Descriptor Extension. Zone Management Receive.
    has_short_length(command(0x79, &[0, 0, 0, 4]), IO, 0);
    is_unknown(command(0x79, &[0, 0, 0, 0x10]), IO, Code::INVALID_FIELD);
    has_length(command(0x7a, &[0, 0, 0x7ff]), IO, 8192);
}

#[test]
fn placement() {
    has_length(command(0x12, &[0, 0x7ff]), IO, 8192);
    has_short_length(command(0x1d, &[0x0003_0001]), IO, 8);
    has_short_length(command(0x1d, &[0]), IO, 0);
    is_unknown(command(0x1d, &[2]), IO, Code::INVALID_FIELD);
}

#[test]
fn opcodes_of_unknown_length() {
    for opcode in [0x15, 0x22, 0x81, 0xff] {
        is_unknown(command(opcode, &[]), IO, Code::INVALID_OPCODE);
    }
    for opcode in [0x01, 0x82, 0xc1, 0xc2, 0xff] {
        is_unknown(command(opcode, &[]), ADMIN, Code::INVALID_OPCODE);
    }
}

#[test]
fn admin_commands() {
    has_short_length(command(0x06, &[1]), ADMIN, 4096);
    has_short_length(command(0x02, &[0x007f_0002]), ADMIN, 512);
    has_length(command(0x02, &[0xffff_0002, 1]), ADMIN, 512 << 10);
    // Keep Alive, Asynchronous Event Request; vendor specific.
    for opcode in [0x18, 0x0c, 0xc0] {
        has_short_length(command(opcode, &[]), ADMIN, 0);
    }
}

#[test]
fn features() {
    let lengths = [
        (0x02, 0),
        (0x03, 4096),
        (0x0c, 256),
        (0x0e, 8),
        (0x13, 512),
        (0x16, 512),
    ];
    for (feature, length) in lengths {
        has_short_length(command(0x09, &[feature]), ADMIN, length);
        has_short_length(command(0x0a, &[feature]), ADMIN, length);
    }
    has_short_length(command(0x0a, &[0x303]), ADMIN, 0);
    is_unknown(command(0x0a, &[0xd0]), ADMIN, Code::INVALID_FIELD);
}
