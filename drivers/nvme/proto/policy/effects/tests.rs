// SPDX-License-Identifier: GPL-2.0

use super::*;

const NOTHING: CommandEffects = CommandEffects {
    exclusive: false,
    changes_namespaces: false,
    changes_controller: false,
};

/// Returns a log in which only `opcode` has an entry.
fn log(opcode: u8, entry: u32) -> Vec<u8> {
    let mut log = vec![0; 4096];
    let at = 4 * usize::from(opcode);
    log[at..at + 4].copy_from_slice(&entry.to_le_bytes());
    log
}

#[test]
fn what_is_known_without_a_log() {
    let format = CommandEffects {
        exclusive: true,
        changes_namespaces: true,
        ..NOTHING
    };
    assert_eq!(
        CommandEffects::of_admin(0x80, EffectsLog::default()),
        format
    );
    let sanitize = CommandEffects {
        exclusive: true,
        ..NOTHING
    };
    assert_eq!(
        CommandEffects::of_admin(0x84, EffectsLog::default()),
        sanitize
    );
    for opcode in [0x0d, 0x15] {
        let managed = CommandEffects {
            changes_namespaces: true,
            ..NOTHING
        };
        assert_eq!(
            CommandEffects::of_admin(opcode, EffectsLog::default()),
            managed
        );
    }
    assert_eq!(
        CommandEffects::of_admin(0xc0, EffectsLog::default()),
        NOTHING
    );
}

#[test]
fn what_the_log_says() {
    for opcode in [0x00, 0x09, 0xc0, 0xff] {
        let said = |entry| CommandEffects::of_admin(opcode, EffectsLog::new(&log(opcode, entry)));
        // CSUPP and LBCC.
        assert_eq!(said(0b11), NOTHING);
        assert!(said(1 << 2).changes_namespaces);
        assert!(said(1 << 3).changes_namespaces);
        assert!(said(1 << 4).changes_controller);
        for execution in 1..8 {
            assert!(said(execution << 16).exclusive);
            assert!(!said((execution << 16) | (1 << 14)).exclusive);
            assert!(!said((execution << 16) | (1 << 15)).exclusive);
        }
        assert_eq!(
            CommandEffects::of_admin(opcode ^ 1, EffectsLog::new(&log(opcode, !0))),
            NOTHING
        );
    }
}

#[test]
fn known_effects_stay() {
    assert!(CommandEffects::of_admin(0x80, EffectsLog::new(&log(0x80, 1 << 14))).exclusive);
    assert!(!CommandEffects::of_admin(0x82, EffectsLog::new(&log(0x82, 1 << 16))).exclusive);
}

#[test]
fn a_log_that_is_cut_short_says_less() {
    let mut short = log(0xc0, !0);
    short.truncate(4 * 0xc0 + 3);
    assert_eq!(
        CommandEffects::of_admin(0xc0, EffectsLog::new(&short)),
        NOTHING
    );
}

#[test]
fn who_only_asks_has_none() {
    for opcode in [0x02, 0x06, 0x0a, 0x18, 0x7f] {
        assert!(!CommandEffects::may_have(opcode));
    }
    for opcode in [0x09, 0x0d, 0x10, 0x15, 0x80, 0x84, 0xc0] {
        assert!(CommandEffects::may_have(opcode));
    }
}
