// SPDX-License-Identifier: GPL-2.0

//! Send with invalidate: a message that ends the sender's access to memory of the receiver.
//!
//! The near end lets the far end write or read its memory with a key. The far end does so, and then
//! sends a message that also invalidates the key. When the message arrives, the near end owns the
//! memory again, without a work request of its own.
//!
//! The sample also checks that:
//!
//! - an access with an invalidated key fails;
//! - an old invalidation does not invalidate a later registration with the same key. A region has
//!   the same key again after 256 registrations.

use common::{
    port_gid::PortGid,
    step_error::{
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
    CompletionSink,
    ConnectedQp,
    Work, //
};
use rrdma::{
    rdma::{
        cq::{
            Invalidation,
            Status, //
        },
        device::Mtu,
        dma::Direction,
        mr::RemoteKey,
        wr::{
            Chain,
            Operation, //
        },
    },
    scatter::Buffer,
};

#[path = "common/common.rs"]
mod common;
#[path = "pair/pair.rs"]
#[allow(dead_code)]
mod pair;

module! {
    type: task::Handle,
    name: "rrdma_send_invalidate",
    authors: ["The rnvmf developers"],
    description: "Sample: send with invalidate",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device with the memory; empty: first device with an active port";
    peer_device: Text<63> = "", "RDMA device that accesses it; empty: the same";
    gid_index: Number<0, 255> = 0, "GID index of port 1 of device; default 0";
    peer_gid_index: Number<0, 255> = 0, "GID index of port 1 of peer_device; default 0";
    mtu: Number<256, 4096> = 1024, "path MTU: 256, 512, 1024, 2048 or 4096; default 1024";
    size: Number<1, 1048576> = 4096, "bytes to write or read in each iteration; default 4096";
    read: Bool = false, "let the peer read the memory instead of writing to it";
    iters: Number<1, 100000> = 20, "number of iterations; default 20";
}

/// Number of times that [`elsewhere`] runs. The kernel usually gives the second queue pair the
/// memory of the first, but not always.
const ELSEWHERE: u32 = 4;

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let (device, peer_device) =
        task.devices(&parameters::device.get(), &parameters::peer_device.get())?;
    let near = PortGid::new(task, &device, parameters::gid_index.get())?;
    let far = PortGid::new(task, &peer_device, parameters::peer_gid_index.get())?;
    let mtu = Mtu::from_bytes(parameters::mtu.get())
        .ok_or(EINVAL)
        .step("mtu")?;
    let size = parameters::size.get() as usize;
    // Declared before the connection, so dropped after it: until then the peer may write to it.
    let mut memory = Work::with_region(&near, size)?;
    let (owner, peer) = pair::connect(&near, &far, mtu)?;
    let mut data = Buffer::new(size, GFP_KERNEL).step("data")?;
    let mut notice = Work::new(&device, 1, Direction::FromDevice)?;
    let reads = parameters::read.get();
    let (exposed, used) = match reads {
        true => (Direction::ToDevice, Direction::FromDevice),
        false => (Direction::FromDevice, Direction::ToDevice),
    };
    let mut work = Work::new(&peer_device, size, used)?;
    data = bound_only(&mut memory, data)?;
    let mut last = None;
    let mut first = None;
    let mut refused = 0_u32;
    for number in 0..parameters::iters.get() {
        let byte = (number as u8).wrapping_add(1);
        match reads {
            true => data.bytes_mut().fill(byte),
            false => work.buffer.write().fill(byte),
        }
        let key;
        (memory, key) = owner.expose(memory, data, exposed)?;
        last = Some(key);
        refused = refused.saturating_add(u32::from(refuses(&mut memory, key, first)?));
        owner.post_receive(notice)?;
        work = visit(&peer, work, key, reads)?;
        let invalidation;
        (notice, data, invalidation) = close(&owner, &mut memory, key)?;
        first.get_or_insert(invalidation);
        match reads {
            true => compare(work.buffer.read(), byte)?,
            false => compare(data.bytes(), byte)?,
        }
        work.buffer.give_back();
    }
    dead(&owner, &peer, work, last, reads)?;
    for _ in 0..ELSEWHERE {
        elsewhere(&near, &far, mtu)?;
    }
    let iters = parameters::iters.get();
    Ok(Summary::new(fmt!(
        "{iters} keys invalidated by the peer, {refused} stale invalidations ignored"
    )))
}

/// Checks that a key that was never registered is used again by the next `map_sg`. A
/// region has 256 keys, so `map_sg` must not leave out one that was never registered.
fn bound_only(memory: &mut Operation<Work>, mut data: Buffer) -> Result<Buffer, StepError> {
    let region = memory.region.as_mut().ok_or(EINVAL).step("region")?;
    let mut map_sg = |data| -> Result<(Buffer, u32), StepError> {
        region.dma_map(data, Direction::FromDevice).step("region")?;
        let key = region.map_sg().step("region")?.rkey;
        Ok((region.release().ok_or(EBUSY).step("data")?, key))
    };
    let (first, second);
    (data, first) = map_sg(data)?;
    (data, second) = map_sg(data)?;
    match first == second {
        true => Ok(data),
        false => Err(StepError::new("key", fmt!("{first:#x} was skipped"))),
    }
}

