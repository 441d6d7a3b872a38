// SPDX-License-Identifier: GPL-2.0

//! Passthrough commands: the code that ioctls of disks and of controllers share.
//!
//! A command to a namespace is a request of the block layer: see [`crate::disk_ioctl`]. An admin command
//! goes through the controller's [`AdminChannel`](rnvmf_disk::AdminChannel), for ioctls of
//! disks and of controllers.

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
            IoPermissions,
            OpenMode,
            Permission, //
        },
    },
};
use nvme_rdma_transport::queue::{CommandData, CommandError, Reply, MAX_DATA};
use rrdma::{
    ioctl,
    rdma::dma,
    scatter::Buffer,
    sync::Msecs, //
};

/// Time-out of an admin command if the user sets none, as in the C host.
const ADMIN_TIMEOUT: Msecs = Msecs::from_secs(60);

/// The controller of passthrough commands.
pub(crate) trait PassthruController {
    /// Whether the controller is live. May sleep.
    fn is_live(&self) -> bool;

    /// Returns the permissions for passthrough commands to a namespace. May sleep.
    fn io_permissions(&self) -> IoPermissions;

    /// Sends an admin command from user space, and handles its effects. Sleeps, for I/O too: the
    /// caller must not block the removal of disks.
    ///
    /// # Errors
    ///
    /// `EINTR` for a signal before the command is sent; otherwise why there is no response.
    fn execute_for_user(
        &self,
        command: sqe::Command,
        data: Option<CommandData>,
        limit: Msecs,
    ) -> Result<Reply, CommandError>;
}

/// The result of a passthrough command.
pub(crate) struct PassthruResult {
    status: Status,
    result: u64,
    /// The target has answered. If it has not, no data arrived.
    answered: bool,
}

impl PassthruResult {
    /// Returns the result in the target's completion.
    pub(crate) fn of(completion: cqe::Completion) -> Self {
        Self {
            status: completion.status(),
            result: completion.result,
            answered: true,
        }
    }

    /// Returns the result without a connection, or if the connection ended.
    pub(crate) fn no_path() -> Self {
        Self {
            status: Status::from_code(Code::HOST_PATH_ERROR),
            result: 0,
            answered: false,
        }
    }

    /// Writes the result and the data that the command received, if any, to the process's memory. Returns the
    /// NVMe status, which the ioctl returns. Sleeps, as long as the process wants.
    ///
    /// As in the C host, a command that failed has data, too: the target may have sent some before it failed.
    ///
    /// # Errors
    ///
    /// `EFAULT`. The result is written even if the data cannot be, because the command was executed.
    pub(crate) fn write(
        self,
        call: &ioctl::Call,
        layout: PassthruLayout,
        data: Option<(UserPtr, &[u8])>,
    ) -> Result<c_int> {
        self.write_result(call, layout)?;
        if let Some((address, bytes)) = data.filter(|_| self.answered) {
            write_user(address, bytes)?;
        }
        Ok(self.status.get().into())
    }

    /// Writes the result to the user's structure.
    fn write_result(&self, call: &ioctl::Call, layout: PassthruLayout) -> Result {
        let place = call.argument().wrapping_byte_add(layout.result_offset());
        let mut writer = UserSlice::new(place, layout.result_size()).writer();
        match layout {
            PassthruLayout::Result32 => {
                let low = (self.result & 0xffff_ffff) as u32;
                writer.write_slice(&low.to_ne_bytes())
            }
            PassthruLayout::Result64 => writer.write_slice(&self.result.to_ne_bytes()),
        }
    }
}

/// Reads the user's structure.
pub(crate) fn read_command(call: &ioctl::Call) -> Result<UserCommand> {
    let mut bytes = [0; UserCommand::SIZE];
    read_user(call.argument(), &mut bytes)?;
    Ok(UserCommand::parse(&bytes))
}

/// Checks that the process has `permission`.
///
/// # Errors
///
/// `EACCES`.
pub(crate) fn check_permission(
    call: &ioctl::Call,
    mode: OpenMode,
    permission: Permission,
) -> Result {
    if permission.is_granted_to(mode) || call.by_administrator() {
        Ok(())
    } else {
        Err(EACCES)
    }
}

