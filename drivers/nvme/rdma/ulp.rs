// SPDX-License-Identifier: GPL-2.0

//! Traits that an upper-layer protocol (ULP) implements.

use super::{
    conn_error::{
        ConnError,
        Wake, //
    },
    stats::Counters,
    trace::{
        EndedCommand,
        QueueId,
        QueuedCommand, //
    },
};
use kernel::{
    prelude::*,
    str::CStr, //
};
use nvme_proto::format::{
    cid::{
        CommandId,
        Tag, //
    },
    cqe::Completion,
    sqe::{
        Command,
        IoOp, //
    },
};
use rrdma::{
    rdma::cm,
    scatter::{
        Direction,
        Scatter, //
    },
    sync::Msecs, //
};

/// Source of a command with a payload `P`. The methods must not sleep.
///
/// The methods are called only where their results are needed: then fewer values are kept while a
/// command is prepared.
pub trait Entry<P> {
    /// Returns the kind of the command on a queue, for counters.
    fn io_op(&self, qid: u16) -> IoOp;

    /// Returns the direction of the data.
    fn direction(&self, payload: &P) -> Direction;

    /// Returns the size of the data in bytes; 0 if there is none.
    fn length(&self, payload: &P) -> u32;

    /// Writes the command with the identifier `id`, without its SGL, to the buffer that is sent.
    fn write(&self, payload: &P, id: CommandId, entry: &mut [u8; Command::SIZE]);
}

/// A command, with the direction and the size of its data.
#[derive(Clone, Copy)]
pub struct DataCommand {
    /// The command. The queue sets its identifier and SGL.
    pub command: Command,
    /// Direction of the data.
    pub direction: Direction,
    /// Size of the data in bytes; 0 if there is none.
    pub length: u32,
}

impl<P> Entry<P> for DataCommand {
    #[inline]
    fn io_op(&self, qid: u16) -> IoOp {
        self.command.io_op(qid)
    }

    #[inline(always)]
    fn direction(&self, _payload: &P) -> Direction {
        self.direction
    }

    #[inline(always)]
    fn length(&self, _payload: &P) -> u32 {
        self.length
    }

    #[inline(always)]
    fn write(&self, _payload: &P, id: CommandId, entry: &mut [u8; Command::SIZE]) {
        let mut command = self.command;
        command.set_command_id(id);
        command.write_to(entry);
    }
}

/// An upper-layer protocol. Only the type is used; there need not be a value.
///
/// Methods on the I/O path are generic or small, and are inlined into the queue's code.
pub trait Ulp: Sized + Send + Sync + 'static {
    /// A request, with its data if it has any.
    ///
    /// A queue owns the payload from [`Queue::submit`](super::queue::Queue::submit) until the
    /// target can no longer access it. Then it returns the payload exactly once: to
    /// [`complete`](Self::complete), to [`reject`](Self::reject), to the closure of
    /// [`Queue::end`](super::queue::Queue::end), or to [`end_kept`](Self::end_kept).
    type Payload: Scatter + Send + 'static;

    /// Source of the command of a request, besides the payload.
    type Command: Entry<Self::Payload>;

    /// Counters of a queue; `()` if nobody reads them.
    type Stats: Counters;

    /// A request that was not sent, in the form that the block layer takes back.
    type Rejected;

    /// Data that the ULP keeps with a queue. Dropped with the queue pair, where that may sleep.
    type QueueData: Send + Sync;

    /// Wakes the context of the ULP that ends connections.
    type Wake: Wake;

    /// Name of the ULP's objects in `rdma resource show`.
    const OWNER: &'static CStr;

    /// Completes a request whose response arrived, or requeues it.
    ///
    /// Softirq context; for a polled queue, any context.
    fn complete(
        queue: &Self::QueueData,
        stats: &Self::Stats,
        completion: Completion,
        payload: Self::Payload,
    );

    /// Handles the response to the Asynchronous Event Request. A ULP with a thread
    /// [takes](super::queue::Queue::take_event) it there instead. Softirq context.
    fn async_event(_queue: &Self::QueueData, _completion: &Completion) {}

    /// Rejects a request that could not be sent. Any context.
    ///
    /// `error` is one of:
    ///
    /// - `EBUSY`: the tag is in use.
    /// - `ENOMEM`, `EAGAIN`: there is no memory, or the send queue is full.
    /// - `EIO`: the data could not be mapped.
    /// - `ENOTCONN`: the queue is ending, for example because the device refused the command.
    /// - `EINVAL`: the request has no slot, or no region can be made of its data.
    fn reject(error: Error, payload: Self::Payload) -> Self::Rejected;

    /// Returns a rejected request to the block layer if its submission has already returned. Any
    /// context.
    fn finish(queue: &Self::QueueData, rejected: Self::Rejected);

    /// Returns the number of commands that were already sent for the request. Any context.
    fn retries(payload: &Self::Payload) -> u64;

    /// Traces a command that is about to be posted. Any context.
    fn trace_queued(record: impl FnOnce() -> QueuedCommand);

    /// Traces the end of a command. Any context.
    fn trace_ended(record: impl FnOnce() -> EndedCommand);

    /// Traces an event of a queue's CM ID. Process context, under locks of the connection manager.
    fn trace_cm_event(queue: QueueId, event: cm::Event);

    /// Logs a command that does not complete, because the device did not return its memory when the
    /// queue was drained. Process context.
    fn log_kept_by_device(queue: QueueId, tag: Tag);

    /// Ends a request that the device [kept](Self::log_kept_by_device), and has returned now. The target has no
    /// access to its data any more, but may still execute the command. Process context; may sleep.
    fn end_kept(queue: &Self::QueueData, payload: Self::Payload);
}

/// Reason why the ULP stops waiting for a response.
#[derive(Clone, Copy)]
pub enum Interruption {
    /// The controller is being removed.
    Cancelled,
    /// A connection is lost.
    ConnError(ConnError),
}

/// Lets a thread of the ULP wait for responses.
pub trait Waiter {
    /// Returns why the thread must stop waiting, if it must. May sleep.
    fn interruption(&self) -> Option<Interruption>;

    /// Sleeps until [`Ulp::Wake`] wakes the thread, but at most for `limit`.
    fn wait(&self, limit: Msecs);
}
