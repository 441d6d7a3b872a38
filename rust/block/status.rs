// SPDX-License-Identifier: GPL-2.0

//! How a request ended.
//!
//! C header: [`include/linux/blk_types.h`](srctree/include/linux/blk_types.h)

use crate::bindings;
use kernel::error::Error;

/// How a request ended, or why it was refused.
///
/// What user space sees of it is an error number, and what stacked drivers see is
/// whether another path may do better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done, all of it.
    Ok,
    /// The device does not know such a request (`EOPNOTSUPP`).
    NotSupported,
    /// No answer in time (`ETIMEDOUT`).
    Timeout,
    /// No room on the device (`ENOSPC`).
    NoSpace,
    /// The way to the device failed: another path may do (`ENOLINK`).
    Transport,
    /// The device refuses: another path will not do (`EREMOTEIO`).
    Target,
    /// The device is reserved by another host (`EBADE`).
    Reservation,
    /// The medium failed (`ENODATA`).
    Medium,
    /// The data does not match its protection information (`EILSEQ`).
    Protection,
    /// Something is short for the moment (`ENOMEM`). A request refused with it comes
    /// again after a short while.
    Resource,
    /// Failed, no more is known (`EIO`).
    IoError,
    /// The device is there but not in service (`ENODEV`).
    Offline,
    /// The request makes no sense to the device (`EINVAL`).
    Invalid,
}

impl Status {
    /// Every status, for [`Status::from_raw`].
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

    /// The status for C.
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

    /// The status from C; one that has no name here is an [`IoError`](Self::IoError).
    pub(super) fn from_raw(status: bindings::blk_status_t) -> Self {
        Self::ALL
            .into_iter()
            .find(|known| known.as_raw() == status)
            .unwrap_or(Self::IoError)
    }
}

/// The status that user space sees as this error, if there is one; else an I/O
/// error. C: `errno_to_blk_status`.
impl From<Error> for Status {
    fn from(error: Error) -> Self {
        // SAFETY: Safe for any number.
        Self::from_raw(unsafe { bindings::errno_to_blk_status(error.to_errno()) })
    }
}
