// SPDX-License-Identifier: GPL-2.0

//! Namespaces and their disks.

use crate::{
    controller::{
        Admin,
        Controller,
        ScanContext, //
    },
    ctrl_error::CtrlError,
    disk::{
        Io,
        NsDisk, //
    },
    event::NsInfo,
    id_registry::IdReservation,
    name::disk_name,
    ns_rejections::NsRejections,
    uapi::ErrorStage, //
};
use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::{
    page::PAGE_SHIFT,
    prelude::*,
    str::CString,
    sync::Arc, //
};
use nvme_proto::{
    format::{
        changed_namespaces::ChangedNamespaces,
        identify::{
            self,
            ActiveNamespaces,
            IndependentNamespace,
            NamespaceIds,
            NvmController,
            NvmNamespace,
            Wwid, //
        },
        property::Version,
        sqe::Identify,
    },
    policy::{
        duplicate_ids::{
            self,
            IdCheck, //
        },
        limits::block::{
            BlockLimits,
            ControllerInputs,
            NamespaceInputs,
            UnsupportedNamespace, //
        },
        revalidate::{
            self,
            NsAttributes,
            Revalidation, //
        },
    },
};
use rrdma::{
    block::{
        Disk,
        DiskConfig,
        Limits,
        TagSet, //
    },
    errno,
    sync::RelaxedBool,
};

/// Most namespaces that get disks: what a hostile target can make us allocate.
const MAX_NAMESPACES: usize = 1024;

/// Largest block, as a power of two: what a page of the page cache holds.
const MAX_BLOCK_SHIFT: u8 = PAGE_SHIFT as u8;

/// Alignment of a request's memory, less one: whole words.
const DMA_ALIGNMENT: u32 = 3;

/// A namespace with its disk.
pub(crate) struct Namespace {
    pub(crate) nsid: u32,
    pub(crate) limits: BlockLimits,
    /// Others have it only while the controller's disks stay.
    disk: Arc<Disk<Io>>,
    /// Free for others when there is no disk any more, so below that.
    _identity: IdReservation,
}

impl Namespace {
    /// Whether the target has it no more.
    pub(crate) fn is_lost(&self) -> bool {
        self.disk.data().gone.get()
    }

    /// Its disk refuses all I/O from here on.
    pub(crate) fn lose(&self) {
        self.disk.data().gone.set(true);
    }

    /// What becomes of its disk by what the target says of it now.
    fn fate(&self, scanned: Option<&ScannedNs>) -> Revalidation {
        let before = NsAttributes {
            wwid: &self.disk.data().wwid,
            limits: &self.limits,
        };
        Revalidation::of(before, scanned.map(ScannedNs::seen))
    }

    /// The disk, for who has the controller's disks locked, or the turn to change them.
    pub(crate) fn disk(&self) -> Arc<Disk<Io>> {
        self.disk.clone()
    }

    /// What identifies it.
    pub(crate) fn ids(&self) -> &NamespaceIds {
        &self.disk.data().wwid.ids
    }

    /// What is told of it.
    pub(crate) fn info(&self) -> NsInfo {
        NsInfo {
            nsid: self.nsid,
            name: self.disk.data().name,
            size: self.disk.capacity().saturating_mul(512),
            ids: *self.ids(),
            limits: self.limits,
        }
    }
}

/// A look at what namespaces there are; a later one is more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ScanSeq(u64);

/// The namespaces of a controller that have disks, and the one that is to have one.
pub(crate) struct Namespaces {
    list: KVec<Namespace>,
    pending: Option<PendingDisk>,
    /// The latest look.
    scan_one: ScanSeq,
    /// The latest that the disks were brought in line with.
    followed: ScanSeq,
}

/// A namespace whose disk is being made: its I/O may go to the target already.
struct PendingDisk {
    wwid: Wwid,
    limits: BlockLimits,
    /// That of the disk.
    gone: Arc<RelaxedBool>,
}

impl Namespaces {
    /// None.
    pub(crate) fn new() -> Self {
        Self {
            list: KVec::new(),
            pending: None,
            scan_one: ScanSeq(0),
            followed: ScanSeq(0),
        }
    }

