// SPDX-License-Identifier: GPL-2.0

//! Tests devices that break the rules of the verbs, see `liar.c`. No memory may return to its owner
//! while such a device uses it. With the lie `hold`, this module is what keeps a device too long.

use common::{
    port_gid::PortGid,
    step_error::{
        expect_equal,
        expect_error,
        Step,
        StepError, //
    },
    task::{
        self,
        SampleTask,
        Summary, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    },
};
use pair::{
    CompletionSink,
    ConnectedQp,
    Work,
    LIMIT,
    ONE_MESSAGE, //
};
use rrdma::{
    errno::EOPNOTSUPP,
    rdma::{
        cq::{
            CompletionQueue,
            DirectQueue,
            NotifiedQueue,
            Poll, //
        },
        device::Mtu,
        dma::Direction,
        mr::Region,
        qp::{
            Init,
            QpInitAttr, //
        },
        srq::SharedReceiveQueue,
        wr::{
            Batch,
            BatchCapacity,
            Chain, //
        },
    },
    scatter::Buffer,
};

#[path = "../../../samples/common/common.rs"]
mod common;
#[path = "../../../samples/pair/pair.rs"]
#[allow(dead_code)]
mod pair;

module! {
    type: task::Handle,
    name: "rrdma_test_broken_device",
    authors: ["The rnvmf developers"],
    description: "Test: devices that break the rules of the verbs",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device name; empty: first device with an active port";
    gid_index: Number<0, 255> = 0, "GID index of port 1; default 0";
    lie: Text<15> = "", "what the device does wrong, as for the module liar";
}

/// Size of buffers in bytes.
const BYTES: usize = 64;

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let device = task.device(&parameters::device.get())?;
    let port_gid = PortGid::new(task, &device, parameters::gid_index.get())?;
    let env = TestEnv(&port_gid);
    match &*parameters::lie.get() {
        "post" => {
            env.part_of_an_operation()?;
            env.part_of_a_batch(ENOMEM)?;
        }
        "foreign" => {
            env.part_of_an_operation()?;
            env.part_of_a_batch(EINVAL)?;
        }
        "silent" => env.silent()?,
        "event" => env.event()?,
        "hold" => env.hold(),
        "dereg" => env.region()?,
        "destroy_srq" => env.shared_receives()?,
        "deaf" => env.deaf()?,
        "mute" => env.mute()?,
        "gaps" => env.gaps()?,
        "last" => env.last()?,
        "unconnected" => env.unconnected()?,
        "irdma" | "qedr" => env.no_shared_receives()?,
        "undrained" => env.undrained()?,
        _ => env.drain()?,
    }
    Ok(Summary::new(fmt!("all memory returned")))
}

type Shared = Arc<SharedReceiveQueue<CompletionSink>>;

struct TestEnv<'a>(&'a PortGid<'a>);

