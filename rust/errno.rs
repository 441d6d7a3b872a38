// SPDX-License-Identifier: GPL-2.0

//! Error numbers that not every supported kernel names in [`kernel::error::code`].
//!
//! Import them by name: the preludes of some kernels have the same names, and two globs would be
//! ambiguous.
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

/// Converts 0 or a negative error number of a C function to a result.
///
/// Like [`kernel::error::to_result`], which is a function call and thus too slow for I/O.
#[inline]
pub(crate) fn check(errno: c_int) -> Result {
    match errno {
        0.. => Ok(()),
        errno => Err(Error::from_errno(errno)),
    }
}

// `error` relies on this: `Error` consists of one `NonZero<i32>` that holds the negative number.
const _: () = {
    assert!(size_of::<Error>() == size_of::<i32>());
    // SAFETY: `Error` is as large as its only field, a 32-bit integer.
    assert!(unsafe { transmute::<Error, i32>(kernel::error::code::ENOENT) } == -2);
};

/// Returns the error of a positive error number.
///
/// Like `Error::from_errno`, but `const`.
const fn error(number: u32) -> Error {
    assert!(number > 0 && number <= bindings::MAX_ERRNO);
    // SAFETY: By the assertion above, `Error` is as large as its only field, so it has the same
    // layout. The value is a negative error number, as the invariants of `Error` require.
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
