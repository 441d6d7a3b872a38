// SPDX-License-Identifier: GPL-2.0

//! Error numbers that not every supported kernel names in [`kernel::error::code`].
//!
//! Import them by name: on a kernel that has them too, its prelude holds the
//! same names, and two globs would be ambiguous.
//!
//! C header: [`include/uapi/asm-generic/errno.h`](srctree/include/uapi/asm-generic/errno.h)

use crate::bindings;
use core::{
    ffi::c_int,
    mem::transmute, //
};
use kernel::error::{
    Error,
    Result, //
};

/// The result that a C function returned as 0 or a negative error number.
///
/// [`kernel::error::to_result`] does the same by a call, which is dear on the way of an I/O.
#[inline]
pub(crate) fn check(errno: c_int) -> Result {
    match errno {
        0.. => Ok(()),
        errno => Err(Error::from_errno(errno)),
    }
}

// What `error` argues from: `Error` holds one `NonZero<i32>` and nothing else,
// and holds the negative number.
const _: () = {
    assert!(size_of::<Error>() == size_of::<i32>());
    // SAFETY: `Error` is as large as its only field, which is a 32-bit integer.
    assert!(unsafe { transmute::<Error, i32>(kernel::error::code::ENOENT) } == -2);
};

/// Returns the error of a positive error number.
///
/// `Error::from_errno` does the same, but not in a constant.
const fn error(number: u32) -> Error {
    assert!(number > 0 && number <= bindings::MAX_ERRNO);
    // SAFETY: By the assertion above the size of `Error` leaves room for its one
    // field only, so it is laid out like it. The value is neither 0 nor out of
    // the range of error numbers, which is the invariant of `Error`.
    unsafe { transmute::<i32, Error>(-(number as i32)) }
}

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident;)+) => {
        $(
            $(#[$doc])*
            pub const $name: Error = error(bindings::$name);
        )+
    };
}

declare! {
    /// No data available.
    ENODATA;
    /// Link has been severed.
    ENOLINK;
    /// Protocol error.
    EPROTO;
    /// Not a data message.
    EBADMSG;
    /// Protocol not supported.
    EPROTONOSUPPORT;
    /// Operation not supported on transport endpoint.
    EOPNOTSUPP;
    /// Message too long.
    EMSGSIZE;
    /// Address family not supported by protocol.
    EAFNOSUPPORT;
    /// Address already in use.
    EADDRINUSE;
    /// Cannot assign requested address.
    EADDRNOTAVAIL;
    /// Network is down.
    ENETDOWN;
    /// Network is unreachable.
    ENETUNREACH;
    /// Network dropped connection because of reset.
    ENETRESET;
    /// Software caused connection abort.
    ECONNABORTED;
    /// Connection reset by peer.
    ECONNRESET;
    /// No buffer space available.
    ENOBUFS;
    /// Transport endpoint is already connected.
    EISCONN;
    /// Transport endpoint is not connected.
    ENOTCONN;
    /// Cannot send after transport endpoint shutdown.
    ESHUTDOWN;
    /// Connection refused.
    ECONNREFUSED;
    /// Host is down.
    EHOSTDOWN;
    /// No route to host.
    EHOSTUNREACH;
    /// Operation already in progress.
    EALREADY;
    /// Operation now in progress.
    EINPROGRESS;
    /// Remote I/O error.
    EREMOTEIO;
    /// Operation canceled.
    ECANCELED;
    /// Key was rejected by service.
    EKEYREJECTED;
}
