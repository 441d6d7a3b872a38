// SPDX-License-Identifier: GPL-2.0

//! The memory of a command: what is sent, and the data that it is about.

use super::{
    slot::Slot,
    Queue, //
};
use kernel::{
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
};
use nvme_proto::format::{cqe, sqe::Command};
use nvme_rdma_transport::{
    stats::{DataMode, PostPosition},
    trace::CommandSource,
};
use rrdma::{
    rdma::{
        cq::Completion,
        dma::{
            Direction,
            DmaBuffer, //
        },
        mr::Region,
        pd::ProtectionDomain,
        qp::QueuePair,
        wr::{
            Chain,
            Complete,
            Operation,
            SgeThen,
            Unposted, //
        },
    },
    scatter::Scatter,
};

/// What a command's data is, and where it goes when the command has ended.
pub(crate) trait Payload: Scatter + Send + Sized + 'static {
    /// Where its command comes from.
    const SOURCE: CommandSource;

    /// How often its command was sent before.
    fn retries(&self) -> u64;

    /// The slot of `tag`, which is that of a capsule of this queue.
    fn slot(queue: &Queue, tag: u16) -> Option<&Slot<Self>>;

    /// The command has ended with `completion`; `payload` is its data, out of the
    /// target's reach. Softirq.
    fn deliver(queue: &Queue, completion: cqe::Completion, payload: Option<Self>);
}

/// What of a capsule is posted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InFlightWr {
    /// The command could not be, and has ended.
    Nothing,
    Command,
    Invalidation,
}

impl InFlightWr {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Command => "send",
            Self::Invalidation => "invalidation",
        }
    }
}

/// A command with its data.
pub(super) struct Capsule<D: Payload> {
    pub(super) tag: u16,
    pub(super) posted: InFlightWr,
    pub(super) position: PostPosition,
    pub(super) command: DmaBuffer,
    pub(super) region: Region<D>,
}

impl<D: Payload> Capsule<D> {
    pub(super) fn new(tag: u16, pd: &Arc<ProtectionDomain>, pages: u32) -> Result<Self> {
        let device = pd.device().clone();
        Ok(Self {
            tag,
            posted: InFlightWr::Command,
            position: PostPosition::First,
            command: DmaBuffer::new(device, Command::SIZE, Direction::ToDevice)?,
            region: Region::new(pd.clone(), pages)?,
        })
    }

    /// Makes the requests that send it.
    #[inline(always)]
    pub(super) fn chain<'a>(
        &'a self,
        data_mode: DataMode,
        chain: &mut Chain<'a, '_, Queue>,
    ) -> Result {
        match data_mode {
            DataMode::Nothing => chain.send([self.command.sge()]),
            DataMode::InCapsule => chain.send(SgeThen(self.command.sge(), self.region.entries())),
            DataMode::ByKey => {
                chain.register(&self.region)?;
                chain.send([self.command.sge()])
            }
        }
    }
}

/// Posts a capsule by itself, within a read-side critical section of RCU. Any context.
///
/// # Errors
///
/// As [`QueuePair::post_send`].
#[inline(never)]
pub(super) fn post<D: Payload>(
    queue: &QueuePair<Queue>,
    grace: &rcu::Guard,
    capsule: Operation<Capsule<D>>,
    data_mode: DataMode,
) -> Result<(), Unposted<Capsule<D>>> {
    queue.post_send_within(grace, capsule, |capsule, chain| {
        capsule.chain(data_mode, chain)
    })
}

/// A capsule that no slot is for, which cannot be.
#[cold]
#[inline(never)]
fn misplaced<D: Payload>(_: Operation<Capsule<D>>) {}

impl<D: Payload> Complete<Queue> for Capsule<D> {
    #[inline]
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<Queue>,
        completion: &Completion<'_>,
    ) {
        let context = queue.context();
        context.stats.completed(completion);
        // What is not so with each command is called last: nothing is kept for after it.
        let Some(slot) = D::slot(context, operation.tag) else {
            return misplaced(operation);
        };
        match (completion.result(), operation.posted) {
            (Ok(()), InFlightWr::Command | InFlightWr::Nothing) => slot.sent(queue, operation),
            (Ok(()), InFlightWr::Invalidation) => {
                operation.region.invalidated(completion);
                slot.invalidated(queue, operation);
            }
            (Err(failure), _) => slot.failed(queue, operation, failure),
        }
    }
}
