// SPDX-License-Identifier: GPL-2.0

//! A queue that wakes its owner has one poller, so completion handlers cannot poll it.
//!
//! refused: E0596: cannot borrow `*queue` as mutable, as it is behind a `&` reference

use rrdma::rdma::cq::NotifiedQueue;

pub(crate) struct Poller {
    queue: NotifiedQueue,
}

pub(crate) fn handle_some(poller: &mut Poller) -> u32 {
    let queue = &mut poller.queue;
    #[cfg(misuse)]
    let queue = &*queue;
    queue.poll(16) //~
}
