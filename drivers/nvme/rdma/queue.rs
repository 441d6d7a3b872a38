// SPDX-License-Identifier: GPL-2.0

//! One queue: the context of a queue pair, with its commands in flight.
//!
//! Each tag has a `Slot`, which has the tag's `Capsule` whenever no work
//! request does. A command goes through the states of [`nvme_proto::policy::request_state`]. It
//! ends, and its ULP gets the payload back, only when its capsule was sent, its response arrived
//! and its key is void.
//!
//! Three contexts may call a queue when it ends: the ULP's submitters, which find it under RCU
//! until it is retracted; completions, of which the drain waits for the last; connection events,
//! which end with the connection manager's id. After that [`Queue::end`] ends what is in flight.
//!
//! The tags are those of the requests, then one each for the commands of the ULP's thread, of the
//! admin channels, and for the Asynchronous Event Request.

mod admin_slot;
mod aer;
mod capsule;
mod queue_core;
mod response;
mod send_batch;
mod slot;
mod slot_state;
mod sync_command;

pub use admin_slot::MAX_DATA;
pub use aer::AerCompletion;
pub use send_batch::Doorbell;
pub use sync_command::{
    CommandData,
    CommandError,
    Reply, //
};

pub(crate) use admin_slot::PendingReply;
pub(crate) use queue_core::CoreParts;

use admin_slot::AdminSlot;
use aer::AerSlot;
use capsule::{
    CommandKind,
    Transfer, //
};
use queue_core::{
    QueueContext,
    QueueCore, //
};
use response::{
    Response,
    ResponseHandler, //
};
use send_batch::SendBatch;
use slot::{
    Loaded,
    Slot,
    SlotTable, //
};
use slot_state::Unsent;
use sync_command::{
    SyncCommand,
    SyncSlot, //
};

use crate::{
    conn_error::ConnError,
    params::{
        QueueConfig,
        ADMIN_CHANNELS, //
    },
    stats::QueueStats,
    trace::CommandSource,
    ulp::{
        Ulp,
        Waiter, //
    },
};
use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
};
use nvme_proto::format::{
    cqe::Completion,
    sqe::Command, //
};
use rrdma::{
    rdma::{
        cm::{
            Connected,
            Endpoint,
            Lost, //
        },
        cq::{
            Failure,
            Invalidation, //
        },
        dma::Direction,
        pd::ProtectionDomain,
        qp::{
            Fault,
            QpContext,
            QueuePair,
            Rc, //
        },
    },
    scatter::Buffer,
    sync::{
        Msecs, //
        SingleWriterCounter,
    },
};

/// A request of the block layer for a queue.
pub struct Submission<P> {
    /// The tag of the request: below the requests that the queue was made for.
    pub tag: u32,
    /// The command; the queue sets its identifier and SGL.
    pub command: Command,
    /// The data.
    pub payload: P,
    /// Whether the data goes to the target or comes from it.
    pub direction: Direction,
    /// Bytes of the data, 0 if there is none.
    pub length: u32,
}

/// The context of a queue pair.
#[pin_data]
pub struct Queue<U: Ulp> {
    core: QueueCore<U>,
    requests: KVec<Slot<Requests<U>>>,
    #[pin]
    batch: SendBatch<Requests<U>>,
    #[pin]
    sync: SyncSlot<Commands<U>>,
    admin_slots: KVec<AdminSlot<Commands<U>>>,
    aer: Option<Pin<KBox<AerSlot<Commands<U>>>>>,
    /// Commands that had ended when the ULP last asked for traffic.
    seen: SingleWriterCounter,
}

/// What a queue is made of.
pub(crate) struct QueueParts<U: Ulp> {
    pub(crate) config: QueueConfig,
    pub(crate) core: CoreParts<U>,
    pub(crate) pd: Arc<ProtectionDomain>,
    /// Of an admin queue.
    pub(crate) admin: Option<[Arc<PendingReply>; ADMIN_CHANNELS]>,
}

/// The requests of the block layer.
struct Requests<U>(PhantomData<fn(U)>);

/// All other commands: their data is a buffer, and a thread waits for their responses.
struct Commands<U>(PhantomData<fn(U)>);