/// Accesses the memory and invalidates the key: two work requests, completed by the second.
///
/// A message after a read is fenced. Otherwise it may start before the read response arrives. If
/// the response is lost, the read is retried with a key that is invalid by then.
fn visit(
    peer: &ConnectedQp,
    work: Operation<Work>,
    key: RemoteKey,
    reads: bool,
) -> Result<Operation<Work>, StepError> {
    peer.post("visit", work, |work, chain| {
        reach(work, chain, key, reads)?;
        if reads {
            chain.fenced();
        }
        chain.send_with_invalidate([], key.rkey)
    })?;
    Ok(peer.done("visit")?.0)
}

/// Adds an RDMA read of the memory, or an RDMA write to it.
fn reach<'a>(
    work: &'a Work,
    chain: &mut Chain<'a, '_, CompletionSink>,
    key: RemoteKey,
    reads: bool,
) -> Result {
    match reads {
        true => chain.read([work.buffer.sge()], key),
        false => chain.write([work.buffer.sge()], key),
    }
}

/// Checks that all bytes are `wanted`.
fn compare(bytes: &[u8], wanted: u8) -> Result<(), StepError> {
    match bytes.iter().find(|byte| **byte != wanted) {
        Some(byte) => Err(StepError::new(
            "data",
            fmt!("got {byte}, expected {wanted}"),
        )),
        None => Ok(()),
    }
}

/// Waits for the message, and takes the data back.
fn close(
    owner: &ConnectedQp,
    memory: &mut Operation<Work>,
    key: RemoteKey,
) -> Result<(Operation<Work>, Buffer, Invalidation), StepError> {
    let (notice, done) = owner.done("message")?;
    let info = done.received.ok_or(EINVAL).step("message")?;
    let invalidation = info.invalidation.ok_or(EINVAL).step("invalidation")?;
    let region = memory.region.as_mut().ok_or(EINVAL).step("region")?;
    if invalidation.rkey() != key.rkey || region.release().is_some() {
        return Err(StepError::new(
            "invalidation",
            fmt!("wrong key, or region already released"),
        ));
    }
    if !region.invalidated_by(invalidation) {
        return Err(StepError::new(
            "invalidation",
            fmt!("rejected by the region"),
        ));
    }
    let data = region.release().ok_or(EBUSY).step("data")?;
    Ok((notice, data, invalidation))
}

/// Checks that the region ignores an invalidation of an earlier registration. Returns `false` if it
/// has another key, so that there was nothing to check.
fn refuses(
    memory: &mut Operation<Work>,
    key: RemoteKey,
    earlier: Option<Invalidation>,
) -> Result<bool, StepError> {
    let Some(earlier) = earlier.filter(|earlier| earlier.rkey() == key.rkey) else {
        return Ok(false);
    };
    let region = memory.region.as_mut().ok_or(EINVAL).step("region")?;
    match region.invalidated_by(earlier) {
        true => Err(StepError::new(
            "invalidation",
            fmt!("accepted for a later registration"),
        )),
        false => Ok(true),
    }
}

/// Checks that an access with an invalidated key fails. The connection is lost by that.
fn dead(
    owner: &ConnectedQp,
    peer: &ConnectedQp,
    work: Operation<Work>,
    key: Option<RemoteKey>,
    reads: bool,
) -> Result<(), StepError> {
    let key = key.ok_or(EINVAL).step("key")?;
    peer.post("dead key", work, |work, chain| {
        reach(work, chain, key, reads)
    })?;
    owner.refused("dead key")?;
    match peer.take_refused("dead key").map(|back| back.result) {
        Some(Err(failure)) if failure.status() == Status::RemoteAccess => {}
        Some(Err(failure)) => return Err(StepError::new("dead key", fmt!("{failure}"))),
        Some(Ok(_)) => return Err(StepError::new("dead key", fmt!("the access succeeded"))),
        None => pr_info!("dead key: no NAK received\n"),
    }
    Ok(())
}

/// Checks that an invalidation only counts on its queue pair.
///
/// The invalidation of an operation is flushed with its queue pair. Then the operation completes on
/// another queue pair, even one at the same address in memory. That must not invalidate the region.
fn elsewhere(near: &PortGid<'_>, far: &PortGid<'_>, mtu: Mtu) -> Result<(), StepError> {
    let step = "invalidation elsewhere";
    let memory = Work::with_region(near, 1)?;
    let data = Buffer::new(1, GFP_KERNEL).step("data")?;
    let (owner, peer) = pair::connect(near, far, mtu)?;
    let (memory, _) = owner.expose(memory, data, Direction::FromDevice)?;
    // The peer has no receive for the message, so the invalidation behind it waits.
    owner.post(step, memory, |memory, chain| {
        chain.send([])?;
        chain.fenced();
        chain.invalidate(memory.region()?)
    })?;
    owner.queue().drain();
    let back = owner.take(step)?;
    if back.result.is_ok() {
        return Err(StepError::new(step, fmt!("not flushed")));
    }
    // `owner` is freed last, so its memory is the first to be used again.
    drop(peer);
    drop(owner);

    let (owner, peer) = pair::connect(near, far, mtu)?;
    peer.post_receive(Work::new(far.device(), 1, Direction::FromDevice)?)?;
    owner.post(step, back.work, |_, chain| chain.send([]))?;
    let (mut memory, _) = owner.done(step)?;
    let region = memory.region.as_mut().ok_or(EINVAL).step("region")?;
    match region.release() {
        None => Ok(()),
        Some(_) => Err(StepError::new(step, fmt!("done by a send"))),
    }
}
