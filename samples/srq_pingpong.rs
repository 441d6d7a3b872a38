// SPDX-License-Identifier: GPL-2.0

//! A ping-pong on several queue pairs that share their receives: a peer of
//! `ibv_srq_pingpong`.
//!
//! Messages take receives from the shared queue, whichever queue pair they arrive at.
//! Used ones are kept until the queue tells that it runs short; then all of them are
//! posted again.

use common::{
    exchange,
    failure::{
        Failure,
        Step, //
    },
    formats::handshake::PingpongDest,
    peer::Peer,
    requirement::DeviceRequirement,
    task::{
        self,
        SampleTask,
        Summary, //
    },
};
use engine::{
    polled_queue::{
        PolledQueue,
        Poller, //
    },
    qp_ctx::{
        QpCtx,
        RecvBuf, //
    },
    run::{
        Outcome,
        RoundResult, //
    },
    MessageProtocol,
    PingPong,
    PingPongConfig, //
};
use kernel::{
    fmt,
    prelude::*,
    str::CStr,
    sync::Arc,
    time::{
        Instant,
        Monotonic, //
    }, //
};
use rrdma::{
    params::Text,
    rdma::{
        device::{
            DeviceRef,
            GidEntry,
            Mtu,
            Port, //
        },
        pd::ProtectionDomain,
        qp::{
            self,
            rc,
            Init,
            Psn,
            QpCap,
            QpInitAttr,
            QueuePair,
            Rc, //
        },
        srq::{
            Event,
            SharedReceiveQueue, //
        },
    },
    sync::Msecs,
};

#[path = "common/common.rs"]
mod common;
#[path = "pingpong/engine/engine.rs"]
mod engine;

module! {
    type: task::Handle,
    name: "rrdma_srq_pingpong",
    authors: ["The rnvmf developers"],
    description: "Sample: ping-pong on queue pairs that share their receives",
    license: "GPL",
}

rrdma::parameters! {
    server: Text<63> = "", "address of the peer; empty: be the server";
    port: Number<1, 65535> = 18515, "TCP port to tell each other the addresses";
    device: Text<63> = "", "RDMA device; empty: the first with an active port";
    ib_port: Number<1, 255> = 1, "port of the device";
    gid_index: Number<0, 255> = 0, "which GID of the port";
    size: Number<1, 1048576> = 4096, "bytes of a message";
    mtu: Number<256, 4096> = 1024, "bytes of a packet: 256, 512, 1024, 2048 or 4096";
    num_qp: Number<1, 256> = 16, "queue pairs, as many as the peer has";
    rx_depth: Number<1, 32767> = 500, "receives that they share";
    limit: Number<1, 32767> = 16, "receives below which the queue is filled again";
    extra: Number<0, 32767> = 0, "receives that are added when that happens first";
    iters: Number<1, 1000000000> = 1000, "messages in each direction, of all queue pairs";
    patience: Number<1, 3600000> = 10000, "milliseconds of silence after which it is over";
}

/// What `rdma resource` names.
const NAME: &CStr = c"rrdma_srq_pingpong";

/// The program tells of as many queue pairs, those that it does not have included.
const DEST_COUNT: usize = 256;

/// Bytes that the receives may have, all together.
const MOST: u32 = 64 << 20;

/// How long the queue pairs stay when all is done: if the peer has not got our last
/// acknowledgement, it sends again and has to be answered.
const LINGER: Msecs = Msecs::new(300);

/// The messages of `ibv_srq_pingpong`, which has no marks in them.
struct SrqMessages;

impl MessageProtocol for SrqMessages {
    type QpType = Rc;
    type Route = ();

    const MARKS_PAGES: bool = false;
    const RESENDS: bool = false;
}

type Ctx = QpCtx<SrqMessages>;

