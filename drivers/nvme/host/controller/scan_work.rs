// SPDX-License-Identifier: GPL-2.0

//! Making, changing and deleting disks, beside the controller's thread.
//!
//! All of it waits for I/O: the kernel reads the partitions of a new disk, writes back the page
//! cache of an old one, and changes hardware queues while no request uses them. That I/O ends only
//! because the controller's thread keeps the connection alive, or ends it, so the thread must not
//! wait. The work item is part of the controller: removal must not need memory.

use super::{
    scan_lock::{
        ScanGuard,
        ScanWork, //
    },
    status::Change,
    Controller, ScanContext,
};
use crate::{
    admin::{
        Admin,
        Sender, //
    },
    ctrl_error::CtrlError,
    disk::{
        DiskController,
        Io, //
    },
    event::Event,
    namespace::{
        self,
        DiskUpdate,
        NsChange,
        NsObserver,
        ScanError,
        ScanResult, //
    },
    uapi::ErrorStage, //
};
use core::fmt;
use kernel::{
    prelude::*,
    sync::Arc,
    workqueue::WorkItem, //
};
use nvme_proto::{
    format::changed_namespaces::ChangedNamespaces,
    policy::{
        ns_table::{
            DiskStage,
            MarkedGone, //
        },
        scan_requests::ScanRequests,
    },
};
use rrdma::{
    block::{
        QueueCounts,
        TagSet, //
    },
    sync::Deadline, //
};

/// The disks of a controller, for the holder of its scan lock.
pub(super) struct LockedDisks<'a> {
    controller: &'a Controller,
    _guard: &'a ScanGuard<'a>,
}

impl<'a> LockedDisks<'a> {
    /// The disks of `controller`, whose scan lock `guard` holds.
    pub(super) fn new(controller: &'a Controller, guard: &'a ScanGuard<'a>) -> Self {
        Self {
            controller,
            _guard: guard,
        }
    }

    /// Removes all disks. Sleeps, for I/O too.
    pub(super) fn remove_all(&self) {
        self.controller.namespaces.remove_all(self.controller);
    }

    /// Updates the disks to what a scan found. Sleeps, for I/O too.
    fn update(
        &self,
        controller: Arc<dyn DiskController>,
        found: &ScanResult,
    ) -> Result<(), ScanError> {
        let update = DiskUpdate {
            found,
            set: &self.controller.namespaces,
            observer: self.controller,
            controller,
            parent: self.controller.parent_device(),
            module: self.controller.services.module,
        };
        update.run()
    }
}

impl NsObserver for Controller {
    fn notify(&self, change: NsChange<'_>) {
        match change {
            NsChange::Added(info) => self.notify(Event::NamespaceAdded(info)),
            NsChange::Resized(info) => self.notify(Event::NamespaceChanged(info)),
            NsChange::Removed(info) => self.notify(Event::NamespaceRemoved(info)),
            NsChange::LimitsChanged { nsid } => {
                self.log(format_args!("namespace {nsid}: other limits of its disk"));
            }
            NsChange::MarkedGone(MarkedGone {
                nsid,
                reason,
                stage,
            }) => match stage {
                DiskStage::Made => {
                    self.warn(format_args!("namespace {nsid} {reason}: its disk goes"));
                }
                DiskStage::Pending => {
                    self.log(format_args!(
                        "namespace {nsid} {reason}: its disk is not made"
                    ));
                }
            },
            NsChange::MayChange { nsid } => {
                self.warn(format_args!(
                    "namespace {nsid} may be changing: its disk goes"
                ));
            }
        }
    }
}

impl WorkItem for Controller {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let Some((work, guard)) = this.scan_lock.begin_work() else {
            return;
        };
        let worker = ScanWorker {
            controller: &this,
            disks: LockedDisks::new(&this, &guard),
        };
        let result = worker.run(work);
        guard.finish(result);
    }
}

