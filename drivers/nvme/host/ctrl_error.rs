// SPDX-License-Identifier: GPL-2.0

//! Errors of a controller: stage, codes and message.

use crate::uapi::ErrorStage;
use core::fmt;
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        Instant,
        Monotonic, //
    },
};
use nvme_proto::format::{connect::ConnectError, private_data::CmStatus, status::Status};
use nvme_rdma_transport::{
    conn_error::ConnError,
    connect::{
        QueueConnectError,
        QueueObject, //
    },
    params::ParamsError,
    queue::CommandError,
};
use rrdma::{
    errno,
    rdma::{
        cm,
        device::Name, //
    },
    sync::Msecs,
    text::Message, //
};

/// Longest message, in bytes; a longer one is truncated.
const MESSAGE: usize = 255;

/// An error of a controller, as user space sees it.
#[derive(Clone)]
pub(crate) struct CtrlError {
    pub(crate) stage: ErrorStage,
    pub(crate) error: Error,
    pub(crate) qid: Option<u16>,
    /// The reason code of a rejection by the peer's connection manager.
    pub(crate) reject_reason: Option<u32>,
    /// The NVMe status in the private data of a rejection (`enum nvme_rdma_cm_status`).
    pub(crate) cm_status: Option<u16>,
    /// The status field of a command, without the phase bit.
    pub(crate) nvme_status: Option<u16>,
    /// The controller has become live since.
    pub(crate) over: bool,
    /// A command was sent, and the target did not respond in time.
    pub(crate) unanswered: bool,
    at: Instant<Monotonic>,
    /// `None` if its allocation failed.
    message: Option<Arc<Message<MESSAGE>>>,
}

impl CtrlError {
    /// Returns an error of `stage` with an error number and a message. May sleep.
    #[inline(never)]
    pub(crate) fn new(stage: ErrorStage, error: Error, message: fmt::Arguments<'_>) -> Self {
        Self {
            stage,
            error,
            qid: None,
            reject_reason: None,
            cm_status: None,
            nvme_status: None,
            over: false,
            unanswered: false,
            at: Instant::now(),
            message: Self::text(message),
        }
    }

    /// Allocates a message. It is not part of the error, because errors are returned through many
    /// frames of a 16 KiB stack.
    #[inline(never)]
    fn text(message: fmt::Arguments<'_>) -> Option<Arc<Message<MESSAGE>>> {
        Arc::new(Message::new(message), GFP_KERNEL).ok()
    }

    /// Returns the message.
    pub(crate) fn message(&self) -> &str {
        self.message
            .as_ref()
            .map_or("unknown error (out of memory)", |message| message.as_str())
    }

    /// Returns the time since the error.
    pub(crate) fn age(&self) -> Msecs {
        self.at.elapsed().into()
    }

    /// Converts an error of a kernel function that usually fails only if out of memory. `what`
    /// names the object or step.
    pub(crate) fn kernel(stage: ErrorStage, error: Error, what: &str) -> Self {
        let number = error.to_errno();
        let new = |message: fmt::Arguments<'_>| Self::new(stage, error, message);
        // The network returns `ENOBUFS` if out of memory for a neighbour, and `ENFILE` for a
        // socket, which each queue pair of soft-RoCE has.
        if error == ENOMEM || error == errno::ENOBUFS || error == ENFILE {
            return new(format_args!("{what}: out of memory"));
        }
        new(format_args!("{what}: failed with error {number}"))
    }

    /// Returns the NVMe status of the failed command; `None` if a keep-alive failed before it was sent.
    pub(crate) fn status(&self) -> Option<Status> {
        self.nvme_status
            .filter(|_| self.stage != ErrorStage::KeepAlive)
            .map(|status| Status::from_wire(status << 1))
    }

    /// Whether the target set Do Not Retry in the status of the failed command.
    pub(crate) fn is_final(&self) -> bool {
        self.status().is_some_and(Status::do_not_retry)
    }

    /// Whether the target does not support the command, as opposed to a transient failure.
    pub(crate) fn is_lack(&self) -> bool {
        self.is_final() || self.status().is_some_and(Status::is_unsupported)
    }

    /// Prefixes the message with a namespace. May sleep.
    pub(crate) fn of_namespace(self, nsid: u32) -> Self {
        let message = Self::text(format_args!("namespace {nsid}: {}", self.message()));
        Self { message, ..self }
    }

    pub(crate) fn on_queue(mut self, qid: u16) -> Self {
        self.qid = Some(qid);
        self
    }