    /// The numbers of those that have disks, or are to have one.
    pub(crate) fn nsids(&self) -> impl Iterator<Item = u32> + '_ {
        let made = self.list.iter().map(|namespace| namespace.nsid);
        let pending = self.pending.iter().map(|pending| pending.wwid.nsid);
        Iterator::chain(made, pending)
    }

    /// Whether this one has a disk, or is to have one, that is not lost.
    fn keep(&self, nsid: u32) -> bool {
        let mut made = self.list.iter();
        let mut pending = self.pending.iter();
        made.any(|namespace| namespace.nsid == nsid && !namespace.is_lost())
            || pending.any(|pending| pending.wwid.nsid == nsid && !pending.gone.get())
    }

    /// What was seen is to be followed.
    ///
    /// # Errors
    ///
    /// [`ECANCELED`](errno::ECANCELED) if what was seen later was followed already.
    fn follow(&mut self, scan_one: ScanSeq) -> Result<(), CtrlError> {
        if scan_one < self.followed {
            return Err(superseded());
        }
        self.followed = scan_one;
        Ok(())
    }
}

/// What was found is not the latest that was.
fn superseded() -> CtrlError {
    let why = format_args!("the namespaces were looked at again meanwhile");
    CtrlError::new(ErrorStage::Namespaces, errno::ECANCELED, why)
}

/// What was found is of no use any more.
fn unwanted() -> CtrlError {
    let why = format_args!("the connection is over");
    CtrlError::new(ErrorStage::Namespaces, errno::ECANCELED, why)
}

impl Deref for Namespaces {
    type Target = KVec<Namespace>;

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

impl DerefMut for Namespaces {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.list
    }
}

/// A disk is being made, until this is dropped.
struct PendingDiskGuard<'a> {
    controller: &'a Controller,
    gone: Arc<RelaxedBool>,
}

impl Drop for PendingDiskGuard<'_> {
    fn drop(&mut self) {
        self.controller
            .with_namespaces_mut(|namespaces| namespaces.pending = None);
    }
}

fn block_size(limits: &BlockLimits) -> u32 {
    1u32.checked_shl(limits.block_shift.into())
        .unwrap_or(u32::MAX)
}

/// The namespaces that can be disks, before they are.
pub(crate) struct ScanResult {
    scan_one: ScanSeq,
    list: KVec<ScannedNs>,
    failed: KVec<IdentifyFailed>,
    tag_set: Arc<TagSet<Io>>,
    max_segments: u16,
}

/// What a namespace is, and what its disk can do.
struct ScannedNs {
    wwid: Wwid,
    limits: BlockLimits,
}

/// A namespace with a disk, not lost, of which the target cannot tell at the moment what it is, and
/// what it said.
struct IdentifyFailed {
    nsid: u32,
    failure: CtrlError,
}

impl ScannedNs {
    fn seen(&self) -> NsAttributes<'_> {
        NsAttributes {
            wwid: &self.wwid,
            limits: &self.limits,
        }
    }
}

/// Finds the active namespaces of a controller: as many as get disks, and those that have one.
/// Sleeps, but not for I/O.
///
/// A namespace that is among those of which the target `aer_done`, and is not there, may be there soon, and
/// is looked for again: Linux's target tells of one just before it lists it.
pub(crate) fn find(
    controller: &Controller,
    admin: &Admin<'_>,
    scan_context: &ScanContext,
    aer_done: ChangedNamespaces<'_>,
) -> Result<ScanResult, CtrlError> {
    let scan_one = controller.with_namespaces_mut(|namespaces| {
        namespaces.scan_one = ScanSeq(namespaces.scan_one.0.wrapping_add(1));
        namespaces.scan_one
    });
    let mut search = Scanner {
        controller,
        admin,
        scan_context,
        nvm: nvm_controller(admin, scan_context.version)?,
        seen: 0,
        last: 0,
        awaited: collect(aer_done)?,
        found: ScanResult {
            scan_one,
            list: KVec::new(),
            failed: KVec::new(),
            tag_set: scan_context.tag_set.clone(),
            max_segments: scan_context.max_segments,
        },
        rejections: NsRejections::new(),
    };
    search.look_at_listed()?;
    if !search.awaited.is_empty() {
        search.rejections.pass();
    }
    search.refuse_taken();
    search.refuse_duplicates()?;
    controller.refuse(search.rejections, MAX_NAMESPACES);
    Ok(search.found)
}

