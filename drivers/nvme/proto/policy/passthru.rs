// SPDX-License-Identifier: GPL-2.0

//! Commands that user space composes itself: the ioctls of NVMe disks and controllers.
//!
//! C header: `include/uapi/linux/nvme_ioctl.h`.

use crate::format::layout::Reader;
use crate::format::sqe::{Command, ALL_NAMESPACES};
use crate::policy::effects::IoPermissions;

/// What an ioctl asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NvmeIoctl {
    /// The number of the disk's namespace.
    NamespaceId,
    /// A command to the controller.
    Admin(PassthruLayout),
    /// A command to the disk's namespace.
    Io(PassthruLayout),
    /// A reset of the controller.
    Reset,
    /// A reset of all controllers of the subsystem.
    SubsystemReset,
    /// A look at the controller's namespaces.
    Rescan,
}

/// Which structure user space passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassthruLayout {
    /// `struct nvme_passthru_cmd`, with a result of 32 bits.
    Result32,
    /// `struct nvme_passthru_cmd64`, with a result of 64 bits.
    Result64,
}

impl NvmeIoctl {
    /// The call that has this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0x4e40 => Some(Self::NamespaceId),
            0xc048_4e41 => Some(Self::Admin(PassthruLayout::Result32)),
            0xc048_4e43 => Some(Self::Io(PassthruLayout::Result32)),
            0x4e44 => Some(Self::Reset),
            0x4e45 => Some(Self::SubsystemReset),
            0x4e46 => Some(Self::Rescan),
            0xc050_4e47 => Some(Self::Admin(PassthruLayout::Result64)),
            0xc050_4e48 => Some(Self::Io(PassthruLayout::Result64)),
            _ => None,
        }
    }
}

impl PassthruLayout {
    /// Where in the structure the result goes.
    #[must_use]
    pub const fn result_offset(self) -> usize {
        match self {
            Self::Result32 => 68,
            Self::Result64 => 72,
        }
    }

    /// How many bytes the result has.
    #[must_use]
    pub const fn result_size(self) -> usize {
        match self {
            Self::Result32 => 4,
            Self::Result64 => 8,
        }
    }
}

/// A command as user space has it, not checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserCommand {
    opcode: u8,
    flags: u8,
    nsid: u32,
    dwords_2_3: [u32; 2],
    dwords_10_15: [u32; 6],
    metadata: u64,
    metadata_length: u32,
    /// Address of the data, in the memory of the process.
    pub address: u64,
    /// Bytes of the data.
    pub length: u32,
    /// Milliseconds that it may take; 0 for the default.
    pub timeout_ms: u32,
}

/// Why there can be no such command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassthruError {
    /// Fields are set that mean nothing here, or it is about another namespace.
    Invalid,
    /// It would change the controller behind the driver's back.
    NotSupported,
}

/// Who may send a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// Who may open the disk or controller.
    Opener,
    /// Who may open the disk to write to it.
    Writer,
    /// Who may administer the system.
    SysAdmin,
}

/// How a process that is no administrator has opened what it asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenMode {
    /// No more than a partition of the disk.
    pub partition: bool,
    /// To write to it, too.
    pub for_writing: bool,
}

impl Permission {
    /// Whether it is given to who has opened it so. On a partition nothing is: its commands could be
    /// about the rest of the disk, which its opener need not be allowed to see.
    #[must_use]
    pub const fn is_granted_to(self, opened: OpenMode) -> bool {
        match self {
            _ if opened.partition => false,
            Self::Opener => true,
            Self::Writer => opened.for_writing,
            Self::SysAdmin => false,
        }
    }
}

impl UserCommand {
    /// Bytes that both layouts begin with: what is after them is the result.
    pub const SIZE: usize = 68;

