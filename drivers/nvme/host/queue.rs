// SPDX-License-Identifier: GPL-2.0

//! One queue: the context of a queue pair, with its commands in flight.
//!
//! Each tag has a [`Slot`], which has the tag's
//! [`Capsule`](capsule::Capsule) whenever no work request does. A command goes
//! through the states of [`nvme_proto::policy::request_state`]; it ends, and the block
//! layer gets its request back, only when its capsule was sent, its response is
//! there and its region is closed.
//!
//! Who may call a queue when it dies: `queue_rq`, which finds it under RCU and
//! no longer once it is retracted; completions, of which the drain waits for the
//! last; connection events, which end with the id. Then
//! [`Queue::reclaim`] ends what was left in flight.

mod admin_channel;
mod aer;
mod capsule;
mod command;
mod response;
mod send_batch;
mod slot;

pub(crate) use admin_channel::{
    AdminChannel,
    MAX_DATA, //
};
pub(crate) use aer::Event;
pub(crate) use capsule::Payload;
pub(crate) use command::{
    CommandError,
    Reply, //
};
pub(crate) use slot::Slot;

use crate::disk::Io;
use admin_channel::AdminSlot;
use kernel::{
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
};
use nvme_proto::{
    format::{cid::CommandId, cqe, sqe::Command},
    policy::limits::transfer::InlineLimit,
};
use nvme_rdma_transport::{
    conn_error::{ConnError, ErrorNotifier},
    stats::QueueStats,
    trace::QueueId,
};
use response::Response;
use rrdma::{
    block::{
        Refused,
        Request,
        RequestPayload, //
    },
    new_irq_lock,
    rdma::{
        cm::{
            self,
            Connected, //
        },
        cq::{
            self,
            DirectQueue, //
        },
        dma::Direction,
        pd::ProtectionDomain,
        qp::{
            Fault,
            QpCap,
            QpContext,
            QueuePair,
            Rc, //
        },
        wr::Operation, //
    },
    scatter::Buffer,
    sync::{
        IrqLock,
        RelaxedBool,
        SingleWriterCounter,
        TimedCompletion, //
    },
};
use send_batch::SendBatch;

/// The desks of an admin queue: one for users, one for errands.
pub(crate) const DESKS: u32 = 2;

