// SPDX-License-Identifier: GPL-2.0

//! The connection, and what was heard of it.

use crate::{
    common::{
        failure::{
            Failure,
            Step, //
        },
        formats::ping::{
            Advert,
            MESSAGE_BYTES, //
        },
        job::Job, //
    },
    manager::{
        ear::{
            Ear,
            Good, //
        },
        limit, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    rdma::{
        cm::{
            Connected,
            Endpoint,
            Lost, //
        },
        cq::Completion,
        device::DeviceRef,
        dma::{
            Direction,
            DmaBuffer, //
        },
        mr::{
            Loan,
            RemoteKey, //
        },
        qp::{
            QueuePair,
            Rc, //
        },
        rw::{
            Move,
            Transfer, //
        },
        wr::{
            Complete,
            Operation,
            Receive,
            Sge, //
        },
    },
    scatter::Pages,
    sync::Msecs,
};

/// The context of the queue pair.
pub(crate) type Link = Ear<Heard>;

/// Operations that are back.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) received: Option<Operation<Inbox>>,
    pub(crate) sent: Option<Operation<Outbox>>,
    pub(crate) exposed: Option<Operation<Exposed>>,
    pub(crate) moved: Option<Operation<Moved>>,
}

impl Good for Heard {
    type Service = Rc;
}

impl Endpoint for Link {
    fn lost(queue: &QueuePair<Self>, cause: Lost) {
        match cause {
            Lost::Disconnected => queue.context().leave(),
            _ => queue.context().trouble(fmt!("{cause}")),
        }
    }
}

/// A message from the peer.
pub(crate) struct Inbox {
    buffer: DmaBuffer,
    length: usize,
}

impl Receive<Link> for Inbox {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

impl Complete<Link> for Inbox {
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<Link>,
        completion: &Completion<'_>,
    ) {
        let link = queue.context();
        if let Err(failure) = completion.result() {
            return link.failed("receive", failure);
        }
        operation.length = completion
            .received()
            .map_or(0, |message| message.byte_len());
        link.hear(|heard| heard.received = Some(operation));
    }
}

/// A message to the peer.
pub(crate) struct Outbox(DmaBuffer);

impl Complete<Link> for Outbox {
    fn complete(operation: Operation<Self>, queue: &QueuePair<Link>, completion: &Completion<'_>) {
        let link = queue.context();
        match completion.result() {
            Ok(()) => link.hear(|heard| heard.sent = Some(operation)),
            Err(failure) => link.failed("send", failure),
        }
    }
}

/// Memory that the peer may reach, and the message that tells it so.
pub(crate) struct Exposed {
    pub(crate) region: Loan<Pages>,
    pub(crate) message: DmaBuffer,
}

impl Complete<Link> for Exposed {
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<Link>,
        completion: &Completion<'_>,
    ) {
        let link = queue.context();
        // The message that was sent proves nothing; the invalidation does.
        operation.region.invalidated(completion);
        match completion.result() {
            Ok(()) => link.hear(|heard| heard.exposed = Some(operation)),
            Err(failure) => link.failed("message or invalidation", failure),
        }
    }
}

/// Data on its way from or to the peer's memory.
pub(crate) struct Moved(pub(crate) Transfer<Pages, Link>);

impl Move<Link> for Moved {
    type Data = Pages;

    fn transfer(&self) -> &Transfer<Pages, Link> {
        &self.0
    }
}

impl Complete<Link> for Moved {
    fn complete(operation: Operation<Self>, queue: &QueuePair<Link>, completion: &Completion<'_>) {
        let link = queue.context();
        match completion.result() {
            Ok(()) => link.hear(|heard| heard.moved = Some(operation)),
            Err(failure) => link.failed("read or write", failure),
        }
    }
}

/// An established connection.
pub(crate) struct Session<'a> {
    job: &'a Job,
    connected: Connected<Link>,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.connected.disconnect();
        // Nothing more will be heard.
        self.link().forget();
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(job: &'a Job, connected: Connected<Link>) -> Self {
        Self { job, connected }
    }

    pub(crate) fn queue(&self) -> &Arc<QueuePair<Link>> {
        self.connected.queue_pair()
    }

    pub(crate) fn link(&self) -> &Link {
        self.queue().context()
    }

    /// Waits as long as a step may take.
    pub(crate) fn wait<R>(
        &self,
        step: &'static str,
        take: impl FnMut(&mut Heard) -> Option<R>,
    ) -> Result<R, Failure> {
        self.link().wait(self.job, step, limit(), take)
    }

    /// What the peer says next, within `limit`; the receive is posted again, so that
    /// it can go on once it is answered.
    pub(crate) fn next(&self, step: &'static str, limit: Msecs) -> Result<Advert, Failure> {
        let job = self.job;
        let mut inbox = self
            .link()
            .wait(job, step, limit, |heard| heard.received.take())?;
        let length = inbox.length;
        let bytes = inbox.buffer.read();
        let advert = bytes.get(..length).and_then(Advert::decode);
        inbox.buffer.give_back();
        self.queue().post_receive(inbox).step(step)?;
        let wrong = || Failure::new(step, fmt!("{length} bytes and not {MESSAGE_BYTES}"));
        advert.ok_or_else(wrong)
    }
}

/// A buffer for a message.
pub(crate) fn message(device: &DeviceRef, direction: Direction) -> Result<DmaBuffer, Failure> {
    DmaBuffer::new(device.clone(), MESSAGE_BYTES, direction).step("buffer")
}

/// A buffer for the server's answer, of which only the length means something.
pub(crate) fn outbox(device: &DeviceRef) -> Result<Operation<Outbox>, Failure> {
    Operation::new(Outbox(message(device, Direction::ToDevice)?)).step("buffer")
}

impl Outbox {
    pub(crate) fn sge(&self) -> Sge<'_> {
        self.0.sge()
    }
}

/// Posts the one receive. Before the peer knows of the connection, so that none of
/// its messages can come too early.
pub(crate) fn post_receive(queue: &QueuePair<Link>) -> Result<(), Failure> {
    let inbox = Inbox {
        // One byte more than a message shows one that is too long as such.
        buffer: DmaBuffer::new(
            queue.device().clone(),
            MESSAGE_BYTES.saturating_add(1),
            Direction::FromDevice,
        )
        .step("buffer")?,
        length: 0,
    };
    let inbox = Operation::new(inbox).step("buffer")?;
    queue.post_receive(inbox).step("receive")
}

impl From<RemoteKey> for Advert {
    fn from(key: RemoteKey) -> Self {
        Self {
            address: key.address,
            rkey: key.rkey,
            length: key.length,
        }
    }
}

impl From<Advert> for RemoteKey {
    fn from(advert: Advert) -> Self {
        Self {
            address: advert.address,
            length: advert.length,
            rkey: advert.rkey,
        }
    }
}
