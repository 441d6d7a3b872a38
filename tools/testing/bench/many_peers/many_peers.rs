// SPDX-License-Identifier: GPL-2.0

//! Measures what a member of a full mesh needs per peer, with receives of each queue pair and with
//! a shared receive queue.
//!
//! One member is connected by hand with a growing number of peers. The log has a table of the
//! results. The member is on one device, and its peers are on another one or on the same.

use common::{
    port_gid::PortGid,
    step_error::{
        Step,
        StepError, //
    },
    task::{
        self,
        SampleTask,
        Summary, //
    },
};
use kernel::{
    fmt,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
    time::{
        Instant,
        Monotonic, //
    },
};
use rrdma::{
    memory, new_irq_lock,
    rdma::{
        cq::{
            self,
            Completion,
            CompletionQueue,
            Poll, //
        },
        device::Mtu,
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
        Msecs,
        TimedCompletion, //
    },
};

#[path = "../../../../samples/common/common.rs"]
mod common;

module! {
    type: task::Handle,
    name: "rrdma_bench_many_peers",
    authors: ["The rnvmf developers"],
    description: "Benchmark: a full mesh, with and without a shared receive queue",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device of the member; empty: first device with an active port";
    peer_device: Text<63> = "", "RDMA device of its peers; empty: the same";
    gid_index: Number<0, 255> = 0, "GID index of port 1 of device; default 0";
    peer_gid_index: Number<0, 255> = 0, "GID index of port 1 of peer_device; default 0";
    peers: Number<1, 256> = 32, "maximum number of peers; default 32";
    size: Number<1, 65536> = 1024, "size of a message and of a receive in bytes; default 1024";
    receives: Number<1, 64> = 16, "receives of each queue pair, if not shared; default 16";
    shared_receives: Number<1, 4096> = 32, "receives in the shared receive queue; default 32";
}

/// Numbers of peers of the rows, below the parameter `peers`, which is that of the last row.
const STEPS: [u32; 4] = [1, 4, 16, 64];

/// Time limit of all messages of a row, including retransmissions.
const LIMIT: Msecs = Msecs::new(30_000);

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let (device, peer_device) =
        task.devices(&parameters::device.get(), &parameters::peer_device.get())?;
    let near = PortGid::new(task, &device, parameters::gid_index.get())?;
    let far = PortGid::new(task, &peer_device, parameters::peer_gid_index.get())?;
    let peers = parameters::peers.get();
    pr_info!("receives peers  posted     bytes memory_KiB KiB/peer completions/peer connect_us\n");
    let [own, shared] = [
        Receives::Own(parameters::receives.get()),
        Receives::Shared(parameters::shared_receives.get()),
    ];
    let own = rows(&near, &far, peers, own)?;
    let shared = rows(&near, &far, peers, shared)?;
    Ok(Summary::new(fmt!(
        "{peers} peers, {own} own receives or {shared} shared"
    )))
}

/// Logs the rows of one kind of receives. Returns the number of receives in the last row.
fn rows(
    near: &PortGid<'_>,
    far: &PortGid<'_>,
    peers: u32,
    receives: Receives,
) -> Result<u32, StepError> {
    let below = STEPS.into_iter().filter(|step| *step < peers);
    let mut posted = 0;
    for count in below.chain([peers]) {
        let row = measure(near, far, count, receives)?;
        pr_info!("{row}\n");
        posted = row.posted;
    }
    Ok(posted)
}

/// Kind and number of receives.
#[derive(Clone, Copy)]
enum Receives {
    /// Per queue pair.
    Own(u32),
    /// In the shared receive queue.
    Shared(u32),
}

