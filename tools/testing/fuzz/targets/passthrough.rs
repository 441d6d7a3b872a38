// SPDX-License-Identifier: GPL-2.0

//! Commands from user space, which must not change state that the driver relies on; NQNs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nvme_proto::format::effects_log::EffectsLog;
use nvme_proto::format::nqn::Nqn;
use nvme_proto::format::passthru::{NvmeIoctl, UserCommand};
use nvme_proto::policy::effects::CommandEffects;
use nvme_proto::policy::passthru::{admin_command, io_command};
use nvme_proto::policy::permission::{IoPermissions, Permission};

/// Opcodes that are never allowed: create and delete queue, and Abort.
const NEVER: [u8; 5] = [0x00, 0x01, 0x04, 0x05, 0x08];

/// Format NVM is always exclusive, whatever the effects log says; the log is the input, too.
const FORMAT: u8 = 0x80;

fuzz_target!(|data: &[u8]| {
    if let Ok(name) = Nqn::new(data) {
        assert_eq!(name.as_str().as_bytes(), data);
        assert!(data.len() <= 223);
    }
    if let Some(number) = data.first_chunk() {
        let _ = NvmeIoctl::from_number(u32::from_le_bytes(*number));
    }
    let Some(bytes) = data.first_chunk() else {
        return;
    };
    let command = UserCommand::parse(bytes);
    let admin = admin_command(&command);
    let log = EffectsLog::new(data);
    let effects = CommandEffects::of_admin(bytes[0], log);
    assert!(effects.exclusive || bytes[0] != FORMAT);
    assert!(admin.is_err() || !NEVER.contains(&bytes[0]), "{command:?}");
    // Of Fabrics commands only Property Get.
    assert!(
        admin.is_err() || bytes[0] != 0x7f || bytes[4..8] == [4, 0, 0, 0],
        "{command:?}"
    );
    let allowed = IoPermissions::from_log(log).required_for(command.opcode);
    assert!(allowed == Permission::SysAdmin || bytes[0] < 0x7f);
    assert!(allowed != Permission::Open || bytes[0] % 2 == 0);
    for nsid in [1, u32::MAX] {
        let io = io_command(&command, nsid);
        assert!(io.is_err() || bytes[0] != 0x7f && nsid == 1);
        assert!(io.is_err() || bytes[4..8] == [1, 0, 0, 0] && bytes[1] == 0);
    }
});