/// The slot of a tag that no request of the block layer has.
enum TagKind<'a, U: Ulp> {
    /// The commands of the ULP's thread.
    Thread(&'a SyncSlot<Commands<U>>),
    /// The commands of an admin channel.
    Admin(&'a AdminSlot<Commands<U>>),
    /// The Asynchronous Event Request.
    Aer(&'a AerSlot<Commands<U>>),
}

impl<'a, U: Ulp> TagKind<'a, U> {
    fn slot(self) -> &'a Slot<Commands<U>> {
        match self {
            Self::Thread(thread) => &thread.slot,
            Self::Admin(admin) => &admin.slot,
            Self::Aer(aer) => &aer.slot,
        }
    }
}

impl<U: Ulp> Queue<U> {
    /// Allocates the queue with all that its commands need. May sleep.
    pub(crate) fn new(parts: QueueParts<U>) -> impl PinInit<Self, Error> {
        let QueueParts {
            config,
            core,
            pd,
            admin,
        } = parts;
        try_pin_init!(Self {
            requests: Self::request_slots(&config, &pd)?,
            batch <- SendBatch::new(&config),
            sync <- SyncSlot::new(config.requests, &pd),
            aer: match config.qid {
                0 => Some(AerSlot::new(aer_tag(&config, &admin), &pd)?),
                _ => None,
            },
            admin_slots: Self::admin_slots(&config, &pd, admin)?,
            seen: {
                let seen = SingleWriterCounter::new();
                seen.set(core.stats.ended());
                seen
            },
            core: QueueCore::new(core, &config),
        }? Error)
    }

    fn request_slots(
        config: &QueueConfig,
        pd: &Arc<ProtectionDomain>,
    ) -> Result<KVec<Slot<Requests<U>>>> {
        let mut slots = KVec::with_capacity(config.requests.into(), GFP_KERNEL)?;
        for tag in 0..config.requests {
            slots.push(Slot::new(tag, pd, config.pages)?, GFP_KERNEL)?;
        }
        Ok(slots)
    }

    fn admin_slots(
        config: &QueueConfig,
        pd: &Arc<ProtectionDomain>,
        admin: Option<[Arc<PendingReply>; ADMIN_CHANNELS]>,
    ) -> Result<KVec<AdminSlot<Commands<U>>>> {
        let mut admin_slots = KVec::new();
        let tags = config.requests.saturating_add(1)..u16::MAX;
        for (pending, tag) in admin.into_iter().flatten().zip(tags) {
            admin_slots.push(AdminSlot::new(tag, pd, pending)?, GFP_KERNEL)?;
        }
        Ok(admin_slots)
    }

    /// Posts the receives for so many responses. Sleeps.
    pub(crate) fn post_receives(queue: &QueuePair<Self>, entries: u16) -> Result {
        Response::post_all(queue, entries)
    }

    /// Returns the number of the queue.
    #[inline]
    pub fn qid(&self) -> u16 {
        self.core.qid()
    }

    /// Returns the counters of the queue.
    #[inline]
    pub fn stats(&self) -> &QueueStats {
        &self.core.stats
    }

    /// Returns what the ULP keeps with the queue.
    #[inline]
    pub fn data(&self) -> &U::QueueData {
        &self.core.data
    }

    /// Sends a request, or lets it wait for another one. Rejects requests that waited and cannot
    /// be sent. Inlined into the ULP, which knows what the command is. Any context.
    ///
    /// # Errors
    ///
    /// What [`Ulp::reject`] makes of a request that cannot be sent.
    #[inline(always)]
    pub fn submit(
        queue: &QueuePair<Self>,
        guard: &rcu::Guard,
        submission: Submission<U::Payload>,
        doorbell: Doorbell,
    ) -> Result<(), U::Rejected> {
        let this = queue.context();
        let Submission {
            tag,
            command,
            payload,
            direction,
            length,
        } = submission;
        let slot = usize::try_from(tag).ok();
        let Some(slot) = slot.and_then(|tag| this.requests.get(tag)) else {
            return Err(U::reject(EINVAL, payload));
        };
        let transfer = Transfer {
            payload,
            direction,
            length,
        };
        let Loaded {
            capsule, data_mode, ..
        } = match slot.load(&this.core, command, Some(transfer)) {
            Ok(loaded) => loaded,
            Err(unsent) => return reject::<U>(unsent),
        };
        let posted = if doorbell == Doorbell::Ring && !this.batch.is_waiting() {
            Slot::post(queue, guard, capsule, data_mode)
        } else {
            this.batch.add(queue, capsule, data_mode, doorbell)
        };
        posted.or_else(|unposted| reject::<U>(slot.unposted(queue, unposted)))
    }

    /// Sends the requests that wait for others, and rejects those that cannot be sent. Any
    /// context.
    pub fn ring(queue: &QueuePair<Self>) {
        queue.context().batch.send(queue);
    }

    /// Sends a command of the ULP's thread and waits for its response, for `limit` at most.
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// [`CommandError`]. The command may still be in flight then; the next one waits for its end.
    pub fn execute(
        queue: &QueuePair<Self>,
        waiter: &dyn Waiter,
        command: Command,
        data: Option<CommandData>,
        limit: Msecs,
    ) -> Result<Reply, CommandError> {
        let sync = SyncCommand {
            command,
            data,
            limit,
        };
        queue.context().sync.execute(queue, waiter, sync)
    }

    /// Sends the command of an admin channel. Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for too much data, and for a channel that the queue was not made with. `EBUSY` if
    /// the channel's last command is in flight, `ENOTCONN` if the queue is ending, `ENOMEM`.
    pub(crate) fn submit_admin(
        queue: &QueuePair<Self>,
        pending: &PendingReply,
        command: Command,
        data: Option<CommandData>,
    ) -> Result {
        let slot = queue.context().admin_slot(pending).ok_or(EINVAL)?;
        let transfer = data.map(CommandData::into_transfer).transpose()?;
        match slot.slot.submit(queue, command, transfer) {
            Ok(_) => Ok(()),
            Err(unsent) => Err(unsent.error),
        }
    }

    /// Reports that the command of an admin channel was not answered in time. Any context.
    pub(crate) fn admin_timed_out(&self, pending: &PendingReply) {
        if let Some(slot) = self.admin_slot(pending) {
            self.report_timeout(slot.tag.into());
        }
    }

    fn admin_slot(&self, pending: &PendingReply) -> Option<&AdminSlot<Commands<U>>> {
        let mut slots = self.admin_slots.iter();
        slots.find(|slot| core::ptr::eq(&*slot.pending, pending))
    }

    /// Sends the Asynchronous Event Request of an admin queue. Its response wakes the ULP's
    /// thread, for [`take_event`](Self::take_event). Any context.
    ///
    /// # Errors
    ///
    /// [`CommandError::Code`] if it could not be sent, or the one before was not answered.
    pub fn submit_aer(queue: &QueuePair<Self>) -> Result<(), CommandError> {
        match &queue.context().aer {
            Some(aer) => aer.submit(queue),
            None => Err(CommandError::Code(EINVAL)),
        }
    }

    /// Takes the response to the Asynchronous Event Request, once. Any context.
    pub fn take_event(&self) -> Option<AerCompletion> {
        self.aer.as_ref()?.take()
    }

    /// Returns whether the queue has no interrupt.
    pub fn is_polled(&self) -> bool {
        self.core.is_polled()
    }

    /// Handles completions of a polled queue, and returns how many. Any context.
    pub fn poll(&self) -> u32 {
        self.core.poll()
    }

    /// Returns whether a command ended since the last call. For one caller at a time.
    pub fn take_traffic(&self) -> bool {
        let ended = self.core.stats.ended();
        let before = self.seen.get();
        self.seen.set(ended);
        ended != before
    }

    /// Reports that the command of a tag was not answered in time. Any context.
    pub fn report_timeout(&self, tag: u32) {
        self.core.report(ConnError::Timeout {
            qid: self.qid(),
            tag,
        });
    }

    /// The connection is made: a queue pair that stops from now on is an error. Any context.
    pub(crate) fn set_connected(&self) {
        self.core.set_connected();
    }

    /// Ends the connection, and gives the payloads in flight to `end`. The ULP must have made the
    /// queue unreachable for submitters. Sleeps.
    pub fn end(connection: &Connected<Self>, end: impl Fn(U::Payload)) {
        let this = connection.queue_pair().context();
        this.core.set_ending();
        connection.disconnect();
        this.reclaim(end);
    }

    /// Ends the commands in flight on a queue that is drained. Sleeps.
    fn reclaim(&self, end: impl Fn(U::Payload)) {
        self.batch.abandon(self);
        for slot in &self.requests {
            if let Some(payload) = slot.reclaim(&self.core) {
                end(payload);
            }
        }
        // The buffers of the other commands are freed.
        drop(self.sync.slot.reclaim(&self.core));
        for admin in &self.admin_slots {
            drop(admin.slot.reclaim(&self.core));
            admin.pending.lost();
        }
        if let Some(aer) = &self.aer {
            drop(aer.slot.reclaim(&self.core));
        }
    }

    /// The slot of a tag that no request has.
    fn tag_kind(&self, tag: u16) -> Option<TagKind<'_, U>> {
        let index = usize::from(tag).checked_sub(self.requests.len())?;
        let Some(index) = index.checked_sub(1) else {
            return Some(TagKind::Thread(&self.sync));
        };
        match self.admin_slots.get(index) {
            Some(admin) => Some(TagKind::Admin(admin)),
            None if index == self.admin_slots.len() => self.aer.as_deref().map(TagKind::Aer),
            None => None,
        }
    }
}

