// SPDX-License-Identifier: GPL-2.0

//! Admin commands from user space, and their effects on the disks.
//!
//! All disks are frozen during a command that excludes I/O, such as Format NVM. If the command may
//! change namespaces, they are scanned before the disks are thawed: no I/O reaches a namespace that
//! its disk no longer describes. Then scan work updates the disks.

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

/// Sends admin commands from user space, and handles their effects on the disks.
struct AdminPassthru<'a> {
    controller: &'a Controller,
}

impl AdminPassthru<'_> {
    /// Sends `command` and handles its effects. Sleeps, for I/O too: the caller must not block the
    /// removal of disks.
    ///
    /// # Errors
    ///
    /// `EINTR` for a signal before the command is sent; a later signal only ends the wait for the
    /// disks. Otherwise why there is no response.
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
            // Scan work may be due that could not start without the scan lock.
            controller.wake.complete();
            reply
        } else {
            controller.user_channel.execute(command, data, limit)
        }?;
        if effects.changes_namespaces {
            self.rescan_and_wait();
        }
        if effects.changes_controller {
            let what = "a passthrough command changed controller capabilities";
            controller.log(format_args!("{what}: reset the controller to apply"));
        }
        Ok(reply)
    }

    /// Returns the admin queue for commands through user space's channel until `deadline`.
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
        // Disks are neither added nor removed while the lock is held.
        let _guard = controller
            .scan_lock
            .lock_interruptible()
            .map_err(CommandError::Code)?;
        let disks = controller.namespaces.disks().map_err(CommandError::Code)?;
        // Wake the thread: it polls the polled queues while the lock is held.
        controller.wake.complete();
        let _frozen = FrozenDisks::new(&disks).map_err(CommandError::Code)?;
        act()
    }

    /// Marks disks as gone after a command to `namespace` that may have changed namespaces.
    fn revalidate(
        &self,
        reply: &Result<Reply, CommandError>,
        context: &ScanContext,
        namespace: Option<u32>,
    ) {
        let controller = self.controller;
        match reply {
            Ok(_) => self.rescan_frozen(context, namespace),
            // Removal keeps the connection while the page cache is written back.
            Err(CommandError::Unanswered) if controller.is_deleting() => {
                controller.namespaces.mark_may_change(namespace, controller);
            }
            Err(_) => {}
        }
    }

    /// Marks disks as gone whose namespaces changed, by a scan. If the scan fails, marks the disks
    /// of the namespace `named`.
    fn rescan_frozen(&self, context: &ScanContext, named: Option<u32>) {
        let controller = self.controller;
        let admin = self.admin(Deadline::NEVER);
        let marked = scan_work::scan(controller, &admin, context, ChangedNamespaces::default())
            .map_err(ScanError::from)
            .and_then(|found| found.mark_gone(&controller.namespaces, controller));
        match marked {
            Ok(()) => {}
            // The connection ended. A reconnect scans before it resumes I/O.
            Err(ScanError::Superseded | ScanError::Gone) if !controller.is_deleting() => {}
            Err(error) => {
                controller.warn(format_args!("{}", CtrlError::from(error).message()));
                controller.namespaces.mark_may_change(named, controller);
            }
        }
    }

    /// Requests a scan and waits for it, while the controller is live and no signal is pending.
    fn rescan_and_wait(&self) {
        let controller = self.controller;
        let Ok(number) = controller.request_scan_for(ScanRequester::Target) else {
            return;
        };
        controller.status.wait_scan(number);
    }
}
