// SPDX-License-Identifier: GPL-2.0

//! A queue pair belongs to a connection, which destroys it in order.
//!
//! refused: E0624: associated function `create` is private

#[path = "../support.rs"]
mod support;

use core::ptr::null_mut;
use kernel::sync::Arc;
use rrdma::rdma::{
    cq::CompletionQueue,
    pd::ProtectionDomain,
    qp::{
        Capacity,
        QueuePair, //
    },
};
use support::Peer;

pub(crate) fn number(
    pd: Arc<ProtectionDomain>,
    cq: Arc<CompletionQueue>,
    capacity: Capacity,
) -> u32 {
    #[cfg(misuse)]
    let _ = QueuePair::<Peer>::create(null_mut(), pd, cq, capacity, Ok(Peer), c"case"); //~
    capacity.completions()
}
