// SPDX-License-Identifier: GPL-2.0

//! Why a controller failed: the stage, the codes, and a sentence for a person.

use crate::uapi::ErrorStage;
use core::fmt;
use kernel::{
    prelude::*,
    sync::Arc, //
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
    text::Message, //
};

/// Longest message, in bytes; what is longer is cut.
const MESSAGE: usize = 255;

/// A failure, as it is shown to user space.
#[derive(Clone)]
pub(crate) struct CtrlError {
    pub(crate) stage: ErrorStage,
    pub(crate) error: Error,
    pub(crate) qid: Option<u16>,
    /// Why the peer's connection manager rejected the connection.
    pub(crate) reject_reason: Option<u32>,
    /// What the NVMe target said of the rejection.
    pub(crate) cm_status: Option<u16>,
    /// The status field of a command, without the phase bit.
    pub(crate) nvme_status: Option<u16>,
    /// `None` if there was no memory for it.
    message: Option<Arc<Message<MESSAGE>>>,
}

impl CtrlError {
    /// A failure of `stage` with an error number and a message.
    pub(crate) fn new(stage: ErrorStage, error: Error, message: fmt::Arguments<'_>) -> Self {
        Self {
            stage,
            error,
            qid: None,
            reject_reason: None,
            cm_status: None,
            nvme_status: None,
            message: Self::text(message),
        }
    }

    /// The text of a message. It has memory of its own, as failures are handed up many calls
    /// deep on a stack of 16 KiB.
    #[inline(never)]
    fn text(message: fmt::Arguments<'_>) -> Option<Arc<Message<MESSAGE>>> {
        Arc::new(Message::new(message), GFP_KERNEL).ok()
    }

    /// The cause, for a person to read.
    pub(crate) fn message(&self) -> &str {
        self.message
            .as_ref()
            .map_or("no memory for the cause", |message| message.as_str())
    }

    /// The kernel refused something that it is usually asked for in vain only
    /// when memory is short.
    pub(crate) fn kernel(stage: ErrorStage, error: Error, what: &str) -> Self {
        // The network says the second of the memory for a neighbour, and the third of that for a
        // socket, which a queue pair of soft-RoCE has.
        if error == ENOMEM || error == errno::ENOBUFS || error == ENFILE {
            return Self::new(stage, error, format_args!("{what}: out of memory"));
        }
        let number = error.to_errno();
        Self::new(
            stage,
            error,
            format_args!("{what}: refused by the kernel (error {number})"),
        )
    }

    /// What the target said of a command.
    pub(crate) fn status(&self) -> Option<Status> {
        self.nvme_status
            .map(|status| Status::from_wire(status << 1))
    }

    /// Whether the target said that it will always be so.
    pub(crate) fn is_final(&self) -> bool {
        self.status().is_some_and(Status::do_not_retry)
    }

    /// Whether the target said that it has no such thing, and not that it cannot tell now.
    pub(crate) fn is_lack(&self) -> bool {
        self.is_final() || self.status().is_some_and(Status::is_unsupported)
    }

    /// The same failure, of a namespace.
    pub(crate) fn of_namespace(self, nsid: u32) -> Self {
        let message = Self::text(format_args!("namespace {nsid}: {}", self.message()));
        Self { message, ..self }
    }

    pub(crate) fn on_queue(mut self, qid: u16) -> Self {
        self.qid = Some(qid);
        self
    }

