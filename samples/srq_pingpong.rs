// SPDX-License-Identifier: GPL-2.0

//! Ping-pong on several queue pairs with a shared receive queue; a peer of `ibv_srq_pingpong`.
//!
//! A message takes a receive from the shared queue, whichever queue pair it arrives at. Used
//! receives are kept until the queue reports that it runs short. Then all of them are posted again.

use common::{
    peer::{
        self,
        Peer, //
    },
    requirement::DeviceRequirement,
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
    sync::Arc, //
};
use pingpong::{
    engine::{
        qp_ctx::{
            QpCtx,
            RecvBuf, //
        },
        MessageProtocol,
        PingPong, //
    },
    settings::{
        Settings,
        MOST, //
    },
    Receives,
    Transport, //
};
use rrdma::rdma::{
    device::Port,
    pd::ProtectionDomain,
    qp::{
        rc,
        Init,
        Psn,
        QpInitAttr,
        Rc,
        Reset,
        Rts,
        TransitionError, //
    },
    srq::{
        Event,
        SharedReceiveQueue, //
    },
};

#[path = "common/common.rs"]
mod common;
#[path = "pingpong/pingpong.rs"]
mod pingpong;

module! {
    type: task::Handle,
    name: "rrdma_srq_pingpong",
    authors: ["The rnvmf developers"],
    description: "Sample: ping-pong with a shared receive queue, a peer of ibv_srq_pingpong",
    license: "GPL",
}

rrdma::parameters! {
    num_qp: Number<1, 256> = 16, "number of queue pairs, the same at the peer; default 16";
    limit: Number<1, 32767> = 16, "refill the queue below this number of receives; default 16";
    extra: Number<0, 32767> = 0, "receives to grow the queue by at the first refill; default 0";
}

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    pingpong::run::<Sharing>(task)
}

/// The transport service; its queue pairs share their receives.
struct Sharing;

impl MessageProtocol for Sharing {
    type QpType = Rc;
    type Route = ();

    const FILL: u8 = 0;
    const MARKS_PAGES: bool = false;
    const RESENDS: bool = false;
}

impl Transport for Sharing {
    const REQUIREMENT: DeviceRequirement = DeviceRequirement::ConnectionsByHand;

    type Receives = Shared;

    /// Checks parameters that depend on each other.
    fn check(settings: &Settings, _: Port<'_>) -> Result<(), StepError> {
        let refuse = |cause: fmt::Arguments<'_>| Err(StepError::new("parameters", cause));
        let (size, depth) = (settings.size, settings.rx_depth);
        let (limit, extra) = (parameters::limit.get(), parameters::extra.get());
        if size.saturating_mul(depth.saturating_add(extra) as usize) > MOST {
            return refuse(fmt!(
                "extra={extra} receives of size={size} exceed {MOST} bytes"
            ));
        }
        if limit > depth {
            return refuse(fmt!("limit={limit} exceeds rx_depth={depth}"));
        }
        Ok(())
    }

    fn initialise(
        reset: Reset<QpCtx<Self>>,
        port: Port<'_>,
    ) -> Result<Init<QpCtx<Self>>, TransitionError> {
        peer::initialise(reset, port, rc::Access::NONE)
    }

    fn connect(
        init: Init<QpCtx<Self>>,
        peer: Peer<'_>,
        psn: Psn,
    ) -> Result<Rts<QpCtx<Self>>, TransitionError> {
        peer.connect(init, psn, 1)
    }
}

/// The receives that the queue pairs share.
struct Shared {
    engine: Arc<PingPong>,
    queue: Arc<SharedReceiveQueue<QpCtx<Sharing>>>,
    size: usize,
    /// Number of times the queue was refilled.
    refills: u32,
}

impl Shared {
    /// Posts `count` new receives.
    fn fill(&self, count: u32) -> Result<(), StepError> {
        let device = self.queue.protection_domain().device();
        for _ in 0..count {
            let receive = RecvBuf::new::<Sharing>(device, self.size).step("receive")?;
            self.queue.post(receive).step("receive")?;
        }
        Ok(())
    }
}

impl Receives<Sharing> for Shared {
    /// For the largest number of queue pairs.
    const DESTS: usize = 256;

    fn counts(settings: &Settings) -> (u32, u32) {
        let receives = settings.rx_depth.saturating_add(parameters::extra.get());
        (parameters::num_qp.get(), receives)
    }

    fn new(
        engine: &Arc<PingPong>,
        pd: &Arc<ProtectionDomain>,
        settings: &Settings,
    ) -> Result<Self, StepError> {
        let (depth, limit) = (settings.rx_depth, parameters::limit.get());
        let teller = engine.clone();
        let queue = SharedReceiveQueue::new(pd.clone(), depth, move |event| match event {
            Event::LimitReached => teller.set_short(),
            Event::Broken => teller.end(StepError::new(
                "shared receive queue",
                fmt!("fatal error (IB_EVENT_SRQ_ERR)"),
            )),
        });
        let shared = Self {
            engine: engine.clone(),
            queue: queue.step("shared receive queue")?,
            size: settings.size,
            refills: 0,
        };
        shared.fill(depth)?;
        shared.queue.arm_limit(limit).step("limit")?;
        Ok(shared)
    }

    fn attach(&self, parts: QpInitAttr<QpCtx<Sharing>>) -> QpInitAttr<QpCtx<Sharing>> {
        parts.with_shared_receives(self.queue.clone())
    }

    /// Posts the used receives again. The first call also grows the queue by `extra` receives.
    fn refill(&mut self) -> Result<(), StepError> {
        let extra = parameters::extra.get();
        if self.refills == 0 && extra != 0 {
            self.queue.grow(extra).step("grow")?;
            self.fill(extra)?;
        }
        self.refills = self.refills.saturating_add(1);
        // Armed before posting: otherwise messages could take all receives before the limit is
        // armed.
        let limit = parameters::limit.get();
        self.queue.arm_limit(limit).step("limit")?;
        while let Some(receive) = self.engine.take_used() {
            self.queue.post(receive).step("receive")?;
        }
        Ok(())
    }

    fn report(&self) -> Result<Summary, StepError> {
        let room = self.queue.query().step("shared receive queue")?;
        pr_info!("shared receive queue: max_wr is {}\n", room.max_wr);
        let (pairs, refills) = (parameters::num_qp.get(), self.refills);
        Ok(Summary::new(fmt!(
            " on {pairs} queue pairs, {refills} refills of the receive queue"
        )))
    }
}