/// The last tag of an admin queue, after those of its channels.
fn aer_tag(config: &QueueConfig, admin: &Option<[Arc<PendingReply>; ADMIN_CHANNELS]>) -> u16 {
    let channels = admin.as_ref().map_or(0, |_| ADMIN_CHANNELS as u16);
    config.requests.saturating_add(1).saturating_add(channels)
}

/// Rejects a request that was not sent; `Ok` if the teardown has its payload.
#[cold]
fn reject<U: Ulp>(unsent: Unsent<U::Payload>) -> Result<(), U::Rejected> {
    match unsent.payload {
        Some(payload) => Err(U::reject(unsent.error, payload)),
        None => Ok(()),
    }
}

impl<U: Ulp> QueueContext for Queue<U> {
    type Ulp = U;

    #[inline]
    fn core(&self) -> &QueueCore<U> {
        &self.core
    }
}

impl<U: Ulp> ResponseHandler for Queue<U> {
    #[inline]
    fn response(
        queue: &QueuePair<Self>,
        completion: Completion,
        invalidation: Option<Invalidation>,
    ) {
        let this = queue.context();
        let id = completion.command_id();
        let tag = id.tag().get();
        if let Some(slot) = this.requests.get(usize::from(tag)) {
            return slot.answered(queue, completion, invalidation);
        }
        match this.tag_kind(tag) {
            Some(kind) => kind.slot().answered(queue, completion, invalidation),
            None => this.core.unknown_command(id),
        }
    }
}