    /// Whether the connection ended, or is about to.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.error == errno::ECANCELED
    }

    /// The controller is no longer wanted.
    pub(crate) fn cancelled(stage: ErrorStage) -> Self {
        Self::new(
            stage,
            errno::ECANCELED,
            format_args!("cancelled: the controller is being removed"),
        )
    }

    /// A target that does not keep to the protocol, or lacks what we need.
    pub(crate) fn target(stage: ErrorStage, message: fmt::Arguments<'_>) -> Self {
        Self::new(stage, errno::EPROTO, message)
    }

    /// A connection could not be made.
    pub(crate) fn from_cm(error: cm::Error, device: Option<&str>) -> Self {
        let stage = match error.stage {
            cm::Stage::Address => ErrorStage::Address,
            cm::Stage::Device => ErrorStage::Device,
            cm::Stage::Route => ErrorStage::Route,
            // A host neither listens nor joins.
            cm::Stage::Connect | cm::Stage::Listen | cm::Stage::Accept | cm::Stage::Join => {
                ErrorStage::Connect
            }
        };
        let cause = error.cause;
        let errno = cause.errno();
        match cause {
            cm::Cause::Rejected(rejection) => Self::rejected(stage, errno, &rejection),
            cm::Cause::Cancelled => Self::cancelled(stage),
            cm::Cause::TimedOut(limit) => {
                let what = error.stage;
                let limit = Seconds(limit.get());
                match device {
                    Some(device) => Self::new(
                        stage,
                        errno,
                        format_args!("{what} timed out after {limit}: no answer through {device}"),
                    ),
                    None => Self::new(stage, errno, format_args!("{what} timed out after {limit}")),
                }
            }
            cm::Cause::Code(code) => Self::code(stage, error.stage, code),
            cause => {
                let what = error.stage;
                Self::new(stage, errno, format_args!("{what} failed: {cause}"))
            }
        }
    }

    fn code(stage: ErrorStage, step: cm::Stage, code: Error) -> Self {
        let why = match code {
            ENODEV => "no RDMA device on the route: is there one (`rdma link show`)?",
            e if e == errno::ENETUNREACH => "no route to the network",
            e if e == errno::EHOSTUNREACH => "no route to the host, or it does not answer",
            e if e == errno::EADDRNOTAVAIL => "the host address is not one of this machine",
            e if e == errno::EAFNOSUPPORT => "addresses of different families",
            ETIMEDOUT => "the peer's link address could not be found",
            EINVAL => "an address that cannot be used",
            _ => return Self::kernel(stage, code, step.as_str()),
        };
        Self::new(stage, code, format_args!("{step} failed: {why}"))
    }

    fn rejected(stage: ErrorStage, errno: Error, rejection: &cm::Rejection) -> Self {
        // A connection manager that rejects in its consumer's stead sends zeroes,
        // which is no reason of NVMe's.
        let nvme = rejection
            .private_data()
            .and_then(CmStatus::parse)
            .filter(|reason| *reason != CmStatus::Unknown(0));
        let mut failure = match nvme {
            Some(reason) => Self::new(stage, errno, format_args!("rejected by target: {reason}")),
            None if rejection.is_no_listener() => {
                Self::new(stage, errno, format_args!("rejected: nobody listens there"))
            }
            None if rejection.private_data().is_some() => Self::new(
                stage,
                errno,
                format_args!("rejected: nobody listens at this address, or not for NVMe"),
            ),
            None => {
                let message = rejection.message();
                Self::new(stage, errno, format_args!("rejected by peer: {message}"))
            }
        };
        failure.reject_reason = u32::try_from(rejection.reason).ok();
        failure.cm_status = nvme.map(CmStatus::to_wire);
        failure
    }

    /// A command of our own got no response.
    pub(crate) fn from_command(stage: ErrorStage, error: CommandError, what: &str) -> Self {
        match error {
            CommandError::Code(error) => Self::kernel(stage, error, what),
            CommandError::TimedOut(limit) if limit.get() == 0 => Self::new(
                stage,
                ETIMEDOUT,
                format_args!("{what}: what came before it took all the time there was"),
            ),
            CommandError::TimedOut(limit) => {
                let limit = Seconds(limit.get());
                Self::new(
                    stage,
                    ETIMEDOUT,
                    format_args!("{what}: no response from the target in {limit}"),
                )
            }
            CommandError::ConnError(trouble) => Self {
                stage,
                ..Self::from(trouble)
            },
            CommandError::Cancelled | CommandError::Unanswered => Self::cancelled(stage),
        }
    }

    /// The target refused a command.
    pub(crate) fn from_status(stage: ErrorStage, status: Status, what: &str) -> Self {
        let mut failure = Self::new(stage, EIO, format_args!("{what}: {status}"));
        failure.nvme_status = Some(status.get());
        failure
    }

    /// The target refused a Connect.
    pub(crate) fn from_connect(error: ConnectError, status: Status, nqn: &str) -> Self {
        use nvme_proto::format::connect::Parameter;
        let stage = ErrorStage::FabricsConnect;
        let errno = errno::ECONNREFUSED;
        let mut failure = match error {
            ConnectError::InvalidParameter(Parameter::Subsystem) => Self::new(
                stage,
                errno,
                format_args!("rejected by target: no such subsystem {nqn}"),
            ),
            ConnectError::HostNotAllowed => Self::new(
                stage,
                errno,
                format_args!("rejected by target: this host is not allowed to use {nqn}"),
            ),
            error => Self::new(stage, errno, format_args!("rejected by target: {error}")),
        };
        failure.nvme_status = Some(status.get());
        failure
    }
}

