// SPDX-License-Identifier: GPL-2.0

//! Why a scan does not take effect.

use crate::{
    ctrl_error::CtrlError,
    uapi::ErrorStage, //
};
use kernel::prelude::*;
use nvme_proto::policy::ns_table::Superseded;
use rrdma::errno;

/// Why a scan does not take effect, or not on all disks.
pub(crate) enum ScanError {
    /// A later scan took effect.
    Superseded,
    /// The connection ended, or is about to.
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
                format_args!("the namespaces were looked at again meanwhile"),
            ),
            ScanError::Gone => Self::cancelled(ErrorStage::Namespaces),
            ScanError::Failed(error) => error,
        }
    }
}

/// The kernel refused something for a disk.
pub(super) fn disk_error(error: Error) -> CtrlError {
    CtrlError::kernel(ErrorStage::Namespaces, error, "disk")
}
