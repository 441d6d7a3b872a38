// SPDX-License-Identifier: GPL-2.0

//! A service without acknowledgements has no RDMA read.
//!
//! refused: E0277: the trait bound `Uc: Reliable` is not satisfied

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::rdma::{
    cq::{
        Completion,
        WcError, //
    },
    mr::RemoteKey,
    qp::{
        Fault,
        QpContext,
        QueuePair,
        Uc, //
    },
    wr::{
        Complete,
        Operation, //
    },
};
use support::Message;

pub(crate) struct Lossy;

impl QpContext for Lossy {
    type QpType = Uc;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

impl Complete<Lossy> for Message {
    fn complete(_: Operation<Self>, _: &QueuePair<Lossy>, _: &Completion<'_>) {}
}

pub(crate) fn fetch(queue: &QueuePair<Lossy>, operation: Operation<Message>, key: RemoteKey) {
    drop(queue.post_send(operation, |message, chain| {
        chain.write([message.buffer.sge()], key)?;
        #[cfg(misuse)]
        chain.read([message.buffer.sge()], key)?; //~
        Ok(())
    }));
}
