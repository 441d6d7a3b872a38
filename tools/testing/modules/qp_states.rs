// SPDX-License-Identifier: GPL-2.0

//! Tests the states of a queue pair, from RESET to ERR, and the transitions that are refused.
//!
//! The test needs no peer: the queue pairs are connected with themselves. For each transport
//! service, a queue pair is destroyed in each state. Receives are posted from INIT on; all of them
//! must complete.

use common::{
    requirement::DeviceRequirement,
    step_error::{
        expect_equal,
        expect_error,
        expect_unposted,
        Step,
        StepError, //
    },
    task::{
        self,
        SampleTask,
        Summary, //
    },
};
use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};
use rrdma::{
    errno::{
        EAFNOSUPPORT,
        ENOTCONN, //
    },
    rdma::{
        cq::{
            self,
            Completion,
            CompletionQueue,
            Poll, //
        },
        device::{
            DeviceRef,
            Gid,
            GidEntry,
            Mtu,
            Port, //
        },
        dma::{
            Direction,
            DmaBuffer, //
        },
        mr::RemoteKey,
        path::Path,
        pd::ProtectionDomain,
        qp::{
            self,
            rc,
            uc,
            AckTimeout,
            Connected,
            Fault,
            Init,
            Psn,
            QpCap,
            QpContext,
            QpInitAttr,
            Qpn,
            QueuePair,
            Rc,
            Reset,
            RetryCount,
            RnrTimer,
            Rtr,
            Rts,
            State,
            TransitionError,
            Uc, //
        },
        wr::{
            Complete,
            Operation,
            Receive,
            Sge, //
        },
    },
};

#[path = "../../../samples/common/common.rs"]
mod common;

module! {
    type: task::Handle,
    name: "rrdma_test_qp_states",
    authors: ["The rnvmf developers"],
    description: "Test: states of queue pairs and refused transitions",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device name; empty: first device with an active port";
    gid_index: Number<0, 255> = 0, "GID index of port 1; default 0";
    nobody: Text<39> = "", "an IP address in the subnet that no host has; empty: skip";
    fill: Bool = false, "fill the queues";
}

/// Receives to post to each queue pair.
const RECEIVES: u32 = 4;

/// Entries of the completion queue.
const COMPLETIONS: u32 = 32;

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let device = task.device(&parameters::device.get())?;
    DeviceRequirement::ConnectionsByHand.check(&device)?;
    let port = device.port(1).ok_or(ENODEV).step("port")?;
    let env = TestEnv {
        port,
        source: port.gid(parameters::gid_index.get()).step("GID")?,
        pd: ProtectionDomain::new(device.clone(), task::NAME).step("protection domain")?,
        cq: CompletionQueue::alloc(device.clone(), COMPLETIONS, 0, Poll::Workqueue, task::NAME)
            .step("completion queue")?,
        flushed: Arc::new(Atomic::new(0), GFP_KERNEL).step("counter")?,
    };
    env.tables()?;
    let mut back = 0u32;
    for last in [
        State::Reset,
        State::Init,
        State::Rtr,
        State::Rts,
        State::Error,
    ] {
        task.proceed("states")?;
        back = back.saturating_add(env.walk::<Rc>("RC", last)?);
        back = back.saturating_add(env.walk::<Uc>("UC", last)?);
    }
    if parameters::fill.get() {
        env.fill()?;
    }
    env.owned()?;
    env.no_reads()?;
    env.refusals()?;
    env.paths()?;
    Ok(Summary::new(fmt!(
        "10 queue pairs, {back} receives flushed"
    )))
}

/// Objects that the queue pairs share.
struct TestEnv<'a> {
    port: Port<'a>,
    source: GidEntry<'a>,
    pd: Arc<ProtectionDomain>,
    cq: Arc<CompletionQueue>,
    flushed: Arc<Atomic<u32>>,
}

