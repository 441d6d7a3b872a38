// SPDX-License-Identifier: GPL-2.0

//! Memory of a command: its capsule, and the region of its data.

use super::queue_core::QueueContext;
use crate::{
    stats::{
        DataMode,
        PostPosition, //
    },
    trace::CommandSource,
    ulp::Entry, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_proto::format::sqe::Command;
use rrdma::{
    rdma::{
        mr::{
            Region,
            Regions, //
        },
        pd::ProtectionDomain,
        wr::{
            Chain,
            FixedMessage,
            Messages,
            Operation,
            Operations, //
        },
    },
    scatter::Scatter,
};

/// A kind of commands: block requests (`Requests`) or the host's own (`Commands`). It has the type
/// of their data, and of the queue that sends them.
pub(super) trait CommandKind: Sized + 'static {
    /// Data of a command, which the queue owns while the command is in flight: a block request with its data,
    /// or an optional buffer.
    type Payload: Scatter + Send + 'static;

    /// Source of a command, besides its payload.
    type Command: Entry<Self::Payload>;

    /// Context of the queue pair.
    type Queue: QueueContext;

    /// Source of the commands, for traces.
    const SOURCE: CommandSource;

    /// Returns the number of commands that were already sent for this payload.
    fn retries(payload: &Self::Payload) -> u64;
}

/// The ULP of a kind of commands.
pub(super) type UlpOf<K> = <<K as CommandKind>::Queue as QueueContext>::Ulp;

/// Work request that a capsule is posted with next, or was posted with last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InFlightWr {
    /// None: posting failed, and the command has ended.
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

/// Buffer of a command.
pub(super) type CommandMessage = FixedMessage<{ Command::SIZE }>;

/// Buffer of a command, and memory region of its data.
pub(super) struct Capsule<K: CommandKind> {
    pub(super) tag: u16,
    pub(super) in_flight: InFlightWr,
    pub(super) position: PostPosition,
    pub(super) command: CommandMessage,
    pub(super) region: Region<K::Payload>,
}

/// Allocates capsules of a kind together.
pub(super) struct Capsules<K: CommandKind> {
    messages: Messages,
    regions: Regions<K::Payload>,
    operations: Operations<Capsule<K>>,
}

impl<K: CommandKind> Capsules<K> {
    /// Returns an allocator for `count` capsules with regions of `pages` pages. Allocates nothing yet.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device cannot register memory.
    pub(super) fn new(pd: &Arc<ProtectionDomain>, count: u16, pages: u32) -> Result<Self> {
        let (device, count) = (pd.device().clone(), usize::from(count));
        Ok(Self {
            messages: Messages::with_capacity(device, count, Command::SIZE),
            regions: Regions::new(pd.clone(), count, pages)?,
            operations: Operations::with_capacity(count),
        })
    }

    /// Allocates the capsule of a tag. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the device's limit of pages is exceeded; `ENOMEM`.
    pub(super) fn push(&mut self, tag: u16) -> Result<Operation<Capsule<K>>> {
        let Self {
            messages,
            regions,
            operations,
        } = self;
        operations.push(try_init!(Capsule {
            tag,
            in_flight: InFlightWr::Command,
            position: PostPosition::First,
            command: FixedMessage::new(messages.alloc()?)?,
            region <- regions.alloc()?,
        }? Error))
    }
}

impl<K: CommandKind> Capsule<K> {
    /// Adds the work requests of the command to a chain. Any context.
    ///
    /// # Errors
    ///
    /// Those of the chain.
    #[inline(always)]
    pub(super) fn chain<'a>(
        &'a mut self,
        data_mode: DataMode,
        chain: &mut Chain<'a, '_, K::Queue>,
    ) -> Result {
        match data_mode {
            DataMode::Nothing => chain.send_message(&mut self.command),
            DataMode::InCapsule => chain.send_message_with(&mut self.command, &self.region),
            DataMode::ByKey => chain.register_and_send(&self.region, &mut self.command),
        }
    }
}

/// Returns the command in a capsule's buffer, for traces. No work request may own the capsule.
pub(super) fn sent_command(buffer: &mut CommandMessage) -> Command {
    let sent = Command::from_bytes(*buffer.read());
    buffer.give_back();
    sent
}
