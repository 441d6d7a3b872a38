// SPDX-License-Identifier: GPL-2.0

//! The kinds of completion queues: who polls, and in which context completions are
//! handled.
//!
//! It needs no peer: for each kind a queue pair is connected with itself, sends itself
//! messages, and is drained with a receive still posted, which has to come back.

use common::{
    failure::{
        Failure,
        Step, //
    },
    port_gid::PortGid,
    task::{
        self,
        SampleTask,
        Summary, //
    },
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
};
use rrdma::{
    errno::EOPNOTSUPP,
    new_irq_lock,
    rdma::{
        cq::{
            self,
            Completion,
            CompletionQueue,
            DirectQueue,
            NotifiedQueue,
            NotifyMode,
            Poll, //
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
        Deadline,
        IrqLock,
        Msecs,
        OwnedQueue,
        QueueFlags,
        TimedCompletion, //
    },
};

#[path = "common/common.rs"]
mod common;
#[path = "completion_queues/one_poller.rs"]
mod one_poller;
#[path = "completion_queues/overrun.rs"]
mod overrun;
#[path = "completion_queues/partial_post.rs"]
mod partial_post;

module! {
    type: task::Handle,
    name: "rrdma_completion_queues",
    authors: ["The rnvmf developers"],
    description: "Sample: the kinds of completion queues, and who polls them",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device; empty: the first with an active port";
    gid_index: Number<0, 255> = 0, "which GID of its first port";
    messages: Number<1, 1000000> = 100, "messages for each kind of queue";
    overrun: Flag = false, "let a queue that is too small lose a completion, at the end";
}

const OWNER: &CStr = c"rrdma_completion_queues";

/// Bytes of a message: its number.
const SIZE: usize = 8;

/// The longest that a message to oneself may take.
const LIMIT: Msecs = Msecs::new(5000);

/// How many completions are handled before something else gets its turn.
const BUDGET: u32 = 16;

/// Entries of a queue: a send, a receive, and the markers of the drain.
const CAPACITY: QpCap = QpCap {
    sends: 1,
    receives: 1,
    send_sges: 1,
};

fn run(task: &Arc<SampleTask>) -> Result<Summary, Failure> {
    let device = task.device(&parameters::device.get())?;
    let port_gid = PortGid::new(task, &device, parameters::gid_index.get(), OWNER)?;
    let env = TestEnv { port_gid };
    for poll in [Poll::SoftIrq, Poll::Workqueue, Poll::UnboundWorkqueue] {
        env.by_core(poll)?;
    }
    partial_post::run(&env)?;
    env.pooled()?;
    env.direct()?;
    env.notified()?;
    env.solicited()?;
    env.refusals()?;
    if parameters::overrun.get() {
        overrun::run(&env)?;
    }
    let messages = parameters::messages.get();
    Ok(Summary::new(fmt!("6 kinds, {messages} messages each")))
}

/// What is back of what was posted.
#[derive(Default)]
struct CompletedMessages {
    sent: Option<Operation<Message>>,
    received: Option<Operation<Message>>,
    failed: Option<cq::Failure>,
}

/// The context of a queue pair: where completions leave what they bring.
#[pin_data]
struct CompletionSink {
    #[pin]
    returned: IrqLock<CompletedMessages>,
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
struct Message {
    buffer: DmaBuffer,
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
        let mut returned = sink.returned.lock();
        returned.failed = completion.result().err();
        match message.direction.is_to_device() {
            true => returned.sent = Some(message),
            false => returned.received = Some(message),
        }
        drop(returned);
        sink.wake.complete();
    }
}

impl Receive<CompletionSink> for Message {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

/// Room for a message that never comes.
struct CountedReceive {
    message: Message,
    back: Arc<Atomic<u32>>,
}

impl Complete<CompletionSink> for CountedReceive {
    /// Called where one may sleep: whoever polls may, and so may a drain.
    fn complete(receive: Operation<Self>, _: &QueuePair<CompletionSink>, _: &Completion<'_>) {
        receive.back.fetch_add(1, ordering::Release);
    }
}

impl Receive<CompletionSink> for CountedReceive {
    fn buffer(&self) -> Sge<'_> {
        self.message.buffer()
    }
}

/// Where all queue pairs are.
struct TestEnv<'a> {
    port_gid: PortGid<'a>,
}