fn collect(aer_done: ChangedNamespaces<'_>) -> Result<KVec<u32>, CtrlError> {
    let mut nsids = KVec::new();
    for nsid in aer_done.iter() {
        nsids
            .push(nsid, GFP_KERNEL)
            .map_err(|_| CtrlError::kernel(ErrorStage::Namespaces, ENOMEM, "disk"))?;
    }
    Ok(nsids)
}

/// A search for namespaces, in the order of their numbers.
struct Scanner<'a> {
    controller: &'a Controller,
    admin: &'a Admin<'a>,
    scan_context: &'a ScanContext,
    nvm: NvmController,
    /// How many were looked at.
    seen: usize,
    /// The last of them.
    last: u32,
    /// Those of which the target told, and that were not looked at.
    awaited: KVec<u32>,
    found: ScanResult,
    rejections: NsRejections,
}

impl Scanner<'_> {
    fn look_at_listed(&mut self) -> Result<(), CtrlError> {
        loop {
            let what = Identify::ActiveNamespacesAfter(self.last);
            let page = self.admin.identify(what, "identify active namespaces")?;
            let list = ActiveNamespaces::parse(page.bytes(), self.last).map_err(|why| {
                CtrlError::target(
                    ErrorStage::Namespaces,
                    format_args!("list of active namespaces: {why}"),
                )
            })?;
            for nsid in list.iter() {
                if self.seen >= MAX_NAMESPACES {
                    self.rejections.cut();
                    return self.look_at_disks();
                }
                self.scan_one(nsid)?;
            }
            if list.next_page().is_none() {
                return Ok(());
            }
        }
    }

    /// Looks at those that have disks and were not listed yet: there may be many before them that
    /// are new.
    fn look_at_disks(&mut self) -> Result<(), CtrlError> {
        while let Some(nsid) = self.controller.namespace_after(self.last) {
            self.scan_one(nsid)?;
        }
        Ok(())
    }

    /// Refuses those that say that they are one of another subsystem, as long as that has a disk.
    fn refuse_taken(&mut self) {
        let (controller, rejections) = (self.controller, &mut self.rejections);
        self.found.list.retain(|ScannedNs { wwid, .. }| {
            let Some(holder) = controller.services.ids.holder(controller, wwid) else {
                return true;
            };
            rejections.pass();
            rejections.add(
                wwid.nsid,
                format_args!("has the identifiers of {holder}, which is of another subsystem"),
            );
            false
        });
    }

    /// Refuses those that say that they are another one.
    fn refuse_duplicates(&mut self) -> Result<(), CtrlError> {
        let mut claims = self
            .claims()
            .map_err(|error| CtrlError::kernel(ErrorStage::Namespaces, error, "disk"))?;
        duplicate_ids::check_duplicate_ids(&mut claims);
        // Those of what was found come first, in its order.
        let mut verdicts = claims
            .iter()
            .map(|claim| (claim.nsid, claim.duplicate_of()));
        let rejections = &mut self.rejections;
        self.found.list.retain(|_| match verdicts.next() {
            Some((nsid, Some(other))) => {
                rejections.add(
                    nsid,
                    format_args!("has the identifiers of namespace {other}"),
                );
                false
            }
            _ => true,
        });
        Ok(())
    }

    /// What those say they are that were found, and then what those were that cannot tell now.
    fn claims(&self) -> Result<KVec<IdCheck>> {
        let ScanResult { list, failed, .. } = &self.found;
        let room = list.len().saturating_add(failed.len());
        let mut claims = KVec::with_capacity(room, GFP_KERNEL)?;
        self.controller.with_namespaces(|namespaces| -> Result {
            let disk = |nsid| namespaces.iter().find(|namespace| namespace.nsid == nsid);
            for ScannedNs { wwid, .. } in list {
                let is_same = |namespace: &Namespace| *namespace.ids() == wwid.ids;
                let claim = IdCheck::new(wwid.nsid, wwid.ids, disk(wwid.nsid).is_some_and(is_same));
                claims.push(claim, GFP_KERNEL)?;
            }
            for IdentifyFailed { nsid, .. } in failed {
                if let Some(namespace) = disk(*nsid) {
                    claims.push(IdCheck::new(*nsid, *namespace.ids(), true), GFP_KERNEL)?;
                }
            }
            Ok(())
        })?;
        Ok(claims)
    }

    fn scan_one(&mut self, nsid: u32) -> Result<(), CtrlError> {
        self.seen = self.seen.saturating_add(1);
        self.last = nsid;
        self.awaited.retain(|awaited| *awaited != nsid);
        self.admin.keep_alive_if_due()?;
        let memory = |_| CtrlError::kernel(ErrorStage::Namespaces, ENOMEM, "disk");
        let has_disk = || {
            self.controller
                .with_namespaces(|namespaces| namespaces.keep(nsid))
        };
        match describe(self.admin, self.scan_context, &self.nvm, nsid) {
            Ok(Ok(scanned)) => {
                let pushed = self.found.list.push(scanned, GFP_KERNEL);
                pushed.map_err(memory)?;
            }
            // It does not keep the others from being disks.
            Ok(Err(why)) => self.rejections.add(nsid, format_args!("{why}")),
            Err(failure) if failure.nvme_status.is_none() => return Err(failure),
            // It was answered, so the connection is fine.
            Err(failure) if has_disk() && !failure.is_final() => {
                let failure = failure.of_namespace(nsid);
                let pushed = self
                    .found
                    .failed
                    .push(IdentifyFailed { nsid, failure }, GFP_KERNEL);
                pushed.map_err(memory)?;
            }
            // It may have gone since it was listed, or be a disk the next time.
            Err(failure) => {
                if !failure.is_final() {
                    self.rejections.pass();
                }
                self.rejections
                    .add(nsid, format_args!("{}", failure.message()));
            }
        }
        Ok(())
    }
}

