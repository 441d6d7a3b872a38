// SPDX-License-Identifier: GPL-2.0

//! Ping-pong over an unreliable connection (UC) that is made by hand; a peer of `ibv_uc_pingpong`.
//!
//! A lost message is not reported. The program waits for it forever; this sample sends another one
//! after a timeout.

use common::{
    peer::Peer,
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
        uc,
        Init,
        Psn,
        Reset,
        Rts,
        TransitionError,
        Uc, //
    },
};

#[path = "common/common.rs"]
mod common;
#[path = "pingpong/pingpong.rs"]
mod pingpong;

module! {
    type: task::Handle,
    name: "rrdma_uc_pingpong",
    authors: ["The rnvmf developers"],
    description: "Sample: ping-pong over an unreliable connection, a peer of ibv_uc_pingpong",
    license: "GPL",
}

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    pingpong::run::<Unreliable>(task)
}

/// The transport service. It has no timers or retry counts.
struct Unreliable;

impl MessageProtocol for Unreliable {
    type QpType = Uc;
    type Route = ();

    const MARKS_PAGES: bool = true;
    const RESENDS: bool = true;
}

impl Transport for Unreliable {
    const REQUIREMENT: DeviceRequirement = DeviceRequirement::UnreliableConnections;

    type Receives = ();

    fn initialise(
        reset: Reset<QpCtx<Self>>,
        port: Port<'_>,
    ) -> Result<Init<QpCtx<Self>>, TransitionError> {
        reset.into_init(uc::Init {
            port,
            pkey_index: 0,
            access: uc::Access::None,
        })
    }

    fn connect(
        init: Init<QpCtx<Self>>,
        peer: Peer<'_>,
        psn: Psn,
    ) -> Result<Rts<QpCtx<Self>>, TransitionError> {
        let rtr = init.into_rtr(uc::Rtr {
            path: peer.path,
            path_mtu: peer.mtu,
            dest_qpn: peer.qpn,
            rq_psn: peer.psn,
        })?;
        rtr.into_rts(uc::Rts { sq_psn: psn })
    }
}
