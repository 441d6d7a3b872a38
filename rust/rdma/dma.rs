// SPDX-License-Identifier: GPL-2.0

//! Memory that is mapped for a device.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `ib_dma_*`
//!
//! Memory is mapped with `ib_dma_*`, never with the DMA API itself: a soft device has no DMA device
//! and takes kernel addresses.
//!
//! The CPU writes through a guard; dropping the guard passes the bytes to the device:
//!
//! ```ignore
//! // samples/key_ping/client.rs
//! let mut message = connection::message(queue.device(), Direction::ToDevice)?;
//! for (to, from) in message.write().iter_mut().zip(Advert::from(key).encode()) {
//!     *to = from;
//! }
//! ```

mod mapped;
mod sge;

pub use crate::scatter::Direction;
pub use mapped::Mapped;
pub use sge::Sge;

use super::{
    device::DeviceRef,
    pd::ProtectionDomain, //
};
use crate::{
    bindings,
    memory::{
        ChunkBox,
        Chunks,
        CHUNK_BYTES, //
    },
    scatter::{
        Scatter,
        ScatterTable, //
    },
};
use core::{
    ops::{
        Deref,
        DerefMut,
        Range, //
    },
    ptr::NonNull,
    slice,
};
use kernel::{
    alloc::flags::__GFP_ZERO,
    prelude::*,
    sync::Arc, //
};

/// Memory that is mapped for a device until it is dropped.
///
/// # Invariants
///
/// `bytes` is mapped at `address` for `device` in `direction`. It never moves, and its length never
/// changes.
struct DmaBlock {
    bytes: KVec<u8>,
    address: u64,
    direction: Direction,
    device: DeviceRef,
}

impl DmaBlock {
    /// Allocates and maps `length` zero bytes. May sleep.
    fn new(device: DeviceRef, length: usize, direction: Direction) -> Result<Arc<Self>> {
        if length == 0 {
            return Err(EINVAL);
        }
        let mut bytes = KVec::<u8>::with_capacity(length, GFP_KERNEL | __GFP_ZERO)?;
        // SAFETY: The capacity is at least `length`, and `__GFP_ZERO` initialised the bytes.
        unsafe { bytes.inc_len(length) };
        // SAFETY: `device` keeps the device registered, and `bytes` has `length` bytes.
        let address = unsafe {
            bindings::ib_dma_map_single(
                device.as_raw(),
                bytes.as_mut_ptr().cast(),
                length,
                direction.as_raw(),
            )
        };
        // SAFETY: `address` is the result of the mapping for this device.
        if unsafe { bindings::ib_dma_mapping_error(device.as_raw(), address) } != 0 {
            return Err(ENOMEM);
        }
        // INVARIANT: Mapped above. No method moves or resizes `bytes`.
        let block = Self {
            bytes,
            address,
            direction,
            device,
        };
        Ok(Arc::new(block, GFP_KERNEL)?)
    }
}

impl Drop for DmaBlock {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the block is mapped with these arguments. No posted work
        // request uses it, because that would own a buffer, which owns a reference to the block.
        unsafe {
            bindings::ib_dma_unmap_single(
                self.device.as_raw(),
                self.address,
                self.bytes.len(),
                self.direction.as_raw(),
            )
        }
    }
}

/// Allocates buffers of one size and direction in blocks of several. A block is mapped once, and
/// freed when the last of its buffers is.
///
/// Buffers may share a cache line. That is safe for the directions that are allowed here, also on a
/// machine whose devices bypass the cache: the CPU only reads what the device writes, and the device
/// only reads what the CPU writes.
pub struct DmaBuffers {
    device: DeviceRef,
    length: usize,
    direction: Direction,
    block: Option<Arc<DmaBlock>>,
    /// Offset of the next buffer in the block, and number of buffers from there on.
    next: usize,
    left: usize,
    /// Number of buffers to allocate in later blocks.
    expected: usize,
}

impl DmaBuffers {
    /// Returns an allocator for about `count` buffers of `length` bytes. Allocates nothing yet.
    pub fn with_capacity(
        device: DeviceRef,
        count: usize,
        length: usize,
        direction: Direction,
    ) -> Self {
        Self {
            device,
            length,
            direction,
            block: None,
            next: 0,
            left: 0,
            expected: count,
        }
    }

