// SPDX-License-Identifier: GPL-2.0

//! Status of completed requests.
//!
//! C header: [`include/linux/blk_types.h`](srctree/include/linux/blk_types.h)

use crate::bindings;
use kernel::error::Error;

/// Declares [`Status`], with the value of each status in C.
macro_rules! declare {
    ($($(#[$doc:meta])+ $name:ident = $raw:expr;)+) => {
        /// Status of a completed or refused request. C: `blk_status_t`.
        ///
        /// User space sees it as an error number; stacked drivers derive from it whether to try
        /// another path.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Status {
            $($(#[$doc])+ $name = $raw as bindings::blk_status_t,)+
        }

        impl Status {
            /// All statuses, for [`Status::from_raw`].
            const ALL: &'static [Self] = &[$(Self::$name),+];
        }
    };
}

declare! {
    /// The whole request succeeded.
    Ok = bindings::BLK_STS_OK;
    /// The device does not support the request (`EOPNOTSUPP`).
    NotSupported = bindings::rrdma_BLK_STS_NOTSUPP;
    /// The request timed out (`ETIMEDOUT`).
    Timeout = bindings::rrdma_BLK_STS_TIMEOUT;
    /// The device is out of space (`ENOSPC`).
    NoSpace = bindings::rrdma_BLK_STS_NOSPC;
    /// The transport failed; another path may succeed (`ENOLINK`).
    Transport = bindings::rrdma_BLK_STS_TRANSPORT;
    /// The target failed the request; another path would fail, too (`EREMOTEIO`).
    Target = bindings::rrdma_BLK_STS_TARGET;
    /// Reservation conflict with another host (`EBADE`).
    Reservation = bindings::rrdma_BLK_STS_RESV_CONFLICT;
    /// The medium failed (`ENODATA`).
    Medium = bindings::rrdma_BLK_STS_MEDIUM;
    /// The data does not match its protection information (`EILSEQ`).
    Protection = bindings::rrdma_BLK_STS_PROTECTION;
    /// A resource is temporarily exhausted (`ENOMEM`). A request that is refused with it is sent
    /// again after a short delay.
    Resource = bindings::rrdma_BLK_STS_RESOURCE;
    /// Any other error (`EIO`).
    IoError = bindings::rrdma_BLK_STS_IOERR;
    /// The device is offline (`ENODEV`).
    Offline = bindings::rrdma_BLK_STS_OFFLINE;
    /// The device considers the request invalid (`EINVAL`).
    Invalid = bindings::rrdma_BLK_STS_INVAL;
}

impl Status {
    /// Returns the status for C.
    #[inline]
    pub(super) const fn as_raw(self) -> bindings::blk_status_t {
        self as bindings::blk_status_t
    }

    /// Converts a status from C; an unknown one becomes [`IoError`](Self::IoError).
    pub(super) fn from_raw(status: bindings::blk_status_t) -> Self {
        let mut all = Self::ALL.iter().copied();
        all.find(|known| known.as_raw() == status)
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
