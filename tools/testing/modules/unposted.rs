// SPDX-License-Identifier: GPL-2.0

//! Tests operations that the device refuses when they are posted.
//!
//! A work request with more scatter/gather entries than the device supports is refused, and so are
//! the work requests behind it. Those ahead of it are posted and complete.

use common::{
    port_gid::PortGid,
    step_error::{
        expect_equal,
        expect_error,
        expect_unposted,
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
    sync::Arc, //
};
use pair::{
    CompletedWork,
    CompletionSink,
    ConnectedQp,
    Work,
    LIMIT, //
};
use rrdma::{
    errno::{
        ENOBUFS,
        ENOTCONN, //
    },
    new_irq_lock,
    rdma::{
        cq::Completion,
        device::Mtu,
        dma::{
            Direction,
            DmaBuffer, //
        },
        mr::Region,
        qp::QueuePair,
        wr::{
            Batch,
            BatchCapacity,
            Chain,
            Complete,
            Message,
            Messages,
            Operation,
            MAX_REQUESTS,
            MAX_SGE, //
        },
    },
    scatter::Buffer,
    sync::{
        IrqLock,
        TimedCompletion, //
    },
};

#[path = "../../../samples/common/common.rs"]
mod common;
#[path = "../../../samples/pair/pair.rs"]
#[allow(dead_code)]
mod pair;

module! {
    type: task::Handle,
    name: "rrdma_test_unposted",
    authors: ["The rnvmf developers"],
    description: "Test: operations that the device refuses when they are posted",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device that sends; empty: first device with an active port";
    peer_device: Text<63> = "", "RDMA device that receives; empty: the same";
    gid_index: Number<0, 255> = 0, "GID index of port 1 of device; default 0";
    peer_gid_index: Number<0, 255> = 0, "GID index of port 1 of peer_device; default 0";
}

/// Size of receives and regions in bytes. Fits a message with the maximum number of pieces.
const BYTES: usize = 256;

/// Makes the device refuse operations in all possible ways.
fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let (device, peer_device) =
        task.devices(&parameters::device.get(), &parameters::peer_device.get())?;
    let near = PortGid::new(task, &device, parameters::gid_index.get())?;
    let far = PortGid::new(task, &peer_device, parameters::peer_gid_index.get())?;
    let env = TestEnv {
        near: &near,
        far: &far,
        pieces: device.attributes().max_send_sge.saturating_add(1),
    };
    env.whole()?;
    env.part()?;
    env.part_alone()?;
    env.moved()?;
    env.prepared()?;
    env.prepared_without_room()?;
    Ok(Summary::new(fmt!("all operations returned")))
}

struct TestEnv<'a> {
    near: &'a PortGid<'a>,
    far: &'a PortGid<'a>,
    /// One more than the device's `max_send_sge`.
    pieces: u32,
}