    /// Allocates a buffer of zero bytes. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a length of 0, or for [`Direction::Both`]; `ENOMEM`.
    pub fn alloc(&mut self) -> Result<DmaBuffer> {
        if self.left == 0 {
            self.grow()?;
        }
        let block = self.block.as_ref().ok_or(ENOMEM)?;
        let buffer = DmaBuffer::of_block(block, self.next, self.length)?;
        // Within the block, as the buffer is.
        self.next = self.next.wrapping_add(self.length);
        self.left = self.left.wrapping_sub(1);
        Ok(buffer)
    }

    /// Replaces a full block.
    #[inline(never)]
    fn grow(&mut self) -> Result {
        if self.direction == Direction::Both {
            return Err(EINVAL);
        }
        let largest = CHUNK_BYTES.checked_div(self.length).ok_or(EINVAL)?;
        let count = self.expected.min(largest).max(1);
        let length = self.length.checked_mul(count).ok_or(EINVAL)?;
        self.block = Some(DmaBlock::new(self.device.clone(), length, self.direction)?);
        self.next = 0;
        self.left = count;
        self.expected = self.expected.saturating_sub(count);
        Ok(())
    }
}

/// A buffer in kernel memory, mapped for a device until it is dropped.
///
/// The CPU may access the buffer through its owner. A buffer that belongs to an
/// [`Operation`](super::wr::Operation) cannot be accessed while the operation is posted. May be
/// dropped in any context.
///
/// # Invariants
///
/// The buffer is a part of `block` that no other buffer has: `length` bytes, mapped at `address` for
/// `device`.
pub struct DmaBuffer {
    bytes: NonNull<u8>,
    address: u64,
    length: u32,
    // Copied to this struct because each I/O reads them.
    direction: Direction,
    uses_virt_dma: bool,
    device: *mut bindings::ib_device,
    _block: Arc<DmaBlock>,
}

// SAFETY: The buffer is owned, and not tied to a thread. The device is that of the block, whose
// functions may be called from any thread.
unsafe impl Send for DmaBuffer {}
// SAFETY: Shared access only reads fields.
unsafe impl Sync for DmaBuffer {}

impl DmaBuffer {
    /// Allocates and maps a buffer of `length` zero bytes. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a length of 0; `ENOMEM`.
    pub fn new(device: DeviceRef, length: usize, direction: Direction) -> Result<Self> {
        Self::of_block(&DmaBlock::new(device, length, direction)?, 0, length)
    }

    /// Returns the buffer of `length` bytes at `offset` in a block, which no other buffer has.
    #[inline(always)]
    fn of_block(block: &Arc<DmaBlock>, offset: usize, length: usize) -> Result<Self> {
        let bytes = u32::try_from(length)?;
        let end = offset.checked_add(length).ok_or(EINVAL)?;
        if end > block.bytes.len() {
            return Err(EINVAL);
        }
        // INVARIANT: The range is within the block, so the sum does not wrap. By the contract of this
        // function, it is not a part of another buffer.
        Ok(Self {
            // SAFETY: The offset is within the bytes of the block, which are not null.
            bytes: unsafe { NonNull::new_unchecked(block.bytes.as_ptr().add(offset).cast_mut()) },
            address: block.address.wrapping_add(offset as u64),
            length: bytes,
            direction: block.direction,
            uses_virt_dma: block.device.uses_virt_dma(),
            device: block.device.as_raw(),
            _block: block.clone(),
        })
    }

    /// Returns the bytes for reading, after making the writes of the device visible to the CPU. Any context.
    #[inline]
    pub fn read(&mut self) -> &[u8] {
        self.sync_for_cpu();
        self.bytes()
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        // SAFETY: By the type invariant the bytes are valid. Only `Writing` changes them, which
        // borrows the buffer exclusively.
        unsafe { slice::from_raw_parts(self.bytes.as_ptr(), self.length as usize) }
    }

