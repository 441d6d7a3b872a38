// SPDX-License-Identifier: GPL-2.0

//! Queue pairs that are connected with themselves, or with another one on the same port, and
//! messages between them.

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

/// Length of a message in bytes: a `u64`.
const SIZE: usize = 8;

/// Time limit of a message.
pub(crate) const LIMIT: Msecs = Msecs::new(5000);

/// One send and one receive.
pub(crate) const CAPACITY: QpCap = QpCap {
    sends: 1,
    receives: 1,
    send_sges: 1,
};

/// Completed operations.
#[derive(Default)]
pub(crate) struct CompletedMessages {
    pub(crate) sent: Option<Operation<Message>>,
    pub(crate) received: Option<Operation<Message>>,
    pub(crate) failed: Option<cq::Failure>,
}

/// The context of a queue pair: completion handlers store completed operations here.
#[pin_data]
pub(crate) struct CompletionSink {
    #[pin]
    pub(crate) completed: IrqLock<CompletedMessages>,
    wake: Arc<TimedCompletion>,
}

impl QpContext for CompletionSink {
    type QpType = Rc;

    fn failed(_: &QueuePair<Self>, failure: cq::Failure) {
        pr_err!("request failed: {failure}\n");
    }

    fn faulted(_: &QueuePair<Self>, fault: Fault) {
        pr_err!("queue pair: {fault:?}\n");
    }
}

/// A message, in either direction.
pub(crate) struct Message {
    pub(crate) buffer: DmaBuffer,
    direction: Direction,
}

impl Complete<CompletionSink> for Message {
    /// Runs in softirq with some completion queues, so it must not sleep or free memory.
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

/// A message and the receive for it.
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

    /// Returns whether both have completed.
    pub(crate) fn is_back(queue: &QueuePair<CompletionSink>) -> bool {
        let completed = queue.context().completed.lock();
        completed.sent.is_some() && completed.received.is_some()
    }

    /// Takes both after they have completed.
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

/// The port of the queue pairs.
pub(crate) struct Loopback<'a> {
    pub(crate) port_gid: PortGid<'a>,
    owner: &'static CStr,
}

impl<'a> Loopback<'a> {
    /// Takes port 1 of `device` and its GID at `gid_index`. May sleep.
    pub(crate) fn new(
        task: &'a Arc<SampleTask>,
        device: &'a DeviceRef,
        gid_index: u32,
        owner: &'static CStr,
    ) -> Result<Self, Failure> {
        let port_gid = PortGid::new(task, device, gid_index, owner)?;
        Ok(Self { port_gid, owner })
    }

    /// Returns the task.
    pub(crate) fn task(&self) -> &Arc<SampleTask> {
        self.port_gid.task
    }

    /// Returns a reference to the device.
    pub(crate) fn device(&self) -> DeviceRef {
        self.port_gid.device().clone()
    }

    /// Allocates a message of this direction.
    pub(crate) fn message(&self, direction: Direction) -> Result<Operation<Message>, Failure> {
        let buffer = DmaBuffer::new(self.device(), SIZE, direction).step("buffer")?;
        Operation::new(Message { buffer, direction }).step("operation")
    }

    /// Allocates a message and the receive for it.
    pub(crate) fn message_pair(&self) -> Result<MessagePair, Failure> {
        Ok(MessagePair {
            send: self.message(Direction::ToDevice)?,
            receive: self.message(Direction::FromDevice)?,
        })
    }

    /// Returns the attributes of a queue pair with this completion queue.
    pub(crate) fn init_attr(
        &self,
        cq: Arc<CompletionQueue>,
        capacity: QpCap,
    ) -> QpInitAttr<CompletionSink> {
        QpInitAttr::new(self.port_gid.pd.clone(), cq, capacity)
    }

    /// Creates a queue pair that is connected with itself.
    pub(crate) fn connected(
        &self,
        cq: Arc<CompletionQueue>,
        capacity: QpCap,
    ) -> Result<Rts<CompletionSink>, Failure> {
        let init = self.initialised(self.init_attr(cq, capacity))?;
        let number = init.number();
        self.connect(init, number)
    }

    /// Creates a queue pair in the INIT state.
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

    /// Connects a queue pair with the queue pair `number` on the same port.
    pub(crate) fn connect(
        &self,
        init: Init<CompletionSink>,
        number: Qpn,
    ) -> Result<Rts<CompletionSink>, Failure> {
        self.port_gid
            .connect(init, &self.port_gid, number, Mtu::Bytes256, 0)
    }
}

/// Fails if a poll has handled completions after the queue pair was destroyed.
pub(crate) fn nothing_left(step: &'static str, handled: u32) -> Result<(), Failure> {
    match handled {
        0 => Ok(()),
        more => Err(Failure::new(step, fmt!("{more} unexpected completions"))),
    }
}
