// SPDX-License-Identifier: GPL-2.0

//! A queue pair for datagrams cannot read memory of a peer.
//!
//! refused: E0277: the trait bound `Ud: Reliable` is not satisfied

use kernel::prelude::*;
#[cfg(not(misuse))]
use rrdma::rdma::qp::Rc;
#[cfg(misuse)]
use rrdma::rdma::qp::Ud;
use rrdma::rdma::{
    cq::WcError,
    dma::DmaBuffer,
    mr::RemoteKey,
    qp::{
        Fault,
        QpContext,
        QueuePair, //
    },
    wr::Chain,
};

pub(crate) struct Talker;

impl QpContext for Talker {
    #[cfg(not(misuse))]
    type QpType = Rc;
    #[cfg(misuse)]
    type QpType = Ud;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

pub(crate) fn read<'a>(
    chain: &mut Chain<'a, '_, Talker>,
    sink: &'a DmaBuffer,
    source: RemoteKey,
) -> Result {
    chain.read([sink.sge()], source) //~
}
