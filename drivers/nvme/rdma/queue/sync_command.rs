// SPDX-License-Identifier: GPL-2.0

//! Commands that the ULP's thread sends and waits for: Connect, properties, Identify, Keep Alive.
//!
//! The thread sends one at a time. They have a tag of their own, so they can be sent however busy
//! the queue is.

use super::{
    capsule::CommandKind,
    queue_core::{
        QueueContext,
        QueueCore, //
    },
    slot::{
        Slot,
        SlotLookup, //
    },
};
use crate::{
    conn_error::ConnError,
    ulp::{
        DataCommand,
        Interruption,
        Ulp,
        Waiter, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    },
};
use nvme_proto::format::{
    cid::CommandId,
    cqe::Completion,
    sqe::Command, //
};
use rrdma::{
    new_irq_lock,
    rdma::{
        dma::Direction,
        pd::ProtectionDomain,
        qp::QueuePair, //
    },
    scatter::Buffer,
    sync::{
        Deadline,
        IrqLock,
        Msecs, //
    },
};

/// Largest number of pages of a command's data, which may straddle two.
const PAGES: u32 = 2;

/// Interval at which a polled queue is polled for the response.
const POLL: Delta = Delta::from_micros(200);

/// Data of a command that a thread waits for.
pub struct CommandData {
    /// Data to send, or buffer for the data to receive.
    pub buffer: Buffer,
    /// Direction of the data.
    pub direction: Direction,
}

/// Reason why a command has no response.
#[derive(Clone, Copy)]
pub enum CommandError {
    /// The command could not be sent.
    Code(Error),
    /// The response did not arrive within this time.
    TimedOut(Msecs),
    /// The connection is lost.
    ConnError(ConnError),
    /// The controller is being removed, or has no connection.
    Cancelled,
    /// As `Cancelled`, but the command was sent, so the target may execute it.
    Unanswered,
}

impl From<Interruption> for CommandError {
    fn from(interruption: Interruption) -> Self {
        match interruption {
            Interruption::Cancelled => Self::Cancelled,
            Interruption::ConnError(error) => Self::ConnError(error),
        }
    }
}

/// A response, with the data of the command.
pub struct Reply {
    /// The completion queue entry.
    pub completion: Completion,
    /// Data that was sent or received, if there is any.
    pub data: Option<Buffer>,
}

/// A command that the ULP's thread waits for.
pub(super) struct SyncCommand {
    pub(super) command: Command,
    pub(super) data: Option<CommandData>,
    /// Longest time to wait.
    pub(super) limit: Msecs,
}

/// A command that was sent.
pub struct SentCommand {
    id: CommandId,
    /// When the thread stops waiting for the response.
    deadline: Deadline,
}

/// Slot of these commands.
#[pin_data]
pub(super) struct SyncSlot<K: CommandKind> {
    pub(super) slot: Slot<K>,
    #[pin]
    reply: IrqLock<Option<Reply>>,
}

impl CommandData {
    /// Returns a command with its data, for a slot.
    ///
    /// # Errors
    ///
    /// `EINVAL` for more data than a command can have.
    pub(super) fn attach(
        data: Option<Self>,
        command: Command,
    ) -> Result<(DataCommand, Option<Buffer>)> {
        let length = data.as_ref().map_or(0, |data| data.buffer.bytes().len());
        let command = DataCommand {
            command,
            length: u32::try_from(length).map_err(|_| EINVAL)?,
            // Without data, either.
            direction: data
                .as_ref()
                .map_or(Direction::ToDevice, |data| data.direction),
        };
        Ok((command, data.map(|data| data.buffer)))
    }
}

impl<K: SlotLookup<Payload = Option<Buffer>, Command = DataCommand>> SyncSlot<K> {
    /// Allocates the slot. May sleep.
    pub(super) fn new(tag: u16, pd: &Arc<ProtectionDomain>) -> impl PinInit<Self, Error> + '_ {
        try_pin_init!(Self {
            slot: Slot::single(tag, pd, PAGES)?,
            reply <- new_irq_lock!(None, "nvme_rdma_transport::SyncSlot"),
        }? Error)
    }

    /// Stores the response for the thread, which the caller wakes. Any context.
    pub(super) fn deliver(&self, reply: Reply) {
        *self.reply.lock() = Some(reply);
    }

    /// Sends a command, and waits for its response until the waiter is interrupted. Sleeps.
    ///
    /// After an error, the command may still be in flight. The next call waits for its end.
    pub(super) fn execute(
        &self,
        queue: &QueuePair<K::Queue>,
        waiter: &dyn Waiter,
        sync: SyncCommand,
    ) -> Result<Reply, CommandError> {
        let core = queue.context().core();
        let deadline = Deadline::after(sync.limit);
        let attached = CommandData::attach(sync.data, sync.command);
        let (command, mut payload) = attached.map_err(CommandError::Code)?;
        let id = loop {
            match self.slot.submit(queue, command, payload) {
                Ok(id) => break id,
                Err(unsent) if unsent.error == EBUSY => payload = unsent.payload.flatten(),
                Err(unsent) => return Err(CommandError::Code(unsent.error)),
            }
            pause(core, waiter, deadline)?;
        };
        self.finish(core, waiter, SentCommand { id, deadline })
    }

    /// Sends a command; [`finish`](Self::finish) waits for its response. Any context.
    ///
    /// # Errors
    ///
    /// [`CommandError::Code`], with `EBUSY` if an earlier command is in flight.
    pub(super) fn start(
        &self,
        queue: &QueuePair<K::Queue>,
        sync: SyncCommand,
    ) -> Result<SentCommand, CommandError> {
        let attached = CommandData::attach(sync.data, sync.command);
        let (command, payload) = attached.map_err(CommandError::Code)?;
        let sent = self.slot.submit(queue, command, payload);
        let id = sent.map_err(|unsent| CommandError::Code(unsent.error))?;
        Ok(SentCommand {
            id,
            deadline: Deadline::after(sync.limit),
        })
    }

    /// Waits for the response to a command until the waiter is interrupted. Sleeps.
    pub(super) fn finish(
        &self,
        core: &QueueCore<<K::Queue as QueueContext>::Ulp>,
        waiter: &dyn Waiter,
        sent: SentCommand,
    ) -> Result<Reply, CommandError> {
        let SentCommand { id, deadline } = sent;
        loop {
            let reply = self.reply.lock().take();
            // A reply to an earlier command may arrive after the thread stopped waiting for it.
            if let Some(reply) = reply.filter(|reply| reply.completion.command_id() == id) {
                return Ok(reply);
            }
            pause(core, waiter, deadline)?;
        }
    }
}

/// Waits until a response may have arrived. Fails at the deadline, or if the waiter is interrupted.
fn pause<U: Ulp>(
    core: &QueueCore<U>,
    waiter: &dyn Waiter,
    deadline: Deadline,
) -> Result<(), CommandError> {
    if let Some(interruption) = waiter.interruption() {
        return Err(interruption.into());
    }
    let left = deadline.left();
    if left == Msecs::new(0) {
        return Err(CommandError::TimedOut(deadline.span()));
    }
    if !core.is_polled() {
        waiter.wait(left);
    } else if core.poll() == 0 {
        fsleep(POLL);
    }
    Ok(())
}
