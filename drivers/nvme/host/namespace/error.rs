// SPDX-License-Identifier: GPL-2.0

//! Errors of a scan.

use crate::{
    ctrl_error::CtrlError,
    uapi::ErrorStage, //
};
use kernel::prelude::*;
use nvme_proto::policy::ns_table::Superseded;
use rrdma::errno;

/// Reason why a scan is not applied, or not to all disks.
pub(crate) enum ScanError {
    /// A later scan was applied.
    Superseded,
    /// The connection ended or is ending.
    Gone,
    /// Something failed.
    Failed(CtrlError),
}

impl From<Superseded> for ScanError {
    fn from(_: Superseded) -> Self {
        Self::Superseded
    }
}

impl From<CtrlError> for ScanError {
    #[inline(never)]
    fn from(error: CtrlError) -> Self {
        if error.is_cancelled() {
            Self::Gone
        } else {
            Self::Failed(error)
        }
    }
}

impl From<ScanError> for CtrlError {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Superseded => Self::new(
                ErrorStage::Namespaces,
                errno::ECANCELED,
                format_args!("superseded by a later scan of the namespaces"),
            ),
            ScanError::Gone => Self::cancelled(ErrorStage::Namespaces),
            ScanError::Failed(error) => error,
        }
    }
}

/// Converts an error of a kernel function for a disk.
pub(super) fn disk_error(error: Error) -> CtrlError {
    CtrlError::kernel(ErrorStage::Namespaces, error, "disk")
}
