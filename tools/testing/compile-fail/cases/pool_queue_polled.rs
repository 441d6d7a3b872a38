// SPDX-License-Identifier: GPL-2.0

//! A completion queue of the device's pool cannot be polled by the users that share it.
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
