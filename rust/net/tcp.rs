// SPDX-License-Identifier: GPL-2.0

//! TCP, for the little that is said before there is RDMA.
//!
//! C header: [`include/linux/net.h`](srctree/include/linux/net.h)
//!
//! A [`Listener`] accepts a [`Stream`], or [`Stream::connect`] makes one; both ends
//! then write and read messages of a length that is known. Every call waits in the
//! caller's thread, for as long as its [`WaitLimits`] lasts:
//!
//! ```ignore
//! let cancelled = || job.is_stopped();
//! let patience = WaitLimits::new(Msecs::from_secs(10), &cancelled);
//! let stream = Stream::connect(&namespace, &address, job.wake().clone(), &patience)?;
//! stream.write_all(b"hello\0", &patience)?;
//! let mut answer = [0; 6];
//! stream.read_exact(&mut answer, &patience)?;
//! ```
//!
//! As with the connection manager, all waiting is on one
//! [`TimedCompletion`], the caller's: the socket
//! completes it when something changes, and whoever else does makes the caller look
//! again at whether it is still wanted. So a call can be aborted at any moment.
//!
//! This is not meant for bulk data: each call is a system call's worth of work, and
//! what is written is copied.

use super::{
    Address,
    Namespace, //
};
use crate::{
    bindings,
    sync::{
        Deadline,
        Msecs,
        TimedCompletion,
        WaitLimits, //
    },
    text::kernel_display,
};
use core::{
    fmt,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use crate::errno::{
    EALREADY,
    EINPROGRESS, //
};

/// Why a call failed.
#[derive(Clone, Copy, Debug)]
pub enum Error {
    /// An error of the kernel, or one that the peer caused: `ECONNREFUSED`,
    /// `ECONNRESET`, `EADDRINUSE` and so on.
    Code(kernel::error::Error),
    /// Nobody came or answered in time.
    TimedOut,
    /// The caller no longer wanted it.
    Cancelled,
    /// The peer closed the connection when `done` of `wanted` bytes had been read.
    Closed {
        /// Bytes that were read.
        done: usize,
        /// Bytes that were wanted.
        wanted: usize,
    },
    /// In time, only `done` of `wanted` bytes could be read or written.
    Slow {
        /// Bytes that were read or written.
        done: usize,
        /// Bytes that were wanted.
        wanted: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(error) => write!(f, "{error:?}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Closed { done, wanted } => {
                write!(f, "the peer closed after {done} of {wanted} bytes")
            }
            Self::Slow { done, wanted } => write!(f, "timed out after {done} of {wanted} bytes"),
        }
    }
}

kernel_display!(Error);

/// A TCP socket of the kernel.
///
/// # Invariants
///
/// `raw` is a socket that only this owns. From [`Socket::new`] on it completes
/// `wake`, until it has `callbacks` again.
struct Socket {
    raw: NonNull<bindings::socket>,
    callbacks: bindings::rrdma_socket_callbacks,
    wake: Arc<TimedCompletion>,
}

// SAFETY: Sockets may be used and released by any thread.
unsafe impl Send for Socket {}
// SAFETY: Sockets have a lock of their own.
unsafe impl Sync for Socket {}

impl Socket {
    /// A socket that is not connected. May sleep.
    fn open(
        namespace: &Namespace,
        address: &Address,
        wake: Arc<TimedCompletion>,
    ) -> Result<Self, Error> {
        let mut raw = core::ptr::null_mut();
        // SAFETY: The namespace is alive, and `raw` writable.
        check(unsafe {
            bindings::tcp_socket(namespace.as_ptr(), address.family() as i32, &mut raw)
        })?;
        // SAFETY: The socket was just made, and nobody else has it.
        unsafe { Self::new(raw, wake) }
    }

    /// # Safety
    ///
    /// `raw` must be NULL, or a socket for this to own.
    unsafe fn new(raw: *mut bindings::socket, wake: Arc<TimedCompletion>) -> Result<Self, Error> {
        let raw = NonNull::new(raw).ok_or(Error::Code(EINVAL))?;
        // SAFETY: The socket is valid; the completion is kept until the socket does
        // not use it any more.
        let callbacks = unsafe { bindings::socket_complete_on_change(raw.as_ptr(), wake.as_raw()) };
        // INVARIANT: By the contract, and as was just done.
        Ok(Self {
            raw,
            callbacks,
            wake,
        })
    }

    fn as_raw(&self) -> *mut bindings::socket {
        self.raw.as_ptr()
    }

