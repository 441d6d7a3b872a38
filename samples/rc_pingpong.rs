// SPDX-License-Identifier: GPL-2.0

//! Ping-pong over a reliable connection (RC) that is made by hand; a peer of `ibv_rc_pingpong`.
//!
//! [`Peer::connect`] makes the connection.

use common::{
    peer::{
        self,
        Peer, //
    },
    requirement::DeviceRequirement,
    step_error::StepError,
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
        Init,
        Psn,
        Rc,
        Reset,
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

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    pingpong::run::<Reliable>(task)
}

/// The transport service.
struct Reliable;

impl MessageProtocol for Reliable {
    type QpType = Rc;
    type Route = ();

    const MARKS_PAGES: bool = true;
    const RESENDS: bool = false;
}

impl Transport for Reliable {
    const REQUIREMENT: DeviceRequirement = DeviceRequirement::ConnectionsByHand;

    type Receives = ();

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
