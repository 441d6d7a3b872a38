// SPDX-License-Identifier: GPL-2.0

//! Tests that objects whose drop sleeps may be dropped by a completion handler in a softirq.

use crate::{
    common::{
        port_gid::PortGid,
        step_error::{
            Step,
            StepError, //
        },
        task, //
    },
    pair::{
        ConnectedQp,
        ONE_MESSAGE, //
    },
    Handled,
};
use kernel::prelude::*;
use rrdma::{
    rdma::{
        cq::{
            CompletionQueue,
            Poll, //
        },
        dma::Direction,
        mr::Region,
        pd::ProtectionDomain, //
    },
    scatter::Buffer, //
};

/// Lets a flushed receive drop the last reference to a protection domain, a region, a completion queue and a queue
/// pair, which was drained before.
pub(crate) fn run(port_gid: &PortGid<'_>) -> Result<(), StepError> {
    let device = port_gid.device();
    let queue = |entries| {
        CompletionQueue::alloc(device.clone(), entries, 0, Poll::SoftIrq, task::NAME)
            .step("completion queue")
    };
    let end = ConnectedQp::loopback(port_gid, queue(ONE_MESSAGE.completions())?, ONE_MESSAGE)?;
    let other = queue(1)?;
    let pd = ProtectionDomain::new(device.clone(), task::NAME).step("protection domain")?;
    let mut region = Region::new(pd.clone(), 2).step("region")?;
    let data = Buffer::new(64, GFP_KERNEL).step("data")?;
    region.dma_map(data, Direction::ToDevice).step("data")?;
    let drained = ConnectedQp::loopback(port_gid, queue(ONE_MESSAGE.completions())?, ONE_MESSAGE)?;
    let queue_pair = drained.queue().clone();
    drop(drained);
    // The operation owns them, and is dropped when its handler has returned.
    let receive = Handled::new(port_gid, Direction::FromDevice, move || {
        let _ = (&region, &pd, &other, &queue_pair);
    })?;
    end.queue().post_receive(receive).step("receive")?;
    end.queue().drain();
    Ok(())
}