    /// Reads a structure of either layout.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Self {
        let fields = Reader::over(bytes);
        Self {
            opcode: fields.u8::<0>(),
            flags: fields.u8::<1>(),
            nsid: fields.u32::<4>(),
            dwords_2_3: [fields.u32::<8>(), fields.u32::<12>()],
            metadata: fields.u64::<16>(),
            address: fields.u64::<24>(),
            metadata_length: fields.u32::<32>(),
            length: fields.u32::<36>(),
            dwords_10_15: [
                fields.u32::<40>(),
                fields.u32::<44>(),
                fields.u32::<48>(),
                fields.u32::<52>(),
                fields.u32::<56>(),
                fields.u32::<60>(),
            ],
            timeout_ms: fields.u32::<64>(),
        }
    }

    /// Who may send it to the controller.
    #[must_use]
    pub fn admin_permission(&self) -> Permission {
        match is_plain_identify(self.opcode, self.dwords_10_15[0]) {
            true => Permission::Opener,
            false => Permission::SysAdmin,
        }
    }

    /// Who may send it to a namespace of a controller that allows this.
    #[must_use]
    pub fn io_permission(&self, allowed: &IoPermissions) -> Permission {
        allowed.of(self.opcode)
    }

    /// The command to send to the controller.
    pub fn admin(&self) -> Result<Command, PassthruError> {
        let command = self.command()?;
        match changes_what_the_driver_relies_on(self.opcode, self.dwords_10_15[0]) {
            true => Err(PassthruError::NotSupported),
            false => Ok(command),
        }
    }

    /// The command to send to namespace `nsid`.
    pub fn io(&self, nsid: u32) -> Result<Command, PassthruError> {
        if self.nsid != nsid || nsid == ALL_NAMESPACES {
            return Err(PassthruError::Invalid);
        }
        if self.opcode == Command::FABRICS {
            return Err(PassthruError::NotSupported);
        }
        self.command()
    }

    /// The command: neither its flags nor metadata are the user's.
    fn command(&self) -> Result<Command, PassthruError> {
        if self.flags != 0 || self.metadata != 0 || self.metadata_length != 0 {
            return Err(PassthruError::Invalid);
        }
        Ok(Command::of_user(
            self.opcode,
            self.nsid,
            self.dwords_2_3,
            self.dwords_10_15,
        ))
    }
}

/// Whether it is about the connection, queues or events that the driver keeps. Namespaces it looks
/// at again: see [`crate::policy::effects`].
const fn changes_what_the_driver_relies_on(opcode: u8, dword10: u32) -> bool {
    const SET_FEATURES: u8 = 0x09;
    match opcode {
        // Queues, which Fabrics have other commands for.
        0x00 | 0x01 | 0x04 | 0x05 | Command::FABRICS => true,
        // Commands that other commands are about, and those that are kept waiting.
        0x08 | 0x0c => true,
        // Number of queues, asynchronous events, keep-alive timer, behaviour of the host.
        SET_FEATURES => matches!(dword10 & 0xff, 0x07 | 0x0b | 0x0f | 0x16),
        _ => false,
    }
}

