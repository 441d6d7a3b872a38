// SPDX-License-Identifier: GPL-2.0

//! TCP connections, for short exchanges before an RDMA connection exists.
//!
//! C header: [`include/linux/net.h`](srctree/include/linux/net.h)
//!
//! A [`Listener`] accepts a [`Stream`], or [`Stream::connect`] creates one. Both peers then write
//! and read messages of known length. Every call blocks the calling thread within its
//! [`WaitLimits`]:
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
//! All calls wait on one [`TimedCompletion`] of the caller, as those of the connection manager do.
//! The socket completes it when its state changes. Anyone else may complete it, too: the caller
//! then checks [`WaitLimits::cancelled`], so every call can be aborted.
//!
//! Not for bulk data: each call costs as much as a system call, and written data is copied.

use super::{
    Address,
    Namespace, //
};
use crate::{
    bindings,
    sync::{
        drop_later,
        Deadline,
        DropsLater,
        Msecs,
        SleepingDrop,
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

/// Error of a call.
#[derive(Clone, Copy, Debug)]
pub enum Error {
    /// An error of the kernel, perhaps caused by the peer: `ECONNREFUSED`, `ECONNRESET`,
    /// `EADDRINUSE` and others.
    Code(kernel::error::Error),
    /// Connecting or accepting timed out.
    TimedOut,
    /// [`WaitLimits::cancelled`] returned true.
    Cancelled,
    /// The peer closed the connection after `done` of `wanted` bytes were read.
    Closed {
        /// Bytes that were read.
        done: usize,
        /// Bytes to read.
        wanted: usize,
    },
    /// Reading or writing timed out after `done` of `wanted` bytes.
    Slow {
        /// Bytes that were read or written.
        done: usize,
        /// Bytes to read or write.
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
                write!(
                    f,
                    "connection closed by peer after {done} of {wanted} bytes"
                )
            }
            Self::Slow { done, wanted } => write!(f, "timed out after {done} of {wanted} bytes"),
        }
    }
}

kernel_display!(Error);

/// A kernel TCP socket. Dropping it sleeps.
///
/// # Invariants
///
/// `raw` is a socket that this owns. It completes `wake` from [`Socket::new`] until its original
/// `callbacks` are restored.
struct Socket {
    raw: NonNull<bindings::socket>,
    callbacks: bindings::rrdma_socket_callbacks,
    wake: Arc<TimedCompletion>,
}

// SAFETY: Any thread may use and release sockets.
unsafe impl Send for Socket {}
// SAFETY: The socket lock serialises concurrent calls.
unsafe impl Sync for Socket {}

impl Socket {
    /// Creates an unconnected socket. May sleep.
    fn open(
        namespace: &Namespace,
        address: &Address,
        wake: Arc<TimedCompletion>,
    ) -> Result<Self, Error> {
        let mut raw = core::ptr::null_mut();
        // SAFETY: The namespace is alive, and `raw` is writable.
        check(unsafe {
            bindings::tcp_socket(namespace.as_ptr(), address.family() as i32, &mut raw)
        })?;
        // SAFETY: The socket was just created and has no other owner.
        unsafe { Self::new(raw, wake) }
    }

    /// Takes ownership of a socket, and makes it complete `wake`.
    ///
    /// # Safety
    ///
    /// `raw` is null, or a socket whose ownership the caller passes on.
    unsafe fn new(raw: *mut bindings::socket, wake: Arc<TimedCompletion>) -> Result<Self, Error> {
        let raw = NonNull::new(raw).ok_or(Error::Code(EINVAL))?;
        // SAFETY: The socket is valid. `self` keeps the completion until `drop` restores the
        // callbacks.
        let callbacks = unsafe { bindings::socket_complete_on_change(raw.as_ptr(), wake.as_raw()) };
        // INVARIANT: By the safety requirements of this function, this owns the socket. Its
        // callbacks were just replaced.
        Ok(Self {
            raw,
            callbacks,
            wake,
        })
    }

    fn as_raw(&self) -> *mut bindings::socket {
        self.raw.as_ptr()
    }

    /// Repeats `step` until it does not fail with "would block". Sleeps.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`], [`Error::Cancelled`], or the error of `step`.
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
                // Every later change of the socket completes `wake`.
                Err(EAGAIN | EALREADY | EINPROGRESS) => {}
                result => return result.map_err(Error::Code),
            }
            let left = end.left();
            if left == Msecs::ZERO {
                return Err(Error::TimedOut);
            }
            let _ = self.wake.wait_timeout(left);
        }
    }
}