    /// Does `step` again and again until it need not wait. Sleeps.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`], [`Error::Cancelled`], or that of `step`.
    fn attempt<R>(
        &self,
        limits: &WaitLimits<'_>,
        mut step: impl FnMut() -> Result<R>,
    ) -> Result<R, Error> {
        let end = Deadline::after(limits.limit).min(limits.deadline);
        loop {
            if (limits.cancelled)() {
                return Err(Error::Cancelled);
            }
            match step() {
                // What changes from here on completes `wake`.
                Err(EAGAIN | EALREADY | EINPROGRESS) => {}
                result => return result.map_err(Error::Code),
            }
            let left = end.left();
            if left == Msecs::new(0) {
                return Err(Error::TimedOut);
            }
            let _ = self.wake.wait_timeout(left);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: By the type invariants; nobody uses the socket after this.
        unsafe {
            bindings::socket_restore_callbacks(self.as_raw(), &self.callbacks);
            bindings::sock_release(self.as_raw());
        }
    }
}

/// A socket that waits for peers. Dropping it stops to listen, and resets the
/// connections that nobody has accepted.
pub struct Listener(Socket);

impl Listener {
    /// Listens at an address, which nobody else may do. `backlog` peers can be
    /// connected without having been accepted. `wake` is completed whenever there is
    /// something to look at. May sleep.
    ///
    /// The unspecified IPv6 address, `::`, is for IPv4 as well.
    ///
    /// # Errors
    ///
    /// [`Error::Code`]: `EADDRINUSE`, `EADDRNOTAVAIL`, `EAFNOSUPPORT`, `ENOMEM`.
    pub fn new(
        namespace: &Namespace,
        address: &Address,
        backlog: u16,
        wake: Arc<TimedCompletion>,
    ) -> Result<Self, Error> {
        let socket = Socket::open(namespace, address, wake)?;
        // SAFETY: The socket is valid by its invariants, and the address is read only.
        unsafe {
            // A listener that was here before may have left connections in TIME_WAIT.
            bindings::socket_set_reuseaddr(socket.as_raw());
            check(bindings::socket_bind(
                socket.as_raw(),
                address.as_raw().cast(),
            ))?;
            check(bindings::kernel_listen(socket.as_raw(), backlog.into()))?;
        }
        Ok(Self(socket))
    }

    /// Waits for a peer. Sleeps. The stream completes the same `wake`.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`], [`Error::Cancelled`], [`Error::Code`].
    pub fn accept(&self, limits: &WaitLimits<'_>) -> Result<Stream, Error> {
        let raw = self.0.attempt(limits, || {
            let mut raw = core::ptr::null_mut();
            // SAFETY: The socket is valid by its invariants, and `raw` writable.
            to_result(unsafe { bindings::socket_try_accept(self.0.as_raw(), &mut raw) })?;
            Ok(raw)
        })?;
        // SAFETY: The socket was just made, and nobody else has it.
        let mut socket = unsafe { Socket::new(raw, self.0.wake.clone())? };
        // It was made with the callbacks of the listener, which are ours.
        socket.callbacks = self.0.callbacks;
        Ok(Stream(socket))
    }
}

/// A connection. Dropping it closes it; what was written before still goes out.
pub struct Stream(Socket);

impl Stream {
    /// Connects to a peer. `wake` is completed whenever there is something to look
    /// at. Sleeps.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`], [`Error::Cancelled`], [`Error::Code`]: `ECONNREFUSED` if
    /// nobody listens there, `EHOSTUNREACH`, `ENETUNREACH`.
    pub fn connect(
        namespace: &Namespace,
        address: &Address,
        wake: Arc<TimedCompletion>,
        limits: &WaitLimits<'_>,
    ) -> Result<Self, Error> {
        let socket = Socket::open(namespace, address, wake)?;
        socket.attempt(limits, || {
            // SAFETY: The socket is valid by its invariants, and the address is read
            // only.
            to_result(unsafe {
                bindings::socket_try_connect(socket.as_raw(), address.as_raw().cast())
            })
        })?;
        Ok(Self(socket))
    }

    /// Writes all of `data`. Sleeps.
    ///
    /// # Errors
    ///
    /// [`Error::Slow`] if the peer does not read it in time, [`Error::Cancelled`],
    /// [`Error::Code`]: `EPIPE` and `ECONNRESET` if the peer is gone.
    pub fn write_all(&self, data: &[u8], limits: &WaitLimits<'_>) -> Result<(), Error> {
        let mut rest = data;
        while !rest.is_empty() {
            let sent = self.0.attempt(limits, || {
                // SAFETY: The socket is valid by its invariants; the data is only read.
                count(unsafe {
                    bindings::socket_try_send(
                        self.0.as_raw(),
                        rest.as_ptr().cast_mut().cast(),
                        rest.len(),
                    )
                })
            });
            let left = rest.len();
            let sent = sent.map_err(|error| error.at(data.len(), left))?;
            rest = rest.get(sent..).unwrap_or_default();
        }
        Ok(())
    }

    /// Fills all of `data`. Sleeps.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the peer ends before, [`Error::Slow`] if it does not say
    /// so much in time, [`Error::Cancelled`], [`Error::Code`]: `ECONNRESET`.
    pub fn read_exact(&self, data: &mut [u8], limits: &WaitLimits<'_>) -> Result<(), Error> {
        let wanted = data.len();
        let mut rest = data;
        while !rest.is_empty() {
            let left = rest.len();
            let got = self.0.attempt(limits, || {
                // SAFETY: The socket is valid by its invariants; `rest` is writable.
                count(unsafe {
                    bindings::socket_try_receive(
                        self.0.as_raw(),
                        rest.as_mut_ptr().cast(),
                        rest.len(),
                    )
                })
            });
            let got = got.map_err(|error| error.at(wanted, left))?;
            if got == 0 {
                let done = wanted.saturating_sub(left);
                return Err(Error::Closed { done, wanted });
            }
            rest = rest.get_mut(got..).unwrap_or_default();
        }
        Ok(())
    }
}

impl Error {
    /// Tells how far it came: `left` bytes of those wanted are missing.
    fn at(self, wanted: usize, left: usize) -> Self {
        let done = wanted.saturating_sub(left);
        match self {
            Self::TimedOut => Self::Slow { done, wanted },
            other => other,
        }
    }
}

fn check(status: i32) -> Result<(), Error> {
    to_result(status).map_err(Error::Code)
}

/// A number of bytes, or an error.
fn count(status: i32) -> Result<usize> {
    usize::try_from(status).map_err(|_| to_result(status).err().unwrap_or(EINVAL))
}
