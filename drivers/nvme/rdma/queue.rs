// SPDX-License-Identifier: GPL-2.0

//! One queue: the context of a queue pair, with its commands in flight.
//!
//! Each tag has a `Slot`, which owns the tag's `Capsule` while no work request does. A command
//! passes through the states of [`nvme_proto::policy::request_state`]. It ends, and its ULP gets
//! the payload back, only after its capsule was sent, its response arrived and its key became
//! invalid.
//!
//! Three contexts call a queue:
//!
//! - The ULP's submitters, which find the queue under RCU. None is left after the ULP has retracted the
//!   queue: taken it out of its `RcuSlot`, and waited for a grace period.
//! - Completion handlers. The last one returns before the drain does.
//! - Connection events, until the CM ID is destroyed. They only report errors, which are ignored
//!   once the queue is ending.
//!
//! [`Queue::end`] therefore ends the commands in flight after the drain.
//!
//! Tags are numbered in this order: block requests, commands of the ULP's thread, of each admin
//! channel, and the Asynchronous Event Request.

mod admin_slot;
mod capsule;
mod queue_core;
mod response;
mod send_batch;
mod slot;
mod slot_state;
mod sync_command;

pub use admin_slot::{
    AerCompletion,
    MAX_DATA, //
};
pub use send_batch::Doorbell;
pub use sync_command::{
    CommandData,
    CommandError,
    Reply,
    SentCommand, //
};

pub(crate) use admin_slot::PendingReply;
pub(crate) use queue_core::CoreParts;

use admin_slot::{
    AdminSlot,
    AerSlot, //
};
use capsule::{
    Capsule,
    Capsules,
    CommandKind, //
};
use queue_core::{
    unknown_command,
    QueueContext,
    QueueCore, //
};
use response::{
    Response,
    ResponseHandler, //
};
use send_batch::SendBatch;
use slot::{
    KeptByDevice,
    Loaded,
    Slot,
    SlotLookup, //
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
    stats::{
        Counters,
        DataMode, //
    },
    trace::CommandSource,
    ulp::{
        DataCommand,
        Ulp,
        Waiter, //
    },
};
use core::marker::PhantomData;
use kernel::{prelude::*, sync::Arc};
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
            Received,
            WcError, //
        },
        pd::ProtectionDomain,
        qp::{
            Fault,
            QpContext,
            QueuePair,
            Rc, //
        },
        wr::{
            Chain,
            Operation,
            Unposted, //
        },
    },
    scatter::Buffer,
    sync::{
        Msecs,
        RcuSection,
        RelaxedBool,
        SingleWriterCounter,
        TimedCompletion, //
    },
};

/// A block request for a queue.
pub struct Submission<C, P> {
    /// Tag of the request, below [`QueueConfig::requests`].
    pub tag: u32,
    /// What the command is made from. The queue sets its identifier and SGL.
    pub command: C,
    /// The request, with its data if it has any.
    pub payload: P,
}

/// A queue, as the context of its queue pair.
#[pin_data(PinnedDrop)]
pub struct Queue<U: Ulp> {
    core: QueueCore<U>,
    requests: KVec<Slot<Requests<U>>>,
    batch: SendBatch<Requests<U>>,
    #[pin]
    sync: SyncSlot<Commands<U>>,
    admin_slots: KVec<AdminSlot<Commands<U>>>,
    aer: Option<Pin<KBox<AerSlot<Commands<U>>>>>,
    /// Completed when the target has disconnected, or acknowledged our disconnect. Never on iWARP.
    #[pin]
    disconnected: TimedCompletion,
    /// Number of ended commands at the last call of [`Queue::take_traffic`].
    seen: SingleWriterCounter,
    /// The device kept a block request at the [`end`](Queue::end).
    device_keeps: RelaxedBool,
}

/// Parts to create a queue from.
pub(crate) struct QueueParts<U: Ulp> {
    pub(crate) config: QueueConfig,
    pub(crate) core: CoreParts<U>,
    pub(crate) pd: Arc<ProtectionDomain>,
    /// Pending replies of the admin channels, for an admin queue.
    pub(crate) admin: Option<[Arc<PendingReply>; ADMIN_CHANNELS]>,
}

/// Kind of commands: block requests.
struct Requests<U>(PhantomData<fn(U)>);

/// Kind of commands: all others. Their data is a buffer, and a thread waits for their responses.
struct Commands<U>(PhantomData<fn(U)>);