impl<U: Ulp> CommandKind for Requests<U> {
    type Payload = U::Payload;
    type Queue = Queue<U>;

    const SOURCE: CommandSource = CommandSource::Request;

    #[inline]
    fn retries(payload: &U::Payload) -> u64 {
        U::retries(payload)
    }
}

impl<U: Ulp> SlotTable for Requests<U> {
    #[inline]
    fn slot(queue: &Queue<U>, tag: u16) -> Option<&Slot<Self>> {
        queue.requests.get(usize::from(tag))
    }

    #[inline(always)]
    fn complete(queue: &Queue<U>, completion: Completion, payload: Option<U::Payload>) {
        if let Some(payload) = payload {
            let core = &queue.core;
            U::complete(&core.data, &core.stats, completion, payload);
        }
    }
}

impl<U: Ulp> CommandKind for Commands<U> {
    type Payload = Buffer;
    type Queue = Queue<U>;

    const SOURCE: CommandSource = CommandSource::Transport;

    fn retries(_payload: &Buffer) -> u64 {
        0
    }
}

impl<U: Ulp> SlotTable for Commands<U> {
    fn slot(queue: &Queue<U>, tag: u16) -> Option<&Slot<Self>> {
        queue.tag_kind(tag).map(TagKind::slot)
    }

    fn complete(queue: &Queue<U>, completion: Completion, data: Option<Buffer>) {
        match queue.tag_kind(completion.command_id().tag().get()) {
            Some(TagKind::Admin(admin)) => admin.pending.deliver(Reply { completion, data }),
            Some(TagKind::Aer(aer)) => {
                aer.deliver(completion);
                queue.core.notifier.wake();
            }
            Some(TagKind::Thread(thread)) => {
                thread.deliver(Reply { completion, data });
                queue.core.notifier.wake();
            }
            None => {}
        }
    }
}

impl<U: Ulp> QpContext for Queue<U> {
    type QpType = Rc;

    fn failed(queue: &QueuePair<Self>, failure: Failure) {
        queue.context().core.request_failed("registration", failure);
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        let this = queue.context();
        this.core.report(ConnError::Fault {
            qid: this.qid(),
            fault,
        });
    }
}

impl<U: Ulp> Endpoint for Queue<U> {
    fn lost(queue: &QueuePair<Self>, cause: Lost) {
        let this = queue.context();
        this.core.report(ConnError::Lost {
            qid: this.qid(),
            cause,
        });
    }
}
