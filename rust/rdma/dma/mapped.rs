// SPDX-License-Identifier: GPL-2.0

//! Data that is mapped for the local device only.

use super::{
    Direction,
    Entries,
    ScatterMap, //
};
use crate::{
    memory::Chunks,
    rdma::pd::ProtectionDomain,
    scatter::Scatter, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Data that is mapped for a device, for RDMA reads and writes and messages of one's own. No peer gets
/// access to it; for that, a [`Region`](crate::rdma::mr::Region) is needed.
///
/// It is created once and takes data repeatedly, such as the pages of one block request after the
/// other. An [`Operation`](crate::rdma::wr::Operation) that contains it can name its
/// [`entries`](Self::entries) in work requests, and cannot [release](Self::release) the data while they are
/// posted. Dropping it unmaps the data, in any context in which the data may be dropped.
///
/// # Invariants
///
/// While `data` is `None`, `map` is not mapped. While `map` is mapped, `data` owns the memory.
pub struct Mapped<D: Scatter> {
    // Before `data`: dropped, and so unmapped, first.
    map: ScatterMap,
    data: Option<D>,
}

// SAFETY: This object owns the map. The functions of its device may be called from any thread.
unsafe impl<D: Scatter + Send> Send for Mapped<D> {}

impl<D: Scatter> Mapped<D> {
    /// Creates an empty one for the device of `pd`. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(pd: Arc<ProtectionDomain>) -> Result<Self> {
        // INVARIANT: Nothing was mapped with the new table.
        Ok(Self {
            map: ScatterMap::new(pd, &mut Chunks::with_capacity(1))?,
            data: None,
        })
    }

    /// Takes `data` and maps it for the device (`ib_dma_map_sg`). Any context.
    ///
    /// # Errors
    ///
    /// Returns `data` with the error:
    ///
    /// - `EBUSY`: there is data.
    /// - `EINVAL`: the data must not be accessed in this direction, see [`Scatter::allows`].
    /// - `EIO`: the data cannot be mapped.
    /// - `ENOMEM`.
    pub fn dma_map(&mut self, data: D, direction: Direction) -> Result<(), (Error, D)> {
        // INVARIANT: `data` owns what is mapped.
        //
        // SAFETY: By the type invariants, the map is not mapped without data.
        unsafe { self.map.map_owned(&mut self.data, data, direction) }
    }

    /// Returns the number of mapped memory pieces; 0 without data. A work request takes at most
    /// [`MAX_SGE`](crate::rdma::wr::MAX_SGE) of them, unless it is posted in a
    /// [`Batch`](crate::rdma::wr::Batch). Any context.
    pub fn segments(&self) -> u32 {
        self.map.mapped()
    }

    /// Returns the mapped memory pieces, for work requests; none without data. Any context.
    pub fn entries(&self) -> Entries<'_> {
        self.map.entries()
    }

    /// Unmaps the data and returns it. Any context.
    pub fn release(&mut self) -> Option<D> {
        self.map.unmap();
        self.data.take()
    }
}
