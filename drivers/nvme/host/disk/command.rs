// SPDX-License-Identifier: GPL-2.0

//! The NVMe command of a request.

use super::{
    Io,
    NsDisk, //
};
use kernel::prelude::*;
use nvme_proto::format::{
    dsm,
    sqe::{
        BlockCount,
        BlockRange,
        Command,
        Deallocate,
        RwFlags, //
    },
};
use rrdma::{
    block::{
        Op,
        Request,
        Status, //
    },
    rdma::dma,
    scatter::Buffer,
};

/// A command, with the direction and length of its data.
pub(super) struct RequestCommand {
    pub(super) command: Command,
    pub(super) direction: dma::Direction,
    /// Bytes of the data.
    pub(super) length: u32,
}

/// A command whose data may be outside the pages of its request.
pub(super) struct OtherCommand {
    pub(super) command: RequestCommand,
    /// The data, if the pages of the request do not hold it.
    pub(super) payload: Option<Buffer>,
}

/// Returns the blocks of a request; `None` if a command cannot have this number of blocks.
#[inline]
pub(super) fn range(disk: &NsDisk, request: &Request<Io>) -> Option<BlockRange> {
    let blocks = disk.blocks_of_bytes(request.bytes());
    Some(BlockRange {
        start: disk.blocks_of_sectors(request.sector()),
        count: BlockCount::new(blocks)?,
    })
}

/// Returns the flags of a read or write.
#[inline]
pub(super) fn rw_flags(request: &Request<Io>) -> RwFlags {
    RwFlags {
        force_unit_access: request.is_fua(),
        limited_retry: request.no_retry(),
        prefetch: false,
    }
}

/// Returns the command of a request that is neither a read nor a write.
///
/// # Errors
///
/// The status to reject the request with: [`Status::NotSupported`] for an unknown operation,
/// [`Status::Resource`] if out of memory.
#[inline(never)]
pub(super) fn other(disk: &NsDisk, request: &Request<Io>) -> Result<OtherCommand, Status> {
    let nsid = disk.wwid.nsid;
    let (command, payload) = match request.op() {
        Op::Flush => (Command::flush(nsid), None),
        Op::WriteZeroes => {
            let deallocate = if disk.deallocate_zeroes.get() && !request.no_unmap() {
                Deallocate::Allowed
            } else {
                Deallocate::Forbidden
            };
            let range = range(disk, request).ok_or(Status::IoError)?;
            (Command::write_zeroes(nsid, range, deallocate), None)
        }
        Op::Discard => {
            let (payload, count) = discard_ranges(disk, request)?;
            (Command::deallocate(nsid, count), Some(payload))
        }
        Op::DriverIn | Op::DriverOut => {
            let command = request.data().passthru.command();
            (command.ok_or(Status::IoError)?, None)
        }
        _ => return Err(Status::NotSupported),
    };
    let direction = match request.op() {
        Op::DriverIn => dma::Direction::FromDevice,
        _ => dma::Direction::ToDevice,
    };
    let length = match &payload {
        Some(payload) => u32::try_from(payload.bytes().len()).unwrap_or(u32::MAX),
        None => request.bytes(),
    };
    Ok(OtherCommand {
        command: RequestCommand {
            command,
            direction,
            length,
        },
        payload,
    })
}

/// Returns the data of a discard, and the number of ranges in it.
fn discard_ranges(
    disk: &NsDisk,
    request: &Request<Io>,
) -> Result<(Buffer, dsm::RangeCount), Status> {
    // The block layer retries requests that fail with `Status::Resource`.
    let mut payload = Buffer::new(dsm::PAYLOAD_SIZE, GFP_ATOMIC).map_err(|_| Status::Resource)?;
    let block: &mut [u8; dsm::PAYLOAD_SIZE] = payload
        .bytes_mut()
        .try_into()
        .map_err(|_| Status::IoError)?;
    let ranges = request.ranges().map(|range| dsm::DsmRange {
        start: disk.blocks_of_sectors(range.sector),
        count: u32::try_from(disk.blocks_of_sectors(range.sectors.into())).unwrap_or(u32::MAX),
    });
    let count = dsm::encode(block, ranges).map_err(|_| Status::IoError)?;
    Ok((payload, count))
}