impl ScanResult {
    /// Has disks refuse all I/O that would reach something else by what was found; they are yet to
    /// be removed, and what else it says is yet to be taken over. Sleeps, but not for I/O.
    ///
    /// # Errors
    ///
    /// - What the target said of the first namespace that has a disk of which it could not tell
    ///   what it is: that disk stays as it is.
    /// - [`ECANCELED`](errno::ECANCELED) if what was found later was followed already. So it is
    ///   with all that follows what was found.
    pub(crate) fn mark_gone(&self, controller: &Controller) -> Result<(), CtrlError> {
        controller.with_namespaces_mut(|namespaces| {
            namespaces.follow(self.scan_one)?;
            let mut result = Ok(());
            if let Some(pending) = &namespaces.pending {
                match self.failed(pending.wwid.nsid) {
                    Some(failure) => result = Err(failure.clone()),
                    None => self.compare(controller, pending),
                }
            }
            for namespace in namespaces.iter() {
                match self.failed(namespace.nsid) {
                    Some(failure) => result = result.and(Err(failure.clone())),
                    None => self.lose_disk(controller, namespace),
                }
            }
            result
        })
    }

    /// A disk that is being made for what is not there any more gets no I/O, and will not be. One
    /// that should have another size is changed once it is there, by whoever follows this then.
    fn compare(&self, controller: &Controller, pending: &PendingDisk) {
        let nsid = pending.wwid.nsid;
        let before = NsAttributes {
            wwid: &pending.wwid,
            limits: &pending.limits,
        };
        if let Revalidation::Remove(why) =
            Revalidation::of(before, self.scanned(nsid).map(ScannedNs::seen))
        {
            pending.gone.set(true);
            controller.log(format_args!("namespace {nsid} {why}: its disk is not made"));
        }
    }

    /// One that is lost stays so.
    fn lose_disk(&self, controller: &Controller, namespace: &Namespace) {
        let nsid = namespace.nsid;
        if let Revalidation::Remove(why) = namespace.fate(self.scanned(nsid)) {
            if !namespace.is_lost() {
                controller.warn(format_args!("namespace {nsid} {why}: its disk goes"));
            }
            namespace.lose();
        }
    }

