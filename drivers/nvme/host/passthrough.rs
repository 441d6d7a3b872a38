// SPDX-License-Identifier: GPL-2.0

//! Commands that users compose themselves: the ioctls of NVMe disks.
//!
//! Those to the namespace are requests of the block layer. Those to the controller go by its
//! [`Desk`](crate::queue::Desk).

use crate::{
    io::{
        Blocks,
        Io, //
    },
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
use nvme_wire::{
    cqe,
    passthrough::{
        Call,
        Impossible,
        Layout,
        Permission,
        UserCommand, //
    },
    sqe,
    state::State,
    status::{
        Code,
        Status, //
    },
};
use rrdma::{
    block::{
        self,
        Direction,
        Ioctl, //
    },
    rdma::dma,
    scatter::Buffer,
    sync::{
        Claim,
        Msecs, //
    },
};

/// How long a command to the controller may take, if the user does not say, as in the C host.
const ADMIN: Msecs = Msecs::from_secs(60);

/// A command with a request of the block layer that is its own, and how it ended.
///
/// Who has the request has this, too, so that nobody is ever turned away.
pub(crate) struct Passage(Claim<(Option<sqe::Command>, Option<cqe::Completion>)>);

impl Passage {
    pub(crate) const fn new() -> Self {
        Self(Claim::new((None, None)))
    }

    /// Takes a command.
    fn begin(&self, command: sqe::Command) {
        if let Some(mut passage) = self.0.try_claim() {
            *passage = (Some(command), None);
        }
    }

    /// The command.
    pub(crate) fn command(&self) -> Option<sqe::Command> {
        self.0.try_claim().and_then(|passage| passage.0)
    }

    /// Takes note of the response.
    pub(crate) fn answered(&self, completion: cqe::Completion) {
        if let Some(mut passage) = self.0.try_claim() {
            passage.1 = Some(completion);
        }
    }

    /// The response, if there was one.
    fn end(&self) -> Option<cqe::Completion> {
        self.0
            .try_claim()
            .and_then(|mut passage| core::mem::take(&mut *passage).1)
    }
}

/// How a command ended, for the user.
struct Outcome {
    status: Status,
    result: u64,
}

impl Outcome {
    fn of(completion: cqe::Completion) -> Self {
        Self {
            status: completion.status,
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

/// Does what is asked of a disk; the result is 0 or an NVMe status, as with the C host.
pub(crate) fn ioctl(call: &Ioctl<'_, Io>) -> Result<c_int> {
    match Call::from_number(call.number()).ok_or(ENOTTY)? {
        Call::NamespaceId => c_int::try_from(call.data().wwid.nsid).map_err(|_| EOVERFLOW),
        Call::Admin(layout) => tell(call, layout, admin(call, &read(call)?)?),
        Call::Io(layout) => tell(call, layout, io(call, &read(call)?)?),
    }
}

fn read(call: &Ioctl<'_, Io>) -> Result<UserCommand> {
    let mut bytes = [0; UserCommand::SIZE];
    UserSlice::new(call.argument(), bytes.len())
        .reader()
        .read_slice(&mut bytes)?;
    Ok(UserCommand::parse(&bytes))
}

fn tell(call: &Ioctl<'_, Io>, layout: Layout, outcome: Outcome) -> Result<c_int> {
    let place = call.argument().wrapping_byte_add(layout.result_offset());
    let mut writer = UserSlice::new(place, layout.result_size()).writer();
    match layout {
        Layout::Result32 => {
            let low = (outcome.result & 0xffff_ffff) as u32;
            writer.write_slice(&low.to_ne_bytes())?;
        }
        Layout::Result64 => writer.write_slice(&outcome.result.to_ne_bytes())?,
    }
    Ok(outcome.status.get().into())
}

fn allow(call: &Ioctl<'_, Io>, permission: Permission) -> Result {
    // Who may open a partition need not be allowed to see the rest of the disk.
    let anyone = permission == Permission::Opener && !call.on_partition();
    match anyone || call.by_administrator() {
        true => Ok(()),
        false => Err(EACCES),
    }
}

fn impossible(why: Impossible) -> Error {
    match why {
        Impossible::Invalid => EINVAL,
        Impossible::NotSupported => rrdma::errno::EOPNOTSUPP,
    }
}

fn is_live(disk: &Blocks) -> bool {
    disk.controller.shown(|shown| shown.state) == State::Live
}

/// The memory of the user; `None` for a command without data.
fn memory(user: &UserCommand) -> Result<Option<UserPtr>> {
    match (usize::try_from(user.address), user.length) {
        (Ok(0), _) | (_, 0) => Ok(None),
        (Ok(address), _) => Ok(Some(UserPtr::from_addr(address))),
        (Err(_), _) => Err(EFAULT),
    }
}

/// Sends a command to the namespace.
fn io(call: &Ioctl<'_, Io>, user: &UserCommand) -> Result<Outcome> {
    let command = user.io(call.data().wwid.nsid).map_err(impossible)?;
    allow(call, Permission::Administrator)?;
    if !is_live(call.data()) {
        return Ok(Outcome::no_path());
    }
    let mut request = call.command(match command.direction() {
        sqe::Direction::FromTarget => Direction::In,
        sqe::Direction::ToTarget => Direction::Out,
    })?;
    request.set_no_retry();
    if user.timeout_ms != 0 {
        request.set_timeout(Msecs::new(user.timeout_ms));
    }
    if let Some(address) = memory(user)? {
        request.map_user(address, user.length)?;
    }
    request.data().passage.begin(command);
    let executed = request.execute();
    match (executed.data().passage.end(), executed.status()) {
        (Some(completion), _) => {
            executed.copied()?;
            Ok(Outcome::of(completion))
        }
        (None, block::Status::Transport) => Ok(Outcome::no_path()),
        (None, _) => Err(EIO),
    }
}

/// Sends a command to the controller.
fn admin(call: &Ioctl<'_, Io>, user: &UserCommand) -> Result<Outcome> {
    let (command, permission) = user.admin().map_err(impossible)?;
    allow(call, permission)?;
    let address = memory(user)?;
    let direction = match command.direction() {
        sqe::Direction::FromTarget => dma::Direction::FromDevice,
        sqe::Direction::ToTarget => dma::Direction::ToDevice,
    };
    let data = match address {
        Some(address) => Some((fetch(address, user.length, direction)?, direction)),
        None => None,
    };
    let limit = match user.timeout_ms {
        0 => ADMIN,
        milliseconds => Msecs::new(milliseconds),
    };
    let reply = match call.data().controller.desk.execute(command, data, limit) {
        Ok(reply) => reply,
        Err(CommandError::Code(error)) => return Err(error),
        Err(CommandError::TimedOut(_)) => return Err(EBUSY),
        Err(CommandError::Trouble(_) | CommandError::Cancelled) => return Ok(Outcome::no_path()),
    };
    if let (Some(address), Some(buffer), dma::Direction::FromDevice) =
        (address, &reply.data, direction)
    {
        let bytes = buffer.bytes();
        UserSlice::new(address, bytes.len())
            .writer()
            .write_slice(bytes)?;
    }
    Ok(Outcome::of(reply.completion))
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
