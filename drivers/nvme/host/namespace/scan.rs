// SPDX-License-Identifier: GPL-2.0

//! A scan of the namespaces of a controller, and its result.

use super::{
    context::ScanContext,
    error::{
        disk_error,
        ScanError, //
    },
    identify::{
        IdentifiedNs,
        NsIdentifier,
        ScanAdmin,
        ScannedNs, //
    },
    rejections::NsRejections,
    set::{
        Namespace,
        NamespaceSet,
        NsChange,
        NsObserver,
        MAX_NAMESPACES, //
    },
};
use crate::{
    admin::Admin,
    ctrl_error::CtrlError,
    uapi::ErrorStage, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::ordering,
        Arc, //
    },
};
use nvme_proto::{
    format::{
        changed_namespaces::ChangedNamespaces,
        identify::{
            ActiveNamespaces,
            Wwid, //
        },
        sqe::Identify,
        status::{
            Code,
            Status, //
        },
    },
    policy::{
        duplicate_ids::{
            check_duplicate_ids,
            IdCheck, //
        },
        limits::block::UnsupportedNamespace,
        ns_scan::{
            IdentifyFailure,
            NextNsid,
            NsState,
            NsidWalk,
            ScanView, //
        },
        ns_table::ScanSeq,
    },
};

/// The result of a scan.
pub(crate) struct ScanResult {
    pub(super) seq: ScanSeq,
    /// The namespaces that can be disks, by NSID.
    pub(super) usable: KVec<ScannedNs>,
    /// The namespaces with a disk for which Identify failed with a transient error.
    pub(super) unknown: KVec<UnknownNs>,
    /// The context of new disks.
    pub(super) context: Arc<ScanContext>,
}

/// A namespace with a disk for which Identify failed with a transient error.
pub(super) struct UnknownNs {
    pub(super) nsid: u32,
    pub(super) error: CtrlError,
}

impl ScanResult {
    /// Whether a disk would be marked as gone because its namespace is missing. Sleeps, but not for
    /// I/O.
    pub(crate) fn misses_namespace(&self, set: &NamespaceSet) -> bool {
        set.with(|table| table.misses_namespace(self))
    }

    /// Marks the disks as gone whose namespaces are gone or were replaced: they refuse all I/O.
    /// Does not remove them, and applies no other change. Sleeps, but not for I/O.
    ///
    /// # Errors
    ///
    /// [`ScanError::Superseded`]; otherwise the error of the first unknown namespace. The disks of
    /// unknown namespaces are not changed.
    pub(crate) fn mark_gone(
        &self,
        set: &NamespaceSet,
        observer: &dyn NsObserver,
    ) -> Result<(), ScanError> {
        let unknown = set.with(|table| {
            table.mark_gone(self.seq, self, |marked| {
                observer.notify(NsChange::MarkedGone(marked));
            })
        })?;
        match unknown {
            Some(error) => Err(ScanError::Failed(error.clone())),
            None => Ok(()),
        }
    }
}

impl ScanView for ScanResult {
    type Error = CtrlError;

    fn state(&self, nsid: u32) -> NsState<'_, CtrlError> {
        let mut unknown = self.unknown.iter();
        if let Some(unknown) = unknown.find(|unknown| unknown.nsid == nsid) {
            return NsState::Unknown(&unknown.error);
        }
        let mut usable = self.usable.iter();
        match usable.find(|scanned| scanned.wwid.nsid == nsid) {
            Some(scanned) => NsState::Usable(scanned.attributes()),
            None => NsState::Unusable,
        }
    }
}

/// A completed scan.
pub(crate) struct Scan {
    pub(crate) result: ScanResult,
    pub(crate) rejections: NsRejections,
}

