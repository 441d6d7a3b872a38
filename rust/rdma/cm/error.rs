// SPDX-License-Identifier: GPL-2.0

//! Errors of the connection manager: the step that failed, and why.

use super::private_data::PrivateData;
use crate::{
    bindings,
    errno,
    rdma::device::Name,
    sync::Msecs, //
    text::kernel_display,
};
use core::fmt;
use kernel::{
    prelude::*,
    str::CStr, //
};

/// Bytes of a rejection's private data that are kept. NVMe uses 4; the message carries 148.
const PRIVATE_DATA: usize = 32;

/// A step of setting up a connection, a listener or a multicast membership.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Resolving the address: the local device and the peer's link address.
    Address,
    /// Creating the objects of the connection on the device.
    Device,
    /// Resolving the route to the peer.
    Route,
    /// Exchanging connection messages with the peer.
    Connect,
    /// Listening for connection requests.
    Listen,
    /// Accepting or rejecting a peer's request.
    Accept,
    /// Joining a multicast group.
    Join,
}

impl Stage {
    /// Makes the error of this step from an error number.
    pub(crate) fn failed(self, error: kernel::error::Error) -> Error {
        Error {
            stage: self,
            cause: Cause::Code(error),
        }
    }

    /// Returns the name of the step, such as `route resolution`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Address => "address resolution",
            Self::Device => "setting up the RDMA device",
            Self::Route => "route resolution",
            Self::Connect => "connecting",
            Self::Listen => "listening",
            Self::Accept => "accepting",
            Self::Join => "joining",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed step, with its cause.
#[derive(Clone, Copy)]
pub struct Error {
    /// The step that failed.
    pub stage: Stage,
    /// Reason why it failed.
    pub cause: Cause,
}

impl fmt::Display for Error {
    /// Prints as in `connecting: the peer does not answer`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.stage, self.cause)
    }
}