    /// Whether the connection ended or is ending.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.error == errno::ECANCELED
    }

    /// Returns the error of an operation that removal of the controller cancelled.
    pub(crate) fn cancelled(stage: ErrorStage) -> Self {
        Self::new(
            stage,
            errno::ECANCELED,
            format_args!("cancelled: the controller is being removed"),
        )
    }

    /// Returns the error of a target that violates the protocol, or lacks a required feature.
    pub(crate) fn target(stage: ErrorStage, message: fmt::Arguments<'_>) -> Self {
        Self::new(stage, errno::EPROTO, message)
    }

    /// Returns a function that converts the reason why data of the target is unusable. `what` names
    /// the data.
    pub(crate) fn unusable<E: fmt::Display>(
        stage: ErrorStage,
        what: &str,
    ) -> impl FnOnce(E) -> Self + '_ {
        move |why| Self::target(stage, format_args!("{what}: {why}"))
    }

    /// Converts an error of the connection manager. `device` is the RDMA device, if known.
    pub(crate) fn from_cm(error: cm::Error, device: Option<&str>) -> Self {
        let stage = match error.stage {
            cm::Stage::Address => ErrorStage::Address,
            cm::Stage::Device => ErrorStage::Device,
            cm::Stage::Route => ErrorStage::Route,
            // A host does not listen, accept or join.
            cm::Stage::Connect | cm::Stage::Listen | cm::Stage::Accept | cm::Stage::Join => {
                ErrorStage::Connect
            }
        };
        let (what, errno) = (error.stage, error.cause.errno());
        let new = |message: fmt::Arguments<'_>| Self::new(stage, errno, message);
        match error.cause {
            cm::Cause::Rejected(rejection) => Self::rejected(stage, errno, &rejection),
            cm::Cause::Cancelled => Self::cancelled(stage),
            cm::Cause::TimedOut(limit) => {
                let limit = Seconds(limit.get());
                match device {
                    Some(device) => new(format_args!(
                        "{what} timed out after {limit}: no response through {device}"
                    )),
                    None => new(format_args!("{what} timed out after {limit}")),
                }
            }
            // The route is resolved, so the address is valid: the core has found no connection manager of the
            // device. It returns the same error for both.
            cm::Cause::Code(EINVAL) if what == cm::Stage::Connect => {
                let device = device.unwrap_or("the RDMA device");
                new(format_args!(
                    "{what} failed: {device} has no connection manager; soft-RoCE loses it when it \
                     moves to another network namespace"
                ))
            }
            cm::Cause::Code(code) => Self::code(stage, what, code),
            cause => new(format_args!("{what} failed: {cause}")),
        }
    }

    fn code(stage: ErrorStage, step: cm::Stage, code: Error) -> Self {
        let why = match code {
            ENODEV => "no RDMA device on the route (check `rdma link show`)",
            e if e == errno::ENETUNREACH => "no route to the network",
            e if e == errno::EHOSTUNREACH => "no route to the host, or it does not answer",
            e if e == errno::EADDRNOTAVAIL => "the host address is not configured on this machine",
            e if e == errno::EAFNOSUPPORT => "target and host address have different families",
            ETIMEDOUT => "the peer's link-layer address could not be resolved",
            EINVAL => "invalid address",
            _ => return Self::kernel(stage, code, step.as_str()),
        };
        Self::new(stage, code, format_args!("{step} failed: {why}"))
    }

    fn rejected(stage: ErrorStage, errno: Error, rejection: &cm::Rejection) -> Self {
        // A connection manager that rejects without its consumer sends zeroes, which are no NVMe
        // status.
        let nvme = rejection
            .private_data()
            .and_then(CmStatus::parse)
            .filter(|reason| *reason != CmStatus::Unknown(0));
        let new = |message: fmt::Arguments<'_>| Self::new(stage, errno, message);
        let failure = match nvme {
            Some(reason) => new(format_args!("rejected by target: {reason}")),
            None if rejection.is_no_listener() => new(format_args!(
                "connection refused (no listener on this port)"
            )),
            None if rejection.private_data().is_some() => new(format_args!(
                "connection refused (no NVMe listener on this address)"
            )),
            None => new(format_args!("rejected by peer: {}", rejection.message())),
        };
        Self {
            reject_reason: u32::try_from(rejection.reason).ok(),
            cm_status: nvme.map(CmStatus::to_wire),
            ..failure
        }
    }

    /// Converts the error of a command that got no response. `what` names the command.
    pub(crate) fn from_command(stage: ErrorStage, error: CommandError, what: &str) -> Self {
        let timed_out = |message: fmt::Arguments<'_>| Self::new(stage, ETIMEDOUT, message);
        match error {
            CommandError::Code(error) => Self::kernel(stage, error, what),
            CommandError::TimedOut(limit) => match Seconds(limit.get()) {
                Seconds(0) => timed_out(format_args!(
                    "{what}: not sent: earlier steps used up the time-out"
                )),
                limit => Self {
                    unanswered: true,
                    ..timed_out(format_args!(
                        "{what}: no response from the target in {limit}"
                    ))
                },
            },
            CommandError::ConnError(trouble) => Self {
                stage,
                ..Self::from(trouble)
            },
            CommandError::Cancelled | CommandError::Unanswered => Self::cancelled(stage),
        }
    }

    /// Converts an error status of a command. `what` names the command.
    pub(crate) fn from_status(stage: ErrorStage, status: Status, what: &str) -> Self {
        Self {
            nvme_status: Some(status.get()),
            ..Self::new(stage, EIO, format_args!("{what}: {status}"))
        }
    }

    /// Converts an error status of a Connect command.
    pub(crate) fn from_connect(error: ConnectError, status: Status, nqn: &str) -> Self {
        use nvme_proto::format::connect::Parameter;
        let rejected = |why: fmt::Arguments<'_>| Self {
            nvme_status: Some(status.get()),
            ..Self::new(
                ErrorStage::FabricsConnect,
                errno::ECONNREFUSED,
                format_args!("rejected by target: {why}"),
            )
        };
        match error {
            ConnectError::InvalidParameter(Parameter::Subsystem) => {
                rejected(format_args!("no such subsystem {nqn}"))
            }
            ConnectError::HostNotAllowed => {
                rejected(format_args!("this host is not allowed to use {nqn}"))
            }
            error => rejected(format_args!("{error}")),
        }
    }
}

