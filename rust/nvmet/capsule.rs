// SPDX-License-Identifier: GPL-2.0

//! Receives for commands.

use kernel::prelude::*;
use nvmet::{
    InlineData,
    COMMAND_SIZE, //
};
use rrdma::rdma::{
    cq::Completion,
    device::DeviceRef,
    dma::{
        Direction,
        DmaBuffer, //
    },
    qp::{
        QpContext,
        QueuePair, //
    },
    wr::{
        Complete,
        Operation,
        Receive,
        Sge, //
    },
};

/// Memory of a receive: a command, and the data behind it.
///
/// The data has a buffer of its own, at a page boundary: block devices take only aligned memory.
pub(crate) struct Capsule {
    command: DmaBuffer,
    /// `None` if the queue has no in-capsule data, or while a command is executed with it.
    data: Option<KBox<DmaBuffer>>,
}

impl Capsule {
    /// Allocates a receive with room for `in_capsule` bytes of data. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(device: &DeviceRef, in_capsule: u32) -> Result<Operation<Self>> {
        let direction = Direction::FromDevice;
        let data = match in_capsule {
            0 => None,
            length => {
                let buffer = DmaBuffer::new(device.clone(), length as usize, direction)?;
                Some(KBox::new(buffer, GFP_KERNEL)?)
            }
        };
        Operation::new(Self {
            command: DmaBuffer::new(device.clone(), COMMAND_SIZE, direction)?,
            data,
        })
    }

    /// Returns the command.
    #[inline]
    pub(crate) fn command(&mut self) -> &[u8; COMMAND_SIZE] {
        // Never `None`: the buffer has this size.
        let command = self.command.read().first_chunk();
        command.unwrap_or(&[0; COMMAND_SIZE])
    }

    /// Takes the buffer for `length` bytes of data at `offset`; `None` if there are not as many.
    #[inline]
    pub(crate) fn take_data(&mut self, offset: u32, length: u32) -> Option<InlineData> {
        let data = InlineData::new(self.data.take()?, offset, length);
        data.map_err(|buffer| self.data = Some(buffer)).ok()
    }

    /// Puts the buffer of the data back.
    #[inline]
    pub(crate) fn put_data(&mut self, data: InlineData) {
        self.data = Some(data.into_buffer());
    }
}

/// A queue pair that receives commands.
pub(crate) trait CapsuleReceiver: QpContext {
    /// Handles the completion of a receive.
    fn received(queue: &QueuePair<Self>, capsule: Operation<Capsule>, completion: &Completion<'_>);
}

impl<E: CapsuleReceiver> Complete<E> for Capsule {
    #[inline(always)]
    fn complete(capsule: Operation<Self>, queue: &QueuePair<E>, completion: &Completion<'_>) {
        E::received(queue, capsule, completion);
    }
}

impl<E: CapsuleReceiver> Receive<E> for Capsule {
    #[inline]
    fn buffer(&self) -> Sge<'_> {
        self.command.sge()
    }

    #[inline]
    fn second_buffer(&self) -> Option<Sge<'_>> {
        self.data.as_ref().map(|data| data.sge())
    }
}
