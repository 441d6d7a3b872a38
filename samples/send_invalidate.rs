// SPDX-License-Identifier: GPL-2.0

//! A message that ends the peer's access: send with invalidate.
//!
//! The near end lets the far one write to its memory, or read it, by a key. The far end
//! does, and says that it is done by a message that invalidates the key at the same time:
//! when it arrives, the memory is the near end's again, without a request of its own. That
//! the key is dead is shown by using it once more. A region has the same key again after 256
//! registrations; that the message of the first one ends no later one is shown, too.

use common::{
    failure::{
        Failure,
        Step, //
    },
    port_gid::PortGid,
    task::{
        self,
        SampleTask,
        Summary, //
    },
};
use kernel::{
    prelude::*,
    str::CStr,
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
    description: "Sample: a message that ends the access of its sender",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device of the memory; empty: the first with an active port";
    peer_device: Text<63> = "", "RDMA device that uses it; empty: the same";
    gid_index: Number<0, 255> = 0, "which GID of its first port";
    peer_gid_index: Number<0, 255> = 0, "which GID of the other's first port";
    mtu: Number<256, 4096> = 1024, "bytes of a packet: 256, 512, 1024, 2048 or 4096";
    size: Number<1, 1048576> = 4096, "bytes that are written, or read, each time";
    read: Bool = false, "the other end reads the memory and does not write to it";
    iters: Number<1, 100000> = 20, "times that access is given and taken";
}

const OWNER: &CStr = c"rrdma_send_invalidate";

/// How often a queue pair is made where another one was: mostly the kernel gives it the
/// same memory.
const ELSEWHERE: u32 = 4;

fn run(task: &Arc<SampleTask>) -> Result<Summary, Failure> {
    let (device, peer_device) =
        task.devices(&parameters::device.get(), &parameters::peer_device.get())?;
    let near = PortGid::new(task, &device, parameters::gid_index.get(), OWNER)?;
    let far = PortGid::new(task, &peer_device, parameters::peer_gid_index.get(), OWNER)?;
    let mtu = Mtu::from_bytes(parameters::mtu.get())
        .ok_or(EINVAL)
        .step("mtu")?;
    let size = parameters::size.get() as usize;
    // It goes after the connection does: nobody writes to it any more by then.
    let mut memory = Work::with_region(&near, size)?;
    let (owner, peer) = pair::connect(&near, &far, mtu, OWNER)?;
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
        "{iters} keys invalidated by the peer, {refused} once more in vain, and the last one is dead"
    )))
}

/// A key that was never registered is the next one again: only the keys that the device was
/// given are used up, of which there are few.
fn bound_only(memory: &mut Operation<Work>, mut data: Buffer) -> Result<Buffer, Failure> {
    let region = memory.region.as_mut().ok_or(EINVAL).step("region")?;
    let mut bind = |data| -> Result<(Buffer, u32), Failure> {
        let attached = region.attach(data, Direction::FromDevice);
        attached.map_err(|(error, _)| error).step("region")?;
        let key = region.bind().step("region")?.rkey;
        Ok((region.release().ok_or(EBUSY).step("data")?, key))
    };
    let (first, second);
    (data, first) = bind(data)?;
    (data, second) = bind(data)?;
    match first == second {
        true => Ok(data),
        false => Err(Failure::new("key", fmt!("{first:#x} was never registered"))),
    }
}

/// Uses the key, and gives it back: two requests, the second of which completes both.
///
/// A message may start before the answer to the read ahead of it is there. If that is lost
/// the read is sent again, and would find the key dead: so it is fenced.
fn visit(
    peer: &ConnectedQp,
    work: Operation<Work>,
    key: RemoteKey,
    reads: bool,
) -> Result<Operation<Work>, Failure> {
    peer.post("visit", work, |work, chain| {
        reach(work, chain, key, reads)?;
        if reads {
            chain.fenced();
        }
        chain.send_with_invalidate([], key.rkey)
    })?;
    Ok(peer.done("visit")?.0)
}

/// Reads the memory, or writes to it.
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

