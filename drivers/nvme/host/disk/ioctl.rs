// SPDX-License-Identifier: GPL-2.0

//! The ioctls of a disk.

use super::Io;
use crate::passthru::{
    admin,
    permitted,
    read_command,
    user_buffer,
    user_timeout,
    PassthruResult, //
};
use kernel::prelude::*;
use nvme_proto::{
    format::{
        passthru::{
            NvmeIoctl,
            UserCommand, //
        },
        sqe, //
    },
    policy::{
        passthru::io_command,
        permission::OpenMode, //
    },
};
use rrdma::block::{
    self,
    Direction,
    Ioctl, //
};

/// Handles an ioctl of a disk. Returns 0 or an NVMe status, like the C host.
pub(super) fn ioctl(call: Ioctl<'_, Io>) -> Result<c_int> {
    let mode = OpenMode {
        partition: call.on_partition(),
        for_writing: call.for_writing(),
    };
    match NvmeIoctl::from_number(call.number()).ok_or(ENOTTY)? {
        NvmeIoctl::NamespaceId => c_int::try_from(call.data().wwid.nsid).map_err(|_| EOVERFLOW),
        NvmeIoctl::Admin(layout) => {
            let controller = call.data().controller.clone();
            // Leave the disk first: effects of the command may remove it, which waits for ioctls.
            let call = call.leave();
            admin(&call, mode, &*controller)?.write(&call, layout)
        }
        NvmeIoctl::Io(layout) => {
            // Outside, because removal of the disk waits for ioctls, and a page fault may take any
            // time.
            let (call, user) = call.outside(read_command)?;
            let result = io(&call, mode, &user)?;
            result.write(&call.leave(), layout)
        }
        NvmeIoctl::Reset | NvmeIoctl::SubsystemReset | NvmeIoctl::Rescan => Err(ENOTTY),
    }
}

/// Sends a command to the namespace.
fn io(call: &Ioctl<'_, Io>, mode: OpenMode, user: &UserCommand) -> Result<PassthruResult> {
    let disk = call.data();
    let permission = disk.controller.io_permissions().required_for(user.opcode);
    let command = permitted(call, mode, permission, io_command(user, disk.wwid.nsid))?;
    if !disk.controller.is_live() {
        return Ok(PassthruResult::no_path());
    }
    let mut request = call.command(match command.direction() {
        sqe::Direction::FromTarget => Direction::In,
        sqe::Direction::ToTarget => Direction::Out,
    })?;
    request.set_no_retry();
    if let Some(limit) = user_timeout(call, user) {
        request.set_timeout(limit);
    }
    if let Some(address) = user_buffer(user)? {
        request.map_user(address, user.length)?;
    }
    request.data().passthru.begin(command);
    let executed = request.execute();
    match (executed.data().passthru.end(), executed.status()) {
        (Some(completion), _) => {
            executed.copied()?;
            Ok(PassthruResult::of(completion))
        }
        (None, block::Status::Transport) => Ok(PassthruResult::no_path()),
        // The namespace is gone, and its disk is about to be removed.
        (None, _) if disk.state.is_gone() => Err(ENODEV),
        (None, _) => Err(EIO),
    }
}
