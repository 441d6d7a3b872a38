// SPDX-License-Identifier: GPL-2.0

//! Status of completed requests.
//!
//! C header: [`include/linux/blk_types.h`](srctree/include/linux/blk_types.h)

use crate::bindings;
use kernel::error::Error;

/// Status of a completed or refused request. C: `blk_status_t`.
///
/// User space sees it as an error number; stacked drivers derive from it whether to try another
/// path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The whole request succeeded.
    Ok,
    /// The device does not support the request (`EOPNOTSUPP`).
    NotSupported,
    /// The request timed out (`ETIMEDOUT`).
    Timeout,
    /// The device is out of space (`ENOSPC`).
    NoSpace,
    /// The transport failed; another path may succeed (`ENOLINK`).
    Transport,
    /// The target failed the request; another path would fail, too (`EREMOTEIO`).
    Target,
    /// Reservation conflict with another host (`EBADE`).
    Reservation,
    /// The medium failed (`ENODATA`).
    Medium,
    /// The data does not match its protection information (`EILSEQ`).
    Protection,
    /// A resource is temporarily exhausted (`ENOMEM`). A request that is refused with it is sent
    /// again after a short delay.
    Resource,
    /// Any other error (`EIO`).
    IoError,
    /// The device is offline (`ENODEV`).
    Offline,
    /// The device considers the request invalid (`EINVAL`).
    Invalid,
}

impl Status {
    /// All statuses, for [`Status::from_raw`].
    const ALL: [Self; 13] = [
        Self::Ok,
        Self::NotSupported,
        Self::Timeout,
        Self::NoSpace,
        Self::Transport,
        Self::Target,
        Self::Reservation,
        Self::Medium,
        Self::Protection,
        Self::Resource,
        Self::IoError,
        Self::Offline,
        Self::Invalid,
    ];

    /// Returns the status for C.
    #[inline]
    pub(super) const fn as_raw(self) -> bindings::blk_status_t {
        match self {
            Self::Ok => bindings::BLK_STS_OK as bindings::blk_status_t,
            Self::NotSupported => bindings::rrdma_BLK_STS_NOTSUPP,
            Self::Timeout => bindings::rrdma_BLK_STS_TIMEOUT,
            Self::NoSpace => bindings::rrdma_BLK_STS_NOSPC,
            Self::Transport => bindings::rrdma_BLK_STS_TRANSPORT,
            Self::Target => bindings::rrdma_BLK_STS_TARGET,
            Self::Reservation => bindings::rrdma_BLK_STS_RESV_CONFLICT,
            Self::Medium => bindings::rrdma_BLK_STS_MEDIUM,
            Self::Protection => bindings::rrdma_BLK_STS_PROTECTION,
            Self::Resource => bindings::rrdma_BLK_STS_RESOURCE,
            Self::IoError => bindings::rrdma_BLK_STS_IOERR,
            Self::Offline => bindings::rrdma_BLK_STS_OFFLINE,
            Self::Invalid => bindings::rrdma_BLK_STS_INVAL,
        }
    }

    /// Converts a status from C; an unknown one becomes [`IoError`](Self::IoError).
    pub(super) fn from_raw(status: bindings::blk_status_t) -> Self {
        Self::ALL
            .into_iter()
            .find(|known| known.as_raw() == status)
            .unwrap_or(Self::IoError)
    }
}

/// Converts an error number to a status; an unknown one becomes an I/O error. C:
/// `errno_to_blk_status()`.
impl From<Error> for Status {
    fn from(error: Error) -> Self {
        // SAFETY: `errno_to_blk_status()` accepts any number.
        Self::from_raw(unsafe { bindings::errno_to_blk_status(error.to_errno()) })
    }
}
