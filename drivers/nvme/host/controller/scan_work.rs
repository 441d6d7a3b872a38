// SPDX-License-Identifier: GPL-2.0

//! Adding, changing and deleting disks, in a work item.
//!
//! All of these wait for I/O: the kernel reads the partition table of a new disk, writes back the
//! page cache of an old one, and changes hardware queues while no request uses them. That I/O ends
//! only because the controller's thread keeps the connection alive, or ends it. So the thread
//! itself must not wait for it. The work item is part of the controller, because removal must not
//! allocate.

use super::{
    scan_lock::{
        ScanGuard,
        ScanWork, //
    },
    Controller,
};
use crate::{
    admin::{
        Admin,
        Sender,
        COMMAND, //
    },
    ctrl_error::CtrlError,
    event::Event,
    namespace::{
        self,
        DiskUpdate,
        NsChange,
        NsObserver,
        ScanContext,
        ScanError,
        ScanResult, //
    },
    uapi::ErrorStage, //
};
use core::cell::Cell;
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
use rnvmf_disk::Io;
use rrdma::{
    block::{
        QueueCounts,
        TagSet, //
    },
    sync::{
        Deadline,
        Msecs, //
    }, //
};

/// Time between reports of a scan that goes on, for programs that wait for the first disks.
const PROGRESS: Msecs = Msecs::from_secs(1);

