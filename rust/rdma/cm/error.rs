// SPDX-License-Identifier: GPL-2.0

//! Why a connection could not be made.

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

/// Private data of a rejection that is kept; NVMe uses 4 bytes, a rejection has
/// room for 148.
const PRIVATE_DATA: usize = 32;

/// A step of connecting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Finding the local device and the peer's link address.
    Address,
    /// Making the objects of the connection on the device.
    Device,
    /// Finding the path to the peer.
    Route,
    /// Exchanging the connection messages with the peer.
    Connect,
    /// Listening for peers.
    Listen,
    /// Answering a peer's request.
    Accept,
    /// Joining a multicast group.
    Join,
}

impl Stage {
    /// The failure of this step from an error of the kernel.
    pub(crate) fn failed(self, error: kernel::error::Error) -> Error {
        Error {
            stage: self,
            cause: Cause::Code(error),
        }
    }

    /// The name of the step, as in `route resolution`.
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

/// A failed step.
#[derive(Clone, Copy)]
pub struct Error {
    /// The step.
    pub stage: Stage,
    /// Why it failed.
    pub cause: Cause,
}

impl fmt::Display for Error {
    /// As in `connecting: the peer does not answer`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.stage, self.cause)
    }
}

/// Why a step failed.
#[derive(Clone, Copy)]
pub enum Cause {
    /// An error of the kernel.
    Code(kernel::error::Error),
    /// No answer within this time.
    TimedOut(Msecs),
    /// The caller no longer wanted it.
    Cancelled,
    /// The peer, or something on its behalf, said no.
    Rejected(Rejection),
    /// The peer does not answer.
    Unreachable,
    /// The peer has no such service for datagrams, or does not want to tell of it:
    /// a status of the specification's (`enum ib_cm_sidr_status`).
    NoService(u32),
    /// Neither this kernel nor a device can do it.
    Unsupported(&'static str),
    /// The device does not have it, such as datagrams.
    Lacks(Name, &'static str),
    /// The peer disconnected.
    Disconnected,
    /// The local address, or the path to the peer, changed.
    AddressChanged,
    /// The device went away.
    DeviceRemoved,
    /// There is no room for so much private data in the message.
    PrivateDataTooLong {
        /// Bytes that were to be sent.
        length: usize,
        /// Bytes that can be sent.
        room: usize,
    },
}

impl Cause {
    /// The core itself gave up waiting; it may be asked again.
    pub(super) fn is_core_timeout(&self) -> bool {
        matches!(self, Cause::Code(ETIMEDOUT))
    }

    /// The nearest error number.
    pub fn errno(&self) -> kernel::error::Error {
        match self {
            Cause::Code(error) => *error,
            Cause::TimedOut(_) => ETIMEDOUT,
            Cause::Cancelled => errno::ECANCELED,
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
    /// The reason (`enum ib_cm_rej_reason`, or an error number with iWARP).
    pub reason: i32,
    message: &'static CStr,
    consumer: bool,
    private_data: [u8; PRIVATE_DATA],
    length: usize,
}

impl Rejection {
    /// # Safety
    ///
    /// `id` and `event` must be those of a handler that is called with a
    /// rejection.
    pub(super) unsafe fn from_event(
        id: *mut bindings::rdma_cm_id,
        event: *mut bindings::rdma_cm_event,
    ) -> Self {
        // SAFETY: By the contract; the message is a static string.
        let (reason, message) = unsafe {
            let reason = (*event).status;
            (
                reason,
                CStr::from_char_ptr(bindings::rdma_reject_msg(id, reason)),
            )
        };
        let mut given = 0u8;
        // SAFETY: By the contract; answers NULL if the peer's consumer did not reject.
        let data = unsafe { bindings::rdma_consumer_reject_data(id, event, &mut given) };
        let mut private_data = [0; PRIVATE_DATA];
        let mut length = 0;
        if !data.is_null() {
            // SAFETY: The C call answers a buffer of `given` bytes of the event.
            let data = unsafe { core::slice::from_raw_parts(data.cast::<u8>(), given.into()) };
            for (to, from) in private_data.iter_mut().zip(data) {
                *to = *from;
                length += 1;
            }
        }
        Self {
            reason,
            message,
            consumer: !data.is_null(),
            private_data,
            length,
        }
    }

    /// What the connection manager calls the reason.
    pub fn message(&self) -> &'static str {
        self.message.to_str().unwrap_or("unknown reason")
    }

    /// The first bytes of what the peer's consumer said, if it was the one that
    /// rejected.
    pub fn private_data(&self) -> Option<&[u8]> {
        self.private_data
            .get(..self.length)
            .filter(|_| self.consumer)
    }

    /// Nobody listens at the address.
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
            Cause::Rejected(rejection) => write!(f, "rejected: {}", rejection.message()),
            Cause::Unreachable => f.write_str("the peer does not answer"),
            Cause::NoService(status) => {
                write!(f, "the peer {}", no_service(*status))
            }
            Cause::Unsupported(what) => f.write_str(what),
            Cause::Lacks(device, what) => write!(f, "{device} has no {what}"),
            Cause::Disconnected => f.write_str("the peer disconnected"),
            Cause::AddressChanged => f.write_str("the address of the path changed"),
            Cause::DeviceRemoved => f.write_str("the RDMA device was removed"),
            Cause::PrivateDataTooLong { length, room } => {
                write!(f, "{length} bytes of private data, and room for {room}")
            }
        }
    }
}

/// Why there is no service.
fn no_service(status: u32) -> &'static str {
    match status {
        bindings::ib_cm_sidr_status_IB_SIDR_UNSUPPORTED => "has no such service",
        bindings::ib_cm_sidr_status_IB_SIDR_REJECT => "rejects the request",
        bindings::ib_cm_sidr_status_IB_SIDR_NO_QP => "has no queue pair for the service",
        bindings::ib_cm_sidr_status_IB_SIDR_REDIRECT => "has the service elsewhere",
        _ => "does not know this kind of request",
    }
}

kernel_display!(Cause, Error, Stage);
