// SPDX-License-Identifier: GPL-2.0

//! A datagram needs an address handle, because its queue pair has no peer.
//!
//! refused: E0277: the trait bound `Ud: rrdma::rdma::qp::Connected` is not satisfied

use kernel::prelude::*;
use rrdma::rdma::{
    ah::AddressHandle,
    cq::WcError,
    dma::DmaBuffer,
    qp::{
        ud::Qkey,
        Fault,
        QpContext,
        Qpn,
        QueuePair,
        Ud, //
    },
    wr::Chain,
};

/// A queue pair for datagrams.
pub(crate) struct Talker;

impl QpContext for Talker {
    type QpType = Ud;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

pub(crate) fn send<'a>(
    chain: &mut Chain<'a, '_, Talker>,
    address: &'a AddressHandle,
    buffer: &'a DmaBuffer,
) -> Result {
    #[cfg(not(misuse))]
    chain.send_datagram(address, Qpn::MAX, Qkey(1), [buffer.sge()])?;
    #[cfg(misuse)]
    chain.send([buffer.sge()])?; //~
    let _ = (address, Qpn::MAX, Qkey(1));
    Ok(())
}
