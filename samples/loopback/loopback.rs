// SPDX-License-Identifier: GPL-2.0

//! A queue pair that is connected with itself, or with another one on its port, and the
//! messages that it sends.

use crate::common::{
    failure::{
        Failure,
        Step, //
    },
    port_gid::PortGid,
    task::SampleTask, //
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};
use rrdma::{
    new_irq_lock,
    rdma::{
        cq::{
            self,
            Completion,
            CompletionQueue, //
        },
        device::{
            DeviceRef,
            Mtu, //
        },
        dma::{
            Direction,
            DmaBuffer, //
        },
        qp::{
            self,
            rc,
            Fault,
            Init,
            QpCap,
            QpContext,
            QpInitAttr,
            Qpn,
            QueuePair,
            Rc,
            Rts, //
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
        Msecs,
        TimedCompletion, //
    },
};

/// Bytes of a message: a number.
const SIZE: usize = 8;

/// The longest that a message to oneself may take.
pub(crate) const LIMIT: Msecs = Msecs::new(5000);

/// Entries of a completion queue: a send, a receive, and the markers of the drain.
pub(crate) const CAPACITY: QpCap = QpCap {
    sends: 1,
    receives: 1,
    send_sges: 1,
};

/// Operations that have completed.
#[derive(Default)]
pub(crate) struct CompletedMessages {
    pub(crate) sent: Option<Operation<Message>>,
    pub(crate) received: Option<Operation<Message>>,
    pub(crate) failed: Option<cq::Failure>,
}

/// The context of a queue pair: completions leave their operations here.
#[pin_data]
pub(crate) struct CompletionSink {
    #[pin]
    pub(crate) completed: IrqLock<CompletedMessages>,
    wake: Arc<TimedCompletion>,
}

impl QpContext for CompletionSink {
    type QpType = Rc;

    fn failed(_: &QueuePair<Self>, failure: cq::Failure) {
        pr_err!("a request has failed: {failure}\n");
    }

    fn faulted(_: &QueuePair<Self>, fault: Fault) {
        pr_err!("{fault:?}\n");
    }
}

/// A message, in either direction.
pub(crate) struct Message {
    pub(crate) buffer: DmaBuffer,
    direction: Direction,
}

impl Complete<CompletionSink> for Message {
    /// Called in softirq with some of the queues: it does not sleep, nor free anything.
    fn complete(
        message: Operation<Self>,
        queue: &QueuePair<CompletionSink>,
        completion: &Completion<'_>,
    ) {
        let sink = queue.context();
        let mut completed = sink.completed.lock();
        completed.failed = completion.result().err();
        match message.direction {
            Direction::ToDevice => completed.sent = Some(message),
            _ => completed.received = Some(message),
        }
        drop(completed);
        sink.wake.complete();
    }
}

impl Receive<CompletionSink> for Message {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

/// A message, and the receive that it takes.
pub(crate) struct MessagePair {
    pub(crate) send: Operation<Message>,
    pub(crate) receive: Operation<Message>,
}

impl MessagePair {
    /// Posts both, the receive first.
    pub(crate) fn post(self, queue: &QueuePair<CompletionSink>) -> Result<(), Failure> {
        queue.post_receive(self.receive).step("receive")?;
        queue
            .post_send(self.send, |message, chain| {
                chain.send([message.buffer.sge()])
            })
            .step("send")
    }

    /// Whether both have completed.
    pub(crate) fn is_back(queue: &QueuePair<CompletionSink>) -> bool {
        let completed = queue.context().completed.lock();
        completed.sent.is_some() && completed.received.is_some()
    }

    /// Takes both when they have completed.
    pub(crate) fn take(queue: &QueuePair<CompletionSink>) -> Result<Self, Failure> {
        let mut completed = queue.context().completed.lock();
        if let Some(failure) = completed.failed {
            return Err(Failure::new("message", fmt!("{failure}")));
        }
        let back = completed.sent.take().zip(completed.received.take());
        let (send, receive) = back.ok_or(EINVAL).step("message")?;
        Ok(Self { send, receive })
    }
}

/// The port that the queue pairs are on.
pub(crate) struct Loopback<'a> {
    pub(crate) port_gid: PortGid<'a>,
    owner: &'static CStr,
}

impl<'a> Loopback<'a> {
    /// The first port of `device`, and its GID of a number.
    pub(crate) fn new(
        task: &'a Arc<SampleTask>,
        device: &'a DeviceRef,
        gid_index: u32,
        owner: &'static CStr,
    ) -> Result<Self, Failure> {
        let port_gid = PortGid::new(task, device, gid_index, owner)?;
        Ok(Self { port_gid, owner })
    }

    /// The task.
    pub(crate) fn task(&self) -> &Arc<SampleTask> {
        self.port_gid.task
    }

    /// The device.
    pub(crate) fn device(&self) -> DeviceRef {
        self.port_gid.device().clone()
    }

    /// A message of this direction.
    pub(crate) fn message(&self, direction: Direction) -> Result<Operation<Message>, Failure> {
        let buffer = DmaBuffer::new(self.device(), SIZE, direction).step("buffer")?;
        Operation::new(Message { buffer, direction }).step("operation")
    }

    /// A message and a receive for it.
    pub(crate) fn message_pair(&self) -> Result<MessagePair, Failure> {
        Ok(MessagePair {
            send: self.message(Direction::ToDevice)?,
            receive: self.message(Direction::FromDevice)?,
        })
    }

    /// What a queue pair is made of, with this completion queue.
    pub(crate) fn init_attr(
        &self,
        cq: Arc<CompletionQueue>,
        capacity: QpCap,
    ) -> QpInitAttr<CompletionSink> {
        QpInitAttr::new(self.port_gid.pd.clone(), cq, capacity)
    }

    /// A queue pair that is its own peer.
    pub(crate) fn connected(
        &self,
        cq: Arc<CompletionQueue>,
        capacity: QpCap,
    ) -> Result<Rts<CompletionSink>, Failure> {
        let init = self.initialised(self.init_attr(cq, capacity))?;
        let number = init.number();
        self.connect(init, number)
    }

    /// A queue pair without a peer.
    pub(crate) fn initialised(
        &self,
        attr: QpInitAttr<CompletionSink>,
    ) -> Result<Init<CompletionSink>, Failure> {
        let wake = self.task().wake().clone();
        let sink = try_pin_init!(CompletionSink {
            completed <- new_irq_lock!(CompletedMessages::default(), "loopback::CompletionSink"),
            wake,
        }? Error);
        let reset = qp::create(attr, sink, self.owner).step("queue pair")?;
        self.port_gid.init_qp(reset, rc::Access::NONE)
    }

    /// Connects it with the one of this number, on the same port.
    pub(crate) fn connect(
        &self,
        init: Init<CompletionSink>,
        number: Qpn,
    ) -> Result<Rts<CompletionSink>, Failure> {
        self.port_gid
            .connect(init, &self.port_gid, number, Mtu::Bytes256, 0)
    }
}

/// Fails if a poll has handled completions: the queue pair is gone, and all of it was
/// handled before.
pub(crate) fn nothing_left(step: &'static str, handled: u32) -> Result<(), Failure> {
    match handled {
        0 => Ok(()),
        more => Err(Failure::new(step, fmt!("{more} completions more"))),
    }
}
