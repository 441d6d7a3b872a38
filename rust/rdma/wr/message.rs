// SPDX-License-Identifier: GPL-2.0

//! Messages with the entries of their work requests.

use crate::{
    bindings,
    memory::{
        ChunkBox,
        Chunks, //
    },
    rdma::{
        device::DeviceRef,
        dma::{
            Direction,
            DmaBuffer,
            DmaBuffers,
            Writing,
            WritingArray, //
        },
        mr::Region,
        pd::LocalMemory,
        qp::{
            QpContext,
            QueuePair, //
        },
    },
    scatter::Scatter,
};
use core::cell::UnsafeCell;
use kernel::prelude::*;

/// Maximum number of memory pieces that follow a message, see
/// [`Chain::send_message_with`](super::Chain::send_message_with).
pub const MAX_MESSAGE_DATA: usize = 4;

/// A buffer that is sent many times, with the entries of its work request. The buffer is checked when
/// it is first sent on a queue pair.
///
/// # Invariants
///
/// If `queue` of `entries` is that of a queue pair, `buffer` is mapped for its device, which may read
/// it. The first of `sges` is `buffer`, and all have the key of that queue pair's domain.
pub struct Message {
    buffer: DmaBuffer,
    /// In a box of its own, so that its address does not change.
    entries: ChunkBox<UnsafeCell<Entries>>,
}

/// Entries of a work request that sends a message, which data may follow.
///
/// They change when the operation is posted again. A device's driver reads the entries of a work
/// request before the device can execute that, as nvme-rdma expects, too. Until then, the work requests
/// borrow the message mutably. So the entries do not change while a driver reads them, even if a message
/// is leaked.
struct Entries {
    sges: [bindings::ib_sge; 1 + MAX_MESSAGE_DATA],
    /// Serial number of the queue pair that the entries are for.
    queue: u64,
}

impl Entries {
    /// Entries for no queue pair, which are written when a message is first sent.
    #[inline(always)]
    fn new() -> impl Init<UnsafeCell<Self>> {
        let init = |entries: *mut UnsafeCell<Self>| {
            let entries: *mut Self = entries.cast();
            // SAFETY: `entries` is valid for writing, and a cell has the layout of its value.
            unsafe {
                (&raw mut (*entries).sges).write([pin_init::zeroed(); 1 + MAX_MESSAGE_DATA]);
                // Serial numbers do not reach this value.
                (&raw mut (*entries).queue).write(u64::MAX);
            }
            Ok(())
        };
        // SAFETY: The closure initialises all fields, and does not fail.
        unsafe { pin_init::init_from_closure(init) }
    }
}

/// Allocates messages of one length together.
pub struct Messages {
    buffers: DmaBuffers,
    entries: Chunks<UnsafeCell<Entries>>,
}

impl Messages {
    /// Returns an allocator for about `count` messages of `length` bytes. Allocates nothing yet.
    pub fn with_capacity(device: DeviceRef, count: usize, length: usize) -> Self {
        Self {
            buffers: DmaBuffers::with_capacity(device, count, length, Direction::ToDevice),
            entries: Chunks::with_capacity(count),
        }
    }

    /// Allocates a message of zero bytes. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a length of 0; `ENOMEM`.
    pub fn alloc(&mut self) -> Result<Message> {
        // INVARIANT: The entries are for no queue pair.
        Ok(Message {
            buffer: self.buffers.alloc()?,
            entries: self.entries.push(Entries::new())?,
        })
    }
}

impl Message {
    /// Returns the bytes for reading. See [`DmaBuffer::read`]. Any context.
    #[inline]
    pub fn read(&mut self) -> &[u8] {
        self.buffer.read()
    }

