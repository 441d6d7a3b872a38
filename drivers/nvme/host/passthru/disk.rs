// SPDX-License-Identifier: GPL-2.0

//! The ioctls of disks.

use super::{
    admin,
    check,
    memory,
    patience,
    read,
    tell,
    PassthruResult, //
};
use crate::io::{
    Io, //
    NsDisk,
};
use kernel::prelude::*;
use nvme_proto::{
    format::{
        cqe,
        passthru::{
            NvmeIoctl,
            UserCommand, //
        },
        sqe, //
    },
    policy::{
        ctrl_state::CtrlState,
        passthru::io_command,
        permission::OpenMode, //
    },
};
use rrdma::{
    block::{
        self,
        Direction,
        Ioctl, //
    },
    sync::Claim, //
};

/// A command with a request of the block layer that is its own, and how it ended.
///
/// Who has the request has this, too, so that nobody is ever turned away.
pub(crate) struct PassthruCmd(Claim<(Option<sqe::Command>, Option<cqe::Completion>)>);

impl PassthruCmd {
    pub(crate) const fn new() -> Self {
        Self(Claim::new((None, None)))
    }

    /// Takes a command.
    fn begin(&self, command: sqe::Command) {
        if let Some(mut passthru) = self.0.try_claim() {
            *passthru = (Some(command), None);
        }
    }

    /// The command.
    pub(crate) fn command(&self) -> Option<sqe::Command> {
        self.0.try_claim().and_then(|passthru| passthru.0)
    }

    /// Takes note of the response.
    pub(crate) fn answered(&self, completion: cqe::Completion) {
        if let Some(mut passthru) = self.0.try_claim() {
            passthru.1 = Some(completion);
        }
    }

    /// The response, if there was one.
    fn end(&self) -> Option<cqe::Completion> {
        self.0
            .try_claim()
            .and_then(|mut passthru| core::mem::take(&mut *passthru).1)
    }
}

/// Does what is asked of a disk; the result is 0 or an NVMe status, as with the C host.
pub(crate) fn ioctl(call: Ioctl<'_, Io>) -> Result<c_int> {
    let opened = OpenMode {
        partition: call.on_partition(),
        for_writing: call.for_writing(),
    };
    match NvmeIoctl::from_number(call.number()).ok_or(ENOTTY)? {
        NvmeIoctl::NamespaceId => c_int::try_from(call.data().wwid.nsid).map_err(|_| EOVERFLOW),
        NvmeIoctl::Admin(layout) => {
            let controller = call.data().controller.clone();
            // What the command does may be the end of the disk.
            let call = call.leave();
            tell(&call, layout, admin(&call, opened, &controller)?)
        }
        NvmeIoctl::Io(layout) => {
            // The disk waits for who is here, and memory may make us wait as it likes.
            let (call, user) = call.outside(read)?;
            let outcome = io(&call, opened, &user)?;
            tell(&call.leave(), layout, outcome)
        }
        NvmeIoctl::Reset | NvmeIoctl::SubsystemReset | NvmeIoctl::Rescan => Err(ENOTTY),
    }
}

fn is_live(disk: &NsDisk) -> bool {
    disk.controller.status(|status| status.state) == CtrlState::Live
}

/// Sends a command to the namespace.
fn io(call: &Ioctl<'_, Io>, opened: OpenMode, user: &UserCommand) -> Result<PassthruResult> {
    let permissions = call.data().controller.io_permissions();
    let permission = permissions.required_for(user.opcode);
    let command = io_command(user, call.data().wwid.nsid);
    let command = check(call, opened, permission, command)?;
    if !is_live(call.data()) {
        return Ok(PassthruResult::no_path());
    }
    let mut request = call.command(match command.direction() {
        sqe::Direction::FromTarget => Direction::In,
        sqe::Direction::ToTarget => Direction::Out,
    })?;
    request.set_no_retry();
    if let Some(limit) = patience(call, user) {
        request.set_timeout(limit);
    }
    if let Some(address) = memory(user)? {
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
        // Its namespace is, and the disk just about to go.
        (None, _) if call.data().gone.get() => Err(ENODEV),
        (None, _) => Err(EIO),
    }
}
