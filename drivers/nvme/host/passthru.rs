// SPDX-License-Identifier: GPL-2.0

//! Commands that users compose themselves: the ioctls of NVMe disks and controllers.
//!
//! Those to a namespace are requests of the block layer: [`disk`]. Those to the controller go by
//! its [`AdminChannel`](crate::queue::AdminChannel), whether it is the disk that is asked or the [`controller`].

mod controller;
pub(crate) mod disk;

use crate::{
    controller::Controller,
    queue::{
        CommandError,
        MAX_DATA, //
    },
};
use kernel::{
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};
use nvme_proto::{
    format::{
        cqe,
        passthru::{
            PassthruLayout,
            UserCommand, //
        },
        sqe,
        status::{
            Code,
            Status, //
        },
    },
    policy::{
        passthru::{
            admin_command,
            admin_permission,
            PassthruError, //
        },
        permission::{
            OpenMode,
            Permission, //
        },
    },
};
use rrdma::{
    ioctl,
    rdma::dma,
    scatter::Buffer,
    sync::Msecs, //
};

/// How long a command to the controller may take, if the user does not say, as in the C host.
const ADMIN: Msecs = Msecs::from_secs(60);

/// How a command ended, for the user.
struct PassthruResult {
    status: Status,
    result: u64,
}

impl PassthruResult {
    fn of(completion: cqe::Completion) -> Self {
        Self {
            status: completion.status(),
            result: completion.result,
        }
    }

    /// There is no connection, or it ended.
    fn no_path() -> Self {
        Self {
            status: Status::from_code(Code::HOST_PATH_ERROR),
            result: 0,
        }
    }
}

fn read(call: &ioctl::Call) -> Result<UserCommand> {
    let mut bytes = [0; UserCommand::SIZE];
    UserSlice::new(call.argument(), bytes.len())
        .reader()
        .read_slice(&mut bytes)?;
    Ok(UserCommand::parse(&bytes))
}

fn tell(call: &ioctl::Call, layout: PassthruLayout, outcome: PassthruResult) -> Result<c_int> {
    let place = call.argument().wrapping_byte_add(layout.result_offset());
    let mut writer = UserSlice::new(place, layout.result_size()).writer();
    match layout {
        PassthruLayout::Result32 => {
            let low = (outcome.result & 0xffff_ffff) as u32;
            writer.write_slice(&low.to_ne_bytes())?;
        }
        PassthruLayout::Result64 => writer.write_slice(&outcome.result.to_ne_bytes())?,
    }
    Ok(outcome.status.get().into())
}

fn allow(call: &ioctl::Call, opened: OpenMode, permission: Permission) -> Result {
    match permission.is_granted_to(opened) || call.by_administrator() {
        true => Ok(()),
        false => Err(EACCES),
    }
}

/// What is asked for, of which a process that may not do it learns no more than that it makes no
/// sense.
fn check(
    call: &ioctl::Call,
    opened: OpenMode,
    permission: Permission,
    command: Result<sqe::Command, PassthruError>,
) -> Result<sqe::Command> {
    if command != Err(PassthruError::Invalid) {
        allow(call, opened, permission)?;
    }
    command.map_err(impossible)
}

fn impossible(why: PassthruError) -> Error {
    match why {
        PassthruError::Invalid => EINVAL,
        PassthruError::NotSupported => rrdma::errno::EOPNOTSUPP,
    }
}

/// The memory of the user; `None` for a command without data.
fn memory(user: &UserCommand) -> Result<Option<UserPtr>> {
    match (usize::try_from(user.address), user.length) {
        (Ok(0), _) | (_, 0) => Ok(None),
        (Ok(address), _) => Ok(Some(UserPtr::from_addr(address))),
        (Err(_), _) => Err(EFAULT),
    }
}

/// How long a command may take, if that is for the process to say. Whoever may only open the device
/// may neither hold up a disconnect, which waits for commands to a disk, nor end the connection,
/// as a command does that is late.
fn patience(call: &ioctl::Call, user: &UserCommand) -> Option<Msecs> {
    let says = user.timeout_ms != 0 && call.by_administrator();
    says.then(|| Msecs::new(user.timeout_ms))
}

/// Sends a command to the controller.
fn admin(call: &ioctl::Call, opened: OpenMode, controller: &Controller) -> Result<PassthruResult> {
    let user = read(call)?;
    let command = check(call, opened, admin_permission(&user), admin_command(&user))?;
    let address = memory(&user)?;
    let direction = match command.direction() {
        sqe::Direction::FromTarget => dma::Direction::FromDevice,
        sqe::Direction::ToTarget => dma::Direction::ToDevice,
    };
    let data = match address {
        Some(address) => Some((fetch(address, user.length, direction)?, direction)),
        None => None,
    };
    let limit = patience(call, &user).unwrap_or(ADMIN);
    let reply = match controller.execute_for_user(command, data, limit) {
        Ok(reply) => reply,
        Err(CommandError::Code(error)) => return Err(error),
        Err(CommandError::TimedOut(_)) => return Err(EBUSY),
        Err(CommandError::ConnError(_) | CommandError::Cancelled | CommandError::Unanswered) => {
            return Ok(PassthruResult::no_path())
        }
    };
    if let (Some(address), Some(buffer), dma::Direction::FromDevice) =
        (address, &reply.data, direction)
    {
        let bytes = buffer.bytes();
        UserSlice::new(address, bytes.len())
            .writer()
            .write_slice(bytes)?;
    }
    Ok(PassthruResult::of(reply.completion))
}

/// Memory for the data of a command to the controller, with the user's data if it is sent.
fn fetch(address: UserPtr, length: u32, direction: dma::Direction) -> Result<Buffer> {
    let length = usize::try_from(length).map_err(|_| EINVAL)?;
    if length > MAX_DATA {
        return Err(EINVAL);
    }
    let mut buffer = Buffer::new(length, GFP_KERNEL)?;
    if direction == dma::Direction::ToDevice {
        UserSlice::new(address, length)
            .reader()
            .read_slice(buffer.bytes_mut())?;
    }
    Ok(buffer)
}