/// A row of the table, measured at the member.
struct Row {
    receives: Receives,
    peers: u32,
    posted: u32,
    bytes: u64,
    memory: i64,
    completions: u32,
    connect: i64,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.receives {
            Receives::Own(_) => "own",
            Receives::Shared(_) => "shared",
        };
        let per_peer = |total: i64| total.checked_div(self.peers.into()).unwrap_or_default();
        let memory = self.memory / 1024;
        write!(
            f,
            "{kind:<8} {:>5} {:>7} {:>9} {memory:>10} {:>8} {:>16} {:>10}",
            self.peers,
            self.posted,
            self.bytes,
            per_peer(memory),
            per_peer(self.completions.into()),
            self.connect,
        )
    }
}

/// Connects a member with `peers` peers. Then each end of a connection sends a message.
fn measure(
    near: &PortGid<'_>,
    far: &PortGid<'_>,
    peers: u32,
    receives: Receives,
) -> Result<Row, StepError> {
    let mtu = near.mtu()?.min(far.mtu()?);
    let peers_group = QpGroup::new(far, peers, Receives::Own(1))?;
    let numbers = peers_group.numbers()?;
    let before = memory::free();
    let member = QpGroup::new(near, peers, receives)?;
    let (posted, bytes) = (member.posted, member.bytes);
    let answers = member.numbers()?;
    let began = Instant::<Monotonic>::now();
    let member = member.connect(far, &numbers, mtu)?;
    let connect = began.elapsed().as_micros_ceil();
    // Nothing is allocated for the peers in between.
    let after = memory::free();
    let peers_group = peers_group.connect(near, &answers, mtu)?;
    peers_group.send(far)?;
    member.send(near)?;
    let outcome = || match member.counters.outcome(peers)? {
        Ok(()) => peers_group.counters.outcome(peers),
        failed => Some(failed),
    };
    near.task.wait_for("messages", LIMIT, outcome)??;
    Ok(Row {
        receives,
        peers,
        posted,
        bytes,
        memory: before.wrapping_sub(after) as i64,
        completions: member.counters.handled(),
        connect,
    })
}

fn recv_buf(port_gid: &PortGid<'_>) -> Result<Operation<RecvBuf>, StepError> {
    let size = parameters::size.get() as usize;
    let buffer = DmaBuffer::new(port_gid.device().clone(), size, Direction::FromDevice);
    Operation::new(RecvBuf(buffer.step("receive")?)).step("receive")
}

fn send_buf(port_gid: &PortGid<'_>) -> Result<Operation<SendBuf>, StepError> {
    let size = parameters::size.get() as usize;
    let buffer = DmaBuffer::new(port_gid.device().clone(), size, Direction::ToDevice);
    Operation::new(SendBuf(buffer.step("message")?)).step("message")
}

/// Counters of the work requests of all queue pairs in a group.
#[pin_data]
struct MessageCounters {
    wake: Arc<TimedCompletion>,
    /// Expected size of a message in bytes. A copy, because reading the parameter may sleep.
    size: usize,
    sent: Atomic<u32>,
    received: Atomic<u32>,
    #[pin]
    failure: IrqLock<Option<StepError>>,
}

impl MessageCounters {
    fn new(task: &SampleTask) -> Result<Arc<Self>, StepError> {
        let init = pin_init!(Self {
            wake: task.wake().clone(),
            size: parameters::size.get() as usize,
            sent: Atomic::new(0),
            received: Atomic::new(0),
            failure <- new_irq_lock!(None, "many_peers::MessageCounters"),
        });
        Arc::pin_init(init, GFP_KERNEL).step("counters")
    }

    /// Counts a sent or received message.
    fn count(&self, what: &Atomic<u32>) {
        what.fetch_add(1, ordering::Relaxed);
        self.wake.complete();
    }

    /// Records a failure; only the first one is kept.
    fn fail(&self, failure: StepError) {
        self.failure.lock().get_or_insert(failure);
        self.wake.complete();
    }

    /// Records the failure of a work request, unless it was only flushed.
    fn failed(&self, step: &'static str, failure: cq::WcError) {
        if !failure.is_flush() {
            self.fail(StepError::new(step, fmt!("{failure}")));
        }
    }