impl TestEnv<'_> {
    fn connect(&self) -> Result<(ConnectedQp, ConnectedQp), StepError> {
        pair::connect(self.0, self.0, Mtu::Bytes256)
    }

    fn message(&self, owner: usize) -> Result<rrdma::rdma::wr::Operation<Work>, StepError> {
        let mut work = Work::new(self.0.device(), BYTES, Direction::ToDevice)?;
        work.owner = owner;
        Ok(work)
    }

    /// The device has posted the first of two work requests, and does not say so.
    fn part_of_an_operation(&self) -> Result<(), StepError> {
        let (end, peer) = self.connect()?;
        peer.post_receive(Work::new(self.0.device(), BYTES, Direction::FromDevice)?)?;
        end.post("two messages", self.message(0)?, |work, chain| {
            chain.send([work.buffer.sge()])?;
            chain.send([work.buffer.sge()])
        })?;
        peer.done("message of the posted part")?;
        expect_equal("returned before the drain", end.returned(), 0)?;
        end.queue().drain();
        expect_equal("returned by the drain", end.returned(), 1)
    }

    /// The device has posted the first of two operations, and fails with `error` without saying so. Only the
    /// last one is certain not to be posted.
    fn part_of_a_batch(&self, error: Error) -> Result<(), StepError> {
        let (end, peer) = self.connect()?;
        peer.post_receive(Work::new(self.0.device(), BYTES, Direction::FromDevice)?)?;
        let capacity = BatchCapacity {
            requests: 2,
            pieces: 2,
        };
        let mut batch: Batch<CompletionSink, Work> = Batch::new(capacity).step("batch")?;
        for owner in 0..2 {
            batch
                .push(end.queue(), self.message(owner)?, send)
                .step("push")?;
        }
        expect_error("batch", batch.post(end.queue()), error)?;
        let last = batch.take_back().ok_or(ENOENT).step("batch")?;
        expect_equal("last operation", last.owner, 1)?;
        expect_equal("left in the batch", batch.len(), 0)?;
        expect_equal("first operation", end.done("message")?.0.owner, 0)
    }

    /// The device has posted nothing.
    fn silent(&self) -> Result<(), StepError> {
        let (end, _peer) = self.connect()?;
        end.refuses("message", self.message(0)?, EINVAL, send)?;
        Ok(())
    }

    /// The context of a queue pair gets no event before the queue pair is complete; it logs each.
    fn event(&self) -> Result<(), StepError> {
        self.connect()?;
        Ok(())
    }

    /// Keeps the device for 12 s of its removal.
    fn hold(&self) {
        while !self.0.device().is_removing() && !self.0.task.is_stopped() {
            fsleep(Delta::from_millis(20));
        }
        fsleep(Delta::from_secs(12));
    }

    /// The device does not flush the receives at first.
    fn drain(&self) -> Result<(), StepError> {
        let (end, _peer) = self.connect()?;
        for _ in 0..2 {
            end.post_receive(Work::new(self.0.device(), BYTES, Direction::FromDevice)?)?;
        }
        end.queue().drain();
        expect_equal("receives returned by the drain", end.returned(), 2)
    }

    /// The completion queue breaks, and the marker of the drain does not complete: the queue pair is kept.
    fn deaf(&self) -> Result<(), StepError> {
        let (device, wake) = (self.0.device().clone(), self.0.task.wake().clone());
        let entries = ONE_MESSAGE.completions();
        let mut queue =
            NotifiedQueue::new(device, entries, 0, wake, task::NAME).step("completion queue")?;
        let cq = queue.completion_queue().clone();
        let end = ConnectedQp::loopback(self.0, cq.clone(), ONE_MESSAGE)?;
        end.post_receive(Work::new(self.0.device(), BYTES, Direction::FromDevice)?)?;
        expect_equal("completions", queue.poll(1), 0)?;
        self.0
            .task
            .wait_for("error of the completion queue", LIMIT, || {
                cq.is_broken().then_some(())
            })?;
        end.queue().drain();
        expect_equal("receives returned by the drain", end.returned(), 0)
    }

    /// Creates a queue pair in the INIT state that may take its receives from a shared queue.
    fn sharing_qp(&self, shared: Option<&Shared>) -> Result<Init<CompletionSink>, StepError> {
        let entries = ONE_MESSAGE.completions().saturating_add(1);
        let device = self.0.device().clone();
        let cq = CompletionQueue::alloc(device, entries, 0, Poll::SoftIrq, task::NAME);
        let parts = QpInitAttr::new(self.0.pd.clone(), cq.step("completion queue")?, ONE_MESSAGE);
        let parts = match shared {
            Some(shared) => parts.with_shared_receives(shared.clone()),
            None => parts,
        };
        pair::init_qp(self.0, parts)
    }

    /// The drain does not learn that the last shared receive is taken: the queue pair is kept.
    fn last(&self) -> Result<(), StepError> {
        let shared = self.shared(1)?;
        let ends = (
            (self.0, self.sharing_qp(Some(&shared))?),
            (self.0, self.sharing_qp(None)?),
        );
        let (end, _other) = pair::join(ends.0, ends.1, Mtu::Bytes256)?;
        drop(end);
        Ok(())
    }

    /// A queue pair that was never connected has taken no shared receive: its drain does not wait for the last one.
    fn unconnected(&self) -> Result<(), StepError> {
        let shared = self.shared(1)?;
        drop(self.sharing_qp(Some(&shared))?);
        Ok(())
    }

    /// A driver that reports no last shared receive has no shared receive queues.
    fn no_shared_receives(&self) -> Result<(), StepError> {
        let refused = SharedReceiveQueue::<CompletionSink>::new(self.0.pd.clone(), 1, |_| ());
        expect_error("shared receive queue", refused, EOPNOTSUPP)
    }

    /// No work request completes, and nothing says why: the queue pair is kept.
    fn mute(&self) -> Result<(), StepError> {
        let (device, entries) = (self.0.device().clone(), ONE_MESSAGE.completions());
        let queue = DirectQueue::new(device, entries, 0, task::NAME).step("completion queue")?;
        let cq = queue.completion_queue().clone();
        let end = ConnectedQp::loopback(self.0, cq, ONE_MESSAGE)?;
        end.post_receive(Work::new(self.0.device(), BYTES, Direction::FromDevice)?)?;
        end.queue().drain();
        expect_equal("receives returned by the drain", end.returned(), 0)
    }

    /// A region with gaps is of a kind of its own, which few devices have.
    fn gaps(&self) -> Result<(), StepError> {
        Region::<Buffer>::with_gaps(self.0.pd.clone(), 2).step("region with gaps")?;
        let other = Region::<Buffer>::new(self.0.pd.clone(), 2);
        expect_error("region", other, EINVAL)
    }

    /// Neither the device nor the drain of the driver stops the queue pair, which is kept.
    fn undrained(&self) -> Result<(), StepError> {
        let (end, _peer) = self.connect()?;
        end.post_receive(Work::new(self.0.device(), BYTES, Direction::FromDevice)?)?;
        end.queue().drain();
        expect_equal("receives returned by the drain", end.returned(), 0)
    }

    /// The peer may access the region until it is deregistered.
    fn region(&self) -> Result<(), StepError> {
        let (end, _peer) = self.connect()?;
        let work = Work::with_region(self.0, BYTES)?;
        let data = Buffer::new(BYTES, GFP_KERNEL).step("data")?;
        let (work, _) = end.expose(work, data, Direction::FromDevice)?;
        let region = work.into_inner().region.ok_or(ENOENT).step("region")?;
        region.dereg().ok_or(EBUSY).step("data")?;
        Ok(())
    }

    fn shared(&self, receives: u32) -> Result<Shared, StepError> {
        SharedReceiveQueue::new(self.0.pd.clone(), receives, |_| ()).step("shared receive queue")
    }

    fn shared_receives(&self) -> Result<(), StepError> {
        let queue = self.shared(1)?;
        let receive = Work::new(self.0.device(), BYTES, Direction::FromDevice)?;
        queue.post(receive).step("receive")
    }
}

fn send<'a>(work: &'a mut Work, chain: &mut Chain<'a, '_, CompletionSink>) -> Result {
    chain.send([work.buffer.sge()])
}
