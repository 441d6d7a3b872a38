// SPDX-License-Identifier: GPL-2.0

//! The private data of a disk, and its sysfs attributes.

use crate::{
    ctrl::{
        DiskController,
        FailedIo, //
    },
    Io,
};
use kernel::{
    fmt,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
};
use nvme_proto::format::{
    identify::{
        Hex,
        Wwid, //
    },
    sqe::Protection,
    status::Status,
    uuid::Uuid,
};
use rrdma::{block::Request, sync::RelaxedBool, sysfs::Attribute, text::Message};

/// The size of a block-layer sector, as a power of two.
const SECTOR_SHIFT: u8 = 9;

/// The name of a disk; the block layer takes up to 31 bytes.
pub type DiskName = Message<31>;

/// Returns the name of the disk of a namespace.
pub fn disk_name(controller: u32, nsid: u32) -> DiskName {
    Message::new(format_args!("rnvmf{controller}n{nsid}"))
}

/// Sysfs attributes of a disk: properties of its namespace, with the names and formats of the C
/// host.
pub(super) const ATTRIBUTES: &[Attribute<NsDisk>] = &[
    Attribute::new(c"wwid", |disk, f| write!(f, "{}", disk.wwid)),
    Attribute::new(c"nsid", |disk, f| write!(f, "{}", disk.wwid.nsid)),
    Attribute::new(c"csi", |disk, f| write!(f, "{}", disk.wwid.ids.command_set)),
    Attribute::new(c"metadata_bytes", |disk, f| {
        write!(f, "{}", disk.protection.metadata_size())
    }),
    Attribute::new(c"nuse", |disk, f| {
        write!(f, "{}", disk.used_blocks.load(ordering::Relaxed))
    }),
    Attribute::optional(
        c"uuid",
        |disk| disk.wwid.ids.uuid.is_some(),
        |disk, f| show(f, disk.wwid.ids.uuid),
    ),
    Attribute::optional(
        c"nguid",
        |disk| disk.wwid.ids.nguid.is_some(),
        |disk, f| show(f, disk.wwid.ids.nguid.map(Uuid::from_bytes)),
    ),
    Attribute::optional(
        c"eui",
        |disk| disk.wwid.ids.eui64.is_some(),
        |disk, f| show(f, disk.wwid.ids.eui64.as_ref().map(|eui64| Hex(eui64, " "))),
    ),
];

/// The size of a block, as powers of two: in bytes, and in sectors of the block layer.
///
/// The limits of a disk ensure a size between a sector and
/// [`MAX_BLOCK_SIZE`](rrdma::block::MAX_BLOCK_SIZE), so shifts need no check.
#[derive(Clone, Copy)]
pub struct BlockShift {
    bytes: u8,
    sectors: u8,
}

impl BlockShift {
    /// Returns a size of 2 to the power of `shift` bytes.
    pub fn new(shift: u8) -> Self {
        Self {
            bytes: shift,
            sectors: shift.saturating_sub(SECTOR_SHIFT),
        }
    }
}

/// State of a disk that each request checks.
pub struct DiskState {
    gone: RelaxedBool,
    /// The disk is gone, or its commands name protection information: one check for both.
    unusual: RelaxedBool,
}

impl DiskState {
    /// Returns the state of a new disk.
    pub fn new(protection: Protection) -> Self {
        Self {
            gone: RelaxedBool::new(false),
            unusual: RelaxedBool::new(protection != Protection::None),
        }
    }

    /// Returns whether the namespace is gone or was replaced: all I/O fails.
    pub fn is_gone(&self) -> bool {
        self.gone.get()
    }

    /// Lets all later I/O fail.
    pub fn set_gone(&self) {
        self.gone.set(true);
        self.unusual.set(true);
    }

    /// Returns whether a request of the disk needs more than a plain read or write.
    #[inline]
    pub(super) fn is_unusual(&self) -> bool {
        self.unusual.get()
    }
}

/// The disk of a namespace.
pub struct NsDisk {
    /// Its name.
    pub name: DiskName,
    /// Identifies the namespace; its NSID is in every command.
    pub wwid: Wwid,
    /// The size of a block.
    pub block_shift: BlockShift,
    /// Protection information, which commands leave to the target.
    pub protection: Protection,
    /// Deallocated blocks read as zeroes.
    pub deallocate_zeroes: RelaxedBool,
    /// Blocks in use, as of the last scan.
    pub used_blocks: Atomic<u64>,
    /// Shared with the host while the disk is being made.
    pub state: Arc<DiskState>,
    /// Kept alive by the disk.
    pub controller: Arc<dyn DiskController>,
}

impl NsDisk {
    /// Converts sectors to blocks. The disk's limits ensure whole blocks.
    #[inline]
    pub(super) fn blocks_of_sectors(&self, sectors: u64) -> u64 {
        sectors.wrapping_shr(self.block_shift.sectors.into())
    }

    /// Converts bytes to blocks.
    #[inline]
    pub(super) fn blocks_of_bytes(&self, bytes: u32) -> u32 {
        bytes.wrapping_shr(self.block_shift.bytes.into())
    }

    /// Has the controller log a failed request with its NVMe status, which the block layer's own line does
    /// not have. Logs nothing for a quiet request.
    #[cold]
    #[inline(never)]
    pub(super) fn log_failure(&self, request: &Request<Io>, status: Status, retries: u8) {
        if !request.is_quiet() {
            self.controller.log_failed_io(FailedIo {
                disk: self.name.as_str(),
                op: request.op(),
                start: self.blocks_of_sectors(request.sector()),
                count: self.blocks_of_bytes(request.bytes()),
                status,
                retries,
            });
        }
    }
}

fn show(f: &mut fmt::Formatter<'_>, value: Option<impl core::fmt::Display>) -> fmt::Result {
    match value {
        Some(value) => write!(f, "{value}"),
        None => Ok(()),
    }
}
