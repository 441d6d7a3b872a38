// SPDX-License-Identifier: GPL-2.0

//! The tracepoints of trace.h.
//!
//! Each queued command has one completion event: for its response, or without one if it could not
//! be posted or its queue was torn down. So events come in pairs with the same controller, queue
//! and command identifier. A disabled event builds no record; Documentation/tracing.rst has the
//! cost.

use crate::ns_disk::disk_name;
use kernel::error::Error;
use nvme_proto::{format::sqe::Command, policy::ctrl_state::CtrlState};
use nvme_rdma_transport::trace::{CommandSource, EndedCommand, QueueId, QueuedCommand};
use rrdma::rdma::cm;
use tracepoints::{
    bindings, rnvmf_cm_event, rnvmf_complete_command, rnvmf_controller_state, rnvmf_queue_command,
};

#[path = "../../../rust/rnvmf/tracepoints.rs"]
mod tracepoints;

/// The `ctrl_id` of all discoveries, which are numbered independently of controllers.
pub const DISCOVERY: i32 = -1;

/// Traces a command that is about to be sent to the target. Any context.
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

/// A change of a controller's state.
pub struct StateChange<'a> {
    /// The number of the controller, or [`DISCOVERY`].
    pub ctrl_id: i32,
    /// The state before the change.
    pub from: CtrlState,
    /// The state after the change.
    pub to: CtrlState,
    /// The error that caused the change.
    pub error: Option<Error>,
    /// The message of the error; empty if there is none.
    pub reason: &'a str,
}

/// Traces a change of a controller's state. Any context.
pub fn controller_state(change: StateChange<'_>) {
    rnvmf_controller_state(|| bindings::rnvmf_trace_state {
        ctrl_id: change.ctrl_id,
        error: change.error.map_or(0, Error::to_errno),
        from: text(change.from.name()),
        to: text(change.to.name()),
        reason: text(change.reason),
    });
}

/// Traces an event of a queue's `rdma_cm_id`. Process context.
pub(crate) fn cm_event(queue: QueueId, event: cm::Event) {
    rnvmf_cm_event(|| bindings::rnvmf_trace_cm_event {
        ctrl_id: queue.ctrl_id,
        qid: queue.qid,
        event: event.number,
        status: event.status,
    });
}

/// Returns the name of the disk whose request the command belongs to, or zeroes.
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

/// Converts a text to a C string with a NUL at its end, truncated if necessary.
fn text<const BYTES: usize>(text: &str) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    copy(&mut bytes, text);
    bytes
}

/// Copies as much of a text as leaves room for a NUL. The records of all events share this function.
#[inline(never)]
fn copy(bytes: &mut [u8], text: &str) {
    let room = bytes.len().saturating_sub(1);
    for (to, from) in bytes.iter_mut().zip(text.bytes().take(room)) {
        *to = from;
    }
}
