// SPDX-License-Identifier: GPL-2.0

//! Making, changing and deleting disks, beside the controller's thread.
//!
//! All of it waits for I/O: a new disk is searched for partitions, an old one writes
//! back what the page cache holds, and hardware queues change when none is used. That
//! I/O ends only because the controller's thread keeps the connection alive, or tears
//! it down; so it is not the one to wait. The work item is part of the controller, as
//! removal must not need memory.

use super::{
    scan_lock::ScanGuard,
    status::Transition,
    Admin,
    Controller,
    ScanContext,
    Sender, //
};
use crate::{
    ctrl_error::CtrlError,
    disk::Io,
    event::Event,
    namespace::{
        self,
        Namespace,
        ScanResult, //
    },
    uapi::ErrorStage, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    workqueue::WorkItem, //
};
use nvme_proto::format::changed_namespaces::ChangedNamespaces;
use rrdma::{
    block::{
        QueueCounts,
        TagSet, //
    },
    errno,
    sync::Deadline, //
};

/// What is to be done to the disks.
pub(super) enum ScanWork {
    /// They are to be in line with what was found.
    Follow(ScanResult),
    /// And with what there is now.
    Scan(Arc<ScanContext>),
    /// They are to have these hardware queues.
    SetQueues(Arc<TagSet<Io>>, QueueCounts),
    DeleteDisks,
}

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
        while self.remove(|_| true) {}
    }

    /// Removes the disks of namespaces that are gone. Sleeps, for I/O too.
    fn remove_gone(&self) {
        while self.remove(Namespace::is_lost) {}
    }

    /// Removes one disk whose namespace is `which`, and then tells; `false` if there is none.
    fn remove(&self, which: impl Fn(&Namespace) -> bool) -> bool {
        let controller = self.controller;
        let removed = {
            let mut namespaces = controller.namespaces.lock();
            let place = namespaces.iter().position(which);
            let removed = place.and_then(|place| namespaces.remove(place).ok());
            controller.services.disks_changed();
            let count = namespaces.len().try_into().unwrap_or(u32::MAX);
            controller.status.update(|status| status.namespaces = count);
            removed
        };
        let Some(namespace) = removed else {
            return false;
        };
        let info = namespace.info();
        // Deletes the disk, which waits for its I/O.
        drop(namespace);
        let event = Event::NamespaceRemoved(&info);
        controller.services.events.notify(controller, event);
        true
    }
}

impl WorkItem for Controller {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let Some((work, guard)) = this.scan_lock.begin_work() else {
            return;
        };
        let result = match work {
            ScanWork::Follow(found) => match this.follow(&guard, found) {
                // Something later is followed, or nothing is to be.
                Err(failure) if failure.error == errno::ECANCELED => Ok(()),
                result => result,
            },
            ScanWork::Scan(scan_context) => this.scan(&guard, &scan_context),
            ScanWork::SetQueues(tag_set, queues) => this.set_queues(&tag_set, queues),
            ScanWork::DeleteDisks => {
                LockedDisks::new(&this, &guard).remove_all();
                Ok(())
            }
        };
        guard.finish(result);
    }
}

impl Controller {
    /// Brings the disks in line with what was found. It may have been found on a connection
    /// that is gone: what was found later, and applies, is followed later.
    fn follow(self: &Arc<Self>, guard: &ScanGuard<'_>, found: ScanResult) -> Result<(), CtrlError> {
        // What cannot be done to one disk does not keep others from following.
        let lost = found.mark_gone(self);
        LockedDisks::new(self, guard).remove_gone();
        let resized = found.update_capacities(self);
        let changed = found.update_limits(self);
        let made = found.make_disks(self);
        // The latest first: that something else is followed by now says more than the others.
        made.and(changed).and(resized).and(lost)
    }

    /// Brings the disks in line with what there is.
    fn scan(
        self: &Arc<Self>,
        guard: &ScanGuard<'_>,
        scan_context: &ScanContext,
    ) -> Result<(), CtrlError> {
        let begun = self.status.with(|status| status.scans);
        let result = self
            .find(scan_context, begun.is_due())
            .and_then(|found| self.follow(guard, found));
        match &result {
            // The connection ended meanwhile, or there is to be none: then it is still due.
            Err(failure) if failure.error == errno::ECANCELED => return Ok(()),
            _ => {}
        }
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
        namespace::find(self, &admin, scan_context, aer_done)
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
