// SPDX-License-Identifier: GPL-2.0

//! Part of a queue that its slots, batches and receives use.

use crate::{
    conn_error::{
        ConnError,
        ErrorNotifier, //
    },
    params::QueueConfig,
    stats::DataMode,
    trace::QueueId,
    ulp::Ulp,
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_proto::{
    format::cid::CommandId,
    policy::{
        limits::transfer::InlineLimit,
        request_state::ProtocolError, //
    },
};
use rrdma::{
    rdma::{
        cq::{
            DirectQueue,
            WcError, //
        },
        qp::{
            QpContext,
            QueuePair,
            Rc, //
        },
    },
    sync::RelaxedBool,
};

/// Identity, limits, counters and errors of a queue.
pub(crate) struct QueueCore<U: Ulp> {
    pub(super) id: QueueId,
    pub(super) stats: U::Stats,
    pub(super) data: U::QueueData,
    pub(super) notifier: Arc<ErrorNotifier<U::Wake>>,
    inline: InlineLimit,
    /// Polls the completion queue, if the queue is polled.
    polled: Option<DirectQueue>,
    /// The connection was established.
    connected: RelaxedBool,
    /// This host is ending the connection: errors are consequences of that.
    ending: RelaxedBool,
}

/// Parts to create a [`QueueCore`] from.
pub(crate) struct CoreParts<U: Ulp> {
    pub(crate) id: QueueId,
    pub(crate) stats: U::Stats,
    pub(crate) data: U::QueueData,
    pub(crate) notifier: Arc<ErrorNotifier<U::Wake>>,
    pub(crate) polled: Option<DirectQueue>,
}

/// Context of a queue pair that carries commands.
pub(crate) trait QueueContext: QpContext<QpType = Rc> {
    /// The ULP of the queue.
    type Ulp: Ulp;

    /// Returns the part of the queue that its slots use.
    fn core(&self) -> &QueueCore<Self::Ulp>;
}

impl<U: Ulp> QueueCore<U> {
    pub(super) fn new(parts: CoreParts<U>, config: &QueueConfig) -> Self {
        Self {
            id: parts.id,
            stats: parts.stats,
            data: parts.data,
            notifier: parts.notifier,
            inline: config.inline,
            polled: parts.polled,
            connected: RelaxedBool::new(false),
            ending: RelaxedBool::new(false),
        }
    }

    /// Returns the queue identifier.
    #[inline]
    pub(super) fn qid(&self) -> u16 {
        self.id.qid
    }

    /// Returns how data is transferred: data to the target goes in the capsule if it fits. The
    /// capsule has no data of `inline_length` 0.
    #[inline(always)]
    pub(super) fn data_mode(&self, inline_length: u32, segments: u32) -> DataMode {
        match (segments, inline_length) {
            (0, _) => DataMode::Nothing,
            (_, 0) => DataMode::ByKey,
            (_, length) if self.inline.allows(length, segments) => DataMode::InCapsule,
            _ => DataMode::ByKey,
        }
    }

    /// Returns whether the queue is polled.
    pub(super) fn is_polled(&self) -> bool {
        self.polled.is_some()
    }

    /// Handles completions of a polled queue, and returns their number. Any context.
    pub(super) fn poll(&self) -> u32 {
        /// After this number of completions, another poller gets a turn.
        const BUDGET: u32 = 64;
        self.polled.as_ref().map_or(0, |polled| polled.poll(BUDGET))
    }

    /// Marks the connection as established: from now on, a flush is an error. Any context.
    pub(super) fn set_connected(&self) {
        self.connected.set(true);
    }

    /// Marks the queue as ending: errors are no longer reported. Any context.
    pub(super) fn set_ending(&self) {
        self.ending.set(true);
    }

    /// Reports an error, unless the queue is ending. Any context.
    pub(super) fn report(&self, error: ConnError) {
        if !self.ending.get() {
            self.notifier.report(error);
        }
    }

    /// Reports a work request that failed.
    ///
    /// A flush means that the queue pair was stopped. Before the connection is established, the
    /// connection manager does that and reports the cause. Afterwards the device does it, possibly
    /// without a cause.
    pub(super) fn request_failed(&self, what: &'static str, failure: WcError) {
        let qid = self.qid();
        if !failure.is_flush() {
            self.report(ConnError::WorkRequest { qid, what, failure });
        } else if self.connected.get() {
            self.report(ConnError::Stopped { qid });
        }
    }

    /// Reports a work request that could not be posted.
    pub(super) fn post_failed(&self, what: &'static str, error: Error) {
        self.report(ConnError::Post {
            qid: self.qid(),
            what,
            error,
        });
    }
}

/// Reports a response to a command that is not in flight.
// Gets the queue pair, as all rare steps of a completion handler: the handler keeps no other address for
// them.
#[cold]
#[inline(never)]
pub(super) fn unknown_command<Q: QueueContext>(queue: &QueuePair<Q>, id: CommandId) {
    let core = queue.context().core();
    core.report(ConnError::UnknownCommand {
        qid: core.qid(),
        command_id: id.get(),
    });
}

/// Reports a response that violates the protocol. The command stays until the queue is drained.
#[cold]
#[inline(never)]
pub(super) fn protocol_error<Q: QueueContext>(
    queue: &QueuePair<Q>,
    id: CommandId,
    error: ProtocolError,
) {
    let core = queue.context().core();
    core.report(ConnError::Protocol {
        qid: core.qid(),
        command_id: id.get(),
        error,
    });
}
