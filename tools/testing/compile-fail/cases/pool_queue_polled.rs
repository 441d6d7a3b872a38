// SPDX-License-Identifier: GPL-2.0

//! A share of one of the device's queues is not polled by one of those who have it.
//!
//! refused: E0599: no method named `poll` found for struct `Arc<CompletionQueue>` in the current scope

use kernel::prelude::*;
use rrdma::rdma::{
    cq::{
        CompletionQueue,
        Poll, //
    },
    device::DeviceRef, //
};

pub(crate) fn share(device: DeviceRef) -> Result {
    let queue = CompletionQueue::pool_get(device, 16, 0, Poll::SoftIrq)?;
    #[cfg(misuse)]
    queue.poll(16); //~
    drop(queue);
    Ok(())
}
