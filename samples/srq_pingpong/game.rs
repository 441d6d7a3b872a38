// SPDX-License-Identifier: GPL-2.0

//! The messages of all queue pairs, and the receives that they share.

use crate::common::{
    failure::{
        Failure,
        Step, //
    },
    job::Job, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    new_irq_lock,
    rdma::{
        cq::{
            self,
            Completion, //
        },
        device::DeviceRef,
        dma::{
            Direction,
            DmaBuffer, //
        },
        qp::{
            Context,
            Fault,
            QueuePair,
            Rc, //
        },
        srq::{
            Event,
            SharedReceiveQueue, //
        },
        wr::{
            Complete,
            Operation,
            Receive,
            Sge, //
        },
    },
    sync::{
        IrqLock,
        TimedCompletion, //
    },
};

/// What each byte of a message is, as the program has it or not: it does not look.
const FILL: u8 = 0x7b;

/// What the sending of a message is called.
const SEND: &str = "send";

/// The message of a queue pair.
pub(crate) struct Outgoing {
    buffer: DmaBuffer,
}

/// Room for a message of any of them.
pub(crate) struct Incoming {
    buffer: DmaBuffer,
}

impl Incoming {
    pub(crate) fn new(device: &DeviceRef, size: usize) -> Result<Operation<Self>> {
        let buffer = DmaBuffer::new(device.clone(), size, Direction::FromDevice)?;
        Operation::new(Self { buffer })
    }
}

/// What all queue pairs have in common.
#[pin_data]
pub(crate) struct Game {
    wake: Arc<TimedCompletion>,
    iters: u32,
    begins: bool,
    #[pin]
    totals: IrqLock<Totals>,
}

struct Totals {
    sent: u32,
    received: u32,
    /// The shared queue has said that it is short of receives.
    short: bool,
    /// The receives that were used, with room for all.
    used: KVec<Operation<Incoming>>,
    failure: Option<Failure>,
}

/// What has happened since the job looked last.
pub(crate) enum News {
    /// So many messages have arrived now.
    Received(u32),
    /// There are few receives left.
    Short,
    /// All is done.
    Done {
        /// But the peer was gone before it acknowledged our last message.
        unacknowledged: bool,
    },
}

impl Game {
    /// A game of so many messages in each direction, with so many receives.
    pub(crate) fn new(
        job: &Job,
        iters: u32,
        receives: u32,
        begins: bool,
    ) -> Result<Arc<Self>, Failure> {
        let totals = Totals {
            sent: 0,
            received: 0,
            short: false,
            used: KVec::with_capacity(receives as usize, GFP_KERNEL).step("receives")?,
            failure: None,
        };
        let init = pin_init!(Self {
            wake: job.wake().clone(),
            iters,
            begins,
            totals <- new_irq_lock!(totals, "samples::Totals"),
        });
        Arc::pin_init(init, GFP_KERNEL).step("game")
    }

    /// Hears what the device says of the shared queue. Any context.
    pub(crate) fn tell(&self, event: Event) {
        match event {
            Event::LimitReached => {
                self.totals.lock().short = true;
                self.wake.complete();
            }
            Event::Broken => self.end(Failure::new(
                "shared receive queue",
                fmt!("the device gave it up"),
            )),
        }
    }

    /// What is new to who knows of `known` messages; or why it is over.
    pub(crate) fn news(&self, known: u32) -> Option<Result<News, Failure>> {
        let mut totals = self.totals.lock();
        let received = totals.received;
        if let Some(failure) = totals.failure.take() {
            // See `has_all`.
            let unacknowledged = received >= self.iters && failure.step() == SEND;
            return Some(
                unacknowledged
                    .then_some(News::Done { unacknowledged })
                    .ok_or(failure),
            );
        }
        if received >= self.iters && totals.sent >= self.iters {
            return Some(Ok(News::Done {
                unacknowledged: false,
            }));
        }
        // The device says so before the receive that it took last is completed.
        if totals.short && !totals.used.is_empty() {
            totals.short = false;
            return Some(Ok(News::Short));
        }
        (received > known).then_some(Ok(News::Received(received)))
    }

    /// Whether all messages of the peer have arrived. It may stop as soon as it has all
    /// of ours; whether it has the last ones, is then not to be known.
    pub(crate) fn has_all(&self) -> bool {
        self.totals.lock().received >= self.iters
    }