    fn failed(&self, nsid: u32) -> Option<&CtrlError> {
        let failed = self.failed.iter().find(|failed| failed.nsid == nsid);
        failed.map(|failed| &failed.failure)
    }

    fn scanned(&self, nsid: u32) -> Option<&ScannedNs> {
        self.list.iter().find(|d| d.wwid.nsid == nsid)
    }

    /// Gives disks the size of their namespaces, and their protection against writes, and tells.
    /// For who has the turn. Sleeps, for I/O too: user space is told by the kernel as well.
    ///
    /// # Errors
    ///
    /// As [`update_limits`](Self::update_limits).
    pub(crate) fn update_capacities(&self, controller: &Controller) -> Result<(), CtrlError> {
        self.for_each(|scanned| self.update_capacity(controller, scanned))
    }

    fn update_capacity(
        &self,
        controller: &Controller,
        scanned: &ScannedNs,
    ) -> Result<(), CtrlError> {
        let (nsid, now) = (scanned.wwid.nsid, &scanned.limits);
        let other = controller.with_namespaces_mut(|namespaces| -> Result<_, CtrlError> {
            namespaces.follow(self.scan_one)?;
            let mut namespaces = namespaces.iter();
            let changed =
                |n: &&Namespace| n.nsid == nsid && n.fate(Some(scanned)) == Revalidation::Update;
            Ok(namespaces.find(changed).map(|n| (n.disk(), n.limits)))
        })?;
        let Some((disk, before)) = other else {
            return Ok(());
        };
        // Without the lock: recovery wants it, for which I/O may have to wait.
        if now.read_only != before.read_only {
            disk.set_read_only(now.read_only);
        }
        if now.capacity_sectors != before.capacity_sectors {
            disk.set_capacity(now.capacity_sectors)
                .map_err(|error| CtrlError::kernel(ErrorStage::Namespaces, error, "disk"))?;
        }
        let changed = controller.with_namespaces_mut(|namespaces| {
            let namespace = namespaces.iter_mut().find(|n| n.nsid == nsid)?;
            namespace.limits.capacity_sectors = now.capacity_sectors;
            namespace.limits.read_only = now.read_only;
            Some(namespace.info())
        });
        if let Some(info) = changed {
            controller.namespace_changed(&info);
        }
        Ok(())
    }

    /// Has disks do what their namespaces can do now, if that is something else than before. For
    /// who has the turn. Sleeps, for I/O too.
    ///
    /// # Errors
    ///
    /// - Why the first disk that could not be changed could not; the others are.
    /// - [`ECANCELED`](errno::ECANCELED) if what was found later was followed already.
    pub(crate) fn update_limits(&self, controller: &Controller) -> Result<(), CtrlError> {
        self.for_each(|scanned| self.update_limits_of(controller, scanned))
    }

    fn update_limits_of(
        &self,
        controller: &Controller,
        scanned: &ScannedNs,
    ) -> Result<(), CtrlError> {
        let nsid = scanned.wwid.nsid;
        let other = controller.with_namespaces_mut(|namespaces| -> Result<_, CtrlError> {
            namespaces.follow(self.scan_one)?;
            let namespace = namespaces.iter().find(|n| n.nsid == nsid);
            Ok(namespace.and_then(|namespace| {
                let now = revalidate::updated_limits(&namespace.limits, &scanned.limits)?;
                Some((namespace.disk(), now))
            }))
        })?;
        let Some((disk, now)) = other else {
            return Ok(());
        };
        // Without the lock: recovery wants it, for which I/O may have to wait.
        block_limits(self.max_segments, &now)
            .and_then(|limits| disk.set_limits(limits))
            .map_err(|error| CtrlError::kernel(ErrorStage::Namespaces, error, "disk"))?;
        disk.data()
            .deallocate_zeroes
            .set(now.write_zeroes_may_deallocate);
        controller.with_namespaces_mut(|namespaces| {
            let mut namespaces = namespaces.iter_mut();
            if let Some(namespace) = namespaces.find(|n| n.nsid == nsid) {
                // Its size may be another one since.
                let before = namespace.limits;
                namespace.limits = revalidate::updated_limits(&before, &now).unwrap_or(before);
            }
        });
        controller.log(format_args!("namespace {nsid}: other limits of its disk"));
        Ok(())
    }