/// The context of a queue pair.
struct QpCtx<S> {
    flushed: Arc<Atomic<u32>>,
    _service: PhantomData<S>,
}

impl<S: Connected> QpContext for QpCtx<S> {
    type QpType = S;

    fn failed(_: &QueuePair<Self>, failure: cq::WcError) {
        pr_err!("request failed: {failure}\n");
    }

    fn faulted(_: &QueuePair<Self>, fault: Fault) {
        pr_err!("queue pair: {fault}\n");
    }
}

/// A message that nobody receives, or a receive for a message that never arrives.
struct MessageBuf(DmaBuffer);

impl<S: Connected> Complete<QpCtx<S>> for MessageBuf {
    fn complete(_: Operation<Self>, queue: &QueuePair<QpCtx<S>>, completion: &Completion<'_>) {
        if completion.result().is_err_and(|failure| failure.is_flush()) {
            queue.context().flushed.fetch_add(1, ordering::Relaxed);
        }
    }
}

impl<S: Connected> Receive<QpCtx<S>> for MessageBuf {
    fn buffer(&self) -> Sge<'_> {
        self.0.sge()
    }
}

/// A receive that owns a reference to its queue pair.
struct OwningBuf {
    buffer: DmaBuffer,
    _queue: Arc<QueuePair<QpCtx<Rc>>>,
}

impl Complete<QpCtx<Rc>> for OwningBuf {
    fn complete(_: Operation<Self>, queue: &QueuePair<QpCtx<Rc>>, _: &Completion<'_>) {
        queue.context().flushed.fetch_add(1, ordering::Relaxed);
    }
}

