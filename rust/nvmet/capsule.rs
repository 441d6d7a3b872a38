// SPDX-License-Identifier: GPL-2.0

//! Receives for commands.

use kernel::prelude::*;
use rrdma::rdma::{
    cq::Completion,
    pd::ProtectionDomain,
    qp::{
        QpContext,
        QueuePair, //
    },
    wr::{
        Complete,
        Operation,
        Receive,
        ReceiveMemory,
        Sge, //
    },
};

/// Size of a command in bytes.
pub const COMMAND_SIZE: usize = 64;

/// Memory of a receive: a command, and the data behind it.
///
/// The data has a buffer of its own, at a page boundary: block devices take only aligned memory.
pub struct Capsule(ReceiveMemory);

impl Capsule {
    /// Allocates a receive with room for `in_capsule` bytes of data, which may be 0. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(pd: &ProtectionDomain, in_capsule: u32) -> Result<Operation<Self>> {
        let memory = ReceiveMemory::new(pd, COMMAND_SIZE, in_capsule as usize)?;
        Operation::new(Self(memory))
    }

    /// Returns the command.
    #[inline]
    pub fn command(&mut self) -> &[u8; COMMAND_SIZE] {
        // Never `None`: the buffer has this size.
        let command = self.0.first().first_chunk();
        command.unwrap_or(&[0; COMMAND_SIZE])
    }

    /// Returns the room for data.
    #[inline]
    pub(crate) fn data(&mut self) -> &[u8] {
        self.0.second()
    }
}

/// A queue pair that receives commands.
pub trait CapsuleReceiver: QpContext {
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
        self.0.sge()
    }

    #[inline]
    fn memory(&mut self) -> Option<&mut ReceiveMemory> {
        Some(&mut self.0)
    }
}
