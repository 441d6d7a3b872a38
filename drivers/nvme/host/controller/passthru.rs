// SPDX-License-Identifier: GPL-2.0

//! Commands of users, and what they do beside their own business.
//!
//! One that must be alone, such as Format NVM, has no I/O beside it: the disks are frozen. If
//! namespaces may be others afterwards they are looked at before I/O goes on, so that none
//! reaches a namespace that its disk does not describe any more; then the disks follow.

use super::{scan_work, status::ScanRequester, Controller, ScanContext};
use crate::{
    admin::{
        Admin,
        Sender, //
    },
    ctrl_error::CtrlError,
    disk::{
        DiskController,
        FrozenDisks, //
    },
    namespace::ScanError,
};
use kernel::prelude::*;
use nvme_proto::{
    format::{changed_namespaces::ChangedNamespaces, sqe::Command},
    policy::{
        ctrl_state::CtrlState,
        effects::CommandEffects,
        permission::IoPermissions, //
    },
};
use nvme_rdma_transport::queue::{CommandData, CommandError, Reply};
use rrdma::sync::{
    Deadline,
    Msecs, //
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
        data: Option<CommandData>,
        limit: Msecs,
    ) -> Result<Reply, CommandError> {
        AdminPassthru { controller: self }.execute(command, data, limit)
    }

    fn may_log_failed_io(&self) -> bool {
        self.failed_io.allows(c"rnvmf: failed I/O")
    }
}

/// Admin commands of users, and their effects on the disks.
struct AdminPassthru<'a> {
    controller: &'a Controller,
}

impl AdminPassthru<'_> {
    /// Sends `command` and sees to its effects. Sleeps, for I/O too: the caller must not keep disks
    /// from being removed. A signal before the command is sent is `EINTR`; a later one ends the wait
    /// for the disks.
    fn execute(
        &self,
        command: Command,
        data: Option<CommandData>,
        limit: Msecs,
    ) -> Result<Reply, CommandError> {
        let controller = self.controller;
        let context = controller.scan_context.lock().clone();
        let (Some(context), true) = (context, CommandEffects::may_have(command.opcode())) else {
            return controller.user_channel.execute(command, data, limit);
        };
        let effects = self.admin(Deadline::after(limit)).effects(
            &context.namespaces.identity,
            command.opcode(),
            limit,
        )?;
        let reply = if effects.exclusive {
            let reply = self.with_io_frozen(|| {
                let namespace = command.namespace();
                let reply = controller.user_channel.execute(command, data, limit);
                if effects.changes_namespaces {
                    self.revalidate(&reply, &context, namespace);
                }
                reply
            });
            // Scan work may wait for the scan lock.
            controller.wake.complete();
            reply
        } else {
            controller.user_channel.execute(command, data, limit)
        }?;
        if effects.changes_namespaces {
            self.rescan_and_wait();
        }
        if effects.changes_controller {
            let what = "a user's command changed what the target can do";
            controller.log(format_args!("{what}: a reset brings it to light"));
        }
        Ok(reply)
    }

    /// The admin queue, by the channel of users, until `deadline`.
    fn admin(&self, deadline: Deadline) -> Admin<'_> {
        Admin {
            sender: Sender::Channel(&self.controller.user_channel),
            deadline,
        }
    }

    /// Calls `act` while no I/O of the disks is in flight.
    fn with_io_frozen<R>(
        &self,
        act: impl FnOnce() -> Result<R, CommandError>,
    ) -> Result<R, CommandError> {
        let controller = self.controller;
        // Disks are neither removed nor made meanwhile.
        let _guard = controller
            .scan_lock
            .lock_interruptible()
            .map_err(CommandError::Code)?;
        let disks = controller.namespaces.disks().map_err(CommandError::Code)?;
        // The thread polls the polled queues meanwhile.
        controller.wake.complete();
        let _frozen = FrozenDisks::new(&disks).map_err(CommandError::Code)?;
        act()
    }

    /// Marks disks gone after a command, named for `namespace`, that may have changed theirs.
    fn revalidate(
        &self,
        reply: &Result<Reply, CommandError>,
        context: &ScanContext,
        namespace: Option<u32>,
    ) {
        let controller = self.controller;
        match reply {
            Ok(_) => self.rescan_frozen(context, namespace),
            // The connection may still be there for what the page cache writes back.
            Err(CommandError::Unanswered) if controller.is_deleting() => {
                controller.namespaces.mark_may_change(namespace, controller);
            }
            Err(_) => {}
        }
    }

    /// Makes the disks refuse I/O that would reach another namespace. If a scan cannot tell, these
    /// are the disks that the command named.
    fn rescan_frozen(&self, context: &ScanContext, named: Option<u32>) {
        let controller = self.controller;
        let admin = self.admin(Deadline::NEVER);
        let marked = scan_work::scan(controller, &admin, context, ChangedNamespaces::default())
            .map_err(ScanError::from)
            .and_then(|found| found.mark_gone(&controller.namespaces, controller));
        match marked {
            Ok(()) => {}
            // The connection ended. The next one scans before there is I/O.
            Err(ScanError::Superseded | ScanError::Gone) if !controller.is_deleting() => {}
            Err(error) => {
                controller.warn(format_args!("{}", CtrlError::from(error).message()));
                controller.namespaces.mark_may_change(named, controller);
            }
        }
    }

    /// Rescans, and waits as long as the controller is live and the process has no signal.
    fn rescan_and_wait(&self) {
        let controller = self.controller;
        let Ok(number) = controller.request_scan_for(ScanRequester::Target) else {
            return;
        };
        controller.status.wait_scan(number);
    }
}
