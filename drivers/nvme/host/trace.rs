// SPDX-License-Identifier: GPL-2.0

//! The tracepoints of trace.h.
//!
//! A command that is queued has one end: its response, or none when it could not be posted or its
//! queue went. That makes a pair of events with the same controller, queue and identifier. While
//! nobody traces, nothing of an event is made; what it costs is in Documentation/tracing.rst.

use crate::{
    ctrl_error::CtrlError,
    name::disk_name, //
};
use nvme_proto::{
    format::{
        sqe::Command,
        status::{
            Code,
            Status, //
        },
    },
    policy::ctrl_state::CtrlState,
};
use rrdma::rdma::cm;

rrdma::tracepoints! {
    bindings: concat!(env!("RNVMF_GENERATED"), "/trace_generated.rs");

    /// A command is about to go to the target.
    fn rnvmf_queue_command(rnvmf_trace_command);
    /// A command is over.
    fn rnvmf_complete_command(rnvmf_trace_completion);
    /// A controller is in another state.
    fn rnvmf_controller_state(rnvmf_trace_state);
    /// The connection manager tells something.
    fn rnvmf_cm_event(rnvmf_trace_cm_event);
}

/// What there is instead of the number of a controller for a discovery: its numbers are others.
pub(crate) const DISCOVERY: i32 = -1;

/// The queue that an event is of.
#[derive(Clone, Copy)]
pub(crate) struct QueueId {
    /// The number of the controller, or [`DISCOVERY`].
    pub(crate) ctrl_id: i32,
    pub(crate) qid: u16,
}

/// A command, as it is sent.
pub(crate) struct QueuedCommand {
    pub(crate) origin: QueueId,
    pub(crate) command: Command,
    /// Bytes of its data.
    pub(crate) bytes: u32,
    /// It is a request of a disk.
    pub(crate) of_disk: bool,
}

/// A command that is over.
pub(crate) struct EndedCommand {
    pub(crate) origin: QueueId,
    /// As it was sent.
    pub(crate) command: Command,
    /// What the target answered, or what stands for that.
    pub(crate) status: Status,
    pub(crate) result: u64,
    pub(crate) of_disk: bool,
    /// How often the request was sent before.
    pub(crate) retries: u8,
}

impl EndedCommand {
    /// The status of a command that could not be posted.
    pub(crate) const NOT_POSTED: Status = Status::from_code(Code::HOST_PATH_ERROR);

    /// The status of a command that was in flight when its queue went.
    pub(crate) const QUEUE_GONE: Status = Status::from_code(Code::HOST_ABORTED);
}

/// Traces a command that is about to go to the target. Any context.
#[inline(always)]
pub(crate) fn queue_command(queued: impl FnOnce() -> QueuedCommand) {
    rnvmf_queue_command(|| {
        let QueuedCommand {
            origin,
            command,
            bytes,
            of_disk,
        } = queued();
        let range = command.range(origin.qid);
        bindings::rnvmf_trace_command {
            ctrl_id: origin.ctrl_id,
            qid: origin.qid,
            cid: command.command_id().get(),
            opcode: command.opcode(),
            flags: command.flags(),
            fctype: command.fabrics_type().unwrap_or(0),
            nsid: command.namespace().unwrap_or(0),
            slba: range.map_or(0, |range| range.start),
            blocks: range.map_or(0, |range| range.count.get()),
            bytes,
            cdw10: command.dwords_10_15(),
            disk: disk(origin, &command, of_disk),
        }
    });
}

/// Traces the end of a command. Any context.
#[inline(always)]
pub(crate) fn complete_command(ended: impl FnOnce() -> EndedCommand) {
    rnvmf_complete_command(|| {
        let EndedCommand {
            origin,
            command,
            status,
            result,
            of_disk,
            retries,
        } = ended();
        bindings::rnvmf_trace_completion {
            ctrl_id: origin.ctrl_id,
            qid: origin.qid,
            cid: command.command_id().get(),
            opcode: command.opcode(),
            retries,
            status: status.get(),
            result,
            disk: disk(origin, &command, of_disk),
        }
    });
}

/// Traces that a controller goes from a state to another, and why if it is for a failure. Any
/// context.
#[inline(always)]
pub(crate) fn controller_state(
    ctrl_id: i32,
    from: CtrlState,
    to: CtrlState,
    failure: Option<&CtrlError>,
) {
    rnvmf_controller_state(|| bindings::rnvmf_trace_state {
        ctrl_id,
        error: failure.map_or(0, |failure| failure.error.to_errno()),
        from: text(from.name()),
        to: text(to.name()),
        reason: text(failure.map_or("", CtrlError::message)),
    });
}

/// The queue whose connection it is hears what the connection manager tells.
impl cm::Observer for QueueId {
    fn heard(&self, event: cm::Event) {
        rnvmf_cm_event(|| bindings::rnvmf_trace_cm_event {
            ctrl_id: self.ctrl_id,
            qid: self.qid,
            event: event.number,
            status: event.status,
        });
    }
}

/// The name of the disk that a command is of, or nothing.
fn disk<const BYTES: usize>(origin: QueueId, command: &Command, of_disk: bool) -> [u8; BYTES] {
    match (of_disk, u32::try_from(origin.ctrl_id), command.namespace()) {
        (true, Ok(controller), Some(nsid)) => text(disk_name(controller, nsid).as_str()),
        _ => [0; BYTES],
    }
}

/// A text as C has it, cut so that there is a NUL at its end.
fn text<const BYTES: usize>(text: &str) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let room = BYTES.saturating_sub(1);
    for (to, from) in bytes.iter_mut().zip(text.bytes().take(room)) {
        *to = from;
    }
    bytes
}