impl NsObserver for Controller {
    fn notify(&self, change: NsChange<'_>) {
        match change {
            NsChange::Added(info) => self.notify(Event::NamespaceAdded(info)),
            NsChange::Resized(info) => self.notify(Event::NamespaceChanged(info)),
            NsChange::Removed(info) => self.notify(Event::NamespaceRemoved(info)),
            NsChange::LimitsChanged { nsid } => {
                self.log(format_args!("namespace {nsid}: disk limits changed"));
            }
            NsChange::MarkedGone(MarkedGone {
                nsid,
                reason,
                stage,
            }) => match stage {
                DiskStage::Made => {
                    self.warn(format_args!("namespace {nsid} {reason}: removing disk"));
                }
                DiskStage::Pending => {
                    self.log(format_args!(
                        "namespace {nsid} {reason}: not adding its disk"
                    ));
                }
            },
            NsChange::MayChange { nsid } => {
                self.warn(format_args!(
                    "namespace {nsid} may have changed: removing disk"
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
        let result = run_work(work, &this, &guard);
        guard.finish(result);
    }
}

/// Reports to user space, at most once a second, that a connect goes on.
pub(super) struct Progress<'a> {
    controller: &'a Controller,
    due: Cell<Deadline>,
}

impl<'a> Progress<'a> {
    /// Progress that is reported in a second for the first time.
    pub(super) fn new(controller: &'a Controller) -> Self {
        let due = Cell::new(Deadline::after(PROGRESS));
        Self { controller, due }
    }

    /// Reports progress if a second has passed since the last report. May sleep.
    pub(super) fn report(&self) {
        if self.due.get().left() == Msecs::new(0) {
            self.due.set(Deadline::after(PROGRESS));
            self.controller.tell_progress();
        }
    }
}

/// Scans all namespaces through `admin`, and keeps the rejections. `awaited` has the namespaces
/// that the target reported as changed; it does not limit the scan. Sleeps, but not for I/O.
pub(super) fn scan(
    progress: &Progress<'_>,
    admin: &Admin<'_>,
    context: &Arc<ScanContext>,
    awaited: ChangedNamespaces<'_>,
) -> Result<ScanResult, CtrlError> {
    let controller = progress.controller;
    let tell_progress = || progress.report();
    let namespaces = &controller.namespaces;
    let scan = namespace::scan(namespaces, admin, context, awaited, &tell_progress)?;
    controller.status.update(|status| {
        let warn = |message: fmt::Arguments<'_>| controller.warn(message);
        scan.rejections.log_new(&status.rejections, warn);
        status.rejections = scan.rejections;
    });
    Ok(scan.result)
}

fn run_work(
    work: ScanWork,
    controller: &Arc<Controller>,
    guard: &ScanGuard<'_>,
) -> Result<(), CtrlError> {
    match work {
        ScanWork::Follow(found) => match update(controller, guard, &found) {
            // A later scan was applied, or the connection ended.
            Err(ScanError::Superseded | ScanError::Gone) | Ok(()) => Ok(()),
            Err(ScanError::Failed(error)) => Err(error),
        },
        ScanWork::Scan(context) => scan_and_update(controller, guard, &context),
        ScanWork::SetQueues(tag_set, queues) => set_queues(controller, &tag_set, queues),
        ScanWork::DeleteDisks => {
            remove_all(controller, guard);
            Ok(())
        }
    }
}

/// Removes all disks; `_guard` holds the scan lock of `controller`. Sleeps, for I/O too.
pub(super) fn remove_all(controller: &Controller, _guard: &ScanGuard<'_>) {
    controller.namespaces.remove_all(controller);
}

/// Updates the disks to the result of a scan; `_guard` holds the scan lock of `controller`. Sleeps,
/// for I/O too.
fn update(
    controller: &Arc<Controller>,
    _guard: &ScanGuard<'_>,
    found: &ScanResult,
) -> Result<(), ScanError> {
    let update = DiskUpdate {
        found,
        set: &controller.namespaces,
        observer: &**controller,
        controller: controller.clone(),
        parent: controller.parent_device(),
        module: controller.services.module,
        spawn: &|scan| controller.services.spawn(move || scan.run()),
        wake: &controller.wake,
    };
    update.run()
}

/// Scans the namespaces, and updates the disks to the result.
fn scan_and_update(
    controller: &Arc<Controller>,
    guard: &ScanGuard<'_>,
    context: &Arc<ScanContext>,
) -> Result<(), CtrlError> {
    let begun = controller.status.with(|status| status.scans);
    let updated = find(controller, context, begun)
        .map_err(ScanError::from)
        .and_then(|found| update(controller, guard, &found));
    let result = match updated {
        // The connection ended or is ending: the scan is still due.
        Err(ScanError::Superseded | ScanError::Gone) => return Ok(()),
        Err(ScanError::Failed(error)) => Err(error),
        Ok(()) => Ok(()),
    };
    if controller.status.scan_done(begun, &result) {
        controller.notify_change();
    }
    result
}

/// Scans on request, or again after an incomplete scan.
fn find(
    controller: &Controller,
    context: &Arc<ScanContext>,
    begun: ScanRequests,
) -> Result<ScanResult, CtrlError> {
    let admin = Admin {
        sender: Sender::Channel(&controller.scan_channel),
        // Nobody waits.
        deadline: Deadline::NEVER,
        timeout: COMMAND,
    };
    if context.identity.ana_transition_time().is_some() {
        admin.take_ana_change()?;
    }
    // Reading the list re-arms the event, so read it before the scan.
    let list = admin.take_changed_namespaces()?;
    // Ignore the list in a scan that nobody requested. Otherwise a target that keeps listing a
    // namespace without having it would be scanned endlessly.
    let awaited = match &list {
        Some(page) if begun.is_due() => ChangedNamespaces::new(page.bytes()),
        _ => ChangedNamespaces::default(),
    };
    scan(&Progress::new(controller), &admin, context, awaited)
}

/// Sets the disks' hardware queues to `wanted`, those of the connection. Requests on hardware
/// queues beyond these share the connected queues until they end: see
/// [`Association::map_hctxs`].
///
/// [`Association::map_hctxs`]: super::association::Association::map_hctxs
fn set_queues(
    controller: &Controller,
    tag_set: &TagSet<Io>,
    wanted: QueueCounts,
) -> Result<(), CtrlError> {
    let before = tag_set.queues();
    let fail = |error| CtrlError::kernel(ErrorStage::Queues, error, "hardware queues");
    let now = tag_set.set_queues(wanted).map_err(fail)?;
    controller.log(format_args!("disks: changed from {before} to {now}"));
    Ok(())
}
