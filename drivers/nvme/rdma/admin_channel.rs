// SPDX-License-Identifier: GPL-2.0

//! Admin commands of other threads than the ULP's.
//!
//! The ULP's thread does not wait for these commands: some take long, and it must keep the
//! connection alive meanwhile. A caller of an [`AdminChannel`] waits for its turn, sends its
//! command, and waits for the response or the end of the connection, whichever comes first. If the
//! response does not arrive in time, the caller reports a timeout, which ends the connection.

use crate::{
    queue::{
        CommandData,
        CommandError,
        PendingReply,
        Queue,
        Reply, //
    },
    ulp::Ulp,
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            AtomicFlag, //
        },
        Arc, //
    },
    types::ScopeGuard,
};
use nvme_proto::format::sqe::Command;
use rrdma::{
    errno,
    rdma::qp::QueuePair,
    sync::{
        rcu_read,
        Msecs,
        RcuSlot,
        TimedCompletion, //
    },
};

/// A channel to an admin queue, for one command at a time.
#[pin_data]
pub struct AdminChannel<U: Ulp> {
    /// Completed once for the next caller.
    #[pin]
    turn: TimedCompletion,
    pending: Arc<PendingReply>,
    /// The admin queue, while the controller is connected.
    queue: RcuSlot<QueuePair<Queue<U>>>,
    closed: AtomicFlag,
}

impl<U: Ulp> AdminChannel<U> {
    /// Creates a channel without a queue. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new() -> Result<Arc<Self>> {
        let pending = PendingReply::new()?;
        let channel = Arc::pin_init(
            pin_init!(Self {
                turn <- TimedCompletion::new(),
                pending,
                queue: RcuSlot::new(),
                closed: AtomicFlag::new(false),
            }),
            GFP_KERNEL,
        )?;
        channel.turn.complete();
        Ok(channel)
    }

    /// Returns the pending reply that the admin queue is created with.
    pub(crate) fn pending(&self) -> Arc<PendingReply> {
        self.pending.clone()
    }

    /// Allows callers to send commands on `queue`, which must have been created with this channel.
    /// Sleeps.
    pub fn open(&self, queue: Arc<QueuePair<Queue<U>>>) {
        drop(self.queue.publish(queue));
    }

    /// Stops callers from sending commands until the next [`open`](Self::open). A caller that waits
    /// for a response continues to wait. Sleeps.
    pub fn pause(&self) {
        drop(self.queue.take());
    }

    /// Returns whether commands can be sent. Any context.
    pub fn is_open(&self) -> bool {
        rcu_read(|section| self.queue.read(section).is_some())
            && !self.closed.load(ordering::Relaxed)
    }

    /// Stops callers from sending commands permanently, and ends their waits. Commands may still be
    /// in flight. Any context.
    pub fn close(&self) {
        self.closed.store(true, ordering::Relaxed);
        self.pending.close();
    }

    /// Sends a command when it is the caller's turn, and waits for its response. Each of the two
    /// waits takes at most `limit`, except that a response that timed out is followed by the end of
    /// the connection, for which this waits, too. Sleeps.
    ///
    /// # Errors
    ///
    /// - [`CommandError::TimedOut`] if the caller's turn did not come.
    /// - [`CommandError::Cancelled`] if there is no connection.
    /// - [`CommandError::Unanswered`] if the connection ended before the response, or the channel
    ///   was closed.
    /// - [`CommandError::Code`] if the command could not be sent.
    pub fn execute(
        &self,
        command: Command,
        data: Option<CommandData>,
        limit: Msecs,
    ) -> Result<Reply, CommandError> {
        if !self.turn.wait_timeout(limit) {
            return Err(CommandError::TimedOut(limit));
        }
        let _turn = ScopeGuard::new(|| self.turn.complete());
        self.submit(command, data)?;
        if !self.pending.wait_timeout(limit) {
            self.timed_out();
            self.pending.wait();
        }
        self.pending.take().ok_or(CommandError::Unanswered)
    }

    fn submit(&self, command: Command, data: Option<CommandData>) -> Result<(), CommandError> {
        rcu_read(|section| {
            let queue = self.queue.read(section).ok_or(CommandError::Cancelled)?;
            // The previous queue has delivered its last reply, and this one has no command of the
            // channel yet.
            self.pending.reset();
            // Checked after the reset: `close()` is either seen here or ends the wait.
            if self.closed.load(ordering::Relaxed) {
                return Err(CommandError::Cancelled);
            }
            match Queue::submit_admin(&queue, &self.pending, command, data) {
                Ok(()) => Ok(()),
                Err(error) if error == errno::ENOTCONN => Err(CommandError::Cancelled),
                Err(error) => Err(CommandError::Code(error)),
            }
        })
    }

    /// Reports that the response did not arrive in time.
    fn timed_out(&self) {
        rcu_read(|section| {
            // Without a queue, the teardown has already begun.
            if let Some(queue) = self.queue.read(section) {
                queue.context().admin_timed_out(&self.pending);
            }
        });
    }
}
