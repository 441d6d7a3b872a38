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
use nvme_proto::{format::sqe::Command, policy::ctrl_state::CtrlState};
use nvme_rdma_transport::trace::{CommandSource, EndedCommand, QueueId, QueuedCommand};
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

/// The `ctrl_id` of a discovery, whose numbers are not those of controllers.
pub(crate) const DISCOVERY: i32 = -1;

/// Traces a command that is about to go to the target. Any context.
#[inline(always)]
pub(crate) fn queue_command(queued: impl FnOnce() -> QueuedCommand) {
    rnvmf_queue_command(|| {
        let QueuedCommand {
            queue,
            command,
            bytes,
            source,
        } = queued();
        let range = command.range(queue.qid);
        bindings::rnvmf_trace_command {
            ctrl_id: queue.ctrl_id,
            qid: queue.qid,
            cid: command.command_id().get(),
            opcode: command.opcode(),
            flags: command.flags(),
            fctype: command.fabrics_type().unwrap_or(0),
            nsid: command.namespace().unwrap_or(0),
            slba: range.map_or(0, |range| range.start),
            blocks: range.map_or(0, |range| range.count.get()),
            bytes,
            cdw10: command.dwords_10_15(),
            disk: disk(queue, &command, source),
        }
    });
}

/// Traces the end of a command. Any context.
#[inline(always)]
pub(crate) fn complete_command(ended: impl FnOnce() -> EndedCommand) {
    rnvmf_complete_command(|| {
        let EndedCommand {
            queue,
            command,
            source,
            retries,
            end,
        } = ended();
        bindings::rnvmf_trace_completion {
            ctrl_id: queue.ctrl_id,
            qid: queue.qid,
            cid: command.command_id().get(),
            opcode: command.opcode(),
            retries,
            status: end.status.get(),
            result: end.result,
            disk: disk(queue, &command, source),
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

/// Traces an event of a queue's connection manager id. Process context.
pub(crate) fn cm_event(queue: QueueId, event: cm::Event) {
    rnvmf_cm_event(|| bindings::rnvmf_trace_cm_event {
        ctrl_id: queue.ctrl_id,
        qid: queue.qid,
        event: event.number,
        status: event.status,
    });
}

/// The name of the disk that a command is of, or nothing.
fn disk<const BYTES: usize>(
    queue: QueueId,
    command: &Command,
    source: CommandSource,
) -> [u8; BYTES] {
    match (source, u32::try_from(queue.ctrl_id), command.namespace()) {
        (CommandSource::Request, Ok(controller), Some(nsid)) => {
            text(disk_name(controller, nsid).as_str())
        }
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