/// Slot of a tag that no block request has.
enum TagKind<'a, U: Ulp> {
    /// Commands of the ULP's thread.
    Thread(&'a SyncSlot<Commands<U>>),
    /// Commands of an admin channel.
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
    /// Allocates a queue with all that its commands need. May sleep.
    pub(crate) fn new(parts: QueueParts<U>) -> impl PinInit<Self, Error> {
        let QueueParts {
            config,
            core,
            pd,
            admin,
        } = parts;
        try_pin_init!(Self {
            requests: Self::request_slots(&config, &pd)?,
            batch: SendBatch::new(&config)?,
            sync <- SyncSlot::new(config.requests, &pd),
            aer: match config.qid {
                0 => Some(AerSlot::new(aer_tag(&config, &admin), &pd)?),
                _ => None,
            },
            admin_slots: Self::admin_slots(&config, &pd, admin)?,
            disconnected <- TimedCompletion::new(),
            seen: {
                let seen = SingleWriterCounter::new();
                seen.set(core.stats.ended());
                seen
            },
            device_keeps: RelaxedBool::new(false),
            core: QueueCore::new(core, &config),
        }? Error)
    }

    fn request_slots(
        config: &QueueConfig,
        pd: &Arc<ProtectionDomain>,
    ) -> Result<KVec<Slot<Requests<U>>>> {
        let mut slots = KVec::with_capacity(config.requests.into(), GFP_KERNEL)?;
        let mut capsules = Capsules::new(pd, config.requests, config.pages)?;
        for tag in 0..config.requests {
            slots.push(Slot::new(tag, &mut capsules)?, GFP_KERNEL)?;
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

    /// Posts receives for `entries` responses. Sleeps.
    pub(crate) fn post_receives(queue: &QueuePair<Self>, entries: u16) -> Result {
        Response::post_all(queue, entries)
    }

    /// Returns the queue identifier.
    #[inline]
    pub fn qid(&self) -> u16 {
        self.core.qid()
    }

    /// Returns the counters of the queue.
    #[inline]
    pub fn stats(&self) -> &U::Stats {
        &self.core.stats
    }

    /// Returns the data that the ULP keeps with the queue.
    #[inline]
    pub fn data(&self) -> &U::QueueData {
        &self.core.data
    }

    /// Sends a request, or adds it to the batch that waits. Any context.
    ///
    /// Rejects waiting requests that cannot be sent. Inlined into the ULP's code, where the kind of
    /// command is known.
    ///
    /// # Errors
    ///
    /// The result of [`Ulp::reject`] for a request that cannot be sent.
    #[inline(always)]
    pub fn submit(
        queue: &QueuePair<Self>,
        section: &RcuSection,
        submission: Submission<U::Command, U::Payload>,
        doorbell: Doorbell,
    ) -> Result<(), U::Rejected> {
        let this = queue.context();
        let Submission {
            tag,
            command,
            payload,
        } = submission;
        let slot = usize::try_from(tag).ok();
        let Some(slot) = slot.and_then(|tag| this.requests.get(tag)) else {
            return no_slot::<U>(payload);
        };
        let Loaded {
            capsule, data_mode, ..
        } = match slot.load(&this.core, command, payload) {
            Ok(loaded) => loaded,
            Err(unsent) => return reject::<U>(unsent),
        };
        let posted = if doorbell == Doorbell::Ring && !this.batch.is_waiting() {
            Slot::post(queue, section, capsule, data_mode)
        } else {
            add(queue, section, capsule, data_mode, doorbell)
        };
        posted.or_else(|unposted| reject::<U>(slot.undo(queue, unposted)))
    }

    /// Sends requests together, within an RCU read-side critical section. Any context.
    ///
    /// Rejects requests that cannot be sent. Takes none if another submitter uses the batch.
    #[inline(always)]
    pub fn submit_all(
        queue: &QueuePair<Self>,
        section: &RcuSection,
        submissions: impl Iterator<Item = Submission<U::Command, U::Payload>>,
    ) {
        let this = queue.context();
        let Some(mut batch) = this.batch.open(queue, section) else {
            return;
        };
        for submission in submissions {
            let Submission {
                tag,
                command,
                payload,
            } = submission;
            let slot = usize::try_from(tag).ok();
            let Some(slot) = slot.and_then(|tag| this.requests.get(tag)) else {
                U::finish(&this.core.data, U::reject(EINVAL, payload));
                continue;
            };
            let unsent = match slot.load(&this.core, command, payload) {
                Ok(loaded) => match batch.push(loaded.capsule, loaded.data_mode) {
                    Ok(()) => continue,
                    Err(unposted) => slot.undo(queue, unposted),
                },
                Err(unsent) => unsent,
            };
            Requests::finish(this, unsent);
        }
    }

    /// Sends the batch that waits, within an RCU read-side critical section. Rejects requests that cannot
    /// be sent. Any context.
    pub fn ring(queue: &QueuePair<Self>, section: &RcuSection) {
        queue.context().batch.send(queue, section);
    }

    /// Sends a command of the ULP's thread, and waits for its response for at most `limit`. Sleeps.
    ///
    /// # Errors
    ///
    /// [`CommandError`]. The command may still be in flight then: the queue keeps `data` until its end, for
    /// which the next call waits.
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

    /// Sends a command of the ULP's thread to a queue on which none is in flight.
    /// [`finish`](Self::finish) waits for its response, for at most `limit` from now. Any context.
    ///
    /// # Errors
    ///
    /// [`CommandError::Code`].
    pub fn start(
        queue: &QueuePair<Self>,
        command: Command,
        data: Option<CommandData>,
        limit: Msecs,
    ) -> Result<SentCommand, CommandError> {
        let sync = SyncCommand {
            command,
            data,
            limit,
        };
        queue.context().sync.start(queue, sync)
    }

    /// Waits for the response to a command that was sent by [`start`](Self::start). Sleeps.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    pub fn finish(
        queue: &QueuePair<Self>,
        waiter: &dyn Waiter,
        sent: SentCommand,
    ) -> Result<Reply, CommandError> {
        let this = queue.context();
        this.sync.finish(&this.core, waiter, sent)
    }

    /// Sends the command of an admin channel. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: too much data, or a channel that the queue was not created with.
    /// - `EBUSY`: the previous command of the channel is in flight.
    /// - `ENOTCONN`: the queue is ending.
    /// - `ENOMEM`.
    pub(crate) fn submit_admin(
        queue: &QueuePair<Self>,
        pending: &PendingReply,
        command: Command,
        data: Option<CommandData>,
    ) -> Result {
        let slot = queue.context().admin_slot(pending).ok_or(EINVAL)?;
        let (command, payload) = CommandData::attach(data, command)?;
        match slot.slot.submit(queue, command, payload) {
            Ok(_) => Ok(()),
            Err(unsent) => Err(unsent.error),
        }
    }

    /// Reports that the command of an admin channel timed out. Any context.
    pub(crate) fn admin_timed_out(&self, pending: &PendingReply) {
        if let Some(slot) = self.admin_slot(pending) {
            self.report_timeout(slot.tag.into());
        }
    }

    fn admin_slot(&self, pending: &PendingReply) -> Option<&AdminSlot<Commands<U>>> {
        let mut slots = self.admin_slots.iter();
        slots.find(|slot| core::ptr::eq(&*slot.pending, pending))
    }

    /// Sends the Asynchronous Event Request of an admin queue. Any context.
    ///
    /// The response wakes the ULP's thread, which calls [`take_event`](Self::take_event).
    ///
    /// # Errors
    ///
    /// [`CommandError::Code`], with `EBUSY` if the previous request has no response yet. Otherwise the request
    /// could not be posted, which is reported as a loss of the connection.
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

    /// Returns whether the queue is polled: it has no interrupt.
    pub fn is_polled(&self) -> bool {
        self.core.is_polled()
    }

    /// Handles completions of a polled queue, and returns their number. Any context.
    pub fn poll(&self) -> u32 {
        self.core.poll()
    }

    /// Returns whether a command ended that was posted after the last call. Only one thread may call
    /// this at a time.
    ///
    /// If more commands ended than can be in flight, at least one was posted since. If fewer ended, the
    /// result is false.
    pub fn take_traffic(&self) -> bool {
        let ended = self.core.stats.ended();
        let before = self.seen.get();
        self.seen.set(ended);
        let in_flight = self.requests.len();
        usize::try_from(ended.wrapping_sub(before)).is_ok_and(|ended| ended > in_flight)
    }

    /// Returns whether the target disconnected, or acknowledged the disconnect of
    /// [`end`](Self::end). Never true on iWARP, which does not tell. The ULP's thread is woken when it does. Any context.
    pub fn is_disconnected(&self) -> bool {
        self.disconnected.is_completed()
    }

    /// Waits for at most `limit` until [`is_disconnected`](Self::is_disconnected). Returns `false` on a
    /// time-out. Sleeps.
    #[must_use = "the target may not have acknowledged the disconnect"]
    pub fn wait_disconnected(&self, limit: Msecs) -> bool {
        self.disconnected.wait_timeout(limit)
    }

    /// Returns whether a block request with this tag has a command on the queue. The device may keep a
    /// request of an earlier queue, see [`end`](Self::end). Any context.
    pub fn has_request(&self, tag: u32) -> bool {
        let slot = usize::try_from(tag).ok();
        let slot = slot.and_then(|tag| self.requests.get(tag));
        slot.is_some_and(Slot::is_in_use)
    }

    /// Reports that the command of a tag timed out. Any context.
    pub fn report_timeout(&self, tag: u32) {
        self.core.report(ConnError::Timeout {
            qid: self.qid(),
            tag,
        });
    }

    /// Marks the connection as established: from now on it is an error if the queue pair stops. Any
    /// context.
    pub(crate) fn set_connected(&self) {
        self.core.set_connected();
    }

    /// Ends the connection, and passes the payloads in flight to `end`, which may sleep. Sleeps until the
    /// device has returned the work requests.
    ///
    /// Returns whether the device keeps a block request: it did not return the capsule, and may access the data.
    /// Such a request does not end before the device returns the capsule, which goes to [`Ulp::end_kept`]. That
    /// may be never.
    ///
    /// Submitters must no longer be able to find the queue.
    #[must_use = "a request that the device keeps times out again and again"]
    pub fn end(connection: &Connected<Self>, end: impl Fn(U::Payload)) -> bool {
        let this = connection.queue_pair().context();
        this.core.set_ending();
        connection.disconnect();
        this.reclaim(end)
    }

    /// Ends the commands in flight of a drained queue. Returns whether the device keeps a block request.
    /// Sleeps.
    fn reclaim(&self, end: impl Fn(U::Payload)) -> bool {
        self.batch.abandon(self);
        let mut keeps = false;
        for slot in &self.requests {
            match slot.reclaim(&self.core) {
                Ok(Some(payload)) => end(payload),
                Ok(None) => {}
                Err(KeptByDevice) => keeps = true,
            }
        }
        // Frees the buffers of the other commands.
        drop(self.sync.slot.reclaim(&self.core));
        for admin in &self.admin_slots {
            drop(admin.slot.reclaim(&self.core));
            admin.pending.lost();
        }
        if let Some(aer) = &self.aer {
            drop(aer.slot.reclaim(&self.core));
        }
        if keeps {
            self.device_keeps.set(true);
        }
        keeps
    }

    /// Returns the slot of a tag that no block request has.
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

#[pinned_drop]
impl<U: Ulp> PinnedDrop for Queue<U> {
    /// The queue pair is drained. If its device kept block requests, it has returned them by now.
    fn drop(self: Pin<&mut Self>) {
        if !self.device_keeps.get() {
            return;
        }
        for slot in &self.requests {
            if let Some(payload) = slot.reclaim_kept(&self.core) {
                U::end_kept(&self.core.data, payload);
            }
        }
    }
}

/// Adds a capsule to the batch of a queue, within an RCU read-side critical section. Any context.
///
/// # Errors
///
/// As [`SendBatch::add`].
#[inline(always)]
fn add<U: Ulp>(
    queue: &QueuePair<Queue<U>>,
    section: &RcuSection,
    capsule: Operation<Capsule<Requests<U>>>,
    data_mode: DataMode,
    doorbell: Doorbell,
) -> Result<(), Unposted<Capsule<Requests<U>>>> {
    use DataMode::*;

    match data_mode {
        Nothing => add_built(
            queue,
            section,
            capsule,
            doorbell,
            |c, chain| c.chain(Nothing, chain),
            |capsule| Slot::post(queue, section, capsule, Nothing),
        ),
        InCapsule => add_built(
            queue,
            section,
            capsule,
            doorbell,
            |c, chain| c.chain(InCapsule, chain),
            |capsule| Slot::post(queue, section, capsule, InCapsule),
        ),
        ByKey => add_built(
            queue,
            section,
            capsule,
            doorbell,
            |c, chain| c.chain(ByKey, chain),
            |capsule| Slot::post(queue, section, capsule, ByKey),
        ),
    }
}

/// Adds a capsule with the work requests that `build` creates. There is one such function for each data
/// mode, so none saves registers for another.
#[inline(never)]
fn add_built<U: Ulp>(
    queue: &QueuePair<Queue<U>>,
    section: &RcuSection,
    capsule: Operation<Capsule<Requests<U>>>,
    doorbell: Doorbell,
    build: impl for<'a> FnOnce(&'a mut Capsule<Requests<U>>, &mut Chain<'a, '_, Queue<U>>) -> Result
        + Send,
    post_alone: impl FnOnce(
        Operation<Capsule<Requests<U>>>,
    ) -> Result<(), Unposted<Capsule<Requests<U>>>>,
) -> Result<(), Unposted<Capsule<Requests<U>>>> {
    let batch = &queue.context().batch;
    batch.add(queue, section, capsule, doorbell, build, post_alone)
}

/// Returns the last tag of an admin queue, after those of its channels.
fn aer_tag(config: &QueueConfig, admin: &Option<[Arc<PendingReply>; ADMIN_CHANNELS]>) -> u16 {
    let channels = admin.as_ref().map_or(0, |_| ADMIN_CHANNELS as u16);
    config.requests.saturating_add(1).saturating_add(channels)
}

/// Rejects a request without a slot. blk-mq assigns tags below the depth of the tag set only.
#[cold]
#[inline(never)]
fn no_slot<U: Ulp>(payload: U::Payload) -> Result<(), U::Rejected> {
    Err(U::reject(EINVAL, payload))
}

/// Rejects a request that was not sent. Returns `Ok` if the teardown owns its payload.
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
    fn response(queue: &QueuePair<Self>, completion: Completion, received: Received<'_>) {
        let tag = completion.command_id().tag().get();
        match queue.context().requests.get(usize::from(tag)) {
            Some(slot) => slot.answered(queue, completion, received.invalidation()),
            None => other_response(queue, completion, received),
        }
    }
}

