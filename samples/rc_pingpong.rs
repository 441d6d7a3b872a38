// SPDX-License-Identifier: GPL-2.0

//! Ping-pong over a reliable connection (RC) that is made by hand; a peer of `ibv_rc_pingpong`.

use common::{
    failure::Failure,
    peer::Peer,
    requirement::DeviceRequirement,
    task::{
        self,
        SampleTask,
        Summary, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use pingpong::{
    engine::{
        qp_ctx::QpCtx,
        MessageProtocol, //
    },
    Transport, //
};
use rrdma::rdma::{
    device::Port,
    qp::{
        rc,
        AckTimeout,
        Init,
        Psn,
        Rc,
        Reset,
        RetryCount,
        RnrTimer,
        Rts,
        TransitionError, //
    },
};

#[path = "common/common.rs"]
mod common;
#[path = "pingpong/pingpong.rs"]
mod pingpong;

module! {
    type: task::Handle,
    name: "rrdma_rc_pingpong",
    authors: ["The rnvmf developers"],
    description: "Sample: ping-pong over a reliable connection, a peer of ibv_rc_pingpong",
    license: "GPL",
}

fn run(task: &Arc<SampleTask>) -> Result<Summary, Failure> {
    pingpong::run::<Reliable>(task)
}

/// 67 ms and 0.64 ms.
const TIMEOUT: AckTimeout = AckTimeout::new(14).unwrap();
const RNR_TIMER: RnrTimer = RnrTimer::new(12).unwrap();

/// The transport service, with the timers and retry counts of the program.
struct Reliable;

impl MessageProtocol for Reliable {
    type QpType = Rc;
    type Route = ();

    const MARKS_PAGES: bool = true;
    const RESENDS: bool = false;
}

impl Transport for Reliable {
    const REQUIREMENT: DeviceRequirement = DeviceRequirement::ConnectionsByHand;

    fn initialise(
        reset: Reset<QpCtx<Self>>,
        port: Port<'_>,
    ) -> Result<Init<QpCtx<Self>>, TransitionError> {
        reset.into_init(rc::Init {
            port,
            pkey_index: 0,
            access: rc::Access::NONE,
        })
    }

    fn connect(
        init: Init<QpCtx<Self>>,
        peer: Peer<'_>,
        psn: Psn,
    ) -> Result<Rts<QpCtx<Self>>, TransitionError> {
        let rtr = init.into_rtr(rc::Rtr {
            path: peer.path,
            path_mtu: peer.mtu,
            dest_qpn: peer.qpn,
            rq_psn: peer.psn,
            max_dest_rd_atomic: 1,
            min_rnr_timer: RNR_TIMER,
        })?;
        rtr.into_rts(rc::Rts {
            sq_psn: psn,
            timeout: TIMEOUT,
            retry_count: RetryCount::MAX,
            rnr_retry: RetryCount::FOR_EVER,
            max_rd_atomic: 1,
        })
    }
}