/// Reason why a step failed.
#[derive(Clone, Copy)]
pub enum Cause {
    /// An error number of the kernel.
    Code(kernel::error::Error),
    /// The step did not complete within this time.
    TimedOut(Msecs),
    /// The caller cancelled the step.
    Cancelled,
    /// The calling thread has a signal.
    Interrupted,
    /// The peer, or its connection manager, rejected the request.
    Rejected(Rejection),
    /// The peer does not answer, or its IP address has got another link address.
    Unreachable,
    /// The peer rejects the service query. The status is that of its reply
    /// (`enum ib_cm_sidr_status`).
    NoService(u32),
    /// The kernel does not support the operation, whatever the device.
    Unsupported(&'static str),
    /// The device does not support a feature, such as datagrams.
    Lacks(Name, &'static str),
    /// The peer disconnected.
    Disconnected,
    /// The link address of the local interface changed, as when a bond fails over.
    AddressChanged,
    /// The device was removed.
    DeviceRemoved,
    /// The private data does not fit into the message.
    PrivateDataTooLong {
        /// Bytes of the private data.
        length: usize,
        /// Bytes that fit.
        room: usize,
    },
}

impl Cause {
    /// Returns whether the core's own time-out has expired. The call may be repeated.
    pub(super) fn is_core_timeout(&self) -> bool {
        matches!(self, Cause::Code(ETIMEDOUT))
    }

    /// Returns the error number that fits best.
    pub fn errno(&self) -> kernel::error::Error {
        match self {
            Cause::Code(error) => *error,
            Cause::TimedOut(_) => ETIMEDOUT,
            Cause::Cancelled => errno::ECANCELED,
            // A system call is repeated after the signal handler, if that wants it.
            Cause::Interrupted => ERESTARTSYS,
            Cause::Rejected(_) => errno::ECONNREFUSED,
            Cause::Unreachable => errno::EHOSTUNREACH,
            Cause::NoService(_) => errno::ECONNREFUSED,
            Cause::Unsupported(_) | Cause::Lacks(..) => errno::EOPNOTSUPP,
            Cause::Disconnected => errno::ECONNRESET,
            Cause::AddressChanged => errno::ENETUNREACH,
            Cause::DeviceRemoved => ENODEV,
            Cause::PrivateDataTooLong { .. } => EINVAL,
        }
    }
}

/// The rejection of a connection request.
#[derive(Clone, Copy)]
pub struct Rejection {
    /// The reason: `enum ib_cm_rej_reason`, or a negative error number with iWARP.
    pub reason: i32,
    message: &'static CStr,
    /// `None` if the peer's connection manager rejected the request.
    private_data: Option<PrivateData<PRIVATE_DATA>>,
}

impl Rejection {
    /// Copies a rejection from an event.
    ///
    /// # Safety
    ///
    /// `id` and `event` must be the arguments of a handler's call for `RDMA_CM_EVENT_REJECTED`.
    pub(super) unsafe fn from_event(
        id: *mut bindings::rdma_cm_id,
        event: *mut bindings::rdma_cm_event,
    ) -> Self {
        // SAFETY: `id` and `event` are valid by the safety requirements. `rdma_reject_msg` returns
        // a static string for any reason.
        let (reason, message) = unsafe {
            let reason = (*event).status;
            (
                reason,
                CStr::from_char_ptr(bindings::rdma_reject_msg(id, reason)),
            )
        };
        let mut given = 0u8;
        // SAFETY: `id` and `event` are valid. The call returns null unless the peer's consumer
        // rejected, and otherwise a buffer of `given` bytes in the event.
        let private_data = unsafe {
            let data = bindings::rdma_consumer_reject_data(id, event, &mut given);
            PrivateData::copy(data, given)
        };
        Self {
            reason,
            message,
            private_data,
        }
    }

    /// Returns the connection manager's text for the reason (`rdma_reject_msg`).
    pub fn message(&self) -> &'static str {
        self.message.to_str().unwrap_or("unknown reason")
    }

    /// Returns the first 32 bytes of the private data; `None` if not the peer's consumer but its
    /// connection manager rejected the request.
    pub fn private_data(&self) -> Option<&[u8]> {
        self.private_data.as_ref().map(PrivateData::as_slice)
    }

    /// Returns whether no listener has the address (`IB_CM_REJ_INVALID_SERVICE_ID`).
    pub fn is_no_listener(&self) -> bool {
        u32::try_from(self.reason) == Ok(bindings::ib_cm_rej_reason_IB_CM_REJ_INVALID_SERVICE_ID)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Code(error) => write!(f, "error {}", error.to_errno()),
            Cause::TimedOut(limit) => write!(f, "timed out after {} ms", limit.get()),
            Cause::Cancelled => f.write_str("cancelled"),
            Cause::Interrupted => f.write_str("interrupted by a signal"),
            Cause::Rejected(rejection) => write!(f, "rejected: {}", rejection.message()),
            Cause::Unreachable => f.write_str("the peer does not answer"),
            Cause::NoService(status) => {
                write!(f, "the peer {}", no_service(*status))
            }
            Cause::Unsupported(what) => f.write_str(what),
            Cause::Lacks(device, what) => write!(f, "{device} does not support {what}"),
            Cause::Disconnected => f.write_str("the peer disconnected"),
            Cause::AddressChanged => f.write_str("the local link address changed"),
            Cause::DeviceRemoved => f.write_str("the RDMA device was removed"),
            Cause::PrivateDataTooLong { length, room } => {
                write!(f, "private data too long: {length} bytes, maximum {room}")
            }
        }
    }
}

/// Returns the text for a status of `enum ib_cm_sidr_status`, to follow `the peer`.
fn no_service(status: u32) -> &'static str {
    match status {
        bindings::ib_cm_sidr_status_IB_SIDR_UNSUPPORTED => "has no such service",
        bindings::ib_cm_sidr_status_IB_SIDR_REJECT => "rejects the request",
        bindings::ib_cm_sidr_status_IB_SIDR_NO_QP => "has no queue pair for the service",
        bindings::ib_cm_sidr_status_IB_SIDR_REDIRECT => "redirects the service",
        _ => "does not support this version of the request",
    }
}

kernel_display!(Cause, Error, Stage);