/// Returns the command if the process may send it.
///
/// # Errors
///
/// `EINVAL` for a malformed command, which needs no permission; `EACCES`; `EOPNOTSUPP`.
pub(crate) fn permitted(
    call: &ioctl::Call,
    mode: OpenMode,
    permission: Permission,
    command: Result<sqe::Command, PassthruError>,
) -> Result<sqe::Command> {
    if command != Err(PassthruError::Invalid) {
        check_permission(call, mode, permission)?;
    }
    command.map_err(|why| match why {
        PassthruError::Invalid => EINVAL,
        PassthruError::NotSupported => rrdma::errno::EOPNOTSUPP,
    })
}

/// Returns the user's buffer; `None` for a command without data.
pub(crate) fn user_buffer(user: &UserCommand) -> Result<Option<UserPtr>> {
    match (usize::try_from(user.address), user.length) {
        (Ok(0), _) | (_, 0) => Ok(None),
        (Ok(address), _) => Ok(Some(UserPtr::from_addr(address))),
        (Err(_), _) => Err(EFAULT),
    }
}

/// Returns the user's time-out, if the process has `CAP_SYS_ADMIN`. Other processes cannot set one:
/// a long time-out delays a disconnect, which waits for the commands of a disk. A short one ends
/// the connection when the command times out.
pub(crate) fn user_timeout(call: &ioctl::Call, user: &UserCommand) -> Option<Msecs> {
    let may_set = user.timeout_ms != 0 && call.by_administrator();
    may_set.then(|| Msecs::new(user.timeout_ms))
}

/// Sends a user's admin command, and writes its result and data to the process's memory. Returns 0 or an NVMe
/// status, like the C host. Sleeps, for I/O too.
pub(crate) fn admin(
    call: &ioctl::Call,
    mode: OpenMode,
    controller: &dyn PassthruController,
    layout: PassthruLayout,
) -> Result<c_int> {
    let user = read_command(call)?;
    let command = permitted(call, mode, admin_permission(&user), admin_command(&user))?;
    let address = user_buffer(&user)?;
    let direction = match command.direction() {
        sqe::Direction::FromTarget => dma::Direction::FromDevice,
        sqe::Direction::ToTarget => dma::Direction::ToDevice,
    };
    let data = match address {
        Some(address) => Some(CommandData {
            buffer: copy_in(address, user.length, direction)?,
            direction,
        }),
        None => None,
    };
    let limit = user_timeout(call, &user).unwrap_or(ADMIN_TIMEOUT);
    let reply = match controller.execute_for_user(command, data, limit) {
        Ok(reply) => reply,
        Err(CommandError::Code(error)) => return Err(error),
        Err(CommandError::TimedOut(_)) => return Err(EBUSY),
        Err(CommandError::ConnError(_) | CommandError::Cancelled | CommandError::Unanswered) => {
            return PassthruResult::no_path().write(call, layout, None)
        }
    };
    let received = match (address, &reply.data, direction) {
        (Some(address), Some(buffer), dma::Direction::FromDevice) => {
            Some((address, buffer.bytes()))
        }
        _ => None,
    };
    PassthruResult::of(reply.completion).write(call, layout, received)
}

/// Copies the process's memory at `address` to `bytes`. Sleeps, as long as the process wants.
///
/// # Errors
///
/// `EFAULT`.
pub(crate) fn read_user(address: UserPtr, bytes: &mut [u8]) -> Result {
    UserSlice::new(address, bytes.len())
        .reader()
        .read_slice(bytes)
}

/// Copies `bytes` to the process's memory at `address`. Sleeps, as long as the process wants.
///
/// # Errors
///
/// `EFAULT`.
fn write_user(address: UserPtr, bytes: &[u8]) -> Result {
    UserSlice::new(address, bytes.len())
        .writer()
        .write_slice(bytes)
}

/// Allocates the buffer of an admin command, and copies the user's data in if the command sends it.
fn copy_in(address: UserPtr, length: u32, direction: dma::Direction) -> Result<Buffer> {
    let length = usize::try_from(length).map_err(|_| EINVAL)?;
    if length > MAX_DATA {
        return Err(EINVAL);
    }
    let mut buffer = Buffer::new(length, GFP_KERNEL)?;
    if direction == dma::Direction::ToDevice {
        read_user(address, buffer.bytes_mut())?;
    }
    Ok(buffer)
}