    /// Returns the number of handled completions.
    fn handled(&self) -> u32 {
        let sent = self.sent.load(ordering::Relaxed);
        sent.saturating_add(self.received.load(ordering::Relaxed))
    }

    /// Returns how the round ended: with all messages sent and received, or with a failure. Returns
    /// `None` if it has not ended.
    fn outcome(&self, peers: u32) -> Option<Result<(), StepError>> {
        if let Some(failure) = self.failure.lock().take() {
            return Some(Err(failure));
        }
        let sent = self.sent.load(ordering::Relaxed);
        let received = self.received.load(ordering::Relaxed);
        (sent >= peers && received >= peers).then_some(Ok(()))
    }
}

/// The context of a queue pair.
struct QpCtx {
    counters: Arc<MessageCounters>,
}

impl QpContext for QpCtx {
    type QpType = Rc;

    fn failed(queue: &QueuePair<Self>, failure: cq::WcError) {
        queue.context().counters.failed("request", failure);
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        let counters = &queue.context().counters;
        counters.fail(StepError::new("queue pair", fmt!("{fault}")));
    }
}

/// A receive.
struct RecvBuf(DmaBuffer);

impl Receive<QpCtx> for RecvBuf {
    fn buffer(&self) -> Sge<'_> {
        self.0.sge()
    }
}

impl Complete<QpCtx> for RecvBuf {
    /// Posts the receive again, to the queue that it came from.
    fn complete(receive: Operation<Self>, queue: &QueuePair<QpCtx>, completion: &Completion<'_>) {
        let counters = &queue.context().counters;
        if let Err(failure) = completion.result() {
            return counters.failed("receive", failure);
        }
        let length = completion
            .received()
            .map_or(0, |received| received.byte_len());
        let wanted = counters.size;
        if length != wanted {
            return counters.fail(StepError::new(
                "message",
                fmt!("got {length} bytes, expected {wanted}"),
            ));
        }
        let posted = match queue.shared_receives() {
            Some(shared) => shared.post(receive),
            None => queue.post_receive(receive),
        };
        if let Err(unposted) = posted {
            counters.fail(StepError::new("receive", fmt!("{:?}", unposted.error)));
        }
        counters.count(&counters.received);
    }
}

/// A message.
struct SendBuf(DmaBuffer);

impl Complete<QpCtx> for SendBuf {
    fn complete(_: Operation<Self>, queue: &QueuePair<QpCtx>, completion: &Completion<'_>) {
        let counters = &queue.context().counters;
        match completion.result() {
            Ok(()) => counters.count(&counters.sent),
            Err(failure) => counters.failed("send", failure),
        }
    }
}

/// The queue pairs of the member, one per peer; or those of the peers, one each.
struct QpGroup<'a> {
    port_gid: &'a PortGid<'a>,
    pairs: KVec<Init<QpCtx>>,
    counters: Arc<MessageCounters>,
    /// Number of posted receives.
    posted: u32,
    /// Size of the receives in bytes.
    bytes: u64,
}

impl<'a> QpGroup<'a> {
    /// Creates `count` queue pairs and posts their receives.
    fn new(port_gid: &'a PortGid<'a>, count: u32, receives: Receives) -> Result<Self, StepError> {
        let mut group = Self {
            port_gid,
            pairs: KVec::with_capacity(count as usize, GFP_KERNEL).step("queue pairs")?,
            counters: MessageCounters::new(port_gid.task)?,
            posted: 0,
            bytes: 0,
        };
        let own = match receives {
            Receives::Own(own) => own,
            Receives::Shared(_) => 0,
        };
        let capacity = QpCap {
            sends: 1,
            receives: own,
            send_sges: 1,
        };
        let shared = match receives {
            Receives::Own(_) => None,
            Receives::Shared(shared) => Some(group.share(shared)?),
        };
        let entries = capacity.completions().saturating_mul(count);
        let entries = entries.saturating_add(shared.as_ref().map_or(0, |_| group.posted));
        let cq = CompletionQueue::alloc(
            port_gid.device().clone(),
            entries,
            0,
            Poll::SoftIrq,
            task::NAME,
        )
        .step("completion queue")?;
        for _ in 0..count {
            port_gid.task.proceed("queue pairs")?;
            let mut parts = QpInitAttr::new(port_gid.pd.clone(), cq.clone(), capacity);
            if let Some(shared) = &shared {
                parts = parts.with_shared_receives(shared.clone());
            }
            group.add(parts, own)?;
        }
        Ok(group)
    }

