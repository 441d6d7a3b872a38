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
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    net::Address,
    rdma::{
        cm::{
            Endpoint,
            Event,
            Id,
            ListenParams,
            Lost,
            Observer,
            ServiceListener, //
        },
        cq::{
            CompletionQueue,
            Poll,
            WcError, //
        },
        dma::Direction,
        mr::Region,
        pd::ProtectionDomain,
        qp::{
            Fault,
            QpContext,
            QueuePair,
            Rc, //
        },
    },
    scatter::Buffer,
    sync::{
        Msecs,
        TimedCompletion, //
    },
};

/// The type of a CM ID that is never connected.
struct NoPeer;

impl QpContext for NoPeer {
    type QpType = Rc;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

impl Endpoint for NoPeer {
    fn lost(_queue: &QueuePair<Self>, _cause: Lost) {}
}

/// An observer of a CM ID whose drop sleeps, as the end of its event handler may.
#[pin_data(PinnedDrop)]
struct SleepingObserver {
    #[pin]
    never: TimedCompletion,
}

impl SleepingObserver {
    fn new() -> Result<Arc<Self>> {
        let init = pin_init!(Self { never <- TimedCompletion::new() });
        Arc::pin_init(init, GFP_KERNEL)
    }
}

impl Observer for SleepingObserver {
    fn heard(&self, _event: Event) {}
}

#[pinned_drop]
impl PinnedDrop for SleepingObserver {
    fn drop(self: Pin<&mut Self>) {
        let _never = self.never.wait_timeout(Msecs::new(1));
    }
}

/// Listens at all addresses.
fn listener(port_gid: &PortGid<'_>) -> Result<ServiceListener, StepError> {
    let namespace = port_gid.task.namespace();
    let address = Address::parse(namespace, "0.0.0.0", 0).step("address")?;
    let params = ListenParams {
        backlog: 1,
        refusal: &[],
        wake: port_gid.task.wake().clone(),
        owner: task::NAME,
    };
    ServiceListener::new(namespace, &address, params).step("listen")
}

/// Lets a flushed receive drop the last reference to a protection domain, a region, a completion queue and a queue
/// pair, which was drained before, and CM IDs.
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
    let (namespace, wake) = (port_gid.task.namespace(), port_gid.task.wake().clone());
    let id = Id::<NoPeer>::new(namespace, wake, task::NAME).step("CM ID")?;
    let observer = SleepingObserver::new().step("observer")?;
    id.observe(observer).step("observer")?;
    let listener = listener(port_gid)?;
    // The operation owns them, and is dropped when its handler has returned.
    let receive = Handled::new(port_gid, Direction::FromDevice, move || {
        let _ = (&region, &pd, &other, &queue_pair, &id, &listener);
    })?;
    end.queue().post_receive(receive).step("receive")?;
    end.queue().drain();
    Ok(())
}