    /// Returns a guard for writing the bytes. Dropping the guard passes them to the device. Any context.
    #[inline]
    pub fn write(&mut self) -> Writing<'_> {
        self.sync_for_cpu();
        Writing(self)
    }

    /// Returns the first `N` bytes for reading, as [`read`](Self::read) does. Any context.
    ///
    /// # Safety
    ///
    /// The buffer must have at least `N` bytes.
    #[inline]
    pub(in crate::rdma) unsafe fn read_array<const N: usize>(&mut self) -> &[u8; N] {
        self.sync_for_cpu();
        // SAFETY: By the safety requirements, so many bytes are valid. The buffer is borrowed exclusively.
        unsafe { self.bytes.cast().as_ref() }
    }

    /// Returns a guard for writing the first `N` bytes, as [`write`](Self::write) does. Any context.
    ///
    /// # Safety
    ///
    /// The buffer must have at least `N` bytes.
    #[inline]
    pub(in crate::rdma) unsafe fn write_array<const N: usize>(&mut self) -> WritingArray<'_, N> {
        // INVARIANT: By the safety requirements.
        WritingArray(self.write())
    }

    /// Returns the length in bytes.
    #[inline]
    pub(in crate::rdma) fn length(&self) -> usize {
        self.length as usize
    }

    /// Returns whether the device takes kernel addresses, so that the CPU and the device share the memory
    /// always.
    #[inline]
    pub(in crate::rdma) fn uses_virt_dma(&self) -> bool {
        self.uses_virt_dma
    }

    /// Returns the address of the bytes for C, which may read and write them, after making the writes of
    /// the device visible to the CPU. C may use it until [`DmaBuffer::give_back`]. Any context.
    #[inline]
    pub fn lend(&mut self) -> *mut u8 {
        self.sync_for_cpu();
        self.bytes.as_ptr()
    }

    /// Returns the whole buffer to the device, after [`DmaBuffer::read`] or [`DmaBuffer::lend`]. Any context.
    #[inline]
    pub fn give_back(&mut self) {
        self.sync_for_device();
    }

    /// Returns the whole buffer as an entry of a work request. Any context.
    #[inline]
    pub fn sge(&self) -> Sge<'_> {
        Sge::new(self.device, self.address, self.length, self.direction)
    }

    /// Returns the bytes of `range` as an entry of a work request. Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the range is empty or exceeds the buffer. Some devices take an entry of length 0
    /// for one of 2 GiB.
    #[inline]
    pub fn piece(&self, range: Range<usize>) -> Result<Sge<'_>> {
        let length = range.end.checked_sub(range.start).ok_or(EINVAL)?;
        if length == 0 || range.end > self.length as usize {
            return Err(EINVAL);
        }
        // The range is within the buffer, so the sum does not wrap and the length fits into 32
        // bits.
        let address = self.address.wrapping_add(range.start as u64);
        Ok(Sge::new(
            self.device,
            address,
            length as u32,
            self.direction,
        ))
    }

    // The helpers get fields by value: a soft device would keep the address of the buffer for a function
    // that takes it.

    #[inline(always)]
    fn sync_for_cpu(&self) {
        if !self.uses_virt_dma {
            // SAFETY: By the type invariant, the buffer is a part of a mapping with these arguments.
            unsafe {
                bindings::ib_dma_sync_single_for_cpu(
                    self.device,
                    self.address,
                    self.length as usize,
                    self.direction.as_raw(),
                )
            }
        }
    }

    #[inline(always)]
    fn sync_for_device(&self) {
        if !self.uses_virt_dma {
            // SAFETY: By the type invariant, the buffer is a part of a mapping with these arguments.
            unsafe {
                bindings::ib_dma_sync_single_for_device(
                    self.device,
                    self.address,
                    self.length as usize,
                    self.direction.as_raw(),
                )
            }
        }
    }
}

/// A guard for writing a [`DmaBuffer`] by the CPU.
pub struct Writing<'a>(&'a mut DmaBuffer);

impl Deref for Writing<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl DerefMut for Writing<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let DmaBuffer { bytes, length, .. } = &mut *self.0;
        // SAFETY: By the type invariant the bytes are valid, and nobody else has them. The buffer is
        // borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(bytes.as_ptr(), *length as usize) }
    }
}