    /// Creates a shared receive queue with `count` receives.
    fn share(&mut self, count: u32) -> Result<Arc<SharedReceiveQueue<QpCtx>>, StepError> {
        let counters = self.counters.clone();
        let on_event = move |event| match event {
            Event::LimitReached => {}
            Event::Broken => counters.fail(StepError::new(
                "shared receive queue",
                fmt!("fatal error (IB_EVENT_SRQ_ERR)"),
            )),
        };
        let shared = SharedReceiveQueue::new(self.port_gid.pd.clone(), count, on_event)
            .step("shared receive queue")?;
        for _ in 0..count {
            let receive = recv_buf(self.port_gid)?;
            shared.post(receive).step("receive")?;
            self.count_receive();
        }
        Ok(shared)
    }

    /// Creates a queue pair with `receives` receives of its own.
    fn add(&mut self, parts: QpInitAttr<QpCtx>, receives: u32) -> Result<(), StepError> {
        let ctx = QpCtx {
            counters: self.counters.clone(),
        };
        let reset = qp::create(parts, Ok(ctx), task::NAME).step("queue pair")?;
        let pair = self.port_gid.init_qp(reset, rc::Access::NONE)?;
        for _ in 0..receives {
            let receive = recv_buf(self.port_gid)?;
            pair.post_receive(receive).step("receive")?;
            self.count_receive();
        }
        self.pairs.push(pair, GFP_KERNEL).step("queue pairs")
    }

    fn count_receive(&mut self) {
        self.posted = self.posted.saturating_add(1);
        self.bytes = self.bytes.saturating_add(parameters::size.get().into());
    }

    /// Returns the queue pair numbers, for the other group.
    fn numbers(&self) -> Result<KVec<Qpn>, StepError> {
        let mut numbers = KVec::with_capacity(self.pairs.len(), GFP_KERNEL).step("numbers")?;
        for pair in &self.pairs {
            numbers.push(pair.number(), GFP_KERNEL).step("numbers")?;
        }
        Ok(numbers)
    }

    /// Connects each queue pair with the one of the other group at the same index.
    fn connect(
        self,
        peer: &PortGid<'_>,
        numbers: &[Qpn],
        mtu: Mtu,
    ) -> Result<ConnectedGroup, StepError> {
        let mut pairs = KVec::with_capacity(self.pairs.len(), GFP_KERNEL).step("connections")?;
        for (pair, number) in self.pairs.into_iter().zip(numbers) {
            self.port_gid.task.proceed("connect")?;
            let ready = self.port_gid.connect(pair, peer, *number, mtu, 0)?;
            pairs.push(ready, GFP_KERNEL).step("connections")?;
        }
        Ok(ConnectedGroup {
            pairs,
            counters: self.counters,
        })
    }
}

/// A group that is connected with the other group.
struct ConnectedGroup {
    pairs: KVec<Rts<QpCtx>>,
    counters: Arc<MessageCounters>,
}

impl ConnectedGroup {
    /// Sends a message on each queue pair.
    fn send(&self, port_gid: &PortGid<'_>) -> Result<(), StepError> {
        for pair in &self.pairs {
            port_gid.task.proceed("send")?;
            pair.queue_pair()
                .post_send(send_buf(port_gid)?, |message, chain| {
                    chain.send([message.0.sge()])
                })
                .step("send")?;
        }
        Ok(())
    }
}
