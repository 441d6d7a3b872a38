// SPDX-License-Identifier: GPL-2.0

//! Commands on the admin queue of others than the controller's thread.
//!
//! That must not wait for them: some take long, and it has a connection to keep alive meanwhile.
//! So there are desks with a slot each: one for users, who take turns, and one for the errands of
//! the controller, of which there is one at a time. Who has a command sends it himself, and
//! waits at the desk for the response or the end of the connection, whichever comes: if the
//! response does not come in time, he raises the alarm, and the connection ends.

use super::{
    slot::Slot,
    CommandError,
    Queue,
    Reply, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            AtomicFlag, //
        },
        rcu,
        Arc, //
    },
    types::ScopeGuard,
};
use nvme_proto::format::sqe::Command;
use nvme_rdma_transport::conn_error::ConnError;
use rrdma::{
    new_irq_lock,
    rdma::{
        dma::Direction,
        pd::ProtectionDomain,
        qp::QueuePair, //
    },
    scatter::Buffer,
    sync::{
        IrqLock,
        Msecs,
        RcuSlot,
        TimedCompletion, //
    },
};

/// The most data of such a command, in bytes.
pub(crate) const MAX_DATA: usize = 64 << 10;

/// Pages that the data of such a command can have; it may straddle one more.
const PAGES: u32 = (MAX_DATA / 4096) as u32 + 1;

/// The place of a desk in the admin queue.
pub(super) struct AdminSlot {
    tag: u16,
    pub(super) slot: Slot<Buffer>,
    pub(super) user_channel: Arc<AdminChannel>,
}

impl AdminSlot {
    /// Allocates what commands need. May sleep.
    pub(super) fn new(
        tag: u16,
        pd: &Arc<ProtectionDomain>,
        user_channel: Arc<AdminChannel>,
    ) -> Result<Self> {
        Ok(Self {
            tag,
            slot: Slot::new(tag, pd, PAGES)?,
            user_channel,
        })
    }
}

/// Where those take turns who have commands for a controller.
#[pin_data]
pub(crate) struct AdminChannel {
    /// Completed once for who comes next.
    #[pin]
    guard: TimedCompletion,
    /// There is a response, or there will be none.
    #[pin]
    done: TimedCompletion,
    #[pin]
    reply: IrqLock<Option<Reply>>,
    /// The admin queue, while the controller is connected.
    queue: RcuSlot<QueuePair<Queue>>,
    closed: AtomicFlag,
}

impl AdminChannel {
    /// An open desk. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let user_channel = Arc::pin_init(
            pin_init!(Self {
                guard <- TimedCompletion::new(),
                done <- TimedCompletion::new(),
                reply <- new_irq_lock!(None, "rnvmf::AdminChannel"),
                queue: RcuSlot::new(),
                closed: AtomicFlag::new(false),
            }),
            GFP_KERNEL,
        )?;
        user_channel.guard.complete();
        Ok(user_channel)
    }

    /// Lets them send commands on `queue`. Sleeps.
    pub(crate) fn open(&self, queue: Arc<QueuePair<Queue>>) {
        drop(self.queue.publish(queue));
    }

    /// Keeps them from sending commands until the next [`open`](Self::open). Who waits for a
    /// response goes on waiting. Sleeps.
    pub(crate) fn pause(&self) {
        drop(self.queue.take());
    }

    /// Whether commands can be sent. Any context.
    pub(crate) fn is_open(&self) -> bool {
        let guard = rcu::read_lock();
        self.queue.read(&guard).is_some() && !self.closed.load(ordering::Relaxed)
    }

    /// Sends them away, for good. What they sent may be in flight yet. Any context.
    pub(crate) fn close(&self) {
        self.closed.store(true, ordering::Relaxed);
        self.done.complete_all();
    }

    /// The response has arrived.
    pub(super) fn deliver(&self, reply: Reply) {
        *self.reply.lock() = Some(reply);
        self.done.complete();
    }

    /// The queue is gone, and there will be no response.
    pub(super) fn lost(&self) {
        self.done.complete();
    }

    /// Sends `command` when it is the caller's turn, and waits for its response; for either at
    /// most for `limit`. Sleeps.
    ///
    /// # Errors
    ///
    /// - [`CommandError::TimedOut`] if it did not become the caller's turn.
    /// - [`CommandError::Cancelled`] if there is no connection.
    /// - [`CommandError::Unanswered`] if that ended meanwhile, or the desk was closed.
    /// - [`CommandError::Code`] if the command could not be sent.
    pub(crate) fn execute(
        &self,
        command: Command,
        data: Option<(Buffer, Direction)>,
        limit: Msecs,
    ) -> Result<Reply, CommandError> {
        if !self.guard.wait_timeout(limit) {
            return Err(CommandError::TimedOut(limit));
        }
        let _turn = ScopeGuard::new(|| self.guard.complete());
        self.submit(command, data)?;
        if !self.done.wait_timeout(limit) {
            self.report();
            self.done.wait();
        }
        self.reply.lock().take().ok_or(CommandError::Unanswered)
    }

    fn submit(
        &self,
        command: Command,
        data: Option<(Buffer, Direction)>,
    ) -> Result<(), CommandError> {
        let length = data.as_ref().map_or(0, |(buffer, _)| buffer.bytes().len());
        let length = u32::try_from(length).map_err(|_| CommandError::Code(EINVAL))?;
        let guard = rcu::read_lock();
        let queue = self.queue.read(&guard).ok_or(CommandError::Cancelled)?;
        // With a queue in hand: the one before has said its last word, and this one waits for us.
        self.reply.lock().take();
        self.done.reinit();
        // After that: closing either is seen here, or ends the wait.
        if self.closed.load(ordering::Relaxed) {
            return Err(CommandError::Cancelled);
        }
        let admin_slot = self.admin_slot(&queue).ok_or(CommandError::Cancelled)?;
        match admin_slot.slot.submit(&queue, command, data, length) {
            Ok(_) => Ok(()),
            Err((error, _)) if error == rrdma::errno::ENOTCONN => Err(CommandError::Cancelled),
            Err((error, _)) => Err(CommandError::Code(error)),
        }
    }

    /// The place of this desk.
    fn admin_slot<'a>(&self, queue: &'a QueuePair<Queue>) -> Option<&'a AdminSlot> {
        let mut admin_slots = queue.context().admin_slots.iter();
        admin_slots.find(|admin_slot| core::ptr::eq(&*admin_slot.user_channel, self))
    }

    /// There was no response in time.
    fn report(&self) {
        let guard = rcu::read_lock();
        // Without a queue the teardown is under way already.
        let Some(queue) = self.queue.read(&guard) else {
            return;
        };
        if let Some(admin_slot) = self.admin_slot(&queue) {
            queue.context().report_error(ConnError::Timeout {
                qid: queue.context().qid(),
                tag: admin_slot.tag.into(),
            });
        }
    }
}
