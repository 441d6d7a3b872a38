// SPDX-License-Identifier: GPL-2.0

use super::*;

#[test]
fn to_whom_it_is_given() {
    for for_writing in [false, true] {
        let disk = OpenMode {
            partition: false,
            for_writing,
        };
        assert!(Permission::Open.is_granted_to(disk));
        assert_eq!(Permission::OpenForWriting.is_granted_to(disk), for_writing);
        assert!(!Permission::SysAdmin.is_granted_to(disk));
        let partition = OpenMode {
            partition: true,
            for_writing,
        };
        for permission in [
            Permission::Open,
            Permission::OpenForWriting,
            Permission::SysAdmin,
        ] {
            assert!(!permission.is_granted_to(partition));
        }
    }
}

/// Returns a log with one entry, of an admin command.
fn admin_log(opcode: u8, entry: u32) -> Vec<u8> {
    let mut log = vec![0; 4096];
    let at = 4 * usize::from(opcode);
    log[at..at + 4].copy_from_slice(&entry.to_le_bytes());
    log
}

/// Returns a log with one entry, of an I/O command.
fn io_log(opcode: u8, entry: u32) -> Vec<u8> {
    let mut log = vec![0; 4096];
    let at = 1024 + 4 * usize::from(opcode);
    log[at..at + 4].copy_from_slice(&entry.to_le_bytes());
    log
}

fn io_permission(opcode: u8, entry: u32) -> Permission {
    IoPermissions::from_log(EffectsLog::new(&io_log(opcode, entry))).required_for(opcode)
}

#[test]
fn who_may_send_what_is_supported() {
    for opcode in 0..=u8::MAX {
        let supported = match opcode {
            0x7f.. => Permission::SysAdmin,
            0x04 | 0x08 => Permission::OpenForWriting,
            _ if opcode % 2 == 1 => Permission::OpenForWriting,
            _ => Permission::Open,
        };
        assert_eq!(io_permission(opcode, 1), supported, "{opcode:#x}");
        // The entry has LBCC as well.
        let changing = match opcode {
            0x7f.. => Permission::SysAdmin,
            _ => Permission::OpenForWriting,
        };
        assert_eq!(io_permission(opcode, 0b11), changing, "{opcode:#x}");
    }
}

#[test]
fn what_is_not_supported_or_more_than_io_is_not_for_all() {
    for opcode in 0..=u8::MAX {
        for entry in [0, 0b10, !1] {
            let other = io_permission(opcode, entry);
            assert_eq!(other, Permission::SysAdmin, "{opcode:#x}");
        }
    }
    for bit in 2..32 {
        let expected = match bit {
            2..=15 => Permission::SysAdmin,
            _ => Permission::Open,
        };
        assert_eq!(io_permission(0x02, 1 | (1 << bit)), expected, "{bit}");
    }
}

#[test]
fn entries_are_of_one_command_and_of_io() {
    let one = IoPermissions::from_log(EffectsLog::new(&io_log(0x02, 1)));
    let allowed = (0..=u8::MAX).filter(|opcode| one.required_for(*opcode) != Permission::SysAdmin);
    assert_eq!(allowed.collect::<Vec<_>>(), [0x02]);
    let admin = IoPermissions::from_log(EffectsLog::new(&admin_log(0x02, 1)));
    assert_eq!(admin, IoPermissions::default());
    for short in [0, 1024, 1024 + 4 * 0x02 + 3] {
        let short = IoPermissions::from_log(EffectsLog::new(&io_log(0x02, !0)[..short]));
        assert_eq!(short, IoPermissions::default());
    }
}
