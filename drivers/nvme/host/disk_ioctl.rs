// SPDX-License-Identifier: GPL-2.0

//! The ioctls of a disk.

use crate::passthru::{
    admin,
    permitted,
    read_command,
    read_user,
    user_buffer,
    user_timeout,
    PassthruController,
    PassthruResult, //
};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    prelude::*,
    uaccess::UserPtr, //
};
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
use rnvmf_disk::Io;
use rrdma::block::{
    self,
    Direction,
    Ioctl, //
};

/// Handles an ioctl of a disk of `controller`. Returns 0 or an NVMe status, like the C host.
pub(crate) fn ioctl(call: Ioctl<'_, Io>, controller: &dyn PassthruController) -> Result<c_int> {
    let mode = OpenMode {
        partition: call.on_partition(),
        for_writing: call.for_writing(),
    };
    match NvmeIoctl::from_number(call.number()).ok_or(ENOTTY)? {
        NvmeIoctl::NamespaceId => c_int::try_from(call.data().wwid.nsid).map_err(|_| EOVERFLOW),
        NvmeIoctl::Admin(layout) => {
            // Leave the disk first: effects of the command may remove it, which waits for ioctls.
            let call = call.leave();
            admin(&call, mode, controller, layout)
        }
        NvmeIoctl::Io(layout) => {
            // Memory of the process is accessed outside, because removal of the disk waits for
            // ioctls, and a page fault may take any time.
            let (call, user) = call.outside(read_command)?;
            let command = permitted_io(&call, mode, controller, &user)?;
            let is_read = command.direction() == sqe::Direction::FromTarget;
            let most = call.max_transfer();
            let (call, mut data) = call.outside(|_| {
                let address = user_buffer(&user)?;
                let copy_in = |address| UserData::new(address, &user, command.direction(), most);
                address.map(copy_in).transpose()
            })?;
            let result = io(&call, controller, &user, command, data.as_mut())?;
            let call = call.leave();
            let received = data.as_ref().filter(|_| is_read);
            let received = received.map(|data| (data.address, &data.bytes[..]));
            result.write(&call, layout, received)
        }
        NvmeIoctl::Reset | NvmeIoctl::SubsystemReset | NvmeIoctl::Rescan => Err(ENOTTY),
    }
}

/// Returns the command to the namespace if the process may send it.
fn permitted_io(
    call: &Ioctl<'_, Io>,
    mode: OpenMode,
    controller: &dyn PassthruController,
    user: &UserCommand,
) -> Result<sqe::Command> {
    let permission = controller.io_permissions().required_for(user.opcode);
    permitted(
        call,
        mode,
        permission,
        io_command(user, call.data().wwid.nsid),
    )
}

/// Sends a command to the namespace.
fn io(
    call: &Ioctl<'_, Io>,
    controller: &dyn PassthruController,
    user: &UserCommand,
    command: sqe::Command,
    data: Option<&mut UserData>,
) -> Result<PassthruResult> {
    if !controller.is_live() {
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
    request.data().passthru.begin(command);
    let executed = request.execute(data.map(|data| &mut data.bytes))?;
    match (executed.data().passthru.end(), executed.status()) {
        (Some(completion), _) => Ok(PassthruResult::of(completion)),
        (None, block::Status::Transport) => Ok(PassthruResult::no_path()),
        // The namespace is gone, and its disk is about to be removed.
        (None, _) if call.data().state.is_gone() => Err(ENODEV),
        (None, _) => Err(EIO),
    }
}

/// Data of a command: the memory of the process, and the kernel's buffer for it.
struct UserData {
    address: UserPtr,
    bytes: KVVec<u8>,
}

impl UserData {
    /// Allocates a buffer for the data of a command, of at most `most` bytes. Copies the process's
    /// data in if the command sends it. Sleeps, as long as the process wants.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is more data; `EFAULT`; `ENOMEM`.
    fn new(
        address: UserPtr,
        user: &UserCommand,
        direction: sqe::Direction,
        most: usize,
    ) -> Result<Self> {
        let length = usize::try_from(user.length)?;
        if length > most {
            return Err(EINVAL);
        }
        let mut bytes = KVVec::from_elem(0, length, GFP_KERNEL_ACCOUNT)?;
        if direction == sqe::Direction::ToTarget {
            read_user(address, &mut bytes)?;
        }
        Ok(Self { address, bytes })
    }
}
