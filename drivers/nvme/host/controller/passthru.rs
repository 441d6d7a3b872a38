// SPDX-License-Identifier: GPL-2.0

//! Commands of users, and what they do beside their own business.
//!
//! One that must be alone, such as Format NVM, has no I/O beside it: the disks are frozen. If
//! namespaces may be others afterwards they are looked at before I/O goes on, so that none
//! reaches a namespace that its disk does not describe any more; then the disks follow.

use super::{
    status::ScanRequester,
    Admin,
    Controller,
    ScanContext,
    Sender, //
};
use crate::{
    ctrl_error::CtrlError,
    disk::{
        DiskController,
        FrozenDisks, //
    },
    namespace::ScanError,
    queue::{
        CommandError,
        Reply, //
    },
    uapi::ErrorStage,
};
use kernel::prelude::*;
use nvme_proto::{
    format::{
        changed_namespaces::ChangedNamespaces,
        effects_log::EffectsLog,
        identify,
        sqe::{
            Command,
            LogPage, //
        },
    },
    policy::{
        ctrl_state::CtrlState,
        effects::CommandEffects,
        permission::IoPermissions, //
    },
};
use rrdma::{
    errno,
    rdma::dma::Direction,
    scatter::Buffer,
    sync::{
        Deadline,
        Msecs, //
    },
};

impl DiskController for Controller {
    fn is_connected(&self) -> bool {
        self.scan_channel.is_open()
    }

    fn is_live(&self) -> bool {
        self.status.state() == CtrlState::Live
    }

    fn io_permissions(&self) -> IoPermissions {
        let scan_context = self.scan_context.lock();
        match &*scan_context {
            Some(scan_context) => scan_context.io_permissions,
            None => IoPermissions::default(),
        }
    }

    fn execute_for_user(
        &self,
        command: Command,
        data: Option<(Buffer, Direction)>,
        limit: Msecs,
    ) -> Result<Reply, CommandError> {
        self.execute_with_effects(command, data, limit)
    }

    fn may_log_failed_io(&self) -> bool {
        self.failed_io.allows(c"rnvmf: failed I/O")
    }
}

impl Controller {
    /// Sends a command of a user, and sees to its effects. Sleeps, for I/O too, so that whoever
    /// calls must not keep disks from being removed. A signal ends the waits before the command
    /// is sent, which then is not, with `EINTR`; and that for the disks that come of it.
    fn execute_with_effects(
        &self,
        command: Command,
        data: Option<(Buffer, Direction)>,
        limit: Msecs,
    ) -> Result<Reply, CommandError> {
        let scan_context = self.scan_context.lock().clone();
        let (Some(scan_context), true) = (scan_context, CommandEffects::may_have(command.opcode()))
        else {
            return self.user_channel.execute(command, data, limit);
        };
        let admin = Admin {
            sender: Sender::User,
            controller: self,
            deadline: Deadline::NEVER,
        };
        let asked = Admin {
            deadline: Deadline::after(limit),
            ..admin
        };
        let effects = asked.effects(&scan_context, command.opcode(), limit)?;
        let reply = match effects.exclusive {
            true => {
                let reply = self.with_io_frozen(|| {
                    let namespace = command.namespace();
                    let reply = self.user_channel.execute(command, data, limit);
                    match &reply {
                        Ok(_) if effects.changes_namespaces => {
                            self.rescan_frozen(&admin, &scan_context, namespace);
                        }
                        // There may be a connection yet, for what is to be written back.
                        Err(CommandError::Unanswered)
                            if effects.changes_namespaces && self.is_deleting() =>
                        {
                            self.namespaces.mark_may_change(namespace, self);
                        }
                        _ => {}
                    }
                    reply
                });
                // An errand may wait for its turn.
                self.wake.complete();
                reply
            }
            false => self.user_channel.execute(command, data, limit),
        }?;
        if effects.changes_namespaces {
            self.rescan_and_wait();
        }
        if effects.changes_controller {
            let what = "a user's command changed what the target can do";
            self.log(format_args!("{what}: a reset brings it to light"));
        }
        Ok(reply)
    }

