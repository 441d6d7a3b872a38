// SPDX-License-Identifier: GPL-2.0

//! Commands of our own: connecting, properties, identifying, keep-alive.
//!
//! The controller's thread sends them one at a time and waits. They have a tag
//! of their own, so that they pass however busy the queue is.

use super::{
    capsule::Payload,
    slot::Slot,
    Queue, //
    TagKind,
};
use crate::{
    controller::Controller, //
};
use kernel::{
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    },
};
use nvme_proto::format::{cqe, sqe::Command};
use nvme_rdma_transport::{conn_error::ConnError, trace::CommandSource};
use rrdma::{
    rdma::{
        dma::Direction,
        qp::QueuePair, //
    },
    scatter::Buffer,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// Pages that the data of such a command can have; it may straddle two.
pub(super) const PAGES: u32 = 2;

/// How often a queue is polled for the response, if it has to be.
const POLL: Delta = Delta::from_micros(200);

/// Why a command got no response.
#[derive(Clone, Copy)]
pub(crate) enum CommandError {
    /// It could not be sent.
    Code(Error),
    /// It was not answered within this time.
    TimedOut(Msecs),
    /// Something else went wrong meanwhile.
    ConnError(ConnError),
    /// The controller is to be removed.
    Cancelled,
    /// Likewise, or its connection ended; and it was sent, so that the target may be at it yet.
    Unanswered,
}

/// A response, and the data that was sent or came with it.
pub(crate) struct Reply {
    pub(crate) completion: cqe::Completion,
    pub(crate) data: Option<Buffer>,
}

impl Payload for Buffer {
    const SOURCE: CommandSource = CommandSource::Transport;

    fn retries(&self) -> u64 {
        0
    }

    fn slot(queue: &Queue, tag: u16) -> Option<&Slot<Self>> {
        queue.owner(tag).map(TagKind::slot)
    }

    fn deliver(queue: &Queue, completion: cqe::Completion, payload: Option<Self>) {
        let reply = Reply {
            completion,
            data: payload,
        };
        match queue.owner(completion.command_id().tag().get()) {
            Some(TagKind::AdminSlot(admin_slot)) => admin_slot.user_channel.deliver(reply),
            Some(TagKind::Aer(_)) => queue.aer_done(completion),
            Some(TagKind::Thread(_)) | None => {
                *queue.reply.lock() = Some(reply);
                queue.notifier.wake();
            }
        }
    }
}

impl Queue {
    /// Sends `command` and waits for its response, at most for `limit`, and while
    /// the controller's thread has nothing more urgent to do. Sleeps.
    ///
    /// After an error the command may still be in flight. The next one waits for its end.
    pub(crate) fn execute(
        queue: &QueuePair<Self>,
        controller: &Controller,
        command: Command,
        data: Option<(Buffer, Direction)>,
        limit: Msecs,
    ) -> Result<Reply, CommandError> {
        let this = queue.context();
        let length = data.as_ref().map_or(0, |(buffer, _)| buffer.bytes().len());
        let length = u32::try_from(length).map_err(|_| CommandError::Code(EINVAL))?;
        let deadline = Deadline::after(limit);
        let (mut data, direction) = data.unzip();
        let id = loop {
            let payload = data.zip(direction);
            match this.command.submit(queue, command, payload, length) {
                Ok(id) => break id,
                Err((EBUSY, back)) => data = back,
                Err((error, _)) => return Err(CommandError::Code(error)),
            }
            this.pause(controller, deadline)?;
        };
        loop {
            let reply = this.reply.lock().take();
            // It may be of one before, which ended before it was told.
            if let Some(reply) = reply.filter(|reply| reply.completion.command_id() == id) {
                return Ok(reply);
            }
            this.pause(controller, deadline)?;
        }
    }

    /// Waits until there may be a response, unless there is no time left, or something more urgent.
    fn pause(&self, controller: &Controller, deadline: Deadline) -> Result<(), CommandError> {
        if let Some(error) = controller.interruption() {
            return Err(error);
        }
        let left = deadline.left();
        if left == Msecs::new(0) {
            return Err(CommandError::TimedOut(deadline.span()));
        }
        match self.is_polled() {
            true if self.poll() > 0 => {}
            true => fsleep(POLL),
            false => controller.wait(left),
        }
        Ok(())
    }
}