impl TestEnv<'_> {
    fn device(&self) -> DeviceRef {
        self.port_gid.device().clone()
    }

    /// The core polls a queue of our own.
    fn by_core(&self, poll: Poll) -> Result<(), Failure> {
        let cq = CompletionQueue::alloc(self.device(), CAPACITY.completions(), 0, poll, OWNER)
            .step("completion queue")?;
        self.exchange_messages(cq, |returned| self.wait_for_core(returned))?;
        pr_info!("polled by the core, {poll:?}\n");
        Ok(())
    }

    /// The core polls a queue that we share with others.
    fn pooled(&self) -> Result<(), Failure> {
        let cq = CompletionQueue::pool_get(self.device(), CAPACITY.completions(), 0, Poll::SoftIrq)
            .step("share of a completion queue")?;
        self.exchange_messages(cq, |returned| self.wait_for_core(returned))?;
        pr_info!("polled by the core, shared\n");
        Ok(())
    }

    /// Whoever polls wakes the task when it has handled a completion.
    fn wait_for_core(&self, returned: &dyn Fn() -> bool) -> Result<(), Failure> {
        self.port_gid
            .task
            .wait_for("completions", LIMIT, || returned().then_some(()))
    }

    /// We poll, without a pause.
    fn direct(&self) -> Result<(), Failure> {
        let queue = DirectQueue::new(self.device(), CAPACITY.completions(), 0, OWNER)
            .step("direct queue")?;
        let cq = queue.completion_queue().clone();
        self.exchange_messages(cq, |returned| {
            let deadline = Deadline::after(LIMIT);
            while !returned() {
                self.port_gid.task.proceed("completions")?;
                if deadline.left() == Msecs::new(0) {
                    return Err(Failure::new("completions", fmt!("none to poll")));
                }
                if queue.poll(1) > 1 {
                    return Err(Failure::new("poll", fmt!("more than asked for")));
                }
            }
            Ok(())
        })?;
        nothing_left("direct queue", queue.poll(BUDGET))?;
        self.polled_as_they_go(&queue)?;
        one_poller::run(self)?;
        pr_info!("polled by the consumer\n");
        Ok(())
    }

    /// We poll while queue pairs go, whose drain polls, too: what they had posted comes
    /// back, and then nothing more.
    fn polled_as_they_go(&self, queue: &DirectQueue) -> Result<(), Failure> {
        const QUEUE_PAIRS: u32 = 5;
        let others = OwnedQueue::new(OWNER, QueueFlags::UNBOUND, 1).step("workqueue")?;
        let back = Arc::new(Atomic::new(0), GFP_KERNEL).step("counter")?;
        for _ in 0..QUEUE_PAIRS {
            self.port_gid.task.proceed("queue pairs")?;
            let ready = self.connect(queue.completion_queue().clone())?;
            let receive = CountedReceive {
                message: self.message(Direction::FromDevice)?.into_inner(),
                back: back.clone(),
            };
            let posted = ready
                .queue_pair()
                .post_receive(Operation::new(receive).step("operation")?);
            posted.map_err(|unposted| unposted.error).step("receive")?;
            let gone = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL).step("completion")?;
            let told = gone.clone();
            let drop_it = move || {
                drop(ready);
                told.complete();
            };
            others.try_spawn(GFP_KERNEL, drop_it).step("work item")?;
            while !gone.wait_timeout(Msecs::new(0)) {
                queue.poll(BUDGET);
            }
            nothing_left("gone", queue.poll(BUDGET))?;
        }
        match back.load(ordering::Acquire) {
            QUEUE_PAIRS => Ok(()),
            back => Err(Failure::new(
                "gone",
                fmt!("{back} of {QUEUE_PAIRS} are back"),
            )),
        }
    }

    /// We poll when we are woken.
    fn notified(&self) -> Result<(), Failure> {
        let wake = self.port_gid.task.wake().clone();
        let entries = CAPACITY.completions();
        let mut queue =
            NotifiedQueue::new(self.device(), entries, 0, wake, OWNER).step("notified queue")?;
        let cq = queue.completion_queue().clone();
        self.exchange_messages(cq, |returned| {
            self.port_gid
                .task
                .wait_for("completions", LIMIT, || {
                    loop {
                        while queue.poll(BUDGET) == BUDGET {}
                        if returned() {
                            return Some(Ok(()));
                        }
                        match queue.arm(NotifyMode::Next) {
                            // What has come since the poll would wake nobody.
                            Ok(true) => {}
                            Ok(false) => return None,
                            Err(error) => return Some(Err(error)),
                        }
                    }
                })?
                .step("arm")
        })?;
        nothing_left("notified queue", queue.poll(BUDGET))?;
        pr_info!("polled by the consumer when it is woken\n");
        Ok(())
    }

    /// We are woken for what the sender wants us to be woken for, and not for the rest.
    fn solicited(&self) -> Result<(), Failure> {
        let bell = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL).step("completion")?;
        let entries = CAPACITY.completions();
        let mut queue = NotifiedQueue::new(self.device(), entries, 0, bell.clone(), OWNER)
            .step("notified queue")?;
        let ready = self.connect(queue.completion_queue().clone())?;
        let pair = ready.queue_pair();
        let mut messages = (
            self.message(Direction::ToDevice)?,
            self.message(Direction::FromDevice)?,
        );
        if queue.arm(NotifyMode::Solicited).step("arm")? {
            return Err(Failure::new("arm", fmt!("something is there")));
        }
        for solicited in [false, true] {
            let (send, receive) = messages;
            let posted = pair.post_receive(receive);
            posted.map_err(|unposted| unposted.error).step("receive")?;
            let posted = pair.post_send(send, |message, chain| {
                if solicited {
                    chain.solicited();
                }
                chain.send([message.buffer.sge()])
            });
            posted.map_err(|unposted| unposted.error).step("send")?;
            let deadline = Deadline::after(LIMIT);
            while !is_back(pair) {
                self.port_gid.task.proceed("completions")?;
                if deadline.left() == Msecs::new(0) {
                    return Err(Failure::new("completions", fmt!("none to poll")));
                }
                queue.poll(BUDGET);
            }
            let limit = if solicited { LIMIT } else { Msecs::new(0) };
            if bell.wait_timeout(limit) != solicited {
                return Err(Failure::new("bell", fmt!("solicited is {solicited}")));
            }
            messages = take(pair)?;
        }
        pr_info!("woken for what is solicited\n");
        Ok(())
    }

    /// Sends messages, one after the other, through a queue pair on `cq`; `wait` is to
    /// return when the closure that it is given says so.
    fn exchange_messages(
        &self,
        cq: Arc<CompletionQueue>,
        mut wait: impl FnMut(&dyn Fn() -> bool) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let ready = self.connect(cq)?;
        let queue = ready.queue_pair();
        let mut messages = (
            self.message(Direction::ToDevice)?,
            self.message(Direction::FromDevice)?,
        );
        for number in 0..u64::from(parameters::messages.get()) {
            let (mut send, receive) = messages;
            let text = number.to_ne_bytes();
            for (to, from) in send.buffer.write().iter_mut().zip(text) {
                *to = from;
            }
            post(queue, send, receive)?;
            wait(&|| is_back(queue))?;
            let (sent, mut received) = take(queue)?;
            let is = received.buffer.read();
            if is != text {
                return Err(Failure::new("message", fmt!("{is:?} and not {text:?}")));
            }
            received.buffer.give_back();
            messages = (sent, received);
        }
        // The drain polls a queue that nobody else does.
        queue.post_receive(messages.1).step("receive")?;
        queue.drain();
        let returned = queue.context().returned.lock();
        let flushed = returned.failed.is_some_and(|failure| failure.is_flush());
        if returned.received.is_none() || !flushed {
            return Err(Failure::new("drain", fmt!("the receive did not come back")));
        }
        Ok(())
    }

    fn message(&self, direction: Direction) -> Result<Operation<Message>, Failure> {
        let buffer = DmaBuffer::new(self.device(), SIZE, direction).step("buffer")?;
        Operation::new(Message { buffer, direction }).step("operation")
    }

    /// A queue pair that is its own peer.
    fn connect(&self, cq: Arc<CompletionQueue>) -> Result<Rts<CompletionSink>, Failure> {
        let init = self.begin(QpInitAttr::new(self.port_gid.pd.clone(), cq, CAPACITY))?;
        let number = init.number();
        self.finish(init, number)
    }

    /// A queue pair without a peer.
    fn begin(&self, parts: QpInitAttr<CompletionSink>) -> Result<Init<CompletionSink>, Failure> {
        let wake = self.port_gid.task.wake().clone();
        let sink = try_pin_init!(CompletionSink {
            returned <- new_irq_lock!(CompletedMessages::default(), "rrdma_completion_queues::CompletionSink"),
            wake,
        }? Error);
        let reset = qp::create(parts, sink, OWNER).step("queue pair")?;
        self.port_gid.init_qp(reset, rc::Access::NONE)
    }

    /// Connects it with the one of this number, on the same port.
    fn finish(
        &self,
        init: Init<CompletionSink>,
        number: Qpn,
    ) -> Result<Rts<CompletionSink>, Failure> {
        self.port_gid
            .connect(init, &self.port_gid, number, Mtu::Bytes256, 0)
    }

    /// Asks for queues that cannot be.
    fn refusals(&self) -> Result<(), Failure> {
        let most = self.device().attributes().max_cqe;
        let wake = self.port_gid.task.wake();
        for entries in [0, most.saturating_add(1)] {
            let poll = Poll::SoftIrq;
            refused(CompletionQueue::alloc(
                self.device(),
                entries,
                0,
                poll,
                OWNER,
            ))?;
            refused(CompletionQueue::pool_get(self.device(), entries, 0, poll))?;
            refused(DirectQueue::new(self.device(), entries, 0, OWNER))?;
            let wake = wake.clone();
            refused(NotifiedQueue::new(self.device(), entries, 0, wake, OWNER))?;
        }
        let queue = DirectQueue::new(self.device(), 1, 0, OWNER).step("direct queue")?;
        match queue.completion_queue().set_moderation(8, 100) {
            Ok(()) => pr_info!("8 completions or 100 us are one interrupt\n"),
            Err(error) if error == EOPNOTSUPP => pr_info!("the device has no moderation\n"),
            Err(error) => return Err(error).step("moderation"),
        }
        Ok(())
    }
}

