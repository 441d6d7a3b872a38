// SPDX-License-Identifier: GPL-2.0

//! RDMA write with immediate data: writes memory of the peer and notifies it.
//!
//! The near end writes a message, in pieces, to memory that the far end has registered. The last
//! write has the number of the message as immediate data, and consumes a receive of the far end.
//! All earlier writes have arrived by then. The pieces of a message are posted in one call.

use common::{
    port_gid::PortGid,
    requirement::DeviceRequirement,
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
use core::num::NonZero;
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
    errno::ENOBUFS,
    rdma::{
        cq::Opcode,
        device::Mtu,
        dma::Direction,
        mr::RemoteKey,
        wr::{
            Batch,
            BatchCapacity,
            Inline,
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
    name: "rrdma_write_imm",
    authors: ["The rnvmf developers"],
    description: "Sample: RDMA write with immediate data",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device that writes; empty: first device with an active port";
    peer_device: Text<63> = "", "RDMA device with the memory; empty: the same";
    gid_index: Number<0, 255> = 0, "GID index of port 1 of device; default 0";
    peer_gid_index: Number<0, 255> = 0, "GID index of port 1 of peer_device; default 0";
    mtu: Number<256, 4096> = 1024, "path MTU: 256, 512, 1024, 2048 or 4096; default 1024";
    size: Number<1, 1048576> = 65536, "message size in bytes; default 65536";
    pieces: Number<1, 16> = 4, "RDMA writes per message, each of at least one byte; default 4";
    iters: Number<1, 100000> = 20, "number of messages; default 20";
}

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let (device, peer_device) =
        task.devices(&parameters::device.get(), &parameters::peer_device.get())?;
    DeviceRequirement::ImmediateData.check(&device)?;
    let near = PortGid::new(task, &device, parameters::gid_index.get())?;
    let far = PortGid::new(task, &peer_device, parameters::peer_gid_index.get())?;
    let mtu = Mtu::from_bytes(parameters::mtu.get())
        .ok_or(EINVAL)
        .step("mtu")?;
    // Declared before the connection, so dropped after it: until then the peer may write to it.
    let mut reading = Reading::new(&far)?;
    let (writer, reader) = pair::connect(&near, &far, mtu)?;
    let mut writing = Writing::new(&near, &writer)?;
    for number in 0..parameters::iters.get() {
        let key = reading.open(&reader)?;
        writing.write(number, key)?;
        reading.receive(&reader, number)?;
        reading.close(&reader, number)?;
    }
    inline(&far, &writer, &reader, &near)?;
    let (iters, size) = (parameters::iters.get(), parameters::size.get());
    Ok(Summary::new(fmt!(
        "{iters} messages of {size} bytes, in {} writes each",
        writing.parts.len()
    )))
}

/// Returns the byte of a message at `place`.
fn byte_at(number: u32, place: u32) -> u8 {
    (place.wrapping_mul(31) as u8) ^ (number as u8)
}

/// The end that writes.
struct Writing<'a> {
    end: &'a ConnectedQp,
    /// Pieces of the message, each with its offset.
    parts: KVec<(u32, Option<Operation<Work>>)>,
    batch: Batch<CompletionSink, Work>,
}

impl<'a> Writing<'a> {
    fn new(near: &PortGid<'_>, end: &'a ConnectedQp) -> Result<Self, StepError> {
        let size = parameters::size.get();
        let pieces = NonZero::new(parameters::pieces.get())
            .ok_or(EINVAL)
            .step("pieces")?;
        let rest = u32::from(size % pieces != 0);
        let longest = (size / pieces).saturating_add(rest);
        let mut parts = KVec::new();
        let mut offset = 0u32;
        while offset < size {
            let length = longest.min(size.saturating_sub(offset));
            let mut work = Work::new(near.device(), length as usize, Direction::ToDevice)?;
            work.owner = parts.len();
            parts.push((offset, Some(work)), GFP_KERNEL).step("piece")?;
            offset = offset.saturating_add(length);
        }
        let room = BatchCapacity {
            requests: parts.len(),
            pieces: parts.len(),
        };
        let batch = Batch::new(room).step("batch")?;
        Ok(Self { end, parts, batch })
    }

