// SPDX-License-Identifier: GPL-2.0

//! Work requests that failed.

use crate::{
    bindings,
    text::kernel_display, //
};
use core::fmt;
use kernel::{
    prelude::*,
    str::CStr, //
};

/// Declares [`Status`] and how C numbers become one.
macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $raw:ident,)+) => {
        /// Why a work request failed (`enum ib_wc_status`).
        ///
        /// Source: InfiniBand Architecture Specification, volume 1, section 11.6.2.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Status {
            $($(#[$doc])* $name,)+
            /// Something that the verbs have no name for.
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
    /// A message did not fit into what was posted to receive it, or is longer
    /// than any message may be.
    LocalLength = ib_wc_status_IB_WC_LOC_LEN_ERR,
    /// The request is none that this queue pair can execute.
    LocalQueuePair = ib_wc_status_IB_WC_LOC_QP_OP_ERR,
    /// As before, of an end-to-end context.
    LocalEndToEnd = ib_wc_status_IB_WC_LOC_EEC_OP_ERR,
    /// A piece of memory does not belong to a region of ours, or not for such use.
    LocalProtection = ib_wc_status_IB_WC_LOC_PROT_ERR,
    /// The queue pair was stopped before the request was executed; says nothing
    /// about the request.
    Flushed = ib_wc_status_IB_WC_WR_FLUSH_ERR,
    /// A memory window could not be bound.
    WindowBind = ib_wc_status_IB_WC_MW_BIND_ERR,
    /// The peer's answer was none that there can be.
    BadResponse = ib_wc_status_IB_WC_BAD_RESP_ERR,
    /// A peer's write with immediate data was against the rules of our memory.
    LocalAccess = ib_wc_status_IB_WC_LOC_ACCESS_ERR,
    /// The peer took the request for none that there can be, such as a message
    /// that is longer than what it had posted.
    RemoteInvalidRequest = ib_wc_status_IB_WC_REM_INV_REQ_ERR,
    /// The peer has no such key, or it does not allow this.
    RemoteAccess = ib_wc_status_IB_WC_REM_ACCESS_ERR,
    /// The peer could not execute the request, for reasons of its own.
    RemoteOperation = ib_wc_status_IB_WC_REM_OP_ERR,
    /// The peer does not answer, however often it is asked.
    RetryExceeded = ib_wc_status_IB_WC_RETRY_EXC_ERR,
    /// The peer has nothing posted to receive into, however often it is asked.
    ReceiverNotReady = ib_wc_status_IB_WC_RNR_RETRY_EXC_ERR,
    /// The queue pair belongs to another reliable datagram domain.
    DatagramDomain = ib_wc_status_IB_WC_LOC_RDD_VIOL_ERR,
    /// The peer took a reliable datagram for none that there can be.
    RemoteInvalidDatagram = ib_wc_status_IB_WC_REM_INV_RD_REQ_ERR,
    /// The peer gave the operation up.
    RemoteAborted = ib_wc_status_IB_WC_REM_ABORT_ERR,
    /// There is no end-to-end context of this number.
    EndToEndNumber = ib_wc_status_IB_WC_INV_EECN_ERR,
    /// The end-to-end context is in no state for this.
    EndToEndState = ib_wc_status_IB_WC_INV_EEC_STATE_ERR,
    /// The device is in trouble.
    Fatal = ib_wc_status_IB_WC_FATAL_ERR,
    /// The answer to a request for a response took too long.
    ResponseTimeout = ib_wc_status_IB_WC_RESP_TIMEOUT_ERR,
    /// Whatever has no status of its own.
    General = ib_wc_status_IB_WC_GENERAL_ERR,
}

/// A work request that failed: in what way, and what the vendor says to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    raw: bindings::ib_wc_status,
    vendor: u32,
}

impl Failure {
    pub(super) fn new(raw: bindings::ib_wc_status, vendor: u32) -> Self {
        Self { raw, vendor }
    }

    /// In what way it failed.
    pub fn status(self) -> Status {
        Status::from_raw(self.raw)
    }

    /// The vendor's number for the cause; 0 of a device that has none to tell.
    pub fn vendor_error(self) -> u32 {
        self.vendor
    }

    /// The request did not fail by itself: its queue pair was stopped. If nobody did that here,
    /// it was the device, and not each tells why: soft-RoCE finds no way to send a packet, and
    /// there is neither another status nor an event.
    #[inline]
    pub fn is_flush(self) -> bool {
        self.raw == bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR
    }

    /// What the verbs call it (`ib_wc_status_msg`).
    pub fn message(self) -> &'static str {
        // SAFETY: The function returns a static string for any status.
        let message = unsafe { CStr::from_char_ptr(bindings::ib_wc_status_msg(self.raw)) };
        message.to_str().unwrap_or("unknown work completion status")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())?;
        match self.vendor {
            0 => Ok(()),
            vendor => write!(f, " (vendor error {vendor:#x})"),
        }
    }
}

kernel_display!(Failure);
