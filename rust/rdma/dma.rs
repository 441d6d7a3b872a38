// SPDX-License-Identifier: GPL-2.0

//! Memory that a device reads or writes.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `ib_dma_*`
//!
//! Always through `ib_dma_*`, never the DMA API itself: soft devices have no DMA
//! device and take kernel addresses.
//!
//! The processor writes through a guard, and the device gets the bytes when it is gone:
//!
//! ```ignore
//! // samples/key_ping/client.rs
//! let mut message = connection::message(queue.device(), Direction::ToDevice)?;
//! for (to, from) in message.write().iter_mut().zip(Advert::from(key).encode()) {
//!     *to = from;
//! }
//! ```

mod direction;
mod sge;

pub use direction::Direction;
pub use sge::Sge;

use super::device::DeviceRef;
use crate::{
    bindings,
    scatter::{
        Scatter,
        ScatterTable, //
    },
};
use core::ops::{
    Deref,
    DerefMut,
    Range, //
};
use kernel::prelude::*;

/// A piece of kernel memory, mapped for a device as long as it lives.
///
/// It is owned by whoever holds it, so the processor may touch it; a buffer that
/// is part of an [`Operation`](super::wr::Operation) is out of reach while that
/// is posted. May be dropped in any context.
///
/// # Invariants
///
/// `bytes` is mapped at `address` for `device` in `direction` and never moves or
/// changes its length.
pub struct DmaBuffer {
    bytes: KVec<u8>,
    address: u64,
    direction: Direction,
    /// Asked twice with each I/O, so kept near.
    uses_virt_dma: bool,
    device: DeviceRef,
}

impl DmaBuffer {
    /// Allocates and maps `length` zero bytes. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for no bytes at all, `ENOMEM`.
    pub fn new(device: DeviceRef, length: usize, direction: Direction) -> Result<Self> {
        if length == 0 {
            return Err(EINVAL);
        }
        let mut bytes = KVec::from_elem(0u8, length, GFP_KERNEL)?;
        // SAFETY: The device is registered while `device` lives, and `bytes` is
        // a live allocation of `length` bytes.
        let address = unsafe {
            bindings::ib_dma_map_single(
                device.as_raw(),
                bytes.as_mut_ptr().cast(),
                length,
                direction.as_raw(),
            )
        };
        // SAFETY: The address is what mapping for this device answered.
        if unsafe { bindings::ib_dma_mapping_error(device.as_raw(), address) } != 0 {
            return Err(ENOMEM);
        }
        // INVARIANT: Mapped above; no method changes `bytes` as a vector.
        Ok(Self {
            bytes,
            address,
            direction,
            uses_virt_dma: device.uses_virt_dma(),
            device,
        })
    }

    /// The bytes, for the processor to read: what the device wrote is there.
    #[inline]
    pub fn read(&mut self) -> &[u8] {
        self.sync_for_cpu();
        &self.bytes
    }

    /// The bytes, for the processor to write; the device gets them when the
    /// guard is dropped.
    #[inline]
    pub fn write(&mut self) -> Writing<'_> {
        self.sync_for_cpu();
        Writing(self)
    }

    /// Gives the whole buffer back to the device after [`DmaBuffer::read`].
    #[inline]
    pub fn give_back(&mut self) {
        self.sync_for_device();
    }

    /// The whole buffer as an entry of a work request.
    #[inline]
    pub fn sge(&self) -> Sge<'_> {
        // `new` cannot have made a buffer longer than kmalloc gives, 4 MiB.
        let length = self.bytes.len() as u32;
        Sge::new(&self.device, self.address, length, self.direction)
    }

    /// The bytes of `range` as an entry of a work request.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the range is not within the buffer, or has no bytes: to some
    /// devices an entry of length 0 is one of 2 GiB.
    #[inline]
    pub fn piece(&self, range: Range<usize>) -> Result<Sge<'_>> {
        let length = range.end.checked_sub(range.start).ok_or(EINVAL)?;
        if length == 0 || range.end > self.bytes.len() {
            return Err(EINVAL);
        }
        // Within the buffer, so neither the address wraps nor the length, see `sge`.
        let address = self.address.wrapping_add(range.start as u64);
        Ok(Sge::new(
            &self.device,
            address,
            length as u32,
            self.direction,
        ))
    }

    #[inline(always)]
    fn sync_for_cpu(&self) {
        if !self.uses_virt_dma {
            self.sync_of_device_for_cpu();
        }
    }

    #[inline(always)]
    fn sync_for_device(&self) {
        if !self.uses_virt_dma {
            self.sync_of_device_for_device();
        }
    }

    #[inline(never)]
    fn sync_of_device_for_cpu(&self) {
        // SAFETY: The mapping is alive by the type invariant.
        unsafe {
            bindings::ib_dma_sync_single_for_cpu(
                self.device.as_raw(),
                self.address,
                self.bytes.len(),
                self.direction.as_raw(),
            )
        }
    }

    #[inline(never)]
    fn sync_of_device_for_device(&self) {
        // SAFETY: The mapping is alive by the type invariant.
        unsafe {
            bindings::ib_dma_sync_single_for_device(
                self.device.as_raw(),
                self.address,
                self.bytes.len(),
                self.direction.as_raw(),
            )
        }
    }
}

