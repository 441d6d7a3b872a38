// SPDX-License-Identifier: GPL-2.0

//! RDMA reads and writes of any size need a reliable service.
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
        cq::WcError,
        qp::{
            Fault,
            QpContext,
            QueuePair, //
        },
        rw::RwContext,
    },
    scatter::Buffer,
};

pub(crate) struct End;

impl QpContext for End {
    #[cfg(misuse)]
    type QpType = rrdma::rdma::qp::Uc;
    #[cfg(not(misuse))]
    type QpType = rrdma::rdma::qp::Rc;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

pub(crate) fn prepare(queue: &Arc<QueuePair<End>>) -> Result<RwContext<Buffer, End>> {
    RwContext::new(queue) //~
}
