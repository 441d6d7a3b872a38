// SPDX-License-Identifier: GPL-2.0

//! Why a connection is lost, and how the ULP is notified.
//!
//! Completion handlers, connection events, timeouts and device removal run in contexts that cannot
//! end a connection. They report the error to an [`ErrorNotifier`], which wakes the context that
//! can. The notifier keeps the first error that is a cause; later errors are its consequences.

use core::fmt;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_proto::policy::request_state::ProtocolError;
use rrdma::{
    new_irq_lock,
    rdma::{
        cm,
        cq,
        qp, //
    },
    sync::{
        IrqLock,
        TimedCompletion, //
    },
};

/// Reason why a connection is lost.
#[derive(Clone, Copy)]
pub enum ConnError {
    /// A work request failed.
    WorkRequest {
        /// The queue.
        qid: u16,
        /// Kind of the work request, for messages.
        what: &'static str,
        /// Status of its completion.
        failure: cq::WcError,
    },
    /// A work request could not be posted.
    Post {
        /// The queue.
        qid: u16,
        /// Kind of the work request, for messages.
        what: &'static str,
        /// Error of the device.
        error: Error,
    },
    /// The target sent a response that is shorter than a completion queue entry.
    ShortResponse {
        /// The queue.
        qid: u16,
        /// Bytes of the response.
        length: usize,
    },
    /// The target sent immediate data with an RDMA WRITE, which consumed the receive of a response.
    UnexpectedWrite {
        /// The queue.
        qid: u16,
    },
    /// The target answered a command that is not in flight.
    UnknownCommand {
        /// The queue.
        qid: u16,
        /// The identifier in the response.
        command_id: u16,
    },
    /// The response to a command violates the protocol.
    Protocol {
        /// The queue.
        qid: u16,
        /// The identifier of the command.
        command_id: u16,
        /// The violation.
        error: ProtocolError,
    },
    /// A command timed out.
    Timeout {
        /// The queue.
        qid: u16,
        /// The tag of the command.
        tag: u32,
    },
    /// The target did not answer commands while the controller was removed.
    Unanswered {
        /// Number of the commands.
        count: u32,
        /// Time without an answer, in milliseconds.
        ms: u32,
    },
    /// The device stopped a queue pair. It reports the cause in another event, or not at all.
    Stopped {
        /// The queue.
        qid: u16,
    },
    /// The device reported a fault of a queue pair, and no failed work request.
    Fault {
        /// The queue.
        qid: u16,
        /// The fault that the device reported.
        fault: qp::Fault,
    },
    /// The connection of a queue is lost.
    Lost {
        /// The queue.
        qid: u16,
        /// The event of the connection manager.
        cause: cm::Lost,
    },
    /// The RDMA device is being removed.
    DeviceRemoved,
}

impl ConnError {
    /// Returns the queue whose connection is lost; `None` if all are.
    pub fn qid(&self) -> Option<u16> {
        match *self {
            Self::WorkRequest { qid, .. }
            | Self::Post { qid, .. }
            | Self::ShortResponse { qid, .. }
            | Self::UnexpectedWrite { qid }
            | Self::UnknownCommand { qid, .. }
            | Self::Protocol { qid, .. }
            | Self::Timeout { qid, .. }
            | Self::Stopped { qid }
            | Self::Fault { qid, .. }
            | Self::Lost { qid, .. } => Some(qid),
            Self::Unanswered { .. } | Self::DeviceRemoved => None,
        }
    }
}

impl fmt::Display for ConnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::WorkRequest { qid, what, failure } => {
                write!(f, "{what} failed on queue {qid}: {}", failure.message())
            }
            Self::Post { qid, what, error } => {
                let errno = error.to_errno();
                write!(f, "{what} not posted on queue {qid}: error {errno}")
            }
            Self::ShortResponse { qid, length } => {
                write!(f, "response of {length} bytes on queue {qid} is too short")
            }
            Self::UnexpectedWrite { qid } => {
                write!(f, "RDMA WRITE with immediate data on queue {qid}")
            }
            Self::UnknownCommand { qid, command_id } => write!(
                f,
                "response to command {command_id:#06x} on queue {qid}: command not in flight"
            ),
            Self::Protocol {
                qid,
                command_id,
                error,
            } => write!(f, "command {command_id:#06x} on queue {qid}: {error}"),
            Self::Timeout { qid, tag } => write!(f, "command {tag} on queue {qid} timed out"),
            Self::Unanswered { count, ms } => {
                write!(
                    f,
                    "no response to {count} commands within {ms} ms of the disconnect"
                )
            }
            Self::Stopped { qid } => {
                write!(
                    f,
                    "connection of queue {qid} lost: stopped by the RDMA device"
                )
            }
            Self::Fault { qid, fault } => write!(f, "connection of queue {qid} lost: {fault}"),
            Self::Lost { qid, cause } => {
                let why = match cause {
                    cm::Lost::Disconnected => "the target disconnected",
                    cm::Lost::Closed => "closed by the target or the network",
                    cm::Lost::AddressChanged => "the local link address changed",
                    cm::Lost::Unreachable => "the target does not answer",
                    cm::Lost::DeviceRemoved => "the RDMA device is being removed",
                };
                write!(f, "connection of queue {qid} lost: {why}")
            }
            Self::DeviceRemoved => f.write_str("the RDMA device was removed"),
        }
    }
}

/// Wakes the context of the ULP that ends connections.
pub trait Wake: Send + Sync + 'static {
    /// Wakes the context, which then checks for an error or a response. Any context.
    fn wake(&self);

    /// Wakes the context because of an error. Any context.
    fn lost(&self, _error: &ConnError) {
        self.wake();
    }
}

/// Wakes a thread that waits for the completion.
impl Wake for TimedCompletion {
    #[inline]
    fn wake(&self) {
        self.complete();
    }
}

/// Keeps the first error of a controller's connections, and wakes its ULP.
#[pin_data]
pub struct ErrorNotifier<W> {
    #[pin]
    first: IrqLock<Option<ConnError>>,
    wake: Arc<W>,
}

impl<W: Wake> ErrorNotifier<W> {
    /// Creates a notifier without an error. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(wake: Arc<W>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                first <- new_irq_lock!(None, "nvme_rdma_transport::ErrorNotifier"),
                wake,
            }),
            GFP_KERNEL,
        )
    }

    /// Reports an error, and wakes the ULP. Any context.
    ///
    /// The error is kept if it is the first, or the first after [`Stopped`](ConnError::Stopped),
    /// which names no cause.
    pub fn report(&self, error: ConnError) {
        {
            let mut first = self.first.lock();
            if matches!(*first, None | Some(ConnError::Stopped { .. })) {
                *first = Some(error);
            }
        }
        self.wake.lost(&error);
    }

    /// Returns the first error. Any context.
    pub fn error(&self) -> Option<ConnError> {
        *self.first.lock()
    }

    /// Clears the error. No connection that could report another may exist. Any context.
    pub fn reset(&self) {
        *self.first.lock() = None;
    }

    /// Wakes the ULP without an error. Any context.
    pub fn wake(&self) {
        self.wake.wake();
    }
}