impl From<ConnError> for CtrlError {
    fn from(trouble: ConnError) -> Self {
        match trouble {
            ConnError::WorkRequest { qid, what, failure } => {
                let message = failure.message();
                Self::new(
                    ErrorStage::Transport,
                    errno::ENOLINK,
                    format_args!("{what} failed on queue {qid}: {message}"),
                )
                .on_queue(qid)
            }
            ConnError::Post { qid, what, error } => {
                Self::kernel(ErrorStage::Transport, error, what).on_queue(qid)
            }
            ConnError::ShortResponse { qid, length } => Self::target(
                ErrorStage::Io,
                format_args!("the target sent a response of {length} bytes on queue {qid}"),
            )
            .on_queue(qid),
            ConnError::UnknownCommand { qid, command_id } => Self::target(
                ErrorStage::Io,
                format_args!(
                    "the target answered command {command_id:#06x} on queue {qid}, \
                     which is not in flight"
                ),
            )
            .on_queue(qid),
            ConnError::Protocol {
                qid,
                command_id,
                error,
            } => Self::target(
                ErrorStage::Io,
                format_args!("command {command_id:#06x} on queue {qid}: {error}"),
            )
            .on_queue(qid),
            ConnError::Timeout { qid, tag } => Self::new(
                ErrorStage::Io,
                ETIMEDOUT,
                format_args!("command {tag} on queue {qid} was not answered in time"),
            )
            .on_queue(qid),
            ConnError::Stopped { qid } => Self::new(
                ErrorStage::Transport,
                errno::ENOLINK,
                format_args!("connection of queue {qid} lost: stopped by the RDMA device"),
            )
            .on_queue(qid),
            ConnError::Fault { qid, fault } => Self::new(
                ErrorStage::Transport,
                errno::ENOLINK,
                format_args!("connection of queue {qid} lost: {fault}"),
            )
            .on_queue(qid),
            ConnError::Lost { qid, cause } => {
                let why = match cause {
                    cm::Lost::Disconnected => "the target disconnected",
                    cm::Lost::AddressChanged => "the address of the path changed",
                    cm::Lost::Unreachable => "the target does not answer",
                    cm::Lost::DeviceRemoved => "the RDMA device is going away",
                };
                Self::new(
                    ErrorStage::Transport,
                    errno::ENOLINK,
                    format_args!("connection of queue {qid} lost: {why}"),
                )
                .on_queue(qid)
            }
            ConnError::DeviceRemoved => Self::new(
                ErrorStage::Removal,
                ENODEV,
                format_args!("the RDMA device was removed"),
            ),
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
                format_args!("{} has no fast memory registration", device.name()),
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
            ParamsError::NoRegistration => Self::new(
                stage,
                errno::EOPNOTSUPP,
                format_args!("the RDMA device cannot register memory"),
            ),
            ParamsError::QueueTooSmall(why) => {
                Self::target(stage, format_args!("I/O queues: {why}"))
            }
        }
    }
}

/// Milliseconds, shown as seconds.
struct Seconds(u32);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 1000, self.0 % 1000) {
            (seconds, 0) => write!(f, "{seconds} s"),
            (_, _) => write!(f, "{} ms", self.0),
        }
    }
}