/// Scans the active namespaces of a controller: the first [`MAX_NAMESPACES`], and beyond these the
/// ones that have a disk. Sleeps, but not for I/O.
///
/// `awaited` has namespaces that the target reported as changed; it does not limit the scan. If one
/// of them is not listed as active, the rejections are transient, because a later scan may find it:
/// the Linux target sends the event just before it lists the namespace.
///
/// Calls `tell_progress` before each command.
pub(crate) fn scan(
    set: &NamespaceSet,
    admin: &Admin<'_>,
    context: &Arc<ScanContext>,
    awaited: ChangedNamespaces<'_>,
    tell_progress: &dyn Fn(),
) -> Result<Scan, CtrlError> {
    let seq = set.with(|table| table.begin_scan());
    let admin = ScanAdmin {
        admin,
        tell_progress,
    };
    let mut scanner = Scanner {
        set,
        admin,
        identifier: NsIdentifier::new(admin, context)?,
        walk: NsidWalk::new(MAX_NAMESPACES),
        awaited: collect(awaited)?,
        result: ScanResult {
            seq,
            usable: KVec::new(),
            unknown: KVec::new(),
            context: context.clone(),
        },
        rejections: NsRejections::new(),
    };
    scanner.scan_listed()?;
    if !scanner.awaited.is_empty() {
        scanner.rejections.set_transient();
    }
    scanner.reject_conflicts();
    scanner.reject_duplicates()?;
    Ok(Scan {
        result: scanner.result,
        rejections: scanner.rejections,
    })
}

fn collect(awaited: ChangedNamespaces<'_>) -> Result<KVec<u32>, CtrlError> {
    let mut nsids = KVec::new();
    for nsid in awaited.iter() {
        push(&mut nsids, nsid)?;
    }
    Ok(nsids)
}

fn push<T>(list: &mut KVec<T>, item: T) -> Result<(), CtrlError> {
    list.push(item, GFP_KERNEL).map_err(|_| disk_error(ENOMEM))
}

/// Returns the attributes of an existing disk if `wwid` is the same namespace.
fn unchanged(disk: &Namespace, wwid: Wwid) -> Option<ScannedNs> {
    let io = disk.disk.data();
    let is_same = !io.state.is_gone() && io.wwid.is_same_namespace(&wwid);
    is_same.then(|| ScannedNs {
        wwid,
        limits: disk.limits,
        used_blocks: io.used_blocks.load(ordering::Relaxed),
        ready: true,
    })
}

/// A scan in progress.
struct Scanner<'a> {
    set: &'a NamespaceSet,
    admin: ScanAdmin<'a>,
    identifier: NsIdentifier<'a>,
    walk: NsidWalk,
    /// Changed namespaces that are not listed so far.
    awaited: KVec<u32>,
    result: ScanResult,
    rejections: NsRejections,
}