/// Handles a response to a command that is no block request.
#[cold]
#[inline(never)]
fn other_response<U: Ulp>(
    queue: &QueuePair<Queue<U>>,
    completion: Completion,
    received: Received<'_>,
) {
    let id = completion.command_id();
    match queue.context().tag_kind(id.tag().get()) {
        Some(kind) => {
            let invalidation = received.invalidation();
            kind.slot().answered(queue, completion, invalidation);
        }
        None => unknown_command(queue, id),
    }
}

impl<U: Ulp> CommandKind for Requests<U> {
    type Payload = U::Payload;
    type Command = U::Command;
    type Queue = Queue<U>;

    const SOURCE: CommandSource = CommandSource::Request;

    #[inline]
    fn retries(payload: &U::Payload) -> u64 {
        U::retries(payload)
    }
}

impl<U: Ulp> SlotLookup for Requests<U> {
    #[inline]
    fn slot(queue: &Queue<U>, tag: u16) -> Option<&Slot<Self>> {
        queue.requests.get(usize::from(tag))
    }

    #[cold]
    fn finish(queue: &Queue<U>, unsent: Unsent<U::Payload>) {
        if let Some(payload) = unsent.payload {
            U::finish(&queue.core.data, U::reject(unsent.error, payload));
        }
    }