/// Whose a command is that is not a request of the block layer, each with a slot.
enum TagKind<'a> {
    /// The controller's thread.
    Thread(&'a Slot<Buffer>),
    /// Whoever's turn it is at a desk.
    AdminSlot(&'a AdminSlot),
    /// The controller's thread, to be told of events.
    Aer(&'a Slot<Buffer>),
}

impl<'a> TagKind<'a> {
    fn slot(self) -> &'a Slot<Buffer> {
        match self {
            Self::Thread(slot) | Self::Aer(slot) => slot,
            Self::AdminSlot(admin_slot) => &admin_slot.slot,
        }
    }
}

/// Says what becomes of a request that cannot be sent, and why; of none, if it is reclaimed.
pub(crate) type PostErrorFn = fn(Error, Option<RequestPayload<Io>>) -> Result<(), Refused<Io>>;

/// What a queue is to be.
#[derive(Clone, Copy)]
pub(crate) struct QueueConfig {
    /// Its number; 0 is the admin queue.
    pub(crate) qid: u16,
    /// Its size, counted from 1: so many responses, and one command less.
    pub(crate) size: u16,
    /// Requests of the block layer that can be in flight at once.
    pub(crate) requests: u16,
    /// Nobody is interrupted for its completions: who waits for them polls.
    pub(crate) polled: bool,
    /// Pages that one command can move.
    pub(crate) pages: u32,
    /// Data that may go in a capsule.
    pub(crate) inline: InlineLimit,
    /// The controller's delays before retries, in units of 100 ms.
    pub(crate) retry_delays: [u16; 3],
}

impl QueueConfig {
    /// Room that the queue pair must have.
    pub(crate) fn capacity(&self) -> QpCap {
        // A registration and a send for each command; an invalidation is posted
        // when both are over. One command is our own; of the admin queue's one is a guest's
        // at each desk, and one waits for events.
        let others = if self.qid == 0 { 2 + DESKS } else { 1 };
        let commands = u32::from(self.requests).saturating_add(others);
        QpCap {
            sends: commands.saturating_mul(2),
            receives: u32::from(self.size),
            send_sges: self.inline.segments().saturating_add(1),
        }
    }
}

/// The context of a queue pair.
#[pin_data]
pub(crate) struct Queue {
    qid: u16,
    origin: QueueId,
    inline: InlineLimit,
    retry_delays: [u16; 3],
    requests: KVec<Slot<RequestPayload<Io>>>,
    #[pin]
    batch: SendBatch,
    command: Slot<Buffer>,
    admin_slots: KVec<AdminSlot>,
    aer: Option<Slot<Buffer>>,
    /// The response to a request for events.
    #[pin]
    event: IrqLock<Option<Event>>,
    polled: Option<DirectQueue>,
    #[pin]
    reply: IrqLock<Option<Reply>>,
    /// Commands that had ended when somebody last asked for traffic.
    seen: SingleWriterCounter,
    /// The connection stands.
    connected: RelaxedBool,
    /// We end the connection: what comes of that is no trouble.
    ending: RelaxedBool,
    notifier: Arc<ErrorNotifier<TimedCompletion>>,
    stats: Arc<QueueStats>,
}

impl Queue {
    /// Allocates the queue with all that its commands need; it is traced as `origin`, counts in
    /// `stats`, and its completions come by `polled`, if they do. The admin queue has `admin_channels`, at
    /// which others than the controller's thread are served, and a request for events. May sleep.
    pub(crate) fn new(
        config: QueueConfig,
        origin: QueueId,
        pd: Arc<ProtectionDomain>,
        notifier: Arc<ErrorNotifier<TimedCompletion>>,
        stats: Arc<QueueStats>,
        admin_channels: Option<[Arc<AdminChannel>; DESKS as usize]>,
        polled: Option<DirectQueue>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            qid: config.qid,
            origin,
            inline: config.inline,
            retry_delays: config.retry_delays,
            requests: Self::slots(&config, &pd)?,
            batch <- SendBatch::new(&config),
            // Its tag is the one after those of the requests.
            command: Slot::new(config.requests, &pd, command::PAGES)?,
            aer: match admin_channels {
                Some(_) => Some(Slot::new(Self::aer_tag(&config), &pd, aer::PAGES)?),
                None => None,
            },
            event <- new_irq_lock!(None, "rnvmf::Queue::event"),
            admin_slots: Self::admin_slots(&config, &pd, admin_channels)?,
            polled,
            reply <- new_irq_lock!(None, "rnvmf::Queue"),
            seen: {
                let seen = SingleWriterCounter::new();
                seen.set(stats.ended());
                seen
            },
            connected: RelaxedBool::new(false),
            ending: RelaxedBool::new(false),
            notifier,
            stats,
        }? Error)
    }

    fn slots(
        config: &QueueConfig,
        pd: &Arc<ProtectionDomain>,
    ) -> Result<KVec<Slot<RequestPayload<Io>>>> {
        let mut slots = KVec::with_capacity(config.requests.into(), GFP_KERNEL)?;
        for tag in 0..config.requests {
            slots.push(Slot::new(tag, pd, config.pages)?, GFP_KERNEL)?;
        }
        Ok(slots)
    }

    /// A place for each desk; their tags come after that of the thread's command.
    fn admin_slots(
        config: &QueueConfig,
        pd: &Arc<ProtectionDomain>,
        admin_channels: Option<[Arc<AdminChannel>; DESKS as usize]>,
    ) -> Result<KVec<AdminSlot>> {
        let mut admin_slots = KVec::new();
        let tags = config.requests.saturating_add(1)..u16::MAX;
        for (user_channel, tag) in admin_channels.into_iter().flatten().zip(tags) {
            admin_slots.push(AdminSlot::new(tag, pd, user_channel)?, GFP_KERNEL)?;
        }
        Ok(admin_slots)
    }

    /// The number of the queue.
    pub(crate) fn qid(&self) -> u16 {
        self.qid
    }

    /// What the queue has done.
    pub(crate) fn stats(&self) -> &QueueStats {
        &self.stats
    }

    /// The controller's delays before retries, in units of 100 ms.
    pub(crate) fn retry_delays(&self) -> [u16; 3] {
        self.retry_delays
    }

    /// The slot of a request's tag.
    #[inline]
    pub(crate) fn request_slot(&self, tag: u16) -> Option<&Slot<RequestPayload<Io>>> {
        self.requests.get(usize::from(tag))
    }

    /// Sends the command of a request in `slot`, as [`Slot::submit`] does, or has it wait for the
    /// `last` one of those that are sent together. What cannot be sent goes to `refuse`, and so
    /// does what waited and cannot.
    ///
    /// # Errors
    ///
    /// As there.
    #[inline(always)]
    pub(crate) fn submit(
        queue: &QueuePair<Self>,
        guard: &rcu::Guard,
        slot: &Slot<RequestPayload<Io>>,
        sent: (Command, (RequestPayload<Io>, Direction), u32),
        last: bool,
        refuse: PostErrorFn,
    ) -> Result<(), Refused<Io>> {
        let this = queue.context();
        let (command, data, length) = sent;
        let (capsule, data_mode, _) = match slot.load(this, command, Some(data), length) {
            Ok(loaded) => loaded,
            Err((error, data)) => return refuse(error, data),
        };
        let sent = match last && !this.batch.is_waiting() {
            true => capsule::post(queue, guard, capsule, data_mode),
            false => this.batch.add(queue, capsule, data_mode, last, refuse),
        };
        sent.or_else(|unposted| {
            let (error, data) = slot.unposted(queue, unposted);
            refuse(error, data)
        })
    }

    /// Sends what waits for others. What cannot be sent goes to `refuse`. Any context.
    pub(crate) fn send_waiting(queue: &QueuePair<Self>, refuse: PostErrorFn) {
        queue.context().batch.send(queue, refuse);
    }

    /// Whose the commands of a tag are that is not the block layer's.
    fn owner(&self, tag: u16) -> Option<TagKind<'_>> {
        let place = usize::from(tag).checked_sub(self.requests.len())?;
        let Some(place) = place.checked_sub(1) else {
            return Some(TagKind::Thread(&self.command));
        };
        match self.admin_slots.get(place) {
            Some(admin_slot) => Some(TagKind::AdminSlot(admin_slot)),
            None if place == self.admin_slots.len() => self.aer.as_ref().map(TagKind::Aer),
            None => None,
        }
    }

    /// Where others than the controller's thread are served.
    pub(crate) fn admin_channels(&self) -> impl Iterator<Item = &AdminChannel> {
        self.admin_slots
            .iter()
            .map(|admin_slot| &*admin_slot.user_channel)
    }

    /// Whether nobody is interrupted for its completions.
    pub(crate) fn is_polled(&self) -> bool {
        self.polled.is_some()
    }

    /// Handles completions that are there, if nobody else would, and says how many. Any
    /// context.
    pub(crate) fn poll(&self) -> u32 {
        /// Others may want to poll, too.
        const BUDGET: u32 = 64;
        self.polled.as_ref().map_or(0, |polled| polled.poll(BUDGET))
    }

    /// Whether a command ended since this was asked last. For one at a time to ask.
    pub(crate) fn take_traffic(&self) -> bool {
        let ended = self.stats.ended();
        let before = self.seen.get();
        self.seen.set(ended);
        ended != before
    }

    /// Something that only the controller's thread can deal with. Any context.
    pub(crate) fn report_error(&self, trouble: ConnError) {
        if !self.ending.get() {
            self.notifier.report(trouble);
        }
    }

    /// The connection stands: who stops the queue pair now is at fault. Any context.
    pub(crate) fn set_connected(&self) {
        self.connected.set(true);
    }

    /// Ends the connection, and gives what was in flight to `end`. Sleeps.
    pub(crate) fn end(connection: &Connected<Self>, end: impl Fn(Request<Io>)) {
        let this = connection.queue_pair().context();
        this.ending.set(true);
        connection.disconnect();
        this.reclaim(end);
    }

    /// Posts the receives for all responses. Sleeps.
    pub(crate) fn post_receives(queue: &QueuePair<Self>, size: u16) -> Result {
        for _ in 0..size {
            let response = Operation::new(Response::new(queue.device().clone())?)?;
            queue.post_receive(response).map_err(|u| u.error)?;
        }
        Ok(())
    }

    /// A response has arrived.
    #[inline]
    fn answered(
        &self,
        queue: &QueuePair<Self>,
        completion: cqe::Completion,
        invalidation: Option<cq::Invalidation>,
    ) {
        let tag = completion.command_id().tag().get();
        if let Some(slot) = self.request_slot(tag) {
            return slot.answered(queue, completion, invalidation);
        }
        match self.owner(tag) {
            Some(sender) => sender.slot().answered(queue, completion, invalidation),
            None => self.unknown(completion.command_id()),
        }
    }

    fn unknown(&self, id: CommandId) {
        self.report_error(ConnError::UnknownCommand {
            qid: self.qid,
            command_id: id.get(),
        });
    }

    /// A device broke its word: it has a command although its queue pair is drained. Nobody may have
    /// the data back, so a request of it never ends.
    #[cold]
    fn kept_by_device(&self, id: CommandId) {
        pr_err!(
            "rnvmf{}: command {} on queue {} was never given back by the RDMA device, and cannot end\n",
            self.origin.ctrl_id,
            id.tag().get(),
            self.qid
        );
    }

    /// Gives what is still in flight to `end`. The queue pair must be drained.
    /// Sleeps.
    fn reclaim(&self, end: impl Fn(Request<Io>)) {
        self.batch.abandon(self);
        for slot in &self.requests {
            if let Some(carrier) = slot.reclaim(self) {
                end(carrier.into_request());
            }
        }
        // The buffer of our own command goes with it.
        drop(self.command.reclaim(self));
        for admin_slot in &self.admin_slots {
            drop(admin_slot.slot.reclaim(self));
            admin_slot.user_channel.lost();
        }
        if let Some(aer) = &self.aer {
            drop(aer.reclaim(self));
        }
    }
}

impl QpContext for Queue {
    type QpType = Rc;

    fn failed(queue: &QueuePair<Self>, failure: cq::Failure) {
        queue.context().request_failed("registration", failure);
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        let this = queue.context();
        this.report_error(ConnError::Fault {
            qid: this.qid,
            fault,
        });
    }
}

impl cm::Endpoint for Queue {
    fn lost(queue: &QueuePair<Self>, cause: cm::Lost) {
        let this = queue.context();
        this.report_error(ConnError::Lost {
            qid: this.qid,
            cause,
        });
    }
}

impl Queue {
    /// A work request failed.
    ///
    /// That it was flushed says that its queue pair was stopped: by the connection manager, which
    /// tells why, while the connection is made; and then by the device, which need not tell.
    fn request_failed(&self, what: &'static str, failure: cq::Failure) {
        let qid = self.qid;
        match failure.is_flush() {
            true if self.connected.get() => self.report_error(ConnError::Stopped { qid }),
            true => {}
            false => self.report_error(ConnError::WorkRequest { qid, what, failure }),
        }
    }
}