impl TestEnv<'_> {
    /// Connects two queue pairs and posts three receives at the far end.
    fn connect(&self) -> Result<(ConnectedQp, ConnectedQp), StepError> {
        let (end, peer) = pair::connect(self.near, self.far, Mtu::Bytes1024)?;
        for _ in 0..3 {
            let device = self.far.device();
            peer.post_receive(Work::new(device, BYTES, Direction::FromDevice)?)?;
        }
        Ok((end, peer))
    }

    fn batch(&self, requests: usize) -> Result<Batch<CompletionSink, Work>, StepError> {
        let room = BatchCapacity {
            requests,
            pieces: (self.pieces as usize).saturating_add(requests),
        };
        Batch::new(room).step("batch")
    }

    fn message(&self, owner: usize) -> Result<Operation<Work>, StepError> {
        let mut work = Work::new(self.near.device(), 1, Direction::ToDevice)?;
        work.owner = owner;
        Ok(work)
    }

    /// Returns an operation that registers a region. No peer uses the region.
    fn registration(&self, owner: usize) -> Result<Operation<Work>, StepError> {
        let mut work = self.message(owner)?;
        let mut region = Region::new(self.near.pd.clone(), 2).step("region")?;
        let data = Buffer::new(BYTES, GFP_KERNEL).step("data")?;
        region.dma_map(data, Direction::FromDevice).step("region")?;
        region.map_sg().step("region")?;
        work.region = Some(region);
        Ok(work)
    }

    /// The second of three operations is refused: it and the third one are returned.
    fn whole(&self) -> Result<(), StepError> {
        let (end, peer) = self.connect()?;
        let mut batch = self.batch(3)?;
        push(&mut batch, &end, self.message(0)?, send)?;
        push(&mut batch, &end, self.message(1)?, |work, chain| {
            send_pieces(work, chain, self.pieces)
        })?;
        let other = Work::new(self.far.device(), 1, Direction::ToDevice)?;
        let elsewhere = batch.push(peer.queue(), other, send);
        expect_unposted("another queue pair", elsewhere, EINVAL)?;
        expect_error("another queue pair", batch.post(peer.queue()), EINVAL)?;
        push(&mut batch, &end, self.registration(2)?, register)?;
        let fourth = batch.push(end.queue(), self.message(3)?, send);
        expect_unposted("a full batch", fourth, ENOBUFS)?;

        expect_error("second of three", batch.post(end.queue()), EINVAL)?;
        expect_equal("left", batch.len(), 2)?;
        expect_error("posting before take_back()", batch.post(end.queue()), EBUSY)?;
        let fourth = batch.push(end.queue(), self.message(3)?, send);
        expect_unposted("push before take_back()", fourth, EBUSY)?;
        expect_equal("posted", end.done("first of three")?.0.owner, 0)?;
        let (second, third) = (taken(&mut batch, 1)?, taken(&mut batch, 2)?);
        empty(&mut batch)?;
        // The region was not registered.
        is_valid(&third, false)?;

        // The registration goes first. If the message is lost, soft-RoCE retransmits it, and
        // executes the work requests behind it again. Registering a valid region again fails.
        push(&mut batch, &end, third, register)?;
        push(&mut batch, &end, second, send)?;
        batch.post(end.queue()).step("returned operations")?;
        let (third, _) = end.done("returned operations")?;
        is_valid(&third, true)?;
        expect_equal("posted", end.done("returned operations")?.0.owner, 1)?;
        push(&mut batch, &end, third, |work, chain| {
            chain.invalidate(work.region()?)
        })?;
        // Operations that were not posted yet can be taken back, too.
        let third = taken(&mut batch, 2)?;
        empty(&mut batch)?;
        is_valid(&third, true)?;
        pr_info!("not posted: 2 of 3 operations returned\n");
        Ok(())
    }

    /// Only the first work request of the second operation is posted. The device owns the operation
    /// until the queue pair is drained.
    fn part(&self) -> Result<(), StepError> {
        let (end, peer) = self.connect()?;
        let mut batch = self.batch(4)?;
        push(&mut batch, &end, self.message(0)?, send)?;
        push(&mut batch, &end, self.message(1)?, |work, chain| {
            chain.send([work.buffer.sge()])?;
            send_pieces(work, chain, self.pieces)
        })?;
        push(&mut batch, &end, self.message(2)?, send)?;
        expect_error(
            "part of the second of three",
            batch.post(end.queue()),
            EINVAL,
        )?;
        let third = taken(&mut batch, 2)?;
        empty(&mut batch)?;
        expect_equal("posted", end.done("first of three")?.0.owner, 0)?;
        peer.done("first message")?;
        peer.done("message of the posted part")?;
        end.refuses("closed queue pair", third, ENOTCONN, send)?;
        comes_back_by_the_drain(&end, 1)?;
        pr_info!("posted in part: 1 of 3 operations returned, 1 completed by the drain\n");
        Ok(())
    }

    /// The same with a batch of a single operation, and without a batch. There is nothing to
    /// return, so posting succeeds.
    fn part_alone(&self) -> Result<(), StepError> {
        let (end, peer) = self.connect()?;
        let mut batch = self.batch(2)?;
        push(&mut batch, &end, self.message(0)?, |work, chain| {
            chain.send([work.buffer.sge()])?;
            send_pieces(work, chain, self.pieces)
        })?;
        batch.post(end.queue()).step("part of a single operation")?;
        empty(&mut batch)?;
        peer.done("message of the posted part")?;
        comes_back_by_the_drain(&end, 0)?;

        let (end, peer) = self.connect()?;
        end.post("part", self.registration(0)?, |work, chain| {
            chain.register(work.region()?)?;
            chain.send([work.buffer.sge()])?;
            send_pieces(work, chain, MAX_SGE as u32 - 1)
        })?;
        peer.done("message of the posted part")?;
        // The device may support more scatter/gather entries than were requested.
        let back = match end.try_take() {
            None => comes_back_by_the_drain(&end, 0)?,
            Some(back) => back,
        };
        // The registration was posted.
        is_valid(&back.work, true)?;
        if back.result.is_err() {
            pr_info!("posted in part: 2 single operations completed by the drain\n");
        }
        Ok(())
    }
}