/// Whether it only asks what a disk or controller is, which is needed to send it commands.
const fn is_plain_identify(opcode: u8, dword10: u32) -> bool {
    const IDENTIFY: u8 = 0x06;
    opcode == IDENTIFY && matches!(dword10 & 0xff, 0x00 | 0x01 | 0x05 | 0x06 | 0x08)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::sqe::Direction;
    use crate::testing::Random;

    fn user(opcode: u8, dword10: u32) -> UserCommand {
        UserCommand {
            opcode,
            nsid: 1,
            dwords_10_15: [dword10, 0, 0, 0, 0, 0],
            ..UserCommand::parse(&[0; UserCommand::SIZE])
        }
    }

    #[test]
    fn numbers_are_those_of_the_header() {
        // _IO('N', number) and _IOWR('N', number, bytes).
        let io = |number: u32| (u32::from(b'N') << 8) | number;
        let iowr = |number: u32, size: usize| {
            let size = u32::try_from(size).unwrap();
            (3 << 30) | (size << 16) | (u32::from(b'N') << 8) | number
        };
        let (short, long) = (PassthruLayout::Result32, PassthruLayout::Result64);
        let size = |layout: PassthruLayout| layout.result_offset() + layout.result_size();
        let calls = [
            (io(0x40), NvmeIoctl::NamespaceId),
            (iowr(0x41, size(short)), NvmeIoctl::Admin(short)),
            (iowr(0x43, size(short)), NvmeIoctl::Io(short)),
            (io(0x44), NvmeIoctl::Reset),
            (io(0x45), NvmeIoctl::SubsystemReset),
            (io(0x46), NvmeIoctl::Rescan),
            (iowr(0x47, size(long)), NvmeIoctl::Admin(long)),
            (iowr(0x48, size(long)), NvmeIoctl::Io(long)),
        ];
        for (number, call) in calls {
            assert_eq!(NvmeIoctl::from_number(number), Some(call));
        }
        assert_eq!(NvmeIoctl::from_number(0), None);
        assert_eq!(NvmeIoctl::from_number(iowr(0x41, 80)), None);
    }

    #[test]
    fn fields_are_where_the_header_has_them() {
        let mut bytes = [0; UserCommand::SIZE];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::try_from(at).unwrap();
        }
        let user = UserCommand::parse(&bytes);
        assert_eq!((user.opcode, user.flags, user.nsid), (0, 1, 0x0706_0504));
        assert_eq!(user.dwords_2_3, [0x0b0a_0908, 0x0f0e_0d0c]);
        assert_eq!(user.metadata, 0x1716_1514_1312_1110);
        assert_eq!(user.address, 0x1f1e_1d1c_1b1a_1918);
        assert_eq!(
            (user.metadata_length, user.length),
            (0x2322_2120, 0x2726_2524)
        );
        assert_eq!(user.dwords_10_15[0], 0x2b2a_2928);
        assert_eq!(user.dwords_10_15[5], 0x3f3e_3d3c);
        assert_eq!(user.timeout_ms, 0x4342_4140);
    }

    #[test]
    fn the_command_is_the_users() {
        let read = UserCommand {
            dwords_2_3: [2, 3],
            dwords_10_15: [10, 11, 12, 13, 14, 15],
            ..user(0x02, 0)
        };
        let command = read.io(1).unwrap();
        let dword = |at: usize| command.as_bytes()[4 * at];
        assert_eq!(command.opcode(), 0x02);
        assert_eq!(command.direction(), Direction::FromTarget);
        assert_eq!([dword(1), dword(2), dword(3)], [1, 2, 3]);
        assert_eq!([dword(4), dword(5)], [0, 0]);
        for at in 10..16 {
            assert_eq!(usize::from(dword(at)), at);
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
            assert_eq!(wrong.io(1), Err(PassthruError::Invalid));
            assert_eq!(wrong.admin(), Err(PassthruError::Invalid));
        }
        assert_eq!(user(2, 0).io(2), Err(PassthruError::Invalid));
        let all = UserCommand {
            nsid: ALL_NAMESPACES,
            ..user(2, 0)
        };
        assert_eq!(all.io(ALL_NAMESPACES), Err(PassthruError::Invalid));
    }

    #[test]
    fn fabrics_commands_are_never_the_users() {
        let mut random = Random::new(5);
        for _ in 0..1000 {
            let mut bytes = [0; UserCommand::SIZE];
            random.fill(&mut bytes);
            bytes[0] = 0x7f;
            let user = UserCommand::parse(&bytes);
            assert!(user.admin().is_err());
            assert!(user.io(user.nsid).is_err());
        }
    }

    #[test]
    fn who_may_ask_the_controller() {
        for opcode in 0..=u8::MAX {
            for cns in 0..=u8::MAX {
                let expected = match (opcode, cns) {
                    (0x06, 0x00 | 0x01 | 0x05 | 0x06 | 0x08) => Permission::Opener,
                    _ => Permission::SysAdmin,
                };
                // What is above the byte is about something else.
                for dword10 in [u32::from(cns), 0xffff_ff00 | u32::from(cns)] {
                    let permission = user(opcode, dword10).admin_permission();
                    assert_eq!(permission, expected, "{opcode:#x} {dword10:#x}");
                }
            }
        }
    }

    #[test]
    fn who_may_ask_a_namespace() {
        let all = IoPermissions::of_log(&[1; 4096]);
        for opcode in 0..=u8::MAX {
            assert_eq!(user(opcode, 0).io_permission(&all), all.of(opcode));
        }
    }

    #[test]
    fn to_whom_it_is_given() {
        for for_writing in [false, true] {
            let disk = OpenMode {
                partition: false,
                for_writing,
            };
            assert!(Permission::Opener.is_granted_to(disk));
            assert_eq!(Permission::Writer.is_granted_to(disk), for_writing);
            assert!(!Permission::SysAdmin.is_granted_to(disk));
            let partition = OpenMode {
                partition: true,
                for_writing,
            };
            for permission in [Permission::Opener, Permission::Writer, Permission::SysAdmin] {
                assert!(!permission.is_granted_to(partition));
            }
        }
    }

    #[test]
    fn what_the_driver_relies_on_is_left_alone() {
        for (opcode, dword10) in [(0x0c, 0), (9, 0x07), (9, 0x8000_000b), (9, 0x0f), (9, 0x16)] {
            let refused = user(opcode, dword10).admin();
            assert_eq!(refused, Err(PassthruError::NotSupported), "{opcode:#x}");
        }
        for (opcode, dword10) in [(2, 2), (6, 2), (9, 2), (0x0a, 6), (0x15, 0), (0xc0, 0)] {
            assert!(user(opcode, dword10).admin().is_ok(), "{opcode:#x}");
        }
    }
}
