// SPDX-License-Identifier: GPL-2.0

//! An operation completes only on queue pairs with the context that it was written for.
//!
//! refused: E0277: the trait bound `support::Message: rrdma::rdma::wr::Complete<Other>` is not satisfied

#[path = "../support.rs"]
mod support;

use rrdma::rdma::{
    cq::WcError,
    qp::{
        Fault,
        QpContext,
        QueuePair,
        Rc, //
    },
    wr::Operation,
};
use support::{
    Message,
    Peer, //
};

pub(crate) struct Other;

impl QpContext for Other {
    type QpType = Rc;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

#[cfg(not(misuse))]
type Queue = QueuePair<Peer>;
#[cfg(misuse)]
type Queue = QueuePair<Other>;

pub(crate) fn send(queue: &Queue, operation: Operation<Message>) {
    let posted = queue.post_send(operation, |message, chain| {
        //~
        chain.send([message.buffer.sge()])
    });
    drop(posted);
}