    /// Posts again what was used.
    pub(crate) fn refill(&self, shared: &SharedReceiveQueue<Player>) -> Result<(), Failure> {
        // The lock is not to be held while it is posted.
        let next = || self.totals.lock().used.pop();
        while let Some(receive) = next() {
            shared.post(receive).step("receive")?;
        }
        Ok(())
    }

    /// The first failure is the one that counts.
    fn end(&self, failure: Failure) {
        self.totals.lock().failure.get_or_insert(failure);
        self.wake.complete();
    }

    /// What a request says that has failed: nothing, if it was merely flushed.
    fn failed(&self, step: &'static str, failure: cq::Failure) {
        if !failure.is_flush() {
            self.end(Failure::new(step, fmt!("{failure}")));
        }
    }
}

/// The context of a queue pair: who has its message.
#[pin_data]
pub(crate) struct Player {
    game: Arc<Game>,
    #[pin]
    turn: IrqLock<Turn>,
}

struct Turn {
    /// The message, when it is ours.
    outgoing: Option<Operation<Outgoing>>,
    /// The peer has answered.
    ours: bool,
}

impl Player {
    pub(crate) fn new(
        game: &Arc<Game>,
        device: &DeviceRef,
        size: usize,
    ) -> Result<impl PinInit<Self, Error>, Failure> {
        let mut buffer =
            DmaBuffer::new(device.clone(), size, Direction::ToDevice).step("message")?;
        buffer.write().fill(FILL);
        let turn = Turn {
            outgoing: Some(Operation::new(Outgoing { buffer }).step("message")?),
            ours: game.begins,
        };
        let game = game.clone();
        Ok(try_pin_init!(Self {
            game,
            turn <- new_irq_lock!(turn, "samples::Turn"),
        }? Error))
    }

    /// Sends the first message, if it is ours to begin.
    pub(crate) fn begin(queue: &QueuePair<Self>) {
        Self::advance(queue);
    }

    /// Sends the message if it is ours, and our turn, and not the end.
    fn advance(queue: &QueuePair<Self>) {
        let player = queue.context();
        let outgoing = {
            let mut turn = player.turn.lock();
            if !turn.ours {
                return;
            }
            let Some(outgoing) = turn.outgoing.take() else {
                return;
            };
            turn.ours = false;
            outgoing
        };
        if player.game.totals.lock().sent >= player.game.iters {
            return;
        }
        let posted = queue.post_send(outgoing, |message, chain| {
            chain.send([message.buffer.sge()])
        });
        if let Err(unposted) = posted {
            player
                .game
                .end(Failure::new(SEND, fmt!("{:?}", unposted.error)));
        }
    }
}

impl Context for Player {
    type Service = Rc;

    fn failed(queue: &QueuePair<Self>, failure: cq::Failure) {
        queue.context().game.failed("request", failure);
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        let game = &queue.context().game;
        game.end(Failure::new("queue pair", fmt!("{fault}")));
    }
}

impl Complete<Player> for Outgoing {
    fn complete(
        operation: Operation<Self>,
        queue: &QueuePair<Player>,
        completion: &Completion<'_>,
    ) {
        let player = queue.context();
        if let Err(failure) = completion.result() {
            return player.game.failed(SEND, failure);
        }
        player.turn.lock().outgoing = Some(operation);
        {
            let mut totals = player.game.totals.lock();
            totals.sent = totals.sent.saturating_add(1);
        }
        Player::advance(queue);
        player.game.wake.complete();
    }
}

impl Receive<Player> for Incoming {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

impl Complete<Player> for Incoming {
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<Player>,
        completion: &Completion<'_>,
    ) {
        let player = queue.context();
        if let Err(failure) = completion.result() {
            return player.game.failed("receive", failure);
        }
        let length = completion
            .received()
            .map_or(0, |received| received.byte_len());
        let wanted = operation.buffer.read().len();
        operation.buffer.give_back();
        if length != wanted {
            return player.game.end(Failure::new(
                "message",
                fmt!("{length} bytes and not {wanted}"),
            ));
        }
        {
            let mut totals = player.game.totals.lock();
            totals.received = totals.received.saturating_add(1);
            if totals.used.push_within_capacity(operation).is_err() {
                let failure = Failure::new("receive", fmt!("there are more than were posted"));
                totals.failure.get_or_insert(failure);
            }
        }
        player.turn.lock().ours = true;
        Player::advance(queue);
        player.game.wake.complete();
    }
}
