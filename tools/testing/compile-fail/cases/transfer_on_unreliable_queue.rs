// SPDX-License-Identifier: GPL-2.0

//! Only a reliable service reads the memory of a peer.
//!
//! refused: E0277: the trait bound `Uc: Reliable` is not satisfied

#[path = "../support.rs"]
mod support;

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    rdma::{
        cq::Failure,
        mr::RemoteKey,
        qp::{
            Context,
            Fault,
            QueuePair, //
        },
        rw::Transfer,
    },
    scatter::Buffer,
};

pub(crate) struct End;

impl Context for End {
    #[cfg(misuse)]
    type Service = rrdma::rdma::qp::Uc;
    #[cfg(not(misuse))]
    type Service = rrdma::rdma::qp::Rc;

    fn failed(_queue: &QueuePair<Self>, _failure: Failure) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

pub(crate) fn read(queue: &Arc<QueuePair<End>>, data: Buffer, remote: &RemoteKey) -> Result {
    let transfer = Transfer::read(queue, data, remote).map_err(|(error, _)| error)?; //~
    drop(transfer.finish());
    Ok(())
}