    /// Posts the writes of a message in one call, and waits until all of them have completed.
    fn write(&mut self, number: u32, key: RemoteKey) -> Result<(), StepError> {
        let count = self.parts.len();
        let last = count.saturating_sub(1);
        for (index, (offset, work)) in (0..count).zip(&mut self.parts) {
            let Some(mut work) = work.take() else {
                return Err(StepError::new(
                    "write",
                    fmt!("piece {index} has not completed"),
                ));
            };
            let offset = *offset;
            for (byte, place) in work
                .buffer
                .write()
                .iter_mut()
                .zip(offset..parameters::size.get())
            {
                *byte = byte_at(number, place);
            }
            let target = key.part(offset, work.buffer.sge().length()).step("write")?;
            let pushed = self.batch.push(self.end.queue(), work, |work, chain| {
                let piece = [work.buffer.sge()];
                match index == last {
                    true => chain
                        .solicited()
                        .write_with_immediate(piece, target, number),
                    false => chain.write(piece, target),
                }
            });
            pushed.step("write")?;
        }
        self.batch.post(self.end.queue()).step("write")?;
        for _ in 0..=last {
            let (work, done) = self.end.done("write")?;
            if done.opcode != Some(Opcode::Write) || done.received.is_some() {
                return Err(StepError::new(
                    "write",
                    fmt!("unexpected opcode {:?}", done.opcode),
                ));
            }
            if let Some((_, place)) = self.parts.get_mut(work.owner) {
                *place = Some(work);
            }
        }
        Ok(())
    }
}

/// The end that is written to.
struct Reading {
    /// The receive that the write with immediate data consumes. Its buffer is not used.
    notice: Option<Operation<Work>>,
    memory: Option<Operation<Work>>,
    data: Option<Buffer>,
}

impl Reading {
    fn new(far: &PortGid<'_>) -> Result<Self, StepError> {
        let size = parameters::size.get() as usize;
        Ok(Self {
            notice: Some(Work::new(far.device(), 1, Direction::FromDevice)?),
            memory: Some(Work::with_region(far, size)?),
            data: Some(Buffer::new(size, GFP_KERNEL).step("data")?),
        })
    }

    /// Posts the receive, and lets the other end write. Returns the key.
    fn open(&mut self, end: &ConnectedQp) -> Result<RemoteKey, StepError> {
        let notice = self.notice.take().ok_or(EBUSY).step("notice")?;
        end.post_receive(notice)?;
        let memory = self.memory.take().ok_or(EBUSY).step("memory")?;
        let data = self.data.take().ok_or(EBUSY).step("data")?;
        let (memory, key) = end.expose(memory, data, Direction::FromDevice)?;
        self.memory = Some(memory);
        Ok(key)
    }

    /// Waits for the notification of the last write.
    fn receive(&mut self, end: &ConnectedQp, number: u32) -> Result<(), StepError> {
        let (notice, done) = end.done("notice")?;
        self.notice = Some(notice);
        let info = done.received.ok_or(EINVAL).step("notice")?;
        // `byte_len()` is the length of the last write only.
        if !info.is_write || info.immediate != Some(number) || info.length == 0 {
            return Err(StepError::new(
                "notice",
                fmt!("immediate data {:?}, {} bytes", info.immediate, info.length),
            ));
        }
        Ok(())
    }

    /// Invalidates the key, and checks the written data.
    fn close(&mut self, end: &ConnectedQp, number: u32) -> Result<(), StepError> {
        let memory = self.memory.take().ok_or(EBUSY).step("memory")?;
        let (memory, mut data) = end.invalidate(memory)?;
        let mut places = data.bytes().iter().zip(0..parameters::size.get());
        if let Some((byte, place)) = places.find(|(byte, place)| **byte != byte_at(number, *place))
        {
            return Err(StepError::new(
                "data",
                fmt!("wrong byte {byte:#04x} at byte {place}"),
            ));
        }
        data.bytes_mut().fill(0);
        self.data = Some(data);
        self.memory = Some(memory);
        Ok(())
    }
}

/// Sends inline data, and checks that invalid work requests are refused.
fn inline(
    far: &PortGid<'_>,
    writer: &ConnectedQp,
    reader: &ConnectedQp,
    near: &PortGid<'_>,
) -> Result<(), StepError> {
    const BYTES: &[u8] = b"in the request itself";
    let notice = Work::new(far.device(), BYTES.len(), Direction::FromDevice)?;
    reader.post_receive(notice)?;
    let work = Work::new(near.device(), 1, Direction::FromDevice)?;
    let work = writer.refuses("too much inline data", work, EINVAL, |_, chain| {
        chain.send(Inline(&[0; pair::INLINE as usize + 1]))
    })?;
    let nowhere = RemoteKey {
        address: 0,
        length: 4,
        rkey: 0,
    };
    let work = writer.refuses("write longer than the target", work, EINVAL, |_, chain| {
        chain.write(Inline(BYTES), nowhere)
    })?;
    let work = writer.refuses("too many requests", work, ENOBUFS, |_, chain| loop {
        chain.send(Inline(BYTES))?;
    })?;
    writer.post("inline", work, |_, chain| {
        chain.send_with_immediate(Inline(BYTES), 7)
    })?;
    writer.done("inline")?;
    let (mut notice, done) = reader.done("inline")?;
    let info = done.received.ok_or(EINVAL).step("inline")?;
    let right = info.immediate == Some(7) && !info.is_write;
    if !right || notice.buffer.read() != BYTES {
        return Err(StepError::new("inline", fmt!("wrong message received")));
    }
    Ok(())
}
