// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::format::sqe::Direction;
use crate::testing::Random;

fn user(opcode: u8, dword10: u32) -> UserCommand {
    let mut dwords_10_15 = [0; 24];
    dwords_10_15[..4].copy_from_slice(&dword10.to_le_bytes());
    UserCommand {
        opcode,
        nsid: 1,
        dwords_10_15,
        ..UserCommand::parse(&[0; UserCommand::SIZE])
    }
}

#[test]
fn the_command_is_the_users() {
    let read = UserCommand {
        dwords_2_3: core::array::from_fn(|at| at as u8 + 8),
        dwords_10_15: core::array::from_fn(|at| at as u8 + 40),
        ..user(0x02, 0)
    };
    let command = io_command(&read, 1).unwrap();
    assert_eq!(command.opcode(), 0x02);
    assert_eq!(command.direction(), Direction::FromTarget);
    assert_eq!(command.namespace(), Some(1));
    for (at, byte) in command.as_bytes().iter().enumerate() {
        match at {
            8..16 | 40..64 => assert_eq!(usize::from(*byte), at),
            16..24 => assert_eq!(*byte, 0),
            _ => {}
        }
    }
    assert_eq!(command.as_bytes()[1], 0x40);
}

#[test]
fn what_is_not_ours_is_refused() {
    for wrong in [
        UserCommand {
            flags: 1,
            ..user(2, 0)
        },
        UserCommand {
            metadata: 1,
            ..user(2, 0)
        },
        UserCommand {
            metadata_length: 1,
            ..user(2, 0)
        },
    ] {
        assert_eq!(io_command(&wrong, 1), Err(PassthruError::Invalid));
        assert_eq!(admin_command(&wrong), Err(PassthruError::Invalid));
    }
    assert_eq!(io_command(&user(2, 0), 2), Err(PassthruError::Invalid));
    let all = UserCommand {
        nsid: ALL_NAMESPACES,
        ..user(2, 0)
    };
    assert_eq!(
        io_command(&all, ALL_NAMESPACES),
        Err(PassthruError::Invalid)
    );
}

#[test]
fn of_fabrics_commands_only_property_get_is_the_users() {
    for nsid in (0..=0x100).chain([0x0400_0000, 0x1_0004, u32::MAX]) {
        let user = UserCommand {
            nsid,
            ..user(0x7f, 0)
        };
        assert_eq!(admin_command(&user).is_ok(), nsid == 4, "{nsid:#x}");
        assert_eq!(io_command(&user, nsid).ok(), None, "{nsid:#x}");
        assert_eq!(admin_permission(&user), Permission::SysAdmin);
    }
    let mut random = Random::new(5);
    for _ in 0..1000 {
        let mut bytes = [0; UserCommand::SIZE];
        random.fill(&mut bytes);
        bytes[0] = 0x7f;
        let user = UserCommand::parse(&bytes);
        assert!(user.nsid == 4 || admin_command(&user).is_err());
        assert!(io_command(&user, user.nsid).is_err());
    }
}

#[test]
fn who_may_ask_the_controller() {
    for opcode in 0..=u8::MAX {
        for cns in 0..=u8::MAX {
            let expected = match (opcode, cns) {
                (0x06, 0x00 | 0x01 | 0x05 | 0x06 | 0x08) => Permission::Open,
                _ => Permission::SysAdmin,
            };
            // Bits above the byte are another field.
            for dword10 in [u32::from(cns), 0xffff_ff00 | u32::from(cns)] {
                let permission = admin_permission(&user(opcode, dword10));
                assert_eq!(permission, expected, "{opcode:#x} {dword10:#x}");
            }
        }
    }
}

#[test]
fn what_the_driver_relies_on_is_left_alone() {
    let queues = [0x00, 0x01, 0x04, 0x05].map(|opcode| (opcode, 0));
    let features = [0x07, 0x8000_000b, 0x0f, 0x16].map(|feature| (9, feature));
    for (opcode, dword10) in queues
        .into_iter()
        .chain(features)
        .chain([(0x08, 0), (0x0c, 0)])
    {
        let refused = admin_command(&user(opcode, dword10));
        assert_eq!(refused, Err(PassthruError::NotSupported), "{opcode:#x}");
    }
    for (opcode, dword10) in [(2, 2), (6, 2), (9, 2), (0x0a, 6), (0x15, 0), (0xc0, 0)] {
        assert!(admin_command(&user(opcode, dword10)).is_ok(), "{opcode:#x}");
    }
}