    #[inline(always)]
    fn complete(queue: &Queue<U>, completion: Completion, payload: U::Payload) {
        let core = &queue.core;
        U::complete(&core.data, &core.stats, completion, payload);
    }
}

impl<U: Ulp> CommandKind for Commands<U> {
    type Payload = Option<Buffer>;
    type Command = DataCommand;
    type Queue = Queue<U>;

    const SOURCE: CommandSource = CommandSource::Transport;

    fn retries(_payload: &Option<Buffer>) -> u64 {
        0
    }
}

impl<U: Ulp> SlotLookup for Commands<U> {
    fn slot(queue: &Queue<U>, tag: u16) -> Option<&Slot<Self>> {
        queue.tag_kind(tag).map(TagKind::slot)
    }

    // Such a command returns its error to the thread that sends it.
    fn finish(_queue: &Queue<U>, _unsent: Unsent<Option<Buffer>>) {}

    fn complete(queue: &Queue<U>, completion: Completion, data: Option<Buffer>) {
        match queue.tag_kind(completion.command_id().tag().get()) {
            Some(TagKind::Admin(admin)) => admin.pending.deliver(Reply { completion, data }),
            Some(TagKind::Aer(aer)) => {
                U::async_event(&queue.core.data, &completion);
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

    fn failed(queue: &QueuePair<Self>, failure: WcError) {
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
        if cause == Lost::Disconnected {
            this.disconnected.complete_all();
            this.core.notifier.wake();
        }
        this.core.report(ConnError::Lost {
            qid: this.qid(),
            cause,
        });
    }
}
