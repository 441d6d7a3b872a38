// SPDX-License-Identifier: GPL-2.0

//! Only queue pairs for datagrams can be attached to multicast groups.
//!
//! refused: E0271: type mismatch resolving `<Peer as QpContext>::QpType == Ud`

#[path = "../support.rs"]
mod support;

use kernel::sync::Arc;
use rrdma::rdma::{
    multicast::Membership,
    qp::QueuePair, //
};
use support::Peer;

pub(crate) fn attach(membership: &mut Membership, queue: Arc<QueuePair<Peer>>) {
    drop(membership.gid());
    #[cfg(misuse)]
    drop(membership.attach(queue.clone())); //~
    drop(queue);
}