impl TestEnv<'_> {
    /// A region that was registered on one queue pair is refused by another one.
    fn moved(&self) -> Result<(), StepError> {
        let (first, second) = pair::connect(self.near, self.near, Mtu::Bytes1024)?;
        let work = first.register(self.registration(0)?)?;
        let (mut work, data) = first.invalidate(work)?;
        let region = work.region.as_mut().ok_or(EINVAL).step("region")?;
        let mapped = region.dma_map(data, Direction::FromDevice);
        mapped.map_err(|(error, _)| error).step("region")?;
        region.map_sg().step("region")?;
        let work = second.refuses("another queue pair", work, EINVAL, register)?;
        first.register(work)?;
        Ok(())
    }
}

/// A message with a region that is registered with it.
struct RegionMessage {
    message: Message,
    buffer: DmaBuffer,
    region: Region<Buffer>,
    completed: Arc<CompletedMessage>,
}

/// The message that has completed, until it is taken.
#[pin_data]
struct CompletedMessage {
    #[pin]
    operation: IrqLock<Option<Operation<RegionMessage>>>,
    #[pin]
    done: TimedCompletion,
}

impl Complete<CompletionSink> for RegionMessage {
    fn complete(
        operation: Operation<Self>,
        _queue: &QueuePair<CompletionSink>,
        _completion: &Completion<'_>,
    ) {
        let completed = operation.completed.clone();
        // The caller of `MessagePair::take` has taken the one before.
        let _none = completed.operation.lock().replace(operation);
        completed.done.complete();
    }
}

/// The owner of a [`CompletedMessage`]. An operation refers to where it completes, so it must be taken
/// out to be freed.
struct CompletedOwner(Arc<CompletedMessage>);

impl Drop for CompletedOwner {
    fn drop(&mut self) {
        let untaken = self.0.operation.lock().take();
        drop(untaken);
    }
}

/// Two connected queue pairs, and the messages that complete on the first.
///
/// The fields are dropped in this order: when the queue pairs are closed, the last message has completed.
struct MessagePair {
    end: ConnectedQp,
    peer: ConnectedQp,
    completed: CompletedOwner,
}

impl MessagePair {
    /// Waits for a message, whose region must be valid or not.
    fn take(&self, is_valid: bool) -> Result<Operation<RegionMessage>, StepError> {
        let completed = &self.completed.0;
        expect_equal("completed", completed.done.wait_timeout(LIMIT), true)?;
        let operation = completed.operation.lock().take();
        let operation = operation.ok_or(EINVAL).step("completed")?;
        expect_equal("valid region", operation.region.peer_may_access(), is_valid)?;
        Ok(operation)
    }
}

impl TestEnv<'_> {
    fn message_pair(&self) -> Result<MessagePair, StepError> {
        let (end, peer) = self.connect()?;
        let init = pin_init!(CompletedMessage {
            operation <- new_irq_lock!(None, "unposted::CompletedMessage"),
            done <- TimedCompletion::new(),
        });
        let completed = Arc::pin_init(init, GFP_KERNEL).step("completed")?;
        Ok(MessagePair {
            end,
            peer,
            completed: CompletedOwner(completed),
        })
    }

    fn region_message(&self, pair: &MessagePair) -> Result<Operation<RegionMessage>, StepError> {
        let device = self.near.device();
        let mut region = Region::new(self.near.pd.clone(), 2).step("region")?;
        let data = Buffer::new(BYTES, GFP_KERNEL).step("data")?;
        region.dma_map(data, Direction::FromDevice).step("region")?;
        region.map_sg().step("region")?;
        let mut messages = Messages::with_capacity(device.clone(), 1, 1);
        let region_message = RegionMessage {
            message: messages.alloc().step("message")?,
            buffer: DmaBuffer::new(device.clone(), 1, Direction::ToDevice).step("buffer")?,
            region,
            completed: pair.completed.0.clone(),
        };
        Operation::new(region_message).step("operation")
    }

    /// The second of three operations is refused. Both others have a registration in their region:
    /// that of the first was posted, that of the third is undone, and can be posted later.
    fn prepared(&self) -> Result<(), StepError> {
        let pair = self.message_pair()?;
        let (end, peer) = (&pair.end, &pair.peer);
        let capacity = BatchCapacity {
            requests: 3,
            pieces: self.pieces as usize,
        };
        let mut batch = Batch::new(capacity).step("batch")?;
        let queue = end.queue();
        batch
            .push(queue, self.region_message(&pair)?, register_and_send)
            .step("first")?;
        batch
            .push(queue, self.region_message(&pair)?, |operation, chain| {
                chain.send((0..self.pieces).map(|_| operation.buffer.sge()))
            })
            .step("second")?;
        batch
            .push(queue, self.region_message(&pair)?, register_and_send)
            .step("third")?;
        expect_error("second of three", batch.post(queue), EINVAL)?;
        peer.done("message of the first")?;
        drop(pair.take(true)?);
        let nothing = || StepError::new("taken back", fmt!("nothing"));
        drop(batch.take_back().ok_or_else(nothing)?);
        let third = batch.take_back().ok_or_else(nothing)?;
        expect_equal("left", batch.take_back().is_some(), false)?;
        expect_equal("valid region", third.region.peer_may_access(), false)?;

        batch.push(queue, third, register_and_send).step("again")?;
        batch.post(queue).step("again")?;
        peer.done("message of the third")?;
        drop(pair.take(true)?);
        Ok(())
    }

    /// A registration is not posted if there is no room for its message.
    fn prepared_without_room(&self) -> Result<(), StepError> {
        let pair = self.message_pair()?;
        let (end, peer) = (&pair.end, &pair.peer);
        peer.post_receive(Work::new(self.far.device(), BYTES, Direction::FromDevice)?)?;
        let operation = self.region_message(&pair)?;
        end.queue()
            .post_send(operation, |operation, chain| {
                for _ in 0..MAX_REQUESTS {
                    chain.send([operation.buffer.sge()])?;
                }
                match chain.register_and_send(&operation.region, &mut operation.message) {
                    Err(ENOBUFS) => Ok(()),
                    _ => Err(EIO),
                }
            })
            .step("four messages")?;
        for _ in 0..MAX_REQUESTS {
            peer.done("message")?;
        }
        drop(pair.take(false)?);
        Ok(())
    }
}

