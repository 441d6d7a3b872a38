// SPDX-License-Identifier: GPL-2.0

//! Making, changing and deleting disks, beside the controller's thread.
//!
//! All of it waits for I/O: a new disk is searched for partitions, an old one writes
//! back what the page cache holds, and hardware queues change when none is used. That
//! I/O ends only because the controller's thread keeps the connection alive, or tears
//! it down; so it is not the one to wait. The work item is part of the controller, as
//! removal must not need memory.

use super::{
    scan_lock::{
        ScanGuard,
        ScanWork, //
    },
    status::Transition,
    Admin,
    Controller,
    ScanContext,
    Sender, //
};
use crate::{
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
    policy::ns_table::{
        DiskStage,
        MarkedGone, //
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
        let disks = LockedDisks::new(&this, &guard);
        let result = match work {
            ScanWork::Follow(found) => match disks.update(this.clone(), &found) {
                // A later scan took effect, or none is to.
                Err(ScanError::Superseded | ScanError::Gone) | Ok(()) => Ok(()),
                Err(ScanError::Failed(error)) => Err(error),
            },
            ScanWork::Scan(scan_context) => this.scan_and_update(&disks, &scan_context),
            ScanWork::SetQueues(tag_set, queues) => this.set_queues(&tag_set, queues),
            ScanWork::DeleteDisks => {
                disks.remove_all();
                Ok(())
            }
        };
        guard.finish(result);
    }
}

impl Controller {
    /// Scans the namespaces with `admin`, and keeps the rejections. `changed` are those that the
    /// target told of. Sleeps, but not for I/O.
    pub(super) fn scan(
        &self,
        admin: &Admin<'_>,
        context: &ScanContext,
        changed: ChangedNamespaces<'_>,
    ) -> Result<ScanResult, CtrlError> {
        let scan = namespace::scan(&self.namespaces, admin, &context.namespaces, changed)?;
        self.status.update(|status| {
            let warn = |message: fmt::Arguments<'_>| self.warn(message);
            scan.rejections.log_new(&status.rejections, warn);
            status.rejections = scan.rejections;
        });
        Ok(scan.result)
    }

    /// Updates the disks to the namespaces that there are now.
    fn scan_and_update(
        self: &Arc<Self>,
        disks: &LockedDisks<'_>,
        scan_context: &ScanContext,
    ) -> Result<(), CtrlError> {
        let begun = self.status.with(|status| status.scans);
        let updated = self
            .find(scan_context, begun.is_due())
            .map_err(ScanError::from)
            .and_then(|found| disks.update(self.clone(), &found));
        let result = match updated {
            // The connection ended, or is about to: the scan is still due.
            Err(ScanError::Superseded | ScanError::Gone) => return Ok(()),
            Err(ScanError::Failed(error)) => Err(error),
            Ok(()) => Ok(()),
        };
        match self.status.scan_done(begun, &result) {
            Transition::Refused => return result,
            Transition::Done => {}
        }
        self.notify_change();
        result
    }

    /// Finds what namespaces there are, because somebody `asked`, or because something was missing.
    fn find(&self, scan_context: &ScanContext, asked: bool) -> Result<ScanResult, CtrlError> {
        let admin = Admin {
            sender: Sender::ScanWork,
            controller: self,
            // Each command has its time. What is found meanwhile is none of our users' haste.
            deadline: Deadline::NEVER,
        };
        // First: what changes from here on is told again.
        let list = admin.take_changed_namespaces()?;
        // Who goes on to tell of a namespace that is not there has us look for it once, not again
        // and again.
        let aer_done = match &list {
            Some(page) if asked => ChangedNamespaces::new(page.bytes()),
            _ => ChangedNamespaces::default(),
        };
        self.scan(&admin, scan_context, aer_done)
    }

    /// Brings the disks' hardware queues in line with ours. Requests that were on more of them
    /// than there are now share what there is until they end: see [`Association::place`].
    ///
    /// [`Association::place`]: super::session::Association::place
    fn set_queues(&self, tag_set: &TagSet<Io>, wanted: QueueCounts) -> Result<(), CtrlError> {
        let before = tag_set.queues();
        let fail = |error| CtrlError::kernel(ErrorStage::Queues, error, "hardware queues");
        let now = tag_set.set_queues(wanted).map_err(fail)?;
        self.log(format_args!("the disks had {before}, and have {now}"));
        Ok(())
    }
}
