// SPDX-License-Identifier: GPL-2.0

//! Failures of work requests.

use crate::{
    bindings,
    text::kernel_display, //
};
use core::fmt;
use kernel::{
    prelude::*,
    str::CStr, //
};

/// Declares [`Status`] and its conversion from C.
macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $raw:ident,)+) => {
        /// Status of a failed work request (`enum ib_wc_status`).
        ///
        /// Source: InfiniBand Architecture Specification, volume 1, section 11.6.2.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Status {
            $($(#[$doc])* $name,)+
            /// A status that the verbs do not define.
            Unknown,
        }

        impl Status {
            fn from_raw(raw: bindings::ib_wc_status) -> Self {
                match raw {
                    $(bindings::$raw => Self::$name,)+
                    _ => Self::Unknown,
                }
            }
        }
    };
}

statuses! {
    /// A received message was longer than its buffer, or a message exceeded the maximum length.
    LocalLength = ib_wc_status_IB_WC_LOC_LEN_ERR,
    /// The queue pair cannot execute this work request.
    LocalQueuePair = ib_wc_status_IB_WC_LOC_QP_OP_ERR,
    /// The end-to-end context cannot execute this work request.
    LocalEndToEnd = ib_wc_status_IB_WC_LOC_EEC_OP_ERR,
    /// Local memory is not in a valid region, or the region does not allow the access.
    LocalProtection = ib_wc_status_IB_WC_LOC_PROT_ERR,
    /// The queue pair entered its error state before the work request was executed. Not the cause
    /// of a failure.
    Flushed = ib_wc_status_IB_WC_WR_FLUSH_ERR,
    /// Binding a memory window failed.
    WindowBind = ib_wc_status_IB_WC_MW_BIND_ERR,
    /// The peer's response was invalid.
    BadResponse = ib_wc_status_IB_WC_BAD_RESP_ERR,
    /// An RDMA write with immediate data from the peer violated the access rights of local memory.
    LocalAccess = ib_wc_status_IB_WC_LOC_ACCESS_ERR,
    /// The peer rejected the request as invalid, for example a message longer than its receive
    /// buffer.
    RemoteInvalidRequest = ib_wc_status_IB_WC_REM_INV_REQ_ERR,
    /// The peer does not have this key, or the key does not allow the access.
    RemoteAccess = ib_wc_status_IB_WC_REM_ACCESS_ERR,
    /// The peer failed to execute the request, because of an error of its own.
    RemoteOperation = ib_wc_status_IB_WC_REM_OP_ERR,
    /// The peer did not acknowledge the request; the retries are used up.
    RetryExceeded = ib_wc_status_IB_WC_RETRY_EXC_ERR,
    /// The peer had no receive posted; the RNR retries are used up.
    ReceiverNotReady = ib_wc_status_IB_WC_RNR_RETRY_EXC_ERR,
    /// The queue pair belongs to another reliable datagram domain.
    DatagramDomain = ib_wc_status_IB_WC_LOC_RDD_VIOL_ERR,
    /// The peer rejected a reliable datagram as invalid.
    RemoteInvalidDatagram = ib_wc_status_IB_WC_REM_INV_RD_REQ_ERR,
    /// The peer aborted the operation.
    RemoteAborted = ib_wc_status_IB_WC_REM_ABORT_ERR,
    /// The number of the end-to-end context is invalid.
    EndToEndNumber = ib_wc_status_IB_WC_INV_EECN_ERR,
    /// The state of the end-to-end context is invalid for the operation.
    EndToEndState = ib_wc_status_IB_WC_INV_EEC_STATE_ERR,
    /// Fatal error of the device.
    Fatal = ib_wc_status_IB_WC_FATAL_ERR,
    /// The response did not arrive in time.
    ResponseTimeout = ib_wc_status_IB_WC_RESP_TIMEOUT_ERR,
    /// An error without a status of its own.
    General = ib_wc_status_IB_WC_GENERAL_ERR,
}

/// Error of a work request: its status and the vendor's error code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WcError {
    raw: bindings::ib_wc_status,
    vendor: u32,
}

impl WcError {
    pub(super) fn new(raw: bindings::ib_wc_status, vendor: u32) -> Self {
        Self { raw, vendor }
    }

    /// Returns the status.
    pub fn status(self) -> Status {
        Status::from_raw(self.raw)
    }

    /// Returns whether the work request was only flushed, because its queue pair entered the error
    /// state.
    ///
    /// If nothing here caused that, the device did. Not every device reports why: soft-RoCE has
    /// neither another status nor an event when it finds no route for a packet.
    #[inline]
    pub fn is_flush(self) -> bool {
        self.raw == bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR
    }

    /// Returns the name of the status (`ib_wc_status_msg`).
    pub fn message(self) -> &'static str {
        // SAFETY: `ib_wc_status_msg()` returns a static string for every value.
        let message = unsafe { CStr::from_char_ptr(bindings::ib_wc_status_msg(self.raw)) };
        message.to_str().unwrap_or("unknown work completion status")
    }
}

impl fmt::Display for WcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())?;
        match self.vendor {
            0 => Ok(()),
            vendor => write!(f, " (vendor error {vendor:#x})"),
        }
    }
}

kernel_display!(WcError);
