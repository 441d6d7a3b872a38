// SPDX-License-Identifier: GPL-2.0

//! Atomic operations: several workers change a counter at the same time, and no change is lost.
//!
//! The far device has the counter. Workers on the near device, each with a connection of its own,
//! add to it. Half of them use fetch-and-add; the others use compare-and-swap, and repeat it when
//! another worker was faster. The sum must be correct.

use common::{
    port_gid::PortGid,
    requirement::DeviceRequirement,
    step_error::{
        expect_equal,
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
    ConnectedQp,
    Work, //
};
use rrdma::{
    rdma::{
        device::Mtu,
        dma::Direction,
        mr::{
            Region,
            RemoteKey, //
        },
        wr::{
            Operation,
            ATOMIC_BYTES, //
        },
    },
    scatter::Buffer,
    sync::Msecs,
};

#[path = "common/common.rs"]
mod common;
#[path = "pair/pair.rs"]
#[allow(dead_code)]
mod pair;

module! {
    type: task::Handle,
    name: "rrdma_atomics",
    authors: ["The rnvmf developers"],
    description: "Sample: atomic operations on a peer's memory",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device of the workers; empty: first device with an active port";
    peer_device: Text<63> = "", "RDMA device of the counter; empty: the same";
    gid_index: Number<0, 255> = 0, "GID index of port 1 of device; default 0";
    peer_gid_index: Number<0, 255> = 0, "GID index of port 1 of peer_device; default 0";
    workers: Number<1, 16> = 4, "number of workers; default 4";
    adds: Number<1, 100000> = 100, "number of additions of each worker; default 100";
    step: Number<1, 1000000> = 3, "number to add each time; default 3";
}

/// Size of the counter in bytes.
const WORD: usize = ATOMIC_BYTES as usize;

/// Time limit of an operation.
const LIMIT: Msecs = Msecs::new(10_000);

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let (device, peer_device) =
        task.devices(&parameters::device.get(), &parameters::peer_device.get())?;
    DeviceRequirement::Atomics.check(&device)?;
    let near = PortGid::new(task, &device, parameters::gid_index.get())?;
    let far = PortGid::new(task, &peer_device, parameters::peer_gid_index.get())?;
    let (holder, counter) = pair::connect(&near, &far, Mtu::Bytes256)?;
    let (memory, key) = expose(&far, &counter)?;
    let spare = Work::new(&device, WORD, Direction::FromDevice)?;
    refusals(&holder, spare, key)?;
    // Declared after the counter, so dropped before it: until then they may add to it.
    let mut workers = KVec::new();
    let mut ends = KVec::new();
    for number in 0..parameters::workers.get() as usize {
        let (end, other) = pair::connect(&near, &far, Mtu::Bytes256)?;
        let word = Work::new(&device, WORD, Direction::FromDevice)?;
        let worker = Worker::new(number, end, key);
        worker.add(word, 0)?;
        workers.push(worker, GFP_KERNEL).step("worker")?;
        ends.push(other, GFP_KERNEL).step("worker")?;
    }
    let retries = work(task, &mut workers)?;
    let (_, word) = counter.invalidate(memory)?;
    let sum = value(word.bytes())?;
    let adds = u64::from(parameters::workers.get()).wrapping_mul(parameters::adds.get().into());
    let expected = adds.wrapping_mul(parameters::step.get().into());
    expect_equal("counter", sum, expected)?;
    Ok(Summary::new(fmt!(
        "{adds} additions, sum {sum}, {retries} compare-and-swap retries"
    )))
}

/// Registers a counter with the value 0. Returns it, and its key.
fn expose(far: &PortGid<'_>, end: &ConnectedQp) -> Result<(Operation<Work>, RemoteKey), StepError> {
    let mut work = Work::new(far.device(), WORD, Direction::Both)?;
    let mut region = Region::new(far.pd.clone(), 1).step("region")?;
    let word = Buffer::new(WORD, GFP_KERNEL).step("counter")?;
    region.dma_map(word, Direction::Both).step("counter")?;
    let key = region.map_sg_for_atomics().step("counter")?;
    work.region = Some(region);
    Ok((end.register(work)?, key))
}