impl Drop for Writing<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.sync_for_device();
    }
}

/// A guard for writing the first `N` bytes of a [`DmaBuffer`] by the CPU. Their number needs no check.
///
/// # Invariants
///
/// The buffer has at least `N` bytes.
pub struct WritingArray<'a, const N: usize>(Writing<'a>);

impl<const N: usize> Deref for WritingArray<'_, N> {
    type Target = [u8; N];

    #[inline]
    fn deref(&self) -> &[u8; N] {
        // SAFETY: By the type invariant, and that of `DmaBuffer`, so many bytes are valid. The buffer is
        // borrowed exclusively.
        unsafe { self.0 .0.bytes.cast().as_ref() }
    }
}

impl<const N: usize> DerefMut for WritingArray<'_, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8; N] {
        // SAFETY: By the type invariant, and that of `DmaBuffer`, so many bytes are valid, and nobody else
        // has them. The buffer is borrowed exclusively.
        unsafe { self.0 .0.bytes.cast().as_mut() }
    }
}

/// A scatter table and its mapping for a device.
///
/// # Invariants
///
/// - If `mapped` is not zero, `table` is mapped for `device` in `direction`, in `mapped` entries,
///   and does not change until it is unmapped.
/// - `mapped` is zero between [`ScatterMap::unmap`] and [`ScatterMap::map`].
/// - `device` is that of `_pd`, which keeps it registered.
// The first field is one that no I/O reads: a field at the address of the map would be read by a pointer
// that the compiler keeps for the functions which take the map.
#[repr(C)]
pub(crate) struct ScatterMap {
    /// Keeps the device registered.
    _pd: Arc<ProtectionDomain>,
    table: Pin<ChunkBox<ScatterTable>>,
    // Copied to this struct because each I/O reads them.
    device: *mut bindings::ib_device,
    mapped: u32,
    direction: Direction,
    uses_virt_dma: bool,
}

impl ScatterMap {
    /// Creates a map for the device of `pd`, with a table in `tables`.
    #[inline]
    pub(crate) fn new(
        pd: Arc<ProtectionDomain>,
        tables: &mut Chunks<ScatterTable>,
    ) -> Result<Self> {
        Ok(Self {
            table: tables.push(ScatterTable::init())?.into_pin(),
            mapped: 0,
            direction: Direction::ToDevice,
            uses_virt_dma: pd.device().uses_virt_dma(),
            device: pd.device().as_raw(),
            _pd: pd,
        })
    }

    /// Maps `data` and moves it to `owner`, which keeps it while it is mapped. Any context.
    ///
    /// # Errors
    ///
    /// Returns `data` with `EBUSY` if `owner` has data, or with an error of [`map`](Self::map).
    ///
    /// # Safety
    ///
    /// If `owner` is `None`, the table is not mapped.
    #[inline(always)]
    pub(crate) unsafe fn map_owned<D: Scatter>(
        &mut self,
        owner: &mut Option<D>,
        mut data: D,
        direction: Direction,
    ) -> Result<(), (Error, D)> {
        if owner.is_some() {
            return Err((EBUSY, data));
        }
        let allows = data.allows(direction);
        // SAFETY: By the safety requirements, as `owner` is `None`.
        if let Err(error) = unsafe { self.map(direction, allows, &mut data) } {
            return Err((error, data));
        }
        // `owner` is `None`. `forget` avoids code that drops it.
        core::mem::forget(owner.replace(data));
        Ok(())
    }

