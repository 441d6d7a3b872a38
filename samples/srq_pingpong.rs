// SPDX-License-Identifier: GPL-2.0

//! Ping-pong on several queue pairs with a shared receive queue; a peer of `ibv_srq_pingpong`.
//!
//! A message takes a receive from the shared queue, whichever queue pair it arrives at. Used
//! receives are kept until the queue reports that it runs short. Then all of them are posted again.

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
    description: "Sample: ping-pong with a shared receive queue, a peer of ibv_srq_pingpong",
    license: "GPL",
}

rrdma::parameters! {
    server: Text<63> = "", "address of the server; empty: be the server";
    port: Number<1, 65535> = 18515, "TCP port for the exchange of addresses; default 18515";
    device: Text<63> = "", "RDMA device name; empty: first device with an active port";
    ib_port: Number<1, 255> = 1, "port number of the device; default 1";
    gid_index: Number<0, 255> = 0, "GID index of the port; default 0";
    size: Number<1, 1048576> = 4096, "message size in bytes; default 4096";
    mtu: Number<256, 4096> = 1024, "path MTU: 256, 512, 1024, 2048 or 4096; default 1024";
    num_qp: Number<1, 256> = 16, "number of queue pairs, the same at the peer; default 16";
    rx_depth: Number<1, 32767> = 500, "receives in the shared queue; default 500";
    limit: Number<1, 32767> = 16, "refill the queue below this number of receives; default 16";
    extra: Number<0, 32767> = 0, "receives to grow the queue by at the first refill; default 0";
    iters: Number<1, 1000000000> = 1000, "messages in each direction, in total; default 1000";
    patience: Number<1, 3600000> = 10000, "timeout in ms without a message; default 10000";
}

/// Owner that `rdma resource` shows.
const NAME: &CStr = c"rrdma_srq_pingpong";

/// Number of addresses that the program always sends, for up to as many queue pairs.
const DEST_COUNT: usize = 256;

/// Maximum size of all posted receives together, in bytes.
const MOST: u32 = 64 << 20;

/// Time to keep the queue pairs when all messages are exchanged. If the last acknowledgement was
/// lost, the peer retries its message, and needs another acknowledgement.
const LINGER: Msecs = Msecs::new(300);

/// The messages of `ibv_srq_pingpong`, which does not mark their pages.
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
    // Nothing completes this wait: it ends by its timeout, or when the task is stopped.
    let _ = task.wait_for("end", LINGER, || None::<()>);
    let (iters, size) = (parameters::iters.get(), parameters::size.get());
    let (pairs, refills) = (ready.len(), pingpong.refills);
    let end = match round.outcome {
        Outcome::Unacknowledged => ", last message not acknowledged",
        _ => "",
    };
    Ok(Summary::new(fmt!(
        "{iters} messages of {size} bytes on {pairs} queue pairs in {time} us, \
         {refills} refills of the receive queue{end}"
    )))
}

/// Checks parameters that depend on each other, and returns the MTU.
fn check() -> Result<Mtu, Failure> {
    let refuse = |cause: fmt::Arguments<'_>| Err(Failure::new("parameters", cause));
    let (size, depth) = (parameters::size.get(), parameters::rx_depth.get());
    let (limit, mtu) = (parameters::limit.get(), parameters::mtu.get());
    if size.saturating_mul(depth.saturating_add(parameters::extra.get())) > MOST {
        return refuse(fmt!("receives of size={size} exceed {MOST} bytes"));
    }
    if limit > depth {
        return refuse(fmt!("limit={limit} exceeds rx_depth={depth}"));
    }
    match Mtu::from_bytes(mtu) {
        Some(mtu) => Ok(mtu),
        None => refuse(fmt!("mtu={mtu} is not an RDMA MTU")),
    }
}

/// Returns a list of empty addresses, as long as that of the program.
fn empty_dests() -> Result<KVec<PingpongDest>, Failure> {
    KVec::from_elem(PingpongDest::default(), DEST_COUNT, GFP_KERNEL).step("handshake")
}

type Pairs = KVec<(Init<Ctx>, Psn)>;

/// A ping-pong whose queue pairs share their receives.
struct SrqPingPong {
    engine: Arc<PingPong>,
    shared: Arc<SharedReceiveQueue<Ctx>>,
    /// Number of times the shared queue was refilled.
    refills: u32,
}

impl SrqPingPong {
    /// Creates the shared receive queue and posts its receives.
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

    /// Creates the completion queue. It has entries for a send and a drain marker of each queue
    /// pair, and for all receives.
    fn completion_queue(&self, task: &SampleTask) -> Result<PolledQueue, Failure> {
        let entries = parameters::num_qp
            .get()
            .saturating_mul(2)
            .saturating_add(parameters::rx_depth.get())
            .saturating_add(parameters::extra.get());
        PolledQueue::new(task, self.device(), entries, Poller::Core, NAME).step("completion queue")
    }

    /// Creates the queue pairs, in the INIT state.
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

    /// Exchanges all messages, and refills the shared queue when it runs short. Sleeps.
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
        pr_info!("shared receive queue: max_wr is {}\n", room.max_wr);
        Ok(round)
    }

    /// Posts the used receives again. The first call also grows the queue by `extra` receives.
    fn refill(&mut self) -> Result<(), Failure> {
        let extra = parameters::extra.get();
        if self.refills == 0 && extra != 0 {
            self.shared.grow(extra).step("grow")?;
            fill(&self.shared, self.device(), extra)?;
        }
        self.refills = self.refills.saturating_add(1);
        // Armed before posting: otherwise messages could take all receives before the limit is
        // armed.
        let limit = parameters::limit.get();
        self.shared.arm_limit(limit).step("limit")?;
        while let Some(receive) = self.engine.take_used() {
            self.shared.post(receive).step("receive")?;
        }
        Ok(())
    }
}

/// Handles an event of the shared receive queue. Any context.
fn on_event(engine: &PingPong, event: Event) {
    match event {
        Event::LimitReached => engine.set_short(),
        Event::Broken => engine.end(Failure::new(
            "shared receive queue",
            fmt!("fatal error (IB_EVENT_SRQ_ERR)"),
        )),
    }
}

/// Posts `count` new receives.
fn fill(shared: &SharedReceiveQueue<Ctx>, device: &DeviceRef, count: u32) -> Result<(), Failure> {
    let size = parameters::size.get() as usize;
    for _ in 0..count {
        let receive = RecvBuf::new::<SrqMessages>(device, size).step("receive")?;
        shared.post(receive).step("receive")?;
    }
    Ok(())
}

type Ready = KVec<Arc<QueuePair<Ctx>>>;

/// Connects each queue pair with the peer's queue pair at the same index.
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
                fmt!("has only {} queue pairs", ready.len()),
            ));
        }
        let peer = Peer::told(peer, mtu, port, source.clone())?;
        let pair = peer.connect(pair, psn, 1).step("connection")?;
        let pair = pair.queue_pair().clone();
        ready.push(pair, GFP_KERNEL).step("connection")?;
    }
    Ok(ready)
}
