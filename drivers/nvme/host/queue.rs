// SPDX-License-Identifier: GPL-2.0

//! One queue: the context of a queue pair, with its commands in flight.
//!
//! Each tag has a [`Slot`], which has the tag's
//! [`Capsule`](capsule::Capsule) whenever no work request does. A command goes
//! through the states of [`nvme_wire::request_state`]; it ends, and the block
//! layer gets its request back, only when its capsule was sent, its response is
//! there and its region is closed.
//!
//! Who may call a queue when it dies: `queue_rq`, which finds it under RCU and
//! no longer once it is retracted; completions, of which the drain waits for the
//! last; connection events, which end with the id. Then
//! [`Queue::reclaim`] ends what was left in flight.

mod capsule;
mod command;
mod response;
mod slot;

pub(crate) use capsule::Cargo;
pub(crate) use command::{
    CommandError,
    Reply, //
};
pub(crate) use slot::Slot;

use crate::{
    alarm::{
        Alarm,
        Trouble, //
    },
    io::Io,
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
};
use nvme_wire::{
    cid::CommandId,
    cqe,
    limits::transfer::InlineLimit, //
};
use response::Response;
use rrdma::{
    block::Status,
    new_irq_lock,
    rdma::{
        cm,
        cq,
        mr::{
            Buffer,
            Carrier, //
        },
        pd::ProtectionDomain,
        qp::{
            Capacity,
            Context,
            Fault,
            QueuePair, //
        },
        wr::Operation, //
    },
    sync::IrqLock,
};

/// What a queue is to be.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Its number; 0 is the admin queue.
    pub(crate) qid: u16,
    /// Its size, counted from 1: so many responses, and one command less.
    pub(crate) size: u16,
    /// Requests of the block layer that can be in flight at once.
    pub(crate) requests: u16,
    /// Pages that one command can move.
    pub(crate) pages: u32,
    /// Data that may go in a capsule.
    pub(crate) inline: InlineLimit,
    /// The controller's delays before retries, in units of 100 ms.
    pub(crate) retry_delays: [u16; 3],
}

impl Plan {
    /// Room that the queue pair must have.
    pub(crate) fn capacity(&self) -> Capacity {
        // A registration and a send for each command; an invalidation is posted
        // when both are over. One command is our own.
        let commands = u32::from(self.requests).saturating_add(1);
        Capacity {
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
    inline: InlineLimit,
    retry_delays: [u16; 3],
    requests: KVec<Slot<Carrier<Io>>>,
    command: Slot<Buffer>,
    #[pin]
    reply: IrqLock<Option<Reply>>,
    traffic: AtomicFlag,
    alarm: Arc<Alarm>,
}

impl Queue {
    /// Allocates the queue with all that its commands need. May sleep.
    pub(crate) fn new(
        plan: Plan,
        pd: Arc<ProtectionDomain>,
        alarm: Arc<Alarm>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            qid: plan.qid,
            inline: plan.inline,
            retry_delays: plan.retry_delays,
            requests: Self::slots(&plan, &pd)?,
            // Its tag is the one after those of the requests.
            command: Slot::new(plan.requests, &pd, command::PAGES)?,
            reply <- new_irq_lock!(None, "rnvme::Queue"),
            traffic: AtomicFlag::new(false),
            alarm,
        }? Error)
    }

    fn slots(plan: &Plan, pd: &Arc<ProtectionDomain>) -> Result<KVec<Slot<Carrier<Io>>>> {
        let mut slots = KVec::with_capacity(plan.requests.into(), GFP_KERNEL)?;
        for tag in 0..plan.requests {
            slots.push(Slot::new(tag, pd, plan.pages)?, GFP_KERNEL)?;
        }
        Ok(slots)
    }

    /// The number of the queue.
    pub(crate) fn qid(&self) -> u16 {
        self.qid
    }

    /// The controller's delays before retries, in units of 100 ms.
    pub(crate) fn retry_delays(&self) -> [u16; 3] {
        self.retry_delays
    }

    /// The slot of a request's tag.
    #[inline]
    pub(crate) fn request_slot(&self, tag: u16) -> Option<&Slot<Carrier<Io>>> {
        self.requests.get(usize::from(tag))
    }

    /// Whether a command ended since this was asked last.
    pub(crate) fn take_traffic(&self) -> bool {
        self.traffic.xchg(false, ordering::Relaxed)
    }

    /// Something that only the controller's thread can deal with. Any context.
    pub(crate) fn trouble(&self, trouble: Trouble) {
        self.alarm.raise(trouble);
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
    fn answered(
        &self,
        queue: &QueuePair<Self>,
        completion: cqe::Completion,
        invalidation: Option<cq::Invalidation>,
    ) {
        self.traffic.store(true, ordering::Relaxed);
        let tag = usize::from(completion.command_id.tag().get());
        match self.requests.get(tag) {
            Some(slot) => slot.answered(queue, completion, invalidation),
            None if tag == self.requests.len() => {
                self.command.answered(queue, completion, invalidation)
            }
            None => self.unknown(completion.command_id),
        }
    }

    fn unknown(&self, id: CommandId) {
        self.trouble(Trouble::UnknownCommand {
            qid: self.qid,
            command_id: id.get(),
        });
    }

    /// Ends what is still in flight with `status`. The queue pair must be
    /// drained. Sleeps.
    pub(crate) fn reclaim(&self, status: Status) {
        for slot in &self.requests {
            if let Some(carrier) = slot.reclaim() {
                carrier.into_request().complete(status);
            }
        }
        // The buffer of our own command goes with it.
        drop(self.command.reclaim());
    }
}

impl Context for Queue {
    fn failed(queue: &QueuePair<Self>, failure: cq::Failure) {
        queue.context().request_failed("registration", failure);
    }

    fn lost(queue: &QueuePair<Self>, cause: cm::Lost) {
        let this = queue.context();
        this.trouble(Trouble::Lost {
            qid: this.qid,
            cause,
        });
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        let this = queue.context();
        this.trouble(Trouble::Fault {
            qid: this.qid,
            fault,
        });
    }
}

impl Queue {
    /// A work request failed. A flush is the consequence of another failure, or
    /// of a teardown, and is not told.
    fn request_failed(&self, what: &'static str, failure: cq::Failure) {
        if !failure.is_flush() {
            self.trouble(Trouble::WorkRequest {
                qid: self.qid,
                what,
                failure,
            });
        }
    }
}
