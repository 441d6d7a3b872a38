// SPDX-License-Identifier: GPL-2.0

//! Receives for commands.

use crate::bindings;
use kernel::{
    prelude::*,
    types::Opaque, //
};
use rrdma::{
    rdma::{
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
            ReceivePieces,
            Sge, //
        },
    },
    scatter::Scatterlist,
};

/// Size of a command in bytes.
pub const COMMAND_SIZE: usize = 64;

/// Memory of a receive, for a command and the in-capsule data behind it.
///
/// The data has a buffer of its own, at a page boundary: block devices take only aligned memory.
///
/// # Invariants
///
/// - The first buffer has [`COMMAND_SIZE`] bytes.
/// - `entry` lists the data from the offset `listed` on, unless that is `UNLISTED`.
pub struct Capsule {
    memory: ReceiveMemory,
    /// Lists the data for nvmet. Its length is set for each command.
    entry: Opaque<bindings::scatterlist>,
    listed: u32,
}

/// No data begins at this offset.
const UNLISTED: u32 = u32::MAX;

impl Capsule {
    /// Allocates a receive with room for `in_capsule` bytes of data, which may be 0. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(pd: &ProtectionDomain, in_capsule: u32) -> Result<Operation<Self>> {
        let memory = ReceiveMemory::new(pd, COMMAND_SIZE, in_capsule as usize)?;
        // INVARIANT: Allocated with this size above; nothing is listed.
        Operation::new(Self {
            memory,
            entry: Opaque::zeroed(),
            listed: UNLISTED,
        })
    }

    /// Returns the command that was received. Any context.
    #[inline]
    pub fn command(&mut self) -> &[u8; COMMAND_SIZE] {
        // Never `None`: the buffer has this size.
        let command = self.memory.first().first_chunk();
        command.unwrap_or(&[0; COMMAND_SIZE])
    }

    /// Returns `length` bytes of the data, from `offset` on; `None` if the capsule does not have these.
    pub(crate) fn data(&mut self, offset: u32, length: u32) -> Option<&[u8]> {
        let data = self.memory.second().get(offset as usize..)?;
        data.get(..length as usize)
    }

    /// Returns the command for nvmet, which may change it. It is valid until `self` is posted or dropped.
    #[inline]
    pub(crate) fn lend(&mut self) -> *mut bindings::nvme_command {
        self.memory.lend_first().cast()
    }

    /// Returns the list of `length` bytes of the data, from `offset` on. It is valid until the next call,
    /// or until `self` is posted or dropped. `None` if the capsule does not have these bytes, or if
    /// `length` is 0.
    #[inline(always)]
    pub(crate) fn list(&mut self, offset: u32, length: u32) -> Option<Scatterlist> {
        let end = offset.checked_add(length)?;
        if length == 0 || end as usize > self.memory.second().len() {
            return None;
        }
        // Hosts put the data at the same offset, so most commands find the entry made.
        if offset != self.listed {
            self.list_from(offset);
        }
        let entry = self.entry.get();
        // SAFETY: The entry was made, and nobody else uses it now. By the type invariants, at least
        // `length` bytes follow its beginning.
        unsafe { (*entry).length = length };
        Some(Scatterlist::new(entry, 1, length))
    }

    #[cold]
    fn list_from(&mut self, offset: u32) {
        let data = self.memory.second().get(offset as usize..).unwrap_or(&[]);
        let (bytes, length) = (data.as_ptr().cast(), data.len() as c_uint);
        // SAFETY: Nobody else uses the entry. The bytes are memory of `kmalloc()`.
        unsafe { bindings::sg_init_one(self.entry.get(), bytes, length) };
        // INVARIANT: Made above.
        self.listed = offset;
    }
}

/// A queue pair that receives commands.
pub trait CapsuleReceiver: QpContext {
    /// Handles the completion of a receive, successful or not. Context of the completion queue.
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
        self.memory.sge()
    }

    #[inline]
    fn pieces(&mut self) -> Option<ReceivePieces<'_>> {
        Some(self.memory.pieces())
    }
}