fn register_and_send<'a>(
    operation: &'a mut RegionMessage,
    chain: &mut Chain<'a, '_, CompletionSink>,
) -> Result {
    chain.register_and_send(&operation.region, &mut operation.message)
}

fn send<'a>(work: &'a mut Work, chain: &mut Chain<'a, '_, CompletionSink>) -> Result {
    chain.send([work.buffer.sge()])
}

fn send_pieces<'a>(
    work: &'a Work,
    chain: &mut Chain<'a, '_, CompletionSink>,
    pieces: u32,
) -> Result {
    chain.send((0..pieces).map(|_| work.buffer.sge()))
}

fn register<'a>(work: &'a mut Work, chain: &mut Chain<'a, '_, CompletionSink>) -> Result {
    chain.register(work.region()?)
}

fn push(
    batch: &mut Batch<CompletionSink, Work>,
    end: &ConnectedQp,
    work: Operation<Work>,
    build: impl for<'a> FnOnce(&'a mut Work, &mut Chain<'a, '_, CompletionSink>) -> Result + Send,
) -> Result<(), StepError> {
    batch.push(end.queue(), work, build).step("push")
}

/// Takes back the first operation, which must have this owner.
fn taken(
    batch: &mut Batch<CompletionSink, Work>,
    owner: usize,
) -> Result<Operation<Work>, StepError> {
    let nothing = || StepError::new("taken back", fmt!("nothing, expected operation {owner}"));
    let work = batch.take_back().ok_or_else(nothing)?;
    expect_equal("taken back", work.owner, owner)?;
    Ok(work)
}

/// Checks that no more operations can be taken back.
fn empty(batch: &mut Batch<CompletionSink, Work>) -> Result<(), StepError> {
    expect_equal("left", batch.len(), 0)?;
    match batch.take_back() {
        None => Ok(()),
        Some(work) => {
            let owner = work.owner;
            Err(StepError::new(
                "taken back",
                fmt!("unexpected operation {owner}"),
            ))
        }
    }
}

fn is_valid(work: &Operation<Work>, wanted: bool) -> Result<(), StepError> {
    let is_valid = work.region().step("region")?.peer_may_access();
    expect_equal("valid region", is_valid, wanted)
}

/// Checks that the operation completes by the drain, and not before.
fn comes_back_by_the_drain(end: &ConnectedQp, owner: usize) -> Result<CompletedWork, StepError> {
    if let Some(early) = end.try_take() {
        let owner = early.work.owner;
        return Err(StepError::new(
            "part",
            fmt!("{owner} completed before the drain"),
        ));
    }
    end.queue().drain();
    let back = end.try_take().ok_or(EINVAL).step("drain")?;
    expect_equal("drained", back.work.owner, owner)?;
    match &back.result {
        Err(failure) if failure.is_flush() => Ok(back),
        Err(failure) => Err(StepError::new("drained", fmt!("{failure}"))),
        Ok(_) => Err(StepError::new("drained", fmt!("not flushed"))),
    }
}
