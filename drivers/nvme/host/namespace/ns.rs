// SPDX-License-Identifier: GPL-2.0

//! A namespace with its disk.

use super::id_registry::IdReservation;
use crate::{
    disk::Io,
    event::NsInfo, //
};
use kernel::sync::Arc;
use nvme_proto::{
    format::identify::{
        NamespaceIds,
        Wwid, //
    },
    policy::{
        limits::block::BlockLimits,
        ns_table::NsEntry,
        revalidate::NsAttributes, //
    },
};
use rrdma::{
    block::Disk,
    sync::RelaxedBool, //
};

/// A namespace with its disk.
pub(crate) struct Namespace {
    pub(super) limits: BlockLimits,
    /// Other references exist only while the set is locked or disks cannot be removed.
    pub(super) disk: Arc<Disk<Io>>,
    /// Dropped after the disk, because only then may another disk have the identifiers.
    pub(super) _ids: IdReservation,
}

impl Namespace {
    /// Returns the namespace's NSID.
    pub(crate) fn nsid(&self) -> u32 {
        self.disk.data().wwid.nsid
    }

    /// Returns the namespace's identifiers.
    pub(super) fn ids(&self) -> &NamespaceIds {
        &self.disk.data().wwid.ids
    }

    /// Returns the properties of the namespace that user space sees.
    pub(crate) fn info(&self) -> NsInfo {
        NsInfo {
            nsid: self.nsid(),
            name: self.disk.data().name,
            size: self.disk.capacity().saturating_mul(512),
            ids: *self.ids(),
            limits: self.limits,
        }
    }
}

impl NsEntry for Namespace {
    fn attributes(&self) -> NsAttributes<'_> {
        NsAttributes {
            wwid: &self.disk.data().wwid,
            limits: &self.limits,
        }
    }

    fn is_gone(&self) -> bool {
        self.disk.data().gone.get()
    }

    fn set_gone(&mut self) {
        self.disk.data().gone.set(true);
    }
}

/// A namespace whose disk is being created.
pub(super) struct PendingDisk {
    pub(super) wwid: Wwid,
    pub(super) limits: BlockLimits,
    /// Shared with the disk, as its `gone`.
    pub(super) gone: Arc<RelaxedBool>,
}

impl NsEntry for PendingDisk {
    fn attributes(&self) -> NsAttributes<'_> {
        NsAttributes {
            wwid: &self.wwid,
            limits: &self.limits,
        }
    }

    fn is_gone(&self) -> bool {
        self.gone.get()
    }

    fn set_gone(&mut self) {
        self.gone.set(true);
    }
}