fn run(task: &Arc<SampleTask>) -> Result<Summary, Failure> {
    let mtu = check()?;
    let device = task.device(&parameters::device.get())?;
    DeviceRequirement::ConnectionsByHand.check(&device)?;
    let port = device.port(parameters::ib_port.get());
    let port = port.ok_or(ENODEV).step("port")?;
    let source = port.gid(parameters::gid_index.get()).step("GID")?;
    let server: Text<63> = parameters::server.get();
    let mut pingpong = SrqPingPong::new(task, &device, !server.is_empty())?;
    let mut queue = pingpong.completion_queue(task)?;
    let pairs = pingpong.queue_pairs(&queue, port)?;
    let mut mine = empty_dests()?;
    for (dest, (pair, psn)) in mine.iter_mut().zip(&pairs) {
        *dest = exchange::local_dest(port, &source, pair.number().get(), psn.get())?;
    }
    let mut theirs = empty_dests()?;
    let mut ready = None;
    let tcp = u16::try_from(parameters::port.get()).unwrap_or_default();
    exchange::exchange(task, &server, tcp, &mine, &mut theirs, |theirs| {
        ready = Some(connect(pairs, theirs, mtu, port, &source)?);
        Ok(())
    })?;
    let ready = ready.ok_or(EINVAL).step("connection")?;
    let start = Instant::<Monotonic>::now();
    let round = pingpong.run(task, &mut queue, &ready)?;
    let time = start.elapsed().as_micros_ceil();
    // Nothing is to come, so this fails when it is time, or when the task is stopped.
    let _ = task.wait_for("end", LINGER, || None::<()>);
    let (iters, size) = (parameters::iters.get(), parameters::size.get());
    let (pairs, refills) = (ready.len(), pingpong.refills);
    let end = match round.outcome {
        Outcome::Unacknowledged => ", the last one not acknowledged",
        _ => "",
    };
    Ok(Summary::new(fmt!(
        "{iters} messages of {size} bytes on {pairs} queue pairs in {time} us, \
         {refills} times short of receives{end}"
    )))
}

/// The parameters that have to go together; and the MTU.
fn check() -> Result<Mtu, Failure> {
    let refuse = |cause: fmt::Arguments<'_>| Err(Failure::new("parameters", cause));
    let (size, depth) = (parameters::size.get(), parameters::rx_depth.get());
    let (limit, mtu) = (parameters::limit.get(), parameters::mtu.get());
    if size.saturating_mul(depth.saturating_add(parameters::extra.get())) > MOST {
        return refuse(fmt!("receives of size={size} are more than {MOST} bytes"));
    }
    if limit > depth {
        return refuse(fmt!("limit={limit} is more than rx_depth={depth}"));
    }
    match Mtu::from_bytes(mtu) {
        Some(mtu) => Ok(mtu),
        None => refuse(fmt!("mtu={mtu} is no MTU of RDMA")),
    }
}

/// Room for as many ends as the program tells of, none of which is there.
fn empty_dests() -> Result<KVec<PingpongDest>, Failure> {
    KVec::from_elem(PingpongDest::default(), DEST_COUNT, GFP_KERNEL).step("handshake")
}

type Pairs = KVec<(Init<Ctx>, Psn)>;

/// A ping-pong whose queue pairs share their receives.
struct SrqPingPong {
    engine: Arc<PingPong>,
    shared: Arc<SharedReceiveQueue<Ctx>>,
    /// How often the shared queue was filled again.
    refills: u32,
}

impl SrqPingPong {
    /// Makes the shared queue with its receives.
    fn new(task: &SampleTask, device: &DeviceRef, begins: bool) -> Result<Self, Failure> {
        let depth = parameters::rx_depth.get();
        let config = PingPongConfig {
            iters: parameters::iters.get(),
            begins,
            check: false,
            queue_pairs: parameters::num_qp.get(),
            shared_receives: depth.saturating_add(parameters::extra.get()),
        };
        let engine = PingPong::new(task, config)?;
        let pd = ProtectionDomain::new(device.clone(), NAME).step("protection domain")?;
        let teller = engine.clone();
        let shared = SharedReceiveQueue::new(pd, depth, move |event| on_event(&teller, event))
            .step("shared receive queue")?;
        fill(&shared, device, depth)?;
        shared.arm_limit(parameters::limit.get()).step("limit")?;
        Ok(Self {
            engine,
            shared,
            refills: 0,
        })
    }

    fn device(&self) -> &DeviceRef {
        self.shared.protection_domain().device()
    }

    /// A queue for a send and the marker of each queue pair, and all receives.
    fn completion_queue(&self, task: &SampleTask) -> Result<PolledQueue, Failure> {
        let entries = parameters::num_qp
            .get()
            .saturating_mul(2)
            .saturating_add(parameters::rx_depth.get())
            .saturating_add(parameters::extra.get());
        PolledQueue::new(task, self.device(), entries, Poller::Core, NAME).step("completion queue")
    }