impl From<ConnError> for CtrlError {
    fn from(error: ConnError) -> Self {
        let (stage, number, qid) = match error {
            ConnError::Post { qid, what, error } => {
                return Self::kernel(ErrorStage::Transport, error, what).on_queue(qid)
            }
            ConnError::WorkRequest { qid, .. }
            | ConnError::Stopped { qid }
            | ConnError::Fault { qid, .. }
            | ConnError::Lost { qid, .. } => (ErrorStage::Transport, errno::ENOLINK, Some(qid)),
            ConnError::ShortResponse { qid, .. }
            | ConnError::UnexpectedWrite { qid }
            | ConnError::UnknownCommand { qid, .. }
            | ConnError::Protocol { qid, .. } => (ErrorStage::Io, errno::EPROTO, Some(qid)),
            ConnError::Timeout { qid, .. } => (ErrorStage::Io, ETIMEDOUT, Some(qid)),
            ConnError::Unanswered { .. } => (ErrorStage::Io, ETIMEDOUT, None),
            ConnError::DeviceRemoved => (ErrorStage::Removal, ENODEV, None),
        };
        Self {
            qid,
            ..Self::new(stage, number, format_args!("{error}"))
        }
    }
}

impl From<QueueConnectError> for CtrlError {
    fn from(error: QueueConnectError) -> Self {
        match error {
            QueueConnectError::ConnError(error) => error.into(),
            QueueConnectError::Cm { error, device } => {
                let device = device.map(|device| device.name());
                Self::from_cm(error, device.as_ref().map(Name::as_str))
            }
            QueueConnectError::NoRegistration(device) => Self::new(
                ErrorStage::Device,
                errno::EOPNOTSUPP,
                format_args!(
                    "{} does not support fast memory registration",
                    device.name()
                ),
            ),
            QueueConnectError::Object { object, error } => {
                let stage = match object {
                    QueueObject::ConnectionId => ErrorStage::Address,
                    _ => ErrorStage::Device,
                };
                Self::kernel(stage, error, object.name())
            }
        }
    }
}

impl From<ParamsError> for CtrlError {
    fn from(error: ParamsError) -> Self {
        let stage = ErrorStage::Queues;
        match error {
            ParamsError::NoRegistration => {
                let message = format_args!("the RDMA device does not support memory registration");
                Self::new(stage, errno::EOPNOTSUPP, message)
            }
            ParamsError::QueueTooSmall(why) => {
                Self::target(stage, format_args!("I/O queues: {why}"))
            }
        }
    }
}

/// Milliseconds, displayed as seconds if whole.
struct Seconds(u32);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 1000, self.0 % 1000) {
            (seconds, 0) => write!(f, "{seconds} s"),
            (_, _) => write!(f, "{} ms", self.0),
        }
    }
}
