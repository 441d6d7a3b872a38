// SPDX-License-Identifier: GPL-2.0

//! What an upper-layer protocol (ULP) implements.

use super::{
    conn_error::{
        ConnError,
        Wake, //
    },
    stats::QueueStats,
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
use nvme_proto::format::{cid::Tag, cqe::Completion};
use rrdma::{
    rdma::cm,
    scatter::Scatter,
    sync::Msecs, //
};

/// A user of the transport: a type that stands for it, of which there need not be a value.
///
/// Methods on the path of an I/O are generic or small, and are inlined into the queue's code.
pub trait Ulp: Sized + Send + Sync + 'static {
    /// The data of a request.
    ///
    /// A queue owns it from [`Queue::submit`](super::queue::Queue::submit) until the target cannot
    /// reach it any more. Then it gives the payload back, once: to [`complete`](Self::complete),
    /// to [`reject`](Self::reject), or to the closure of [`Queue::end`](super::queue::Queue::end).
    type Payload: Scatter + Send + 'static;

    /// A request that was not sent, in the form in which the block layer takes it back.
    type Rejected;

    /// What the ULP keeps with a queue.
    type QueueData: Send + Sync;

    /// What wakes the context of the ULP that ends connections.
    type Wake: Wake;

    /// The name of the ULP's objects in `rdma resource show`.
    const OWNER: &'static CStr;

    /// Ends a request whose response arrived, or has it sent again. Softirq; on a polled queue
    /// any context.
    fn complete(
        queue: &Self::QueueData,
        stats: &QueueStats,
        completion: Completion,
        payload: Self::Payload,
    );

    /// Rejects a request that could not be sent because of `error`. Any context.
    ///
    /// `EBUSY`: the tag is in use. `ENOMEM`: no memory, or the send queue is full. `EIO`: the data
    /// could not be mapped. `ENOTCONN`: the queue is ending. `EINVAL`: the request has no slot, or
    /// data of which no region can be made.
    fn reject(error: Error, payload: Self::Payload) -> Self::Rejected;

    /// Gives a request back to the block layer that it handed over before. Any context.
    fn finish(rejected: Self::Rejected);

    /// Returns how many commands were sent for the request before.
    fn retries(payload: &Self::Payload) -> u64;

    /// Traces a command that is about to be posted. Any context.
    fn trace_queued(record: impl FnOnce() -> QueuedCommand);

    /// Traces the end of a command. Any context.
    fn trace_ended(record: impl FnOnce() -> EndedCommand);

    /// Traces an event of a queue's connection manager id. Process context, under the locks of
    /// the connection manager.
    fn trace_cm_event(queue: QueueId, event: cm::Event);

    /// Logs a command that never ends: the device kept its memory beyond the drain of the queue.
    /// Process context.
    fn log_kept_by_device(queue: QueueId, tag: Tag);
}

/// Why the ULP does not want to wait for a response any longer.
#[derive(Clone, Copy)]
pub enum Interruption {
    /// The controller is to be removed.
    Cancelled,
    /// A connection is lost.
    ConnError(ConnError),
}

/// How a thread of the ULP waits for responses.
pub trait Waiter {
    /// Returns why the thread should stop waiting. May sleep.
    fn interruption(&self) -> Option<Interruption>;

    /// Sleeps until [`Ulp::Wake`] wakes the thread, or `limit` is over.
    fn wait(&self, limit: Msecs);
}