    /// Makes the queue pairs.
    fn queue_pairs(&self, queue: &PolledQueue, port: Port<'_>) -> Result<Pairs, Failure> {
        let capacity = QpCap {
            sends: 1,
            receives: 0,
            send_sges: 1,
        };
        let (pd, cq) = (self.shared.protection_domain(), queue.completion_queue());
        let size = parameters::size.get() as usize;
        let mut pairs = KVec::new();
        for _ in 0..parameters::num_qp.get() {
            let parts = QpInitAttr::new(pd.clone(), cq.clone(), capacity);
            let parts = parts.with_shared_receives(self.shared.clone());
            let ctx = Ctx::new(&self.engine, self.device(), size, Some(()))?;
            let reset = qp::create(parts, ctx, NAME).step("queue pair")?;
            let init = reset.into_init(rc::Init {
                port,
                pkey_index: 0,
                access: rc::Access::NONE,
            });
            let pair = (init.step("queue pair")?, Psn::random());
            pairs.push(pair, GFP_KERNEL).step("queue pair")?;
        }
        Ok(pairs)
    }

    /// Exchanges all messages; meanwhile fills the shared queue whenever it says that it
    /// is short. Sleeps.
    fn run(
        &mut self,
        task: &SampleTask,
        queue: &mut PolledQueue,
        pairs: &Ready,
    ) -> Result<RoundResult, Failure> {
        let patience = Msecs::new(parameters::patience.get());
        let engine = self.engine.clone();
        let round = engine.run(task, queue, pairs, patience, || self.refill())?;
        if round.outcome == Outcome::Silent {
            let limit = patience.get();
            return Err(Failure::new("messages", fmt!("timed out after {limit} ms")));
        }
        let room = self.shared.query().step("shared receive queue")?;
        pr_info!("the shared queue has room for {} receives\n", room.max_wr);
        Ok(round)
    }

    /// Posts the used receives again, and the first time more of them.
    fn refill(&mut self) -> Result<(), Failure> {
        let extra = parameters::extra.get();
        if self.refills == 0 && extra != 0 {
            self.shared.grow(extra).step("grow")?;
            fill(&self.shared, self.device(), extra)?;
        }
        self.refills = self.refills.saturating_add(1);
        // First, so that no message takes the last receive unnoticed.
        let limit = parameters::limit.get();
        self.shared.arm_limit(limit).step("limit")?;
        while let Some(receive) = self.engine.take_used() {
            self.shared.post(receive).step("receive")?;
        }
        Ok(())
    }
}

/// What the device says of the shared queue. Any context.
fn on_event(engine: &PingPong, event: Event) {
    match event {
        Event::LimitReached => engine.set_short(),
        Event::Broken => engine.end(Failure::new(
            "shared receive queue",
            fmt!("the device gave it up"),
        )),
    }
}

/// Posts so many new receives.
fn fill(shared: &SharedReceiveQueue<Ctx>, device: &DeviceRef, count: u32) -> Result<(), Failure> {
    let size = parameters::size.get() as usize;
    for _ in 0..count {
        let receive = RecvBuf::new::<SrqMessages>(device, size).step("receive")?;
        shared.post(receive).step("receive")?;
    }
    Ok(())
}

type Ready = KVec<Arc<QueuePair<Ctx>>>;

/// Connects each queue pair with the one of the peer that has the same place.
fn connect(
    pairs: Pairs,
    theirs: &[PingpongDest],
    mtu: Mtu,
    port: Port<'_>,
    source: &GidEntry<'_>,
) -> Result<Ready, Failure> {
    let mut ready = KVec::new();
    for ((pair, psn), peer) in pairs.into_iter().zip(theirs) {
        if peer.qpn == 0 {
            return Err(Failure::new(
                "peer",
                fmt!("it has only {} queue pairs", ready.len()),
            ));
        }
        let peer = Peer::told(peer, mtu, port, source.clone())?;
        let pair = peer.connect(pair, psn, 1).step("connection")?;
        let pair = pair.queue_pair().clone();
        ready.push(pair, GFP_KERNEL).step("connection")?;
    }
    Ok(ready)
}