impl Receive<QpCtx<Rc>> for OwningBuf {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

type Transition<T> = Result<T, TransitionError>;

/// Steps to connect a queue pair with itself.
trait SelfConnect: Connected + Sized {
    fn init(reset: Reset<QpCtx<Self>>, port: Port<'_>) -> Transition<Init<QpCtx<Self>>>;
    fn rtr(init: Init<QpCtx<Self>>, path: Path<'_>) -> Transition<Rtr<QpCtx<Self>>>;
    fn rts(rtr: Rtr<QpCtx<Self>>) -> Transition<Rts<QpCtx<Self>>>;
}

const PSN: Psn = Psn::truncate(0x123456);

fn rc_init(port: Port<'_>) -> rc::Init<'_> {
    rc::Init {
        port,
        pkey_index: 0,
        access: rc::Access::NONE,
    }
}

fn rc_rtr(path: Path<'_>, dest_qpn: Qpn) -> rc::Rtr<'_> {
    rc::Rtr {
        path,
        path_mtu: Mtu::Bytes1024,
        dest_qpn,
        rq_psn: PSN,
        max_dest_rd_atomic: 1,
        min_rnr_timer: RnrTimer::MAX,
    }
}

const RC_RTS: rc::Rts = rc::Rts {
    sq_psn: PSN,
    timeout: AckTimeout::MAX,
    retry_count: RetryCount::MAX,
    rnr_retry: RetryCount::FOR_EVER,
    max_rd_atomic: 1,
};

impl SelfConnect for Rc {
    fn init(reset: Reset<QpCtx<Rc>>, port: Port<'_>) -> Transition<Init<QpCtx<Rc>>> {
        reset.into_init(rc_init(port))
    }

    fn rtr(init: Init<QpCtx<Rc>>, path: Path<'_>) -> Transition<Rtr<QpCtx<Rc>>> {
        let own = init.number();
        init.into_rtr(rc_rtr(path, own))
    }

    fn rts(rtr: Rtr<QpCtx<Rc>>) -> Transition<Rts<QpCtx<Rc>>> {
        rtr.into_rts(RC_RTS)
    }
}

impl SelfConnect for Uc {
    fn init(reset: Reset<QpCtx<Uc>>, port: Port<'_>) -> Transition<Init<QpCtx<Uc>>> {
        reset.into_init(uc::Init {
            port,
            pkey_index: 0,
            access: uc::Access::None,
        })
    }

    fn rtr(init: Init<QpCtx<Uc>>, path: Path<'_>) -> Transition<Rtr<QpCtx<Uc>>> {
        let dest_qpn = init.number();
        init.into_rtr(uc::Rtr {
            path,
            path_mtu: Mtu::Bytes1024,
            dest_qpn,
            rq_psn: PSN,
        })
    }

    fn rts(rtr: Rtr<QpCtx<Uc>>) -> Transition<Rts<QpCtx<Uc>>> {
        rtr.into_rts(uc::Rts { sq_psn: PSN })
    }
}

impl TestEnv<'_> {
    fn device(&self) -> &DeviceRef {
        self.pd.device()
    }

    fn create<S: Connected>(&self) -> Result<Reset<QpCtx<S>>, StepError> {
        let capacity = QpCap {
            sends: 1,
            receives: RECEIVES,
            send_sges: 1,
        };
        let ctx = QpCtx {
            flushed: self.flushed.clone(),
            _service: PhantomData,
        };
        let parts = QpInitAttr::new(self.pd.clone(), self.cq.clone(), capacity);
        qp::create(parts, Ok(ctx), task::NAME).step("queue pair")
    }

    fn receive(&self) -> Result<Operation<MessageBuf>, StepError> {
        let buffer = DmaBuffer::new(self.device().clone(), 64, Direction::FromDevice);
        Operation::new(MessageBuf(buffer.step("receive")?)).step("receive")
    }

    fn message(&self) -> Result<Operation<MessageBuf>, StepError> {
        let buffer = DmaBuffer::new(self.device().clone(), 64, Direction::ToDevice);
        Operation::new(MessageBuf(buffer.step("message")?)).step("message")
    }

    fn to_self(&self) -> Result<Path<'_>, StepError> {
        Path::to_gid(self.source.clone(), self.source.gid()).step("path")
    }

    /// Looks up the GID and the P_Key of the queue pairs by value, and a GID that does not exist.
    fn tables(&self) -> Result<(), StepError> {
        let (gid, kind) = (self.source.gid(), self.source.kind());
        let found = self.port.find_gid(&gid, kind).step("GID")?;
        let pkey = self.port.pkey(0).step("P_Key")?;
        let index = self.port.find_pkey(pkey).step("P_Key")?;
        let nowhere = self.port.find_gid(&Gid::from_bytes([0; 16]), kind);
        if found.gid() != gid || index != 0 || nowhere.err() != Some(ENOENT) {
            let found = found.gid();
            return Err(StepError::new(
                "tables",
                fmt!("found GID {found}, P_Key at {index}"),
            ));
        }
        pr_info!("found in the tables: GID {gid} ({kind}), P_Key {pkey}\n");
        Ok(())
    }

    /// Destroys a queue pair in the state `last`. Returns how many receives were flushed.
    fn walk<S: SelfConnect>(&self, service: &str, last: State) -> Result<u32, StepError> {
        let before = self.flushed.load(ordering::Relaxed);
        let posted = self.take_to::<S>(last)?;
        let back = self.flushed.load(ordering::Relaxed).wrapping_sub(before);
        pr_info!("{service} destroyed in {last}: {back} of {posted} receives flushed\n");
        if back != posted {
            return Err(StepError::new(
                "receives",
                fmt!("{back} of {posted} flushed"),
            ));
        }
        Ok(back)
    }

    /// Moves a queue pair to the state `last` and drops it. Returns how many receives were posted.
    fn take_to<S: SelfConnect>(&self, last: State) -> Result<u32, StepError> {
        let reset = self.create::<S>()?;
        if last == State::Reset {
            return Ok(0);
        }
        let init = S::init(reset, self.port).step("initialise")?;
        for _ in 0..RECEIVES {
            init.post_receive(self.receive()?).step("receive")?;
        }
        if last == State::Init {
            return Ok(RECEIVES);
        }
        let rtr = S::rtr(init, self.to_self()?).step("ready to receive")?;
        if last == State::Rtr {
            return Ok(RECEIVES);
        }
        let rts = S::rts(rtr).step("ready to send")?;
        let queue = rts.queue_pair();
        self.compare(queue, State::Rts)?;
        if last == State::Error {
            queue.drain();
            self.compare(queue, State::Error)?;
            let refused = queue.post_receive(self.receive()?);
            if refused.map_err(|unposted| unposted.error) != Err(ENOTCONN) {
                return Err(StepError::new(
                    "drained",
                    fmt!("posted a receive after the drain"),
                ));
            }
        }
        Ok(RECEIVES)
    }

    /// A receive that owns a reference to its queue pair is flushed when the connection ends.
    fn owned(&self) -> Result<(), StepError> {
        let init = Rc::init(self.create()?, self.port).step("initialise")?;
        let rtr = Rc::rtr(init, self.to_self()?).step("ready to receive")?;
        let rts = Rc::rts(rtr).step("ready to send")?;
        let buffer = DmaBuffer::new(self.device().clone(), 64, Direction::FromDevice);
        let receive = OwningBuf {
            buffer: buffer.step("receive")?,
            _queue: rts.queue_pair().clone(),
        };
        rts.queue_pair()
            .post_receive(Operation::new(receive).step("receive")?)
            .step("receive")?;
        self.flushes(rts, 1)
    }

    /// A read on a connection with an initiator depth of 0, which the device would never send, is refused.
    fn no_reads(&self) -> Result<(), StepError> {
        let init = Rc::init(self.create()?, self.port).step("initialise")?;
        let rtr = Rc::rtr(init, self.to_self()?).step("ready to receive")?;
        let attributes = rc::Rts {
            max_rd_atomic: 0,
            ..RC_RTS
        };
        let rts = rtr.into_rts(attributes).step("ready to send")?;
        let source = RemoteKey {
            address: 0,
            length: 64,
            rkey: 0,
        };
        let read = rts.queue_pair().post_send(self.receive()?, |buf, chain| {
            chain.read([buf.0.sge()], source)
        });
        expect_unposted("read without depth", read, EINVAL)?;
        Ok(())
    }

    /// Destroys a queue pair with a full queue, once for each direction. The device may round up the
    /// sizes. A queue takes no more than the queue pair was created for.
    fn fill(&self) -> Result<(), StepError> {
        let init = Rc::init(self.create()?, self.port).step("initialise")?;
        let receives = posted(|| {
            let receive = self.receive()?;
            Ok(init.post_receive(receive).map_err(|it| it.error))
        })?;
        self.flushes(init, receives)?;

        let init = Rc::init(self.create()?, self.port).step("initialise")?;
        let rtr = Rc::rtr(init, self.to_self()?).step("ready to receive")?;
        let rts = Rc::rts(rtr).step("ready to send")?;
        let sends = posted(|| {
            let message = self.message()?;
            let sent = rts
                .queue_pair()
                .post_send(message, |message, chain| chain.send([message.0.sge()]));
            Ok(sent.map_err(|it| it.error))
        })?;
        self.flushes(rts, sends)?;
        pr_info!("filled with {sends} messages, with {receives} receives\n");
        Ok(())
    }

    /// Drops a queue pair, which must flush this many work requests.
    fn flushes<T>(&self, queue: T, posted: u32) -> Result<(), StepError> {
        let before = self.flushed.load(ordering::Relaxed);
        drop(queue);
        let flushed = self.flushed.load(ordering::Relaxed).wrapping_sub(before);
        expect_equal("flushed", flushed, posted)
    }

    /// Compares the attributes that the device reports with those that were set.
    fn compare<S: SelfConnect>(
        &self,
        queue: &QueuePair<QpCtx<S>>,
        state: State,
    ) -> Result<(), StepError> {
        let is = queue.query().step("query")?;
        let same = is.state == state
            && is.path_mtu == Some(Mtu::Bytes1024)
            && is.port == self.port.number()
            && is.dest_qpn.get() == queue.number()
            && is.destination == self.source.gid();
        if !same {
            return Err(StepError::new("query", fmt!("{is:?}")));
        }
        Ok(())
    }

    /// Checks that invalid transitions are refused.
    fn refusals(&self) -> Result<(), StepError> {
        let reset = self.create::<Rc>()?;
        refused(reset.into_init(rc::Init {
            pkey_index: u16::MAX,
            ..rc_init(self.port)
        }))?;
        let init = || {
            self.create::<Rc>()
                .and_then(|reset| Rc::init(reset, self.port).step("init"))
        };
        let rtr = || Ok::<_, StepError>(rc_rtr(self.to_self()?, Qpn::MAX));
        let active = self.port.attributes().step("port")?.active_mtu;
        // Skipped if the port has the largest MTU.
        if let Some(path_mtu) = Mtu::ALL.into_iter().find(|mtu| Some(*mtu) > active) {
            refused(init()?.into_rtr(rc::Rtr { path_mtu, ..rtr()? }))?;
        }
        refused(init()?.into_rtr(rc::Rtr {
            max_dest_rd_atomic: u8::MAX,
            ..rtr()?
        }))?;
        let ready = init()?.into_rtr(rtr()?).step("ready to receive")?;
        refused(ready.into_rts(rc::Rts {
            max_rd_atomic: u8::MAX,
            ..RC_RTS
        }))
    }

    /// Checks that invalid paths are refused.
    fn paths(&self) -> Result<(), StepError> {
        let own = self.source.gid();
        let other = match own.to_ipv4() {
            Some(_) => Gid::from(core::net::Ipv6Addr::LOCALHOST),
            None => Gid::from(core::net::Ipv4Addr::LOCALHOST),
        };
        let group = match own.to_ipv4() {
            Some(_) => Gid::from(core::net::Ipv4Addr::new(224, 0, 0, 1)),
            None => Gid::from_bytes([0xff; 16]),
        };
        let none = Gid::from_bytes([0; 16]);
        for (to, expected) in [(none, EINVAL), (group, EINVAL), (other, EAFNOSUPPORT)] {
            no_path(self.source.clone(), to, expected)?;
        }
        let nobody = parameters::nobody.get();
        if !nobody.is_empty() {
            let nobody = nobody.parse::<core::net::IpAddr>();
            let to = match nobody.map_err(|_| EINVAL).step("nobody")? {
                core::net::IpAddr::V4(address) => Gid::from(address),
                core::net::IpAddr::V6(address) => Gid::from(address),
            };
            no_path(self.source.clone(), to, ETIMEDOUT)?;
        }
        Ok(())
    }
}

/// Calls `post` until the queue is full. Returns how many work requests were posted.
fn posted(mut post: impl FnMut() -> Result<Result, StepError>) -> Result<u32, StepError> {
    // Each of them needs an entry of the completion queue.
    for posted in 0..COMPLETIONS / 2 {
        match post()? {
            Ok(()) => (),
            Err(error) if error == ENOMEM => return Ok(posted),
            Err(error) => return Err(error).step("post"),
        }
    }
    Ok(COMPLETIONS / 2)
}

/// Checks that a transition was refused, and logs the cause.
fn refused<T>(result: Transition<T>) -> Result<(), StepError> {
    match result {
        Ok(_) => Err(StepError::new("refusals", fmt!("done, although invalid"))),
        Err(error) => {
            pr_info!("refused: {error}\n");
            Ok(())
        }
    }
}

/// Checks that a path was refused with the error `expected`.
fn no_path(source: GidEntry<'_>, to: Gid, expected: Error) -> Result<(), StepError> {
    expect_error("path", Path::to_gid(source, to), expected)?;
    pr_info!("no path to {to}: {expected:?}\n");
    Ok(())
}