    /// Does something without any I/O beside it.
    fn with_io_frozen<R>(
        &self,
        act: impl FnOnce() -> Result<R, CommandError>,
    ) -> Result<R, CommandError> {
        // They are neither removed nor made meanwhile.
        let _turn = self
            .scan_lock
            .lock_interruptible()
            .map_err(CommandError::Code)?;
        let disks = self.namespaces.disks().map_err(CommandError::Code)?;
        // The thread polls the polled queues meanwhile.
        self.wake.complete();
        let _frozen = FrozenDisks::new(&disks).map_err(CommandError::Code)?;
        act()
    }

    /// Makes the disks refuse I/O that would reach something else. Where that cannot be seen now,
    /// that is those of the namespaces that the command named.
    fn rescan_frozen(&self, admin: &Admin<'_>, scan_context: &ScanContext, named: Option<u32>) {
        let marked = self
            .scan(admin, scan_context, ChangedNamespaces::default())
            .map_err(ScanError::from)
            .and_then(|found| found.mark_gone(&self.namespaces, self));
        match marked {
            Ok(()) => {}
            // The connection ended. The next one scans before there is I/O.
            Err(ScanError::Superseded | ScanError::Gone) if !self.is_deleting() => {}
            Err(error) => {
                self.warn(format_args!("{}", CtrlError::from(error).message()));
                self.namespaces.mark_may_change(named, self);
            }
        }
    }

    /// Brings the disks in line with what there is, and waits for it as long as the controller is
    /// live and the process has no signal.
    fn rescan_and_wait(&self) {
        let Ok(number) = self.request_scan_for(ScanRequester::Target) else {
            return;
        };
        self.status.wait_scan(number);
    }
}

impl Admin<'_> {
    /// What a command does to others, by the target's log if it has one. It may take as long as
    /// the command, whose `limit` this is.
    fn effects(
        &self,
        scan_context: &ScanContext,
        opcode: u8,
        limit: Msecs,
    ) -> Result<CommandEffects, CommandError> {
        match self.effects_log(ErrorStage::Io, &scan_context.namespaces.identity) {
            Ok(Some(log)) => Ok(CommandEffects::of_admin(
                opcode,
                EffectsLog::new(log.bytes()),
            )),
            Ok(None) => Ok(CommandEffects::of_admin(opcode, EffectsLog::default())),
            Err(CtrlError { error, .. }) if error == errno::ECANCELED => {
                Err(CommandError::Cancelled)
            }
            // It was not the user's turn.
            Err(CtrlError { error, .. }) if error == ETIMEDOUT => {
                Err(CommandError::TimedOut(limit))
            }
            Err(failure) => Err(CommandError::Code(failure.error)),
        }
    }

    /// Who may send which command to a namespace, by the same log.
    pub(super) fn io_permissions(
        &self,
        identity: &identify::Controller,
    ) -> Result<IoPermissions, CtrlError> {
        Ok(match self.effects_log(ErrorStage::Identify, identity)? {
            Some(log) => IoPermissions::from_log(EffectsLog::new(log.bytes())),
            None => IoPermissions::default(),
        })
    }

    /// The target's log of commands and their effects, if it has one.
    fn effects_log(
        &self,
        stage: ErrorStage,
        identity: &identify::Controller,
    ) -> Result<Option<Buffer>, CtrlError> {
        if !identity.has_effects_log() {
            return Ok(None);
        }
        let what = "log of commands and their effects";
        let page = LogPage::new(LogPage::EFFECTS, 0, LogPage::EFFECTS_SIZE)
            .map_err(|why| CtrlError::new(stage, EINVAL, format_args!("{what}: {why}")))?;
        match self.log_page(stage, page, what) {
            Ok(log) => Ok(Some(log)),
            // It says that it has one, and then refuses to show it.
            Err(failure) if failure.nvme_status.is_some() => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}
