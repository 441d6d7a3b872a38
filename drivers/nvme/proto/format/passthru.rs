// SPDX-License-Identifier: GPL-2.0

//! ioctls of NVMe disks and controllers that carry commands from user space.

use crate::format::layout::Reader;
use crate::format::sqe::Command;

/// An ioctl of `nvme_ioctl.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NvmeIoctl {
    /// `NVME_IOCTL_ID`: return the NSID of the disk.
    NamespaceId,
    /// `NVME_IOCTL_ADMIN_CMD`, `NVME_IOCTL_ADMIN64_CMD`: send an admin command.
    Admin(PassthruLayout),
    /// `NVME_IOCTL_IO_CMD`, `NVME_IOCTL_IO64_CMD`: send an I/O command.
    Io(PassthruLayout),
    /// `NVME_IOCTL_RESET`: reset the controller.
    Reset,
    /// `NVME_IOCTL_SUBSYS_RESET`: reset the NVM subsystem.
    SubsystemReset,
    /// `NVME_IOCTL_RESCAN`: scan the namespaces.
    Rescan,
}

/// Structure that the argument of an ioctl points to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassthruLayout {
    /// `struct nvme_passthru_cmd`, with a result of 32 bits.
    Result32,
    /// `struct nvme_passthru_cmd64`, with a result of 64 bits.
    Result64,
}

impl NvmeIoctl {
    /// Returns the ioctl of a number; `None` if it is unknown.
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
    /// Returns the offset of the result in the structure, in bytes.
    pub const fn result_offset(self) -> usize {
        match self {
            Self::Result32 => 68,
            Self::Result64 => 72,
        }
    }

    /// Returns the size of the result in bytes.
    pub const fn result_size(self) -> usize {
        match self {
            Self::Result32 => 4,
            Self::Result64 => 8,
        }
    }
}

/// A command from user space. Its fields are not checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserCommand {
    /// Opcode.
    pub opcode: u8,
    /// Flags of the entry. The host sets its own.
    pub flags: u8,
    /// Namespace identifier (NSID).
    pub nsid: u32,
    /// Command dwords 2 and 3, as in the entry.
    pub dwords_2_3: [u8; 8],
    /// Command dwords 10 to 15, as in the entry.
    pub dwords_10_15: [u8; 24],
    /// Address of the metadata in the memory of the process.
    pub metadata: u64,
    /// Size of the metadata in bytes.
    pub metadata_length: u32,
    /// Address of the data in the memory of the process.
    pub address: u64,
    /// Size of the data in bytes.
    pub length: u32,
    /// Timeout in milliseconds; 0 for the default.
    pub timeout_ms: u32,
}

impl UserCommand {
    /// Size of the part that both layouts have in common, in bytes. The result follows it.
    pub const SIZE: usize = 68;

    /// Decodes a structure of either layout.
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Self {
        let fields = Reader::over(bytes);
        Self {
            opcode: fields.u8::<0>(),
            flags: fields.u8::<1>(),
            nsid: fields.u32::<4>(),
            dwords_2_3: fields.bytes::<8, 8>(),
            metadata: fields.u64::<16>(),
            address: fields.u64::<24>(),
            metadata_length: fields.u32::<32>(),
            length: fields.u32::<36>(),
            dwords_10_15: fields.bytes::<40, 24>(),
            timeout_ms: fields.u32::<64>(),
        }
    }

    /// Returns the submission queue entry, without data and with the flags of the host.
    pub(crate) fn to_command(self) -> Command {
        Command::of_user(self.opcode, self.nsid, self.dwords_2_3, self.dwords_10_15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(user.dwords_2_3, bytes[8..16]);
        assert_eq!(user.metadata, 0x1716_1514_1312_1110);
        assert_eq!(user.address, 0x1f1e_1d1c_1b1a_1918);
        assert_eq!(
            (user.metadata_length, user.length),
            (0x2322_2120, 0x2726_2524)
        );
        assert_eq!(user.dwords_10_15, bytes[40..64]);
        assert_eq!(user.timeout_ms, 0x4342_4140);
    }
}
