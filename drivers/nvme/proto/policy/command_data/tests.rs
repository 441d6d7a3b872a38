// SPDX-License-Identifier: GPL-2.0

use super::*;

const LIMITS: DataLimits = DataLimits {
    in_capsule: 4096,
    transfer: 1 << 20,
};
const READ: u8 = 0x02;
const WRITE: u8 = 0x01;

fn command(opcode: u8, sgl: [u8; 16]) -> Command {
    let mut bytes = [0; Command::SIZE];
    bytes[0] = opcode;
    bytes[24..40].copy_from_slice(&sgl);
    Command::from_bytes(bytes)
}

fn keyed(address: u64, length: u32) -> Result<CommandData, Code> {
    let sgl = Sgl::keyed(address, length, 7, Invalidate::ByTarget).unwrap();
    CommandData::of(&command(READ, sgl.to_bytes()), LIMITS)
}

fn in_capsule(opcode: u8, offset: u64, length: u32) -> Result<CommandData, Code> {
    let sgl = Sgl::in_capsule(offset, length);
    CommandData::of(&command(opcode, sgl.to_bytes()), LIMITS)
}

#[test]
fn keyed_data() {
    assert_eq!(keyed(5, 0), Ok(CommandData::None));
    for length in [1, 512, 1 << 20] {
        let data = CommandData::Keyed {
            address: 5,
            length,
            key: 7,
            invalidate: Invalidate::ByTarget,
        };
        assert_eq!(keyed(5, length), Ok(data));
    }
    for length in [(1 << 20) + 1, Sgl::MAX_KEYED_LEN] {
        assert_eq!(keyed(5, length), Err(Code::INVALID_FIELD));
    }
    assert!(keyed(u64::MAX - 512, 512).is_ok());
    assert_eq!(
        keyed(u64::MAX - 511, 512),
        Err(Code::INVALID_DATA_SGL_LENGTH)
    );
}

#[test]
fn commands_without_data() {
    let sgl = Sgl::keyed(5, 4096, 7, Invalidate::ByHost)
        .unwrap()
        .to_bytes();
    // Flush and Write Zeroes; Keep Alive; Property Set and Get.
    for (opcode, fabrics_type) in [(0, 0), (8, 0), (0x18, 0), (0x7f, 0), (0x7f, 4)] {
        let mut bytes = *command(opcode, sgl).as_bytes();
        bytes[4] = fabrics_type;
        let data = CommandData::of(&Command::from_bytes(bytes), LIMITS);
        assert_eq!(data, Ok(CommandData::None), "{opcode} {fabrics_type}");
    }
}

#[test]
fn data_in_the_capsule() {
    for (offset, length) in [(0, 4096), (0, 1), (4095, 1), (512, 3584)] {
        let data = CommandData::InCapsule {
            offset: offset as u32,
            length,
        };
        assert_eq!(in_capsule(WRITE, offset, length), Ok(data));
    }
    for (offset, length) in [(0, 0), (4096, 0)] {
        assert_eq!(in_capsule(WRITE, offset, length), Ok(CommandData::None));
    }
    for (offset, length) in [
        (0, 4097),
        (1, 4096),
        (4096, 1),
        (4097, 0),
        (u64::MAX, 1),
        (u64::MAX, u32::MAX),
        (1 << 32, 0),
        (u32::MAX.into(), u32::MAX),
    ] {
        let data = in_capsule(WRITE, offset, length);
        assert_eq!(data, Err(Code::INVALID_SGL_OFFSET), "{offset} {length}");
    }
    assert_eq!(in_capsule(READ, 0, 512), Err(Code::INVALID_FIELD));
    assert_eq!(in_capsule(READ, 0, 0), Err(Code::INVALID_FIELD));
}

#[test]
fn unknown_descriptors() {
    for kind in 0..=u8::MAX {
        let mut sgl = [0; 16];
        sgl[15] = kind;
        let expected = match kind {
            0x01 | 0x40 | 0x4f => Ok(CommandData::None),
            0x00..=0x0f | 0x40..=0x4f => Err(Code::INVALID_FIELD),
            _ => Err(Code::INVALID_SGL_TYPE),
        };
        let command = command(WRITE, sgl);
        assert_eq!(CommandData::of(&command, LIMITS), expected);
        assert_eq!(CommandData::is_in_capsule(&command), kind == 0x01);
    }
}