/// Posts a message, and what it is to be received into before.
fn post(
    queue: &QueuePair<CompletionSink>,
    send: Operation<Message>,
    receive: Operation<Message>,
) -> Result<(), Failure> {
    queue.post_receive(receive).step("receive")?;
    queue
        .post_send(send, |message, chain| chain.send([message.buffer.sge()]))
        .step("send")
}

/// Whether both of what was posted are back.
fn is_back(queue: &QueuePair<CompletionSink>) -> bool {
    let returned = queue.context().returned.lock();
    returned.sent.is_some() && returned.received.is_some()
}

fn take(
    queue: &QueuePair<CompletionSink>,
) -> Result<(Operation<Message>, Operation<Message>), Failure> {
    let mut returned = queue.context().returned.lock();
    if let Some(failure) = returned.failed {
        return Err(Failure::new("message", fmt!("{failure}")));
    }
    let back = returned.sent.take().zip(returned.received.take());
    back.ok_or(EINVAL).step("message")
}

/// The queue pair is gone, and all that it had to say was handled before.
fn nothing_left(step: &'static str, handled: u32) -> Result<(), Failure> {
    match handled {
        0 => Ok(()),
        more => Err(Failure::new(step, fmt!("{more} completions more"))),
    }
}

/// What cannot be has to be refused as invalid.
fn refused<T>(result: Result<T>) -> Result<(), Failure> {
    match result {
        Err(error) if error == EINVAL => Ok(()),
        Err(error) => Err(Failure::new("refusals", fmt!("{error:?} and not EINVAL"))),
        Ok(_) => Err(Failure::new("refusals", fmt!("it was done"))),
    }
}
