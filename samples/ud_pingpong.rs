// SPDX-License-Identifier: GPL-2.0

//! Ping-pong with datagrams (UD); a peer of `ibv_ud_pingpong`.
//!
//! The queue pair is not connected. Each send names its destination: an address handle, a queue
//! pair number and a Q_Key. A received datagram has a header with its source. A lost message is not
//! reported; this sample sends another one after a timeout.

use common::{
    peer::Peer,
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
    prelude::*,
    sync::Arc, //
};
use pingpong::{
    engine::{
        self,
        qp_ctx::QpCtx,
        MessageProtocol, //
    },
    settings::Settings,
    Transport, //
};
use rrdma::rdma::{
    ah::{
        AddressHandle,
        GRH_BYTES, //
    },
    device::Port,
    pd::ProtectionDomain,
    qp::{
        ud::{
            self,
            Qkey, //
        },
        Init,
        Psn,
        Qpn,
        Reset,
        Rts,
        TransitionError,
        Ud, //
    },
    wr::{
        Chain,
        Sge, //
    },
};

#[path = "common/common.rs"]
mod common;
#[path = "pingpong/pingpong.rs"]
mod pingpong;

module! {
    type: task::Handle,
    name: "rrdma_ud_pingpong",
    authors: ["The rnvmf developers"],
    description: "Sample: ping-pong with datagrams, a peer of ibv_ud_pingpong",
    license: "GPL",
}

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    pingpong::run::<Datagrams>(task)
}

/// The Q_Key of the program, for both ends.
const QKEY: Qkey = Qkey(0x1111_1111);

/// The transport service, in which each send names its destination.
struct Datagrams;

/// Destination of a message.
struct Route {
    address: AddressHandle,
    number: Qpn,
}

impl engine::Route<Datagrams> for Route {
    fn find(pd: &Arc<ProtectionDomain>, peer: &Peer<'_>) -> Result<Self> {
        let address = AddressHandle::new(pd.clone(), &peer.path)?;
        let number = peer.qpn;
        Ok(Self { address, number })
    }

    fn send<'a>(&'a self, message: Sge<'a>, chain: &mut Chain<'a, '_, QpCtx<Datagrams>>) -> Result {
        chain.send_datagram(&self.address, self.number, QKEY, [message])
    }
}

impl MessageProtocol for Datagrams {
    type QpType = Ud;
    type Route = Route;

    const HEADER: usize = GRH_BYTES;
    const MARKS_PAGES: bool = false;
    const RESENDS: bool = true;
}

impl Transport for Datagrams {
    const REQUIREMENT: DeviceRequirement = DeviceRequirement::Datagrams;

    type Receives = ();

    /// A message must fit into one packet.
    fn check(settings: &Settings, port: Port<'_>) -> Result<(), StepError> {
        let size = settings.size;
        let mtu = port.attributes().step("port")?.active_mtu;
        let mtu = mtu.ok_or(ENODEV).step("port")?;
        if size > mtu.bytes() as usize {
            return Err(StepError::new(
                "parameters",
                fmt!("size={size} exceeds the port's active MTU {mtu}"),
            ));
        }
        Ok(())
    }

    fn initialise(
        reset: Reset<QpCtx<Self>>,
        port: Port<'_>,
    ) -> Result<Init<QpCtx<Self>>, TransitionError> {
        reset.into_init(ud::Init {
            port,
            pkey_index: 0,
            qkey: QKEY,
        })
    }

    fn connect(
        init: Init<QpCtx<Self>>,
        _peer: Peer<'_>,
        psn: Psn,
    ) -> Result<Rts<QpCtx<Self>>, TransitionError> {
        init.into_rtr(ud::Rtr)?.into_rts(ud::Rts { sq_psn: psn })
    }
}