    /// Makes the disks that are not there. For who has the turn. Sleeps, for I/O too: a disk is
    /// searched for partitions.
    ///
    /// # Errors
    ///
    /// - Why the first disk that could not be made could not; the others are.
    /// - [`ECANCELED`](errno::ECANCELED) if what was found later was followed already, or the
    ///   connection is over, or is to be: then the others are not.
    pub(crate) fn make_disks(&self, controller: &Arc<Controller>) -> Result<(), CtrlError> {
        self.for_each(|scanned| self.make_disk(controller, scanned))
    }

    fn make_disk(
        &self,
        controller: &Arc<Controller>,
        scanned: &ScannedNs,
    ) -> Result<(), CtrlError> {
        // There may be very many, and who waits for the turn would wait for all of them.
        if !controller.is_connected() {
            return Err(unwanted());
        }
        if controller.has_namespace(scanned.wwid.nsid) {
            return Ok(());
        }
        // Those that have disks may be others than the first.
        if controller.with_namespaces(|namespaces| namespaces.len() >= MAX_NAMESPACES) {
            return Ok(());
        }
        // Another subsystem's may have come since this one was looked at: the next look says so.
        let identity = controller
            .services
            .ids
            .insert(controller, &scanned.wwid)
            .map_err(|error| CtrlError::kernel(ErrorStage::Namespaces, error, "disk"))?;
        let pending = self.begin_pending(controller, scanned)?;
        let made = self.disk(controller, scanned, &pending).and_then(|disk| {
            controller.add_namespace(Namespace {
                nsid: scanned.wwid.nsid,
                limits: scanned.limits,
                disk: Arc::new(disk, GFP_KERNEL)?,
                _identity: identity,
            })
        });
        if pending.gone.get() {
            return Err(superseded());
        }
        made.map_err(|error| CtrlError::kernel(ErrorStage::Namespaces, error, "disk"))
    }

    /// Does something to each, and fails as it first does; but what is superseded ends at once.
    fn for_each(
        &self,
        mut act: impl FnMut(&ScannedNs) -> Result<(), CtrlError>,
    ) -> Result<(), CtrlError> {
        let mut result = Ok(());
        for scanned in &self.list {
            match act(scanned) {
                Err(failure) if failure.error == errno::ECANCELED => return Err(failure),
                done => result = result.and(done),
            }
        }
        result
    }

    /// From here on whoever follows what is found later [compares](Self::compare) the disk too.
    fn begin_pending<'a>(
        &self,
        controller: &'a Controller,
        scanned: &ScannedNs,
    ) -> Result<PendingDiskGuard<'a>, CtrlError> {
        let gone = Arc::new(RelaxedBool::new(false), GFP_KERNEL)
            .map_err(|_| CtrlError::kernel(ErrorStage::Namespaces, ENOMEM, "disk"))?;
        controller.with_namespaces_mut(|namespaces| {
            namespaces.follow(self.scan_one)?;
            namespaces.pending = Some(PendingDisk {
                wwid: scanned.wwid,
                limits: scanned.limits,
                gone: gone.clone(),
            });
            Ok(PendingDiskGuard { controller, gone })
        })
    }

    fn disk(
        &self,
        controller: &Arc<Controller>,
        scanned: &ScannedNs,
        pending: &PendingDiskGuard<'_>,
    ) -> Result<Disk<Io>> {
        let limits = &scanned.limits;
        let disk_name = disk_name(controller.name.number(), scanned.wwid.nsid);
        let name = CString::try_from_fmt(fmt!("{disk_name}"))?;
        let parent = controller.parent_device();
        let config = DiskConfig {
            name: &name,
            limits: block_limits(self.max_segments, limits)?,
            capacity_sectors: limits.capacity_sectors,
            read_only: limits.read_only,
            module: controller.module(),
            parent: parent.as_ref(),
        };
        let blocks = NsDisk {
            name: disk_name,
            wwid: scanned.wwid,
            shift: limits.block_shift,
            deallocate_zeroes: RelaxedBool::new(limits.write_zeroes_may_deallocate),
            gone: pending.gone.clone(),
            controller: controller.clone(),
        };
        Disk::new(config, self.tag_set.clone(), blocks)
    }
}

