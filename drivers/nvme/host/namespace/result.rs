// SPDX-License-Identifier: GPL-2.0

//! The result of a scan.

use super::{
    change::{
        NsChange,
        NsObserver, //
    },
    context::ScanContext,
    error::ScanError,
    identify::ScannedNs,
    set::NamespaceSet,
};
use crate::ctrl_error::CtrlError;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_proto::policy::{
    ns_scan::{
        NsState,
        ScanView, //
    },
    ns_table::ScanSeq,
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
            Some(scanned) => NsState::Active(scanned.attributes()),
            None => NsState::Inactive,
        }
    }
}