impl Scanner<'_> {
    fn scan_listed(&mut self) -> Result<(), CtrlError> {
        loop {
            let after = self.walk.last();
            let what = Identify::ActiveNamespacesAfter(after);
            let page = self.admin.identify(what, "identify active namespaces")?;
            let fail = CtrlError::unusable(ErrorStage::Namespaces, "list of active namespaces");
            let list = ActiveNamespaces::parse(page.bytes(), after).map_err(fail)?;
            for nsid in list.iter() {
                match self.walk.listed(nsid) {
                    NextNsid::Identify => self.scan_one(nsid)?,
                    NextNsid::LimitReached => {
                        self.rejections.set_truncated(MAX_NAMESPACES);
                        return self.scan_disks();
                    }
                }
            }
            if list.next_page().is_none() {
                return Ok(());
            }
        }
    }

    /// Scans the namespaces beyond the limit that have disks.
    fn scan_disks(&mut self) -> Result<(), CtrlError> {
        let set = self.set;
        let next = |after| set.with(|table| table.next_after(after));
        while let Some(nsid) = next(self.walk.last()) {
            self.walk.record_disk(nsid);
            self.scan_one(nsid)?;
        }
        Ok(())
    }

    fn scan_one(&mut self, nsid: u32) -> Result<(), CtrlError> {
        self.awaited.retain(|awaited| *awaited != nsid);
        let has_disk = self.set.with(|table| table.is_usable(nsid));
        let error = match self.identifier.identify(nsid) {
            // A new disk would have no partitions, because reading them fails.
            Ok(IdentifiedNs::Usable(scanned)) if !scanned.ready && !has_disk => {
                let status = Status::from_code(Code::NAMESPACE_NOT_READY);
                CtrlError::from_status(ErrorStage::Namespaces, status, "identify namespace")
            }
            Ok(IdentifiedNs::Usable(scanned)) => return push(&mut self.result.usable, scanned),
            Ok(IdentifiedNs::Inaccessible(wwid)) => {
                let unchanged = self.set.with(|table| unchanged(table.get(nsid)?, wwid));
                if let Some(scanned) = unchanged {
                    return push(&mut self.result.usable, scanned);
                }
                let why = UnsupportedNamespace::NotAttached;
                self.rejections.add(nsid, format_args!("{why}"));
                return Ok(());
            }
            // The other namespaces can still get disks.
            Ok(IdentifiedNs::Unsupported(why)) => {
                self.rejections.add(nsid, format_args!("{why}"));
                return Ok(());
            }
            Ok(IdentifiedNs::Malformed(error)) => {
                self.rejections
                    .add(nsid, format_args!("{}", error.message()));
                return Ok(());
            }
            Err(error) => error,
        };
        match IdentifyFailure::of(error.status(), has_disk) {
            IdentifyFailure::FailScan => return Err(error),
            IdentifyFailure::KeepDisk => {
                let error = error.of_namespace(nsid);
                return push(&mut self.result.unknown, UnknownNs { nsid, error });
            }
            IdentifyFailure::SkipAndRescan => self.rejections.set_transient(),
            IdentifyFailure::RemoveDisk => {}
        }
        self.rejections
            .add(nsid, format_args!("{}", error.message()));
        Ok(())
    }

    /// Rejects namespaces that share an identifier with a disk of another subsystem.
    fn reject_conflicts(&mut self) {
        let (ids, rejections) = (self.set.ids(), &mut self.rejections);
        self.result.usable.retain(|ScannedNs { wwid, .. }| {
            let Some(other) = ids.conflict(wwid) else {
                return true;
            };
            rejections.set_transient();
            rejections.add(
                wwid.nsid,
                format_args!("duplicate identifiers: in use by {other} of another subsystem"),
            );
            false
        });
    }

    /// Rejects namespaces that share an identifier with another namespace of the controller.
    fn reject_duplicates(&mut self) -> Result<(), CtrlError> {
        let mut checks = self.id_checks().map_err(disk_error)?;
        check_duplicate_ids(&mut checks);
        // The first checks are those of the usable namespaces, in the same order.
        let mut checks = checks.iter();
        let rejections = &mut self.rejections;
        self.result.usable.retain(|scanned| {
            let Some(other) = checks.next().and_then(IdCheck::duplicate_of) else {
                return true;
            };
            rejections.add(
                scanned.wwid.nsid,
                format_args!("duplicate identifiers: same as namespace {other}"),
            );
            false
        });
        Ok(())
    }

    /// Returns the identifiers of the usable namespaces, then those of the disks whose namespaces
    /// are unknown.
    fn id_checks(&self) -> Result<KVec<IdCheck>> {
        let ScanResult {
            usable, unknown, ..
        } = &self.result;
        let mut checks =
            KVec::with_capacity(usable.len().saturating_add(unknown.len()), GFP_KERNEL)?;
        self.set.with(|table| {
            for ScannedNs { wwid, .. } in usable {
                let is_same = |disk: &Namespace| *disk.ids() == wwid.ids;
                let has_disk = table.get(wwid.nsid).is_some_and(is_same);
                checks.push(IdCheck::new(wwid.nsid, wwid.ids, has_disk), GFP_KERNEL)?;
            }
            for UnknownNs { nsid, .. } in unknown {
                if let Some(disk) = table.get(*nsid) {
                    checks.push(IdCheck::new(*nsid, *disk.ids(), true), GFP_KERNEL)?;
                }
            }
            Ok(checks)
        })
    }
}
