// SPDX-License-Identifier: GPL-2.0

//! Sends 16 bytes to a peer, and receives 16 bytes from it.
//!
//! The peer is `rdma_server` of rdmacm-utils at [`PEER`]. The module loads only if the peer
//! answers.

use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};
use rrdma::{
    net::Namespace,
    new_irq_lock,
    rdma::{
        client::{
            self,
            Registration, //
        },
        cm::{
            Address,
            Addressed,
            Endpoint,
            Id,
            Lost,
            Parameters,
            Prepared,
            WaitLimits, //
        },
        cq::{
            Completion,
            CompletionQueue,
            Poll,
            WcError, //
        },
        dma::{
            Direction,
            DmaBuffer, //
        },
        pd::ProtectionDomain,
        qp::{
            Fault,
            QpCap,
            QpContext,
            QpInitAttr,
            QueuePair,
            Rc, //
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
        TimedCompletion, //
    },
};

/// Address of the peer, and the port of `rdma_server`.
const PEER: (&str, u16) = ("192.0.2.1", 7471);

/// The message; the answer has the same length.
const HELLO: &[u8; 16] = b"hello from Rust\0";

/// Owner of the objects, as `rdma res show` prints it.
const OWNER: &CStr = c"rrdma_hello";

const STEP: Msecs = Msecs::from_secs(3);
const ALL: Msecs = Msecs::from_secs(10);

module! {
    type: Hello,
    name: "rrdma_hello",
    authors: ["The rnvmf developers"],
    description: "Says hello over RDMA",
    license: "GPL",
}

struct Hello {
    _client: Registration<Hello>,
}

impl kernel::Module for Hello {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let wake = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let client = Registration::new(())?;
        Caller { wake }.call(&client)?;
        Ok(Self { _client: client })
    }
}

impl client::Client for Hello {
    const NAME: &'static CStr = OWNER;

    type Context = ();
}

/// The thread that connects. Other contexts wake it, and so does the removal of the device.
struct Caller {
    wake: Arc<TimedCompletion>,
}

impl Caller {
    /// Connects, sends the message and waits for the answer. Sleeps.
    fn call(&self, client: &Registration<Hello>) -> Result {
        let patience = WaitLimits {
            limit: STEP,
            deadline: Deadline::after(ALL),
            cancelled: &|| false,
        };
        let namespace = Namespace::init();
        let peer = Address::parse(&namespace, PEER.0, PEER.1)?;
        let addressed = Id::new(&namespace, self.wake.clone(), OWNER)?
            .resolve(None, &peer, patience)
            .map_err(|error| told(error.cause, error.cause.errno()))?;
        let prepared = self.prepare(client, addressed)?;
        let connection = prepared
            .connect(Parameters::default(), patience)
            .map_err(|error| told(error.cause, error.cause.errno()))?;
        let call = connection.queue_pair().context();
        say_hello(connection.queue_pair())?;
        let is_removing = || connection.queue_pair().device().is_removing();
        while !call.is_over() && !is_removing() && !patience.deadline.is_over() {
            // Woken or timed out: the loop checks its condition again.
            let _ = self.wake.wait_timeout(patience.deadline.left());
        }
        // After this, every completion handler has returned, and no answer can arrive.
        connection.disconnect();
        call.answer()
    }

    /// Makes the queue pair on the device that the address resolved to, and posts a receive: the
    /// peer may send as soon as it is connected. Sleeps.
    fn prepare(
        &self,
        client: &Registration<Hello>,
        addressed: Addressed<Call>,
    ) -> Result<Prepared<Call>> {
        let device = client.acquire(addressed.device()).ok_or(ENODEV)?;
        let capacity = QpCap {
            sends: 1,
            receives: 1,
            send_sges: 1,
        };
        let entries = capacity.completions();
        let pd = ProtectionDomain::new(device.clone(), OWNER)?;
        let cq = CompletionQueue::alloc(device.clone(), entries, 0, Poll::SoftIrq, OWNER)?;
        let call = Call::new(self.wake.clone());
        let parts = QpInitAttr::new(pd, cq, capacity);
        let prepared = addressed.create_queue_pair(parts, call, OWNER)?;
        let buffer = DmaBuffer::new(device, HELLO.len(), Direction::FromDevice)?;
        let answer = Operation::new(Answer(buffer))?;
        prepared
            .queue_pair()
            .post_receive(answer)
            .map_err(|unposted| unposted.error)?;
        Ok(prepared)
    }
}

