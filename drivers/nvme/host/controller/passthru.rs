// SPDX-License-Identifier: GPL-2.0

//! Admin commands from user space, and their effects on the disks.
//!
//! All disks are frozen during a command that excludes I/O, such as Format NVM. If the command may
//! change namespaces, they are scanned before the disks are thawed: no I/O reaches a namespace that
//! its disk no longer describes. Then scan work updates the disks.

use super::{
    scan_work::{
        self,
        Progress, //
    },
    status::ScanRequester,
    Controller, //
};
use crate::{
    admin::{
        Admin,
        Sender,
        COMMAND, //
    },
    ctrl_error::CtrlError,
    namespace::{
        ScanContext,
        ScanError, //
    },
    passthru::PassthruController,
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_proto::{
    format::{changed_namespaces::ChangedNamespaces, sqe::Command},
    policy::{
        ctrl_state::CtrlState,
        effects::CommandEffects,
        permission::IoPermissions, //
    },
};
use nvme_rdma_transport::queue::{CommandData, CommandError, Reply};
use rnvmf_disk::Io;
use rrdma::{
    block::{
        Disk,
        Frozen, //
    },
    sync::{
        Deadline,
        Msecs, //
    },
};

impl PassthruController for Controller {
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
        let context = self.scan_context.lock().clone();
        let (Some(context), true) = (context, CommandEffects::may_have(command.opcode())) else {
            return self.user_channel.execute(command, data, limit);
        };
        let effects = user_admin(self, Deadline::after(limit)).effects(
            &context.identity,
            command.opcode(),
            limit,
        )?;
        let reply = if effects.exclusive {
            let reply = with_io_frozen(self, || {
                let namespace = command.namespace();
                let reply = self.user_channel.execute(command, data, limit);
                if effects.changes_namespaces {
                    revalidate(self, &reply, &context, namespace);
                }
                reply
            });
            // Scan work may be due that could not start without the scan lock.
            self.wake.complete();
            reply
        } else {
            self.user_channel.execute(command, data, limit)
        }?;
        if effects.changes_namespaces {
            rescan_and_wait(self);
        }
        if effects.changes_controller {
            let what = "a passthrough command changed controller capabilities";
            self.log(format_args!("{what}: reset the controller to apply"));
        }
        Ok(reply)
    }
}

/// Returns the admin queue for commands through user space's channel until `deadline`.
fn user_admin(controller: &Controller, deadline: Deadline) -> Admin<'_> {
    Admin {
        sender: Sender::Channel(&controller.user_channel),
        deadline,
        timeout: COMMAND,
    }
}

/// Calls `act` while no I/O of the disks is in flight.
fn with_io_frozen<R>(
    controller: &Controller,
    act: impl FnOnce() -> Result<R, CommandError>,
) -> Result<R, CommandError> {
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
    controller: &Controller,
    reply: &Result<Reply, CommandError>,
    context: &Arc<ScanContext>,
    namespace: Option<u32>,
) {
    match reply {
        Ok(_) => rescan_frozen(controller, context, namespace),
        // Removal keeps the connection while the page cache is written back.
        Err(CommandError::Unanswered) if controller.is_deleting() => {
            controller.namespaces.mark_may_change(namespace, controller);
        }
        Err(_) => {}
    }
}

/// Marks disks as gone whose namespaces changed, by a scan. If the scan fails, marks the disks
/// of the namespace `named`.
fn rescan_frozen(controller: &Controller, context: &Arc<ScanContext>, named: Option<u32>) {
    let admin = user_admin(controller, Deadline::NEVER);
    let progress = Progress::new(controller);
    let marked = scan_work::scan(&progress, &admin, context, ChangedNamespaces::default())
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
fn rescan_and_wait(controller: &Controller) {
    if let Ok(number) = controller.request_scan_for(ScanRequester::Target) {
        controller.status.wait_scan(number);
    }
}

/// A guard: while it exists, the disks are frozen, with no I/O in flight.
struct FrozenDisks<'a> {
    /// Thawed in reverse order, because each saves the thread's allocation flags from before it.
    frozen: KVec<Frozen<'a, Io>>,
}

impl<'a> FrozenDisks<'a> {
    /// Freezes disks, and waits for their I/O in flight. The controller's thread must be awake to
    /// poll the polled queues, because a thread that polls them may itself be waiting here. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINTR` if a signal is pending; `ENOMEM`.
    fn new(disks: &'a [Arc<Disk<Io>>]) -> Result<Self> {
        let mut this = Self {
            frozen: KVec::with_capacity(disks.len(), GFP_KERNEL)?,
        };
        for disk in disks {
            // The capacity suffices, so this does not fail.
            let _ = this.frozen.push(disk.freeze()?, GFP_KERNEL);
        }
        Ok(this)
    }
}

impl Drop for FrozenDisks<'_> {
    fn drop(&mut self) {
        while self.frozen.pop().is_some() {}
    }
}