fn value(bytes: &[u8]) -> Result<u64, StepError> {
    let bytes = bytes.try_into().map_err(|_| EINVAL).step("word")?;
    Ok(u64::from_ne_bytes(bytes))
}

/// A worker that adds to the counter.
struct Worker {
    end: ConnectedQp,
    key: RemoteKey,
    /// Uses compare-and-swap.
    swaps: bool,
    left: u32,
    /// Expected value of the counter.
    guess: u64,
    retries: u32,
}

impl Worker {
    fn new(number: usize, end: ConnectedQp, key: RemoteKey) -> Self {
        Self {
            end,
            key,
            swaps: number % 2 == 1,
            left: parameters::adds.get(),
            guess: 0,
            retries: 0,
        }
    }

    /// Posts one addition. `guess` is the expected value of the counter.
    fn add(&self, word: Operation<Work>, guess: u64) -> Result<(), StepError> {
        let (key, step) = (self.key, u64::from(parameters::step.get()));
        let swaps = self.swaps;
        self.end.post("addition", word, |word, chain| match swaps {
            true => chain.compare_and_swap(word.buffer.sge(), key, guess, guess.wrapping_add(step)),
            false => chain.fetch_and_add(word.buffer.sge(), key, step),
        })
    }

    /// Checks the completion of an addition, and posts the next one.
    fn again(&mut self, returned: CompletedWork) -> Result<(), StepError> {
        if let Err(failure) = returned.result {
            return Err(StepError::new("addition", fmt!("{failure}")));
        }
        let mut word = returned.work;
        let before = value(word.buffer.read())?;
        word.buffer.give_back();
        if self.swaps && before != self.guess {
            self.retries = self.retries.saturating_add(1);
            self.guess = before;
        } else {
            self.left = self.left.saturating_sub(1);
            self.guess = before.wrapping_add(parameters::step.get().into());
        }
        match self.left {
            0 => Ok(()),
            _ => self.add(word, self.guess),
        }
    }
}

/// Runs the workers until all are done. Returns how many compare-and-swaps found another value.
fn work(task: &SampleTask, workers: &mut [Worker]) -> Result<u32, StepError> {
    while workers.iter().any(|worker| worker.left != 0) {
        let (number, returned) = task.wait_for("additions", LIMIT, || {
            workers
                .iter()
                .enumerate()
                .find_map(|(number, worker)| Some((number, worker.end.try_take()?)))
        })?;
        if let Some(worker) = workers.get_mut(number) {
            worker.again(returned)?;
        }
    }
    Ok(workers
        .iter()
        .fold(0, |sum, worker| sum.saturating_add(worker.retries)))
}

/// Checks that invalid work requests are refused.
fn refusals(end: &ConnectedQp, word: Operation<Work>, key: RemoteKey) -> Result<(), StepError> {
    let crooked = RemoteKey {
        address: key.address.wrapping_add(1),
        ..key
    };
    let word = end.refuses("unaligned address", word, EINVAL, |word, chain| {
        chain.fetch_and_add(word.buffer.sge(), crooked, 1)
    })?;
    let short = RemoteKey { length: 4, ..key };
    let word = end.refuses("short target", word, EINVAL, |word, chain| {
        chain.fetch_and_add(word.buffer.sge(), short, 1)
    })?;
    let word = end.refuses("short result", word, EINVAL, |word, chain| {
        chain.fetch_and_add(word.buffer.piece(0..4)?, key, 1)
    })?;
    let word = end.refuses("region without data", word, EINVAL, |word, chain| {
        chain.register(word.region()?)
    })?;
    let word = end.refuses("no request", word, EINVAL, |_, _| Ok(()))?;
    end.refuses("buffer for receiving only", word, EINVAL, |word, chain| {
        chain.send([word.buffer.sge()])
    })?;
    Ok(())
}