    /// Returns a guard for writing the bytes. See [`DmaBuffer::write`]. Any context.
    #[inline]
    pub fn write(&mut self) -> Writing<'_> {
        self.buffer.write()
    }

    /// Returns the whole buffer to the device, after [`Message::read`]. Any context.
    #[inline]
    pub fn give_back(&mut self) {
        self.buffer.give_back();
    }

    /// Returns the first entry, of the message, for a work request on `queue`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the buffer is mapped for another device.
    #[inline(always)]
    pub(super) fn sges<E: QpContext>(
        &mut self,
        queue: &QueuePair<E>,
    ) -> Result<*mut bindings::ib_sge> {
        if self.entries.get_mut().queue != queue.serial() {
            self.bind(queue.local_memory(), queue.serial())?;
        }
        Ok(self.bound_sges())
    }

    /// Returns the first entry of a message that [`sges`](Self::sges) has bound to the queue pair.
    #[inline(always)]
    pub(super) fn bound_sges(&self) -> *mut bindings::ib_sge {
        // SAFETY: `entries` is valid.
        unsafe { (&raw mut (*self.entries.get()).sges).cast() }
    }

    #[cold]
    fn bind(&mut self, memory: LocalMemory, queue: u64) -> Result {
        let first = self.buffer.sge().as_source(memory)?;
        let entries = self.entries.get_mut();
        for sge in &mut entries.sges {
            sge.lkey = memory.lkey;
        }
        if let Some(sge) = entries.sges.first_mut() {
            *sge = first;
        }
        // INVARIANT: The entries were written above.
        entries.queue = queue;
        Ok(())
    }

    /// Writes the data of `region` behind the message, whose first entry was returned by
    /// [`sges`](Self::sges), and returns the number of entries.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the device must not read the data, or there are too many pieces.
    #[inline(always)]
    pub(super) fn append<D: Scatter>(&mut self, region: &Region<D>) -> Result<i32> {
        if region.segments() != 1 {
            return self.append_several(region);
        }
        let piece = region.readable_entries()?.next().ok_or(EINVAL)?;
        let sge = &mut self.entries.get_mut().sges[1];
        // The key is that of all entries, by the type invariants.
        (sge.addr, sge.length) = (piece.address(), piece.length());
        Ok(2)
    }

    /// Appends as [`append`](Self::append) does. Not inlined, so that the common case saves no registers for a
    /// loop.
    #[inline(never)]
    fn append_several<D: Scatter>(&mut self, region: &Region<D>) -> Result<i32> {
        let sges = &mut self.entries.get_mut().sges;
        let mut count = 1;
        for piece in region.readable_entries()? {
            let sge = sges.get_mut(count).ok_or(EINVAL)?;
            // The key is that of all entries, by the type invariants.
            (sge.addr, sge.length) = (piece.address(), piece.length());
            count = count.wrapping_add(1);
        }
        Ok(count as i32)
    }
}

/// A [`Message`] of `N` bytes. Their number needs no check when they are read or written.
///
/// # Invariants
///
/// The message has `N` bytes.
pub struct FixedMessage<const N: usize>(Message);

impl<const N: usize> FixedMessage<N> {
    /// Converts a message.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it has another length.
    #[inline]
    pub fn new(message: Message) -> Result<Self> {
        if message.buffer.length() != N {
            return Err(EINVAL);
        }
        // INVARIANT: Checked above. No method changes the length.
        Ok(Self(message))
    }

    /// Returns the bytes for reading. See [`DmaBuffer::read`]. Any context.
    #[inline]
    pub fn read(&mut self) -> &[u8; N] {
        // SAFETY: By the type invariant.
        unsafe { self.0.buffer.read_array() }
    }

    /// Returns a guard for writing the bytes. See [`DmaBuffer::write`]. Any context.
    #[inline]
    pub fn write(&mut self) -> WritingArray<'_, N> {
        // SAFETY: By the type invariant.
        unsafe { self.0.buffer.write_array() }
    }

    /// Returns the whole buffer to the device, after [`FixedMessage::read`]. Any context.
    #[inline]
    pub fn give_back(&mut self) {
        self.0.give_back();
    }
}

/// A message that is lent to a [`Chain`](super::Chain), which may send it but not exchange it.
pub struct MessageMut<'a>(pub(super) &'a mut Message);

impl<'a> From<&'a mut Message> for MessageMut<'a> {
    #[inline]
    fn from(message: &'a mut Message) -> Self {
        Self(message)
    }
}

impl<'a, const N: usize> From<&'a mut FixedMessage<N>> for MessageMut<'a> {
    #[inline]
    fn from(message: &'a mut FixedMessage<N>) -> Self {
        Self(&mut message.0)
    }
}