impl DropsLater for Socket {
    #[inline(never)]
    fn drop_later(self) {
        drop_later("socket", self);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the socket is owned. It is not used afterwards.
        unsafe {
            bindings::socket_restore_callbacks(self.as_raw(), &self.callbacks);
            bindings::sock_release(self.as_raw());
        }
    }
}

/// A listening socket. Dropping it stops listening, and resets connections that were not accepted. May be
/// dropped in any context.
pub struct Listener(SleepingDrop<Socket>);

impl Listener {
    /// Listens at an address that no other socket listens at. Up to `backlog` connections wait to
    /// be accepted. The socket completes `wake` when its state changes. May sleep.
    ///
    /// The unspecified IPv6 address, `::`, also accepts IPv4.
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
        // SAFETY: By its invariants, the socket is valid. The address is only read.
        unsafe {
            // Connections of an earlier listener may still be in TIME_WAIT.
            bindings::socket_set_reuseaddr(socket.as_raw());
            check(bindings::socket_bind(
                socket.as_raw(),
                address.as_raw().cast(),
            ))?;
            check(bindings::kernel_listen(socket.as_raw(), backlog.into()))?;
        }
        Ok(Self(SleepingDrop::new(socket)))
    }

    /// Accepts a connection. Sleeps. The stream completes the same `wake`.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`], [`Error::Cancelled`], [`Error::Code`].
    pub fn accept(&self, limits: &WaitLimits<'_>) -> Result<Stream, Error> {
        let raw = self.0.attempt(limits, || {
            let mut raw = core::ptr::null_mut();
            // SAFETY: By its invariants, the socket is valid, and `raw` is writable.
            to_result(unsafe { bindings::socket_try_accept(self.0.as_raw(), &mut raw) })?;
            Ok(raw)
        })?;
        // SAFETY: The socket was just created and has no other owner.
        let mut socket = unsafe { Socket::new(raw, self.0.wake.clone())? };
        // An accepted socket inherits the replaced callbacks of the listener, so restore the
        // original ones on drop.
        socket.callbacks = self.0.callbacks;
        Ok(Stream(SleepingDrop::new(socket)))
    }
}

/// A connection. Dropping it closes it; written data is still sent. May be dropped in any context.
pub struct Stream(SleepingDrop<Socket>);

impl Stream {
    /// Connects to a peer. The socket completes `wake` when its state changes. Sleeps.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`], [`Error::Cancelled`], or [`Error::Code`]: `ECONNREFUSED` if there is no
    /// listener on the port, `EHOSTUNREACH`, `ENETUNREACH`.
    pub fn connect(
        namespace: &Namespace,
        address: &Address,
        wake: Arc<TimedCompletion>,
        limits: &WaitLimits<'_>,
    ) -> Result<Self, Error> {
        let socket = Socket::open(namespace, address, wake)?;
        socket.attempt(limits, || {
            // SAFETY: By its invariants, the socket is valid. The address is only read.
            to_result(unsafe {
                bindings::socket_try_connect(socket.as_raw(), address.as_raw().cast())
            })
        })?;
        Ok(Self(SleepingDrop::new(socket)))
    }

    /// Writes all of `data`. Sleeps.
    ///
    /// # Errors
    ///
    /// [`Error::Slow`] if the peer does not read the data in time, [`Error::Cancelled`], or
    /// [`Error::Code`]: `EPIPE` and `ECONNRESET` if the peer has closed the connection.
    pub fn write_all(&self, data: &[u8], limits: &WaitLimits<'_>) -> Result<(), Error> {
        let mut rest = data;
        while !rest.is_empty() {
            let sent = self.0.attempt(limits, || {
                // SAFETY: By its invariants, the socket is valid. The data is only read.
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

    /// Reads exactly `data.len()` bytes. Sleeps.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the peer closes the connection before, [`Error::Slow`] if the data does
    /// not arrive in time, [`Error::Cancelled`], or [`Error::Code`]: `ECONNRESET`.
    pub fn read_exact(&self, data: &mut [u8], limits: &WaitLimits<'_>) -> Result<(), Error> {
        let wanted = data.len();
        let mut rest = data;
        while !rest.is_empty() {
            let left = rest.len();
            let got = self.0.attempt(limits, || {
                // SAFETY: By its invariants, the socket is valid. `rest` is writable.
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
    /// Adds the progress to a timeout: `left` of `wanted` bytes are missing.
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

/// Converts a result of C: a number of bytes, or a negative error number.
fn count(status: i32) -> Result<usize> {
    usize::try_from(status).map_err(|_| to_result(status).err().unwrap_or(EINVAL))
}