/// Scans the namespaces with `admin`, and keeps the rejections. `changed` are those that the target
/// reported. Sleeps, but not for I/O.
pub(super) fn scan(
    controller: &Controller,
    admin: &Admin<'_>,
    context: &ScanContext,
    changed: ChangedNamespaces<'_>,
) -> Result<ScanResult, CtrlError> {
    let scan = namespace::scan(&controller.namespaces, admin, &context.namespaces, changed)?;
    controller.status.update(|status| {
        let warn = |message: fmt::Arguments<'_>| controller.warn(message);
        scan.rejections.log_new(&status.rejections, warn);
        status.rejections = scan.rejections;
    });
    Ok(scan.result)
}

/// Does scan work, with the scan lock held.
struct ScanWorker<'a> {
    controller: &'a Arc<Controller>,
    disks: LockedDisks<'a>,
}

impl ScanWorker<'_> {
    fn run(&self, work: ScanWork) -> Result<(), CtrlError> {
        match work {
            ScanWork::Follow(found) => match self.update(&found) {
                // A later scan took effect, or none is to.
                Err(ScanError::Superseded | ScanError::Gone) | Ok(()) => Ok(()),
                Err(ScanError::Failed(error)) => Err(error),
            },
            ScanWork::Scan(context) => self.scan_and_update(&context),
            ScanWork::SetQueues(tag_set, queues) => self.set_queues(&tag_set, queues),
            ScanWork::DeleteDisks => {
                self.disks.remove_all();
                Ok(())
            }
        }
    }

    fn update(&self, found: &ScanResult) -> Result<(), ScanError> {
        self.disks.update(self.controller.clone(), found)
    }

    /// Updates the disks to the namespaces that there are now.
    fn scan_and_update(&self, context: &ScanContext) -> Result<(), CtrlError> {
        let controller = &**self.controller;
        let begun = controller.status.with(|status| status.scans);
        let updated = self
            .find(context, begun)
            .map_err(ScanError::from)
            .and_then(|found| self.update(&found));
        let result = match updated {
            // The connection ended, or is about to: the scan is still due.
            Err(ScanError::Superseded | ScanError::Gone) => return Ok(()),
            Err(ScanError::Failed(error)) => Err(error),
            Ok(()) => Ok(()),
        };
        match controller.status.scan_done(begun, &result) {
            Change::Nothing => return result,
            Change::Told => {}
        }
        controller.notify_change();
        result
    }

    /// Scans, because somebody requested it, or because something was missing.
    fn find(&self, context: &ScanContext, begun: ScanRequests) -> Result<ScanResult, CtrlError> {
        let admin = Admin {
            sender: Sender::Channel(&self.controller.scan_channel),
            // Each command has its time. No overall deadline: nobody waits.
            deadline: Deadline::NEVER,
        };
        // First: what changes from here on is an event again.
        let list = admin.take_changed_namespaces()?;
        // A target that goes on to name a namespace which is not there is scanned once for it, not
        // again and again.
        let changed = match &list {
            Some(page) if begun.is_due() => ChangedNamespaces::new(page.bytes()),
            _ => ChangedNamespaces::default(),
        };
        scan(self.controller, &admin, context, changed)
    }

    /// Gives the disks as many hardware queues as there are queues. Requests that were on more of
    /// them share what there is until they end: see [`Association::map_hctxs`].
    ///
    /// [`Association::map_hctxs`]: super::association::Association::map_hctxs
    fn set_queues(&self, tag_set: &TagSet<Io>, wanted: QueueCounts) -> Result<(), CtrlError> {
        let before = tag_set.queues();
        let fail = |error| CtrlError::kernel(ErrorStage::Queues, error, "hardware queues");
        let now = tag_set.set_queues(wanted).map_err(fail)?;
        self.controller
            .log(format_args!("the disks had {before}, and have {now}"));
        Ok(())
    }
}