    /// Fills the table with `data` and maps it. `allows` says whether `data` allows this direction. On
    /// failure, the table is empty. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `data` must not be accessed in this direction.
    /// - `EIO`: the mapping failed.
    /// - Any error of [`Scatter::fill`].
    ///
    /// # Safety
    ///
    /// The table is not mapped.
    #[inline(always)]
    unsafe fn map(
        &mut self,
        direction: Direction,
        allows: bool,
        data: &mut impl Scatter,
    ) -> Result {
        // Before the calls, so that it is not kept across them.
        self.direction = direction;
        let filled = data.fill(self.table.as_mut());
        let mapped = match filled.map(|()| self.table.entries()) {
            // Some requests without data have no direction, such as flushes.
            Ok(0) => Ok(0),
            Ok(entries) if allows => self.map_listed(entries),
            Ok(_) => Err(EINVAL),
            Err(error) => Err(error),
        };
        match mapped {
            // INVARIANT: Mapped, or empty. While it is mapped, `table` is not changed.
            Ok(mapped) => self.mapped = mapped,
            Err(error) => {
                self.table.as_mut().clear();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Maps the table, which has `entries` entries and is not mapped, and returns the number of mapped ones.
    #[inline(always)]
    fn map_listed(&self, entries: u32) -> Result<u32> {
        let (device, sgl, entries) = (self.device, self.table.sgl(), entries.try_into()?);
        // SAFETY: The device is registered by the type invariant. The table has `entries` entries and is
        // pinned.
        let mapped = unsafe {
            // The two cases of the C function, so a soft device takes no call of a helper. The helper gets
            // the direction by value: a soft device would keep the address of the map for a function that
            // takes it.
            match self.uses_virt_dma {
                true => bindings::ib_dma_virt_map_sg(device, sgl, entries),
                false => bindings::ib_dma_map_sg(device, sgl, entries, self.direction.as_raw()),
            }
        };
        match u32::try_from(mapped) {
            Ok(0) | Err(_) => Err(EIO),
            Ok(mapped) => Ok(mapped),
        }
    }

    /// Leaves the table mapped for ever. Its memory is freed. Any context.
    pub(crate) fn leak(&mut self) {
        self.mapped = 0;
    }

    /// Unmaps and clears the table. Any context.
    #[inline(always)]
    pub(crate) fn unmap(&mut self) {
        if !self.uses_virt_dma && self.mapped != 0 {
            self.unmap_of_device();
        }
        self.mapped = 0;
        self.table.as_mut().clear();
    }

    #[inline(never)]
    fn unmap_of_device(&self) {
        // ib_dma_unmap_sg() takes the number of entries before mapping, not of mapped entries.
        let entries = self.table.entries() as i32;
        // SAFETY: By the type invariant, the table is mapped with these arguments.
        unsafe {
            bindings::ib_dma_unmap_sg(
                self.device,
                self.table.sgl(),
                entries,
                self.direction.as_raw(),
            )
        };
    }

    /// Returns the number of mapped entries; 0 if the table is not mapped.
    #[inline]
    pub(crate) fn mapped(&self) -> u32 {
        self.mapped
    }

    #[inline]
    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    #[inline]
    pub(crate) fn sgl(&self) -> *mut bindings::scatterlist {
        self.table.sgl()
    }

    /// Returns an iterator over the mapped entries, in order.
    #[inline]
    pub(crate) fn entries(&self) -> Entries<'_> {
        Entries {
            next: self.table.sgl(),
            left: self.mapped,
            map: self,
        }
    }
}

impl Drop for ScatterMap {
    fn drop(&mut self) {
        self.unmap();
    }
}

/// An iterator over the mapped entries of a region's data, in order.
pub struct Entries<'a> {
    next: *mut bindings::scatterlist,
    left: u32,
    map: &'a ScatterMap,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Sge<'a>;

    #[inline]
    fn next(&mut self) -> Option<Sge<'a>> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: `left` was not zero, so `next` points to a mapped entry. The table is borrowed,
        // so it does not change.
        let (address, length) = unsafe { piece(&*self.next) };
        if self.left != 0 {
            // SAFETY: `next` points to an entry of the table, and another one follows.
            self.next = unsafe { bindings::sg_next(self.next) };
        }
        Some(Sge::new(
            self.map.device,
            address,
            length,
            self.map.direction,
        ))
    }
}

/// Returns the DMA address and length of an entry (`sg_dma_address`, `sg_dma_len`).
#[inline]
fn piece(entry: &bindings::scatterlist) -> (u64, u32) {
    #[cfg(CONFIG_NEED_SG_DMA_LENGTH)]
    let length = entry.dma_length;
    #[cfg(not(CONFIG_NEED_SG_DMA_LENGTH))]
    let length = entry.length;

    (entry.dma_address, length)
}