fn say_hello(queue: &QueuePair<Call>) -> Result {
    let mut buffer = DmaBuffer::new(queue.device().clone(), HELLO.len(), Direction::ToDevice)?;
    buffer.write().copy_from_slice(HELLO);
    queue
        .post_send(Operation::new(Greeting(buffer))?, |greeting, chain| {
            chain.send([greeting.0.sge()])
        })
        .map_err(|unposted| unposted.error)
}

/// The context of the queue pair: results of completions and events, for the caller.
#[pin_data]
struct Call {
    #[pin]
    heard: IrqLock<Heard>,
    wake: Arc<TimedCompletion>,
}

#[derive(Default)]
struct Heard {
    answer: Option<(Operation<Answer>, usize)>,
    failure: Option<&'static str>,
}

impl Call {
    fn new(wake: Arc<TimedCompletion>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            heard <- new_irq_lock!(Heard::default(), "rrdma_hello::Call"),
            wake,
        }? Error)
    }

    /// Stores a result and wakes the caller. Any context.
    fn hear(&self, news: impl FnOnce(&mut Heard)) {
        news(&mut self.heard.lock());
        self.wake.complete();
    }

    fn fail(&self, failure: &'static str) {
        self.hear(|heard| {
            heard.failure.get_or_insert(failure);
        });
    }

    fn is_over(&self) -> bool {
        let heard = self.heard.lock();
        heard.answer.is_some() || heard.failure.is_some()
    }

    /// Logs the answer. The queue pair must be drained.
    fn answer(&self) -> Result {
        let Heard { answer, failure } = core::mem::take(&mut *self.heard.lock());
        let Some((answer, length)) = answer else {
            return Err(told(failure.unwrap_or("no answer"), EIO));
        };
        let mut buffer = answer.into_inner().0;
        let text = buffer.read().get(..length).unwrap_or_default();
        pr_info!("the peer answered {length} bytes: {text:02x?}\n");
        Ok(())
    }
}

impl QpContext for Call {
    type QpType = Rc;

    fn failed(queue: &QueuePair<Self>, failure: WcError) {
        queue.context().fail(failure.message());
    }

    fn faulted(queue: &QueuePair<Self>, _fault: Fault) {
        queue.context().fail("the device stopped the queue pair");
    }
}

/// The message that is sent.
struct Greeting(DmaBuffer);

impl Complete<Call> for Greeting {
    fn complete(_: Operation<Self>, queue: &QueuePair<Call>, completion: &Completion<'_>) {
        if let Err(failure) = completion.result() {
            queue.context().fail(failure.message());
        }
    }
}

/// The receive of the answer.
struct Answer(DmaBuffer);

impl Receive<Call> for Answer {
    fn buffer(&self) -> Sge<'_> {
        self.0.sge()
    }
}

impl Complete<Call> for Answer {
    fn complete(operation: Operation<Self>, queue: &QueuePair<Call>, completion: &Completion<'_>) {
        let length = completion.received().map(|received| received.byte_len());
        match completion.result() {
            Ok(()) => queue.context().hear(|heard| {
                heard.answer = length.map(|length| (operation, length));
            }),
            Err(failure) => queue.context().fail(failure.message()),
        }
    }
}

/// Logs the cause, and returns the error.
fn told(why: impl core::fmt::Display, error: Error) -> Error {
    pr_err!("{}\n", format_args!("{why}"));
    error
}

impl Endpoint for Call {
    fn lost(queue: &QueuePair<Self>, _cause: Lost) {
        queue.context().fail("the connection was lost");
    }
}
