// SPDX-License-Identifier: GPL-2.0

//! A chain registers only regions of its own operation, which return with it.
//!
//! refused: E0521: borrowed data escapes outside of function

#[path = "../support.rs"]
mod support;

use rrdma::rdma::{
    qp::QueuePair,
    wr::Operation, //
};
use support::{
    Exposed,
    Peer, //
};

pub(crate) fn register(
    queue: &QueuePair<Peer>,
    operation: Operation<Exposed>,
    other: &Operation<Exposed>,
) {
    let _ = other.region.peer_may_access();
    let posted = queue.post_send(operation, |exposed, chain| {
        #[cfg(misuse)]
        let exposed = other;
        chain.register(&exposed.region)?; //~
        chain.send(exposed.region.entries())
    });
    drop(posted);
}