fn nvm_controller(admin: &Admin<'_>, version: Version) -> Result<NvmController, CtrlError> {
    // The structure came with version 1.4, as an option.
    if version < Version::new(1, 4, 0) {
        return Ok(NvmController::default());
    }
    match admin.identify_optional(Identify::NvmController)? {
        Some(data) => NvmController::parse(data.bytes()).map_err(|why| {
            CtrlError::target(
                ErrorStage::Identify,
                format_args!("identify NVM controller: {why}"),
            )
        }),
        None => Ok(NvmController::default()),
    }
}

/// What a namespace is, and what its disk can do.
fn describe(
    admin: &Admin<'_>,
    scan_context: &ScanContext,
    nvm: &NvmController,
    nsid: u32,
) -> Result<Result<ScannedNs, UnsupportedNamespace>, CtrlError> {
    let target = |why: &dyn core::fmt::Display| {
        CtrlError::target(
            ErrorStage::Namespaces,
            format_args!("namespace {nsid}: {why}"),
        )
    };
    let data = admin.identify(Identify::Namespace(nsid), "identify namespace")?;
    let namespace = identify::Namespace::parse(data.bytes()).map_err(|e| target(&e))?;
    let ids = match admin.identify_optional(Identify::NamespaceDescriptors(nsid))? {
        Some(data) => NamespaceIds::parse(data.bytes()).map_err(|e| target(&e))?,
        None => NamespaceIds::default(),
    };
    let ids = ids.or_from(&namespace, scan_context.version);
    // Later structures are options before version 2.0, and with many targets.
    let (mut independent, mut nvm_namespace) = Default::default();
    if scan_context.version >= Version::new(2, 0, 0) {
        if let Some(data) = admin.identify_optional(Identify::NamespaceIndependent(nsid))? {
            independent = IndependentNamespace::parse(data.bytes()).map_err(|e| target(&e))?;
        }
        if let Some(data) = admin.identify_optional(Identify::NvmNamespace(nsid))? {
            nvm_namespace = NvmNamespace::parse(data.bytes()).map_err(|e| target(&e))?;
        }
    }
    let identity = &*scan_context.identity;
    let limits = BlockLimits::from_identify(
        &ControllerInputs {
            controller: identity,
            nvm: *nvm,
            version: scan_context.version,
            min_page_shift: scan_context.min_page_shift,
            max_sectors: scan_context.max_sectors(),
            max_block_shift: MAX_BLOCK_SHIFT,
        },
        &NamespaceInputs {
            namespace: &namespace,
            nvm: nvm_namespace,
            independent,
            command_set: ids.command_set,
        },
    );
    let wwid = Wwid {
        nsid,
        ids,
        vendor_id: identity.vendor_id,
        serial: identity.serial,
        model: identity.model,
    };
    Ok(limits.map(|limits| ScannedNs { wwid, limits }))
}

fn block_limits(max_segments: u16, limits: &BlockLimits) -> Result<Limits> {
    let discard = limits.discard.as_ref();
    Ok(Limits {
        logical_block_size: block_size(limits),
        physical_block_size: limits.physical_block_size,
        io_min: limits.io_min,
        io_opt: limits.io_opt,
        max_hw_sectors: limits.max_sectors,
        max_segments,
        max_segment_size: u32::MAX,
        // A region has whole pages but for its first and last.
        virt_boundary_mask: (rrdma::rdma::mr::PAGE_SIZE - 1) as usize,
        dma_alignment: DMA_ALIGNMENT,
        max_discard_sectors: discard.map_or(0, |d| d.max_sectors),
        discard_granularity: discard.map_or(0, |d| d.granularity),
        max_discard_segments: discard.map_or(0, |d| d.max_ranges),
        max_write_zeroes_sectors: limits.max_write_zeroes_sectors,
        chunk_sectors: limits.chunk_sectors,
        write_cache: limits.write_cache,
        fua: limits.write_cache,
        rotational: limits.rotational,
        ..Limits::default()
    })
}