/// All that was moved must be this byte.
fn compare(bytes: &[u8], wanted: u8) -> Result<(), Failure> {
    match bytes.iter().find(|byte| **byte != wanted) {
        Some(byte) => Err(Failure::new("data", fmt!("{byte} and not {wanted}"))),
        None => Ok(()),
    }
}

/// Waits for the message, and takes the data back.
fn close(
    owner: &ConnectedQp,
    memory: &mut Operation<Work>,
    key: RemoteKey,
) -> Result<(Operation<Work>, Buffer, Invalidation), Failure> {
    let (notice, done) = owner.done("message")?;
    let info = done.received.ok_or(EINVAL).step("message")?;
    let invalidation = info.invalidation.ok_or(EINVAL).step("invalidation")?;
    let region = memory.region.as_mut().ok_or(EINVAL).step("region")?;
    if invalidation.rkey() != key.rkey || region.release().is_some() {
        return Err(Failure::new("invalidation", fmt!("of another key")));
    }
    if !region.invalidated_by(invalidation) {
        return Err(Failure::new(
            "invalidation",
            fmt!("not of the region's key"),
        ));
    }
    let data = region.release().ok_or(EBUSY).step("data")?;
    Ok((notice, data, invalidation))
}

/// Whether the key is one that an earlier message ended: that message does not end it again.
fn refuses(
    memory: &mut Operation<Work>,
    key: RemoteKey,
    earlier: Option<Invalidation>,
) -> Result<bool, Failure> {
    let Some(earlier) = earlier.filter(|earlier| earlier.rkey() == key.rkey) else {
        return Ok(false);
    };
    let region = memory.region.as_mut().ok_or(EINVAL).step("region")?;
    match region.invalidated_by(earlier) {
        true => Err(Failure::new(
            "invalidation",
            fmt!("of an earlier registration"),
        )),
        false => Ok(true),
    }
}

/// Uses a key that is dead: the peer's device refuses, and the connection is broken.
fn dead(
    owner: &ConnectedQp,
    peer: &ConnectedQp,
    work: Operation<Work>,
    key: Option<RemoteKey>,
    reads: bool,
) -> Result<(), Failure> {
    let key = key.ok_or(EINVAL).step("key")?;
    peer.post("dead key", work, |work, chain| {
        reach(work, chain, key, reads)
    })?;
    owner.refused("dead key")?;
    match peer.take_refused("dead key").map(|back| back.result) {
        Some(Err(failure)) if failure.status() == Status::RemoteAccess => {}
        Some(Err(failure)) => return Err(Failure::new("dead key", fmt!("{failure}"))),
        Some(Ok(_)) => return Err(Failure::new("dead key", fmt!("it is alive"))),
        None => pr_info!("the refusal was lost\n"),
    }
    Ok(())
}

/// An invalidation that its queue pair did not get to is not done by what the operation
/// completes on another one, wherever in memory that is.
fn elsewhere(near: &PortGid<'_>, far: &PortGid<'_>, mtu: Mtu) -> Result<(), Failure> {
    let step = "invalidation elsewhere";
    let memory = Work::with_region(near, 1)?;
    let data = Buffer::new(1, GFP_KERNEL).step("data")?;
    let (owner, peer) = pair::connect(near, far, mtu, OWNER)?;
    let (memory, _) = owner.expose(memory, data, Direction::FromDevice)?;
    // There is no receive for the message, and what is behind it waits.
    owner.post(step, memory, |memory, chain| {
        chain.send([])?;
        chain.fenced();
        chain.invalidate(memory.region()?)
    })?;
    owner.queue().drain();
    let back = owner.take(step)?;
    if back.result.is_ok() {
        return Err(Failure::new(step, fmt!("nothing was waited for")));
    }
    // The one that goes last is the first one whose memory is used again.
    drop(peer);
    drop(owner);

    let (owner, peer) = pair::connect(near, far, mtu, OWNER)?;
    peer.post_receive(Work::new(far.device(), 1, Direction::FromDevice)?)?;
    owner.post(step, back.work, |_, chain| chain.send([]))?;
    let (mut memory, _) = owner.done(step)?;
    let region = memory.region.as_mut().ok_or(EINVAL).step("region")?;
    match region.release() {
        None => Ok(()),
        Some(_) => Err(Failure::new(step, fmt!("a message did it"))),
    }
}
