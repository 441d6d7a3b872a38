// SPDX-License-Identifier: GPL-2.0

//! Why a connection could not be made.

use crate::{
    bindings,
    errno, //
    sync::Msecs,
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
}

/// A failed step.
#[derive(Clone, Copy)]
pub struct Error {
    /// The step.
    pub stage: Stage,
    /// Why it failed.
    pub cause: Cause,
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
    /// The device went away.
    DeviceRemoved,
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
            Cause::DeviceRemoved => ENODEV,
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
            Cause::DeviceRemoved => f.write_str("the RDMA device was removed"),
        }
    }
}