impl Drop for DmaBuffer {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; a posted request would own the buffer.
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

/// A [`DmaBuffer`] that the processor writes.
pub struct Writing<'a>(&'a mut DmaBuffer);

impl Deref for Writing<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl DerefMut for Writing<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0.bytes
    }
}

impl Drop for Writing<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.sync_for_device();
    }
}

/// A scatter table with its mapping for a device.
///
/// # Invariants
///
/// - `table` is mapped in `direction` for `device` if `mapped` is not zero, in
///   that many entries, and does not change until it is unmapped.
/// - `mapped` is zero between [`ScatterMap::unmap`] and [`ScatterMap::map`].
pub(crate) struct ScatterMap {
    table: Pin<KBox<ScatterTable>>,
    mapped: u32,
    direction: Direction,
    /// Asked with each I/O, so kept near.
    uses_virt_dma: bool,
    device: DeviceRef,
}

impl ScatterMap {
    pub(crate) fn new(device: DeviceRef) -> Result<Self> {
        Ok(Self {
            table: KBox::pin_init(ScatterTable::new(), GFP_KERNEL)?,
            mapped: 0,
            direction: Direction::ToDevice,
            uses_virt_dma: device.uses_virt_dma(),
            device,
        })
    }

    /// Has `data` listed in the table, and maps it; if that cannot be, the table is empty. Any
    /// context.
    ///
    /// # Errors
    ///
    /// `EBUSY`, and no change, if it is mapped already; `EIO` if the device cannot; what listing
    /// it answers.
    #[inline(always)]
    pub(crate) fn map(&mut self, direction: Direction, data: &mut impl Scatter) -> Result {
        if self.mapped != 0 {
            return Err(EBUSY);
        }
        let mapped = match data.fill(self.table.as_mut()) {
            Ok(()) => self.map_listed(direction),
            Err(error) => Err(error),
        };
        match mapped {
            // INVARIANT: Mapped, or nothing is listed; `table` is not handed out while it is.
            Ok(mapped) => self.mapped = mapped,
            Err(error) => {
                self.table.as_mut().clear();
                return Err(error);
            }
        }
        self.direction = direction;
        Ok(())
    }

    /// Maps what the table lists, and answers in how many entries.
    #[inline(always)]
    fn map_listed(&self, direction: Direction) -> Result<u32> {
        let entries = self.table.entries();
        if entries == 0 {
            return Ok(0);
        }
        // SAFETY: The device is registered while `device` lives; the table has
        // `entries` entries and is pinned.
        let mapped = unsafe {
            bindings::ib_dma_map_sg(
                self.device.as_raw(),
                self.table.sgl(),
                entries.try_into()?,
                direction.as_raw(),
            )
        };
        match u32::try_from(mapped) {
            Ok(0) | Err(_) => Err(EIO),
            Ok(mapped) => Ok(mapped),
        }
    }

    /// Unmaps and empties the table. Any context.
    #[inline(always)]
    pub(crate) fn unmap(&mut self) {
        if self.mapped != 0 && !self.uses_virt_dma {
            self.unmap_of_device();
        }
        self.mapped = 0;
        self.table.as_mut().clear();
    }

    /// Leaves what is mapped so for good, for a device that may use it whenever it likes. Any
    /// context.
    pub(crate) fn abandon(&mut self) {
        self.mapped = 0;
    }

    #[inline(never)]
    fn unmap_of_device(&self) {
        // The C call wants the count that was given to map, not its answer.
        let entries = self.table.entries() as i32;
        // SAFETY: By the type invariants.
        unsafe {
            bindings::ib_dma_unmap_sg(
                self.device.as_raw(),
                self.table.sgl(),
                entries,
                self.direction.as_raw(),
            )
        };
    }

    /// Entries as mapped; zero if nothing is.
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

    /// The mapped entries, in order.
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

/// The mapped pieces of a region's data, in order.
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
        // SAFETY: `next` is one of the mapped entries, of which `left` said
        // that there is one more; the table is borrowed and so stays as it is.
        let (address, length) = unsafe { piece(&*self.next) };
        if self.left != 0 {
            // SAFETY: As above, and another one follows.
            self.next = unsafe { bindings::sg_next(self.next) };
        }
        Some(Sge::new(
            &self.map.device,
            address,
            length,
            self.map.direction,
        ))
    }
}

/// Where a device finds what an entry lists, and how many bytes: C's `sg_dma_address` and
/// `sg_dma_len`.
#[inline]
fn piece(entry: &bindings::scatterlist) -> (u64, u32) {
    #[cfg(CONFIG_NEED_SG_DMA_LENGTH)]
    let length = entry.dma_length;
    #[cfg(not(CONFIG_NEED_SG_DMA_LENGTH))]
    let length = entry.length;

    (entry.dma_address, length)
}
