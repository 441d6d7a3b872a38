// SPDX-License-Identifier: GPL-2.0

//! Memory regions: data that is mapped for the device, and that a peer can access with a key while
//! the region is registered.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_mr`
//!
//! A [`Region`] takes the data. It returns the data only while no peer can access it: before the
//! region is registered, after its key was invalidated by the peer or locally, or after the region
//! is deregistered.
//!
//! The methods of each state, and the state that follows. `dereg` ends a region in any state.
//!
//! | State                          | Method                     | Next state                    |
//! |--------------------------------|----------------------------|-------------------------------|
//! | `Invalid`, no data             | `dma_map`                  | `Invalid`, data               |
//! | `Invalid`, data                | `map_sg`                   | `Mapped`                      |
//! |                                | `release`                  | `Invalid`, no data            |
//! | `Mapped`                       | `Chain::register`          | `Valid`                       |
//! |                                | `release`                  | `Invalid`, no data            |
//! | `Valid`: key valid at device   | (posting `register` fails) | `Mapped`                      |
//! |                                | `invalidated_by` (peer)    | `Invalid`, data, new key      |
//! |                                | `Chain::invalidate`        | `Invalidating`                |
//! | `Invalidating`                 | (posting it fails)         | `Valid`                       |
//! |                                | `invalidated` (completion) | `Invalid`, data, new key      |
//!
//! A region is used many times, with a new key for each registration. A [`Pool`] has regions that
//! the operations of a queue pair share.
//!
//! A region is registered on one queue pair only. Its key recurs after 256 registrations. Only the
//! order of completions on a queue pair distinguishes a late invalidation of the old registration
//! from one of the new registration.
//!
//! Maps data, exposes it by a key, and releases it when no peer can access it:
//!
//! ```ignore
//! // samples/key_ping/client.rs
//! let mut region = self.regions.take().ok_or_else(none)?;
//! region.dma_map(data, direction).step(step)?;
//! // The server gets the key, but not the kernel address of the data.
//! let key = region.map_sg_zero_based().step(step)?;
//! // ...
//! let AdvertisedRegion { mut region, .. } = advertised.into_inner();
//! region.release().ok_or_else(reached)
//! ```

mod pool;

pub use pool::{
    MrGuard,
    Pool, //
};

use super::{
    cq::{
        Completion,
        Invalidation,
        RegSeq, //
    },
    device::{
        Capabilities,
        DeviceRef, //
    },
    dma::{
        Direction,
        Entries,
        ScatterMap, //
    },
    pd::ProtectionDomain,
    sleeping_drop::{
        may_sleep,
        OfDevice,
        SleepingDrop, //
    }, //
};
use crate::{
    bindings,
    errno::EOPNOTSUPP,
    memory::{
        value_of,
        Chunks, //
    },
    scatter::{
        Scatter,
        ScatterTable, //
    },
};
use core::{
    cell::{
        Cell,
        UnsafeCell, //
    },
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::Arc,
    task::might_sleep, //
};

/// Size in bytes of the pages of a region.
pub const PAGE_SIZE: u32 = 4096;

/// Remote address, length and key of registered memory, as the peer needs them.
#[derive(Clone, Copy, Debug)]
pub struct RemoteKey {
    /// Address of the first byte, as used in the peer's work requests.
    pub address: u64,
    /// Length in bytes.
    pub length: u32,
    /// The key (R_Key).
    pub rkey: u32,
}

impl RemoteKey {
    /// Returns whether the first `length` bytes are within the memory, without wrapping around the
    /// end of the address space. Safe for values that a peer sent.
    #[inline]
    pub fn covers(&self, length: u32) -> bool {
        length <= self.length && u64::from(length) <= !self.address
    }

    /// Returns the part of `length` bytes at `offset` bytes from the start.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the part is not within the memory, or exceeds the address space.
    #[inline]
    pub fn part(self, offset: u32, length: u32) -> Result<Self> {
        let end = offset.checked_add(length).ok_or(EINVAL)?;
        if end > self.length || self.address.checked_add(end.into()).is_none() {
            return Err(EINVAL);
        }
        Ok(Self {
            address: self.address.wrapping_add(offset.into()),
            length,
            rkey: self.rkey,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// No peer can access the memory. The key was not used since it was advanced.
    Invalid,
    /// The region is mapped with its new key. The registration was not posted.
    Mapped,
    /// The registration was posted: the peer may access the memory.
    Valid,
    /// An invalidation was posted. It completes with this entry, on the queue pair with this serial
    /// number.
    Invalidating {
        cqe: *const bindings::ib_cqe,
        queue: u64,
    },
}

/// A fast-registration memory region and its data.
///
/// # Invariants
///
/// - While the state is not `Invalid`, the memory that `mr` describes is mapped by `map` and owned
///   by `data`.
/// - While `data` is `None`, `map` is not mapped.
/// - While the state is `Invalid` or `Mapped`, the device never had the present key of `mr`, or had
///   it before 255 registrations with other keys, and each of those was invalidated. So no peer can
///   invalidate the key before the next registration.
pub struct Region<D: Scatter> {
    /// Must be the first field. Fields are dropped in order, and the device may access the data until
    /// the region is deregistered.
    mr: SleepingDrop<Mr>,
    state: Cell<State>,
    /// Number of the latest registration.
    registered: Cell<RegSeq>,
    /// Work request of the registration. `dma_map` sets the access flags to what the direction of the
    /// data allows, `map_sg` the key.
    register: UnsafeCell<RegisterWr>,
    // Not a `Mapped`: then the compiler spills more, 6 instructions of each read (1 %).
    map: ScatterMap,
    data: Option<D>,
}

/// Work request that registers a region, in the layout of `wr::Request`.
#[repr(C)]
pub(in crate::rdma) struct RegisterWr {
    pub(in crate::rdma) state: *const Cell<State>,
    pub(in crate::rdma) wr: bindings::ib_reg_wr,
}

impl RegisterWr {
    #[inline(always)]
    fn new(mr: NonNull<bindings::ib_mr>) -> Self {
        let mut wr = bindings::ib_reg_wr {
            mr: mr.as_ptr(),
            ..pin_init::zeroed()
        };
        wr.wr.opcode = bindings::ib_wr_opcode_IB_WR_REG_MR;
        Self {
            state: ptr::null(),
            wr,
        }
    }
}

/// An allocated region (`struct ib_mr`). Dropping it deregisters it, which sleeps.
///
/// # Invariants
///
/// `raw` is a region of `pd`, owned by this object.
struct Mr {
    raw: NonNull<bindings::ib_mr>,
    pd: Arc<ProtectionDomain>,
}

// SAFETY: This object owns the region, which any thread may deregister.
unsafe impl Send for Mr {}

impl Mr {
    #[inline]
    fn as_raw(&self) -> *mut bindings::ib_mr {
        self.raw.as_ptr()
    }
}

impl OfDevice for Mr {
    fn device(&self) -> &DeviceRef {
        self.pd.device()
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        self.pd.device().insist("deregister a memory region", || {
            // SAFETY: `raw` is owned by the type invariant. A work request names it only if its
            // operation contains the `Region` (`Chain::register` borrows it from there). A posted
            // operation belongs to the device, so no reference to the `Region` exists.
            unsafe { bindings::ib_dereg_mr(self.as_raw()) }
        });
    }
}

/// Allocates regions of one size. The lists of their data are allocated together.
pub struct Regions<D: Scatter> {
    parts: RegionParts,
    _data: PhantomData<fn() -> D>,
}

impl<D: Scatter> Regions<D> {
    /// Returns an allocator for about `count` regions of up to `pages` pages. Allocates nothing yet.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP`: the device has no [registration by work
    /// request](Capabilities::MEM_MGT_EXTENSIONS).
    pub fn new(pd: Arc<ProtectionDomain>, count: usize, pages: u32) -> Result<Self> {
        let kind = bindings::ib_mr_type_IB_MR_TYPE_MEM_REG;
        let needed = Capabilities::MEM_MGT_EXTENSIONS;
        RegionParts::new(pd, count, pages, kind, needed).map(Self::of_parts)
    }

    fn of_parts(parts: RegionParts) -> Self {
        Self {
            parts,
            _data: PhantomData,
        }
    }

    /// Allocates a region (`ib_alloc_mr`). May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the device's limit of pages is exceeded; `ENOMEM`.
    #[inline(always)]
    pub fn alloc(&mut self) -> Result<impl Init<Region<D>>> {
        let (mr, map) = self.parts.alloc()?;
        // INVARIANT: `mr` exposes nothing, and its key is new. The map is not mapped.
        Ok(init!(Region {
            state: Cell::new(State::Invalid),
            registered: Cell::new(RegSeq::NEVER),
            register: UnsafeCell::new(RegisterWr::new(mr.raw)),
            mr,
            map,
            data: None,
        }))
    }
}

/// Allocates the parts of [`Regions`] that do not depend on the type of their data.
struct RegionParts {
    pd: Arc<ProtectionDomain>,
    pages: u32,
    kind: bindings::ib_mr_type,
    tables: Chunks<ScatterTable>,
}

impl RegionParts {
    fn new(
        pd: Arc<ProtectionDomain>,
        count: usize,
        pages: u32,
        kind: bindings::ib_mr_type,
        needed: Capabilities,
    ) -> Result<Self> {
        if !pd.device().capabilities().contains(needed) {
            return Err(EOPNOTSUPP);
        }
        Ok(Self {
            pd,
            pages,
            kind,
            tables: Chunks::with_capacity(count),
        })
    }

    /// Allocates the parts of a region, which is not registered. Its key is new. May sleep.
    fn alloc(&mut self) -> Result<(SleepingDrop<Mr>, ScatterMap)> {
        let map = ScatterMap::new(self.pd.clone(), &mut self.tables)?;
        // SAFETY: The protection domain is alive.
        let mr = unsafe { bindings::ib_alloc_mr(self.pd.as_raw(), self.kind, self.pages) };
        let mr = NonNull::new(from_err_ptr(mr)?).ok_or(ENOMEM)?;
        // SAFETY: This function owns `mr`, which is not registered. The new key differs from the
        // first one, which the device has had.
        unsafe { advance_key(mr) };
        // INVARIANT: `mr` was allocated above with `pd`.
        let mr = Mr {
            raw: mr,
            pd: self.pd.clone(),
        };
        Ok((SleepingDrop::new(mr), map))
    }
}

// SAFETY: This object owns the region. The verbs on it may be called from any thread, one at a
// time, which `&mut` ensures.
unsafe impl<D: Scatter + Send> Send for Region<D> {}

impl<D: Scatter> Region<D> {
    /// Allocates a region of up to `pages` pages of [`PAGE_SIZE`] (`ib_alloc_mr`). May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: the device has no [registration by work
    ///   request](Capabilities::MEM_MGT_EXTENSIONS).
    /// - `EINVAL`: `pages` exceeds the device's limit.
    /// - `ENOMEM`.
    pub fn new(pd: Arc<ProtectionDomain>, pages: u32) -> Result<Self> {
        Ok(value_of(Regions::new(pd, 1, pages)?.alloc()?))
    }

    /// Allocates a region of up to `pieces` memory pieces without alignment (`IB_MR_TYPE_SG_GAPS`).
    /// May sleep.
    ///
    /// # Errors
    ///
    /// Those of [`Region::new`]. Also `EOPNOTSUPP` if the device does not support
    /// [gaps](Capabilities::KERNEL_SG_GAPS_REG); most do not.
    pub fn with_gaps(pd: Arc<ProtectionDomain>, pieces: u32) -> Result<Self> {
        let kind = bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS;
        let needed = Capabilities::MEM_MGT_EXTENSIONS | Capabilities::KERNEL_SG_GAPS_REG;
        let parts = RegionParts::new(pd, 1, pieces, kind, needed)?;
        Ok(value_of(Regions::of_parts(parts).alloc()?))
    }

    /// Takes `data` and maps it for the device (`ib_dma_map_sg`). No peer gets access. Any context.
    ///
    /// # Errors
    ///
    /// Returns `data` with the error:
    ///
    /// - `EBUSY`: the region has data.
    /// - `EINVAL`: the data must not be accessed in this direction, see [`Scatter::allows`].
    /// - `EIO`: the data cannot be mapped.
    /// - `ENOMEM`.
    #[inline(always)]
    pub fn dma_map(&mut self, data: D, direction: Direction) -> Result<(), (Error, D)> {
        // INVARIANT: `data` owns what is mapped.
        //
        // SAFETY: By the type invariants, the map is not mapped without data.
        unsafe { self.map.map_owned(&mut self.data, data, direction) }
    }

    /// Returns the number of mapped memory pieces of the data.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.map.mapped()
    }

    /// Returns the mapped memory pieces, for local work requests; none without data. Where no peer is to
    /// access the data, a [`Mapped`](super::dma::Mapped) has them without a region. Any context.
    pub fn entries(&self) -> Entries<'_> {
        self.map.entries()
    }

    /// Maps the region to its data with a new key (`ib_map_mr_sg`). Follow with
    /// [`Chain::register`](super::wr::Chain::register). Or release the data; then the next `map_sg`
    /// uses the same key, which is still new. Any context.
    ///
    /// The direction of the data decides what the peer may do: read what the device may read, and
    /// write what the device may write.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is no data, or it does not fit into the region, or it has gaps within
    ///   pages.
    /// - `EBUSY`: the region is registered.
    #[inline(always)]
    pub fn map_sg(&mut self) -> Result<RemoteKey> {
        self.map_pages()?;
        // Each time: `map_sg_for_atomics` may have set another access before.
        self.register.get_mut().wr.access = allowed(self.map.direction()) as i32;
        self.set_key()
    }

    /// Maps the region as [`Region::map_sg`] does, with addresses that start at 0
    /// (`ib_map_mr_sg_zbva`).
    ///
    /// So the peer does not learn the address of the data. On a soft device, that is a kernel
    /// address. Any context.
    ///
    /// # Errors
    ///
    /// Those of [`Region::map_sg`]. Also `EINVAL` if the data does not start at a page boundary, as
    /// devices compute the offset in the first page from the address.
    pub fn map_sg_zero_based(&mut self) -> Result<RemoteKey> {
        if self.map.mapped() == 0 {
            return Err(EINVAL);
        }
        // SAFETY: The first entry is mapped.
        let first = unsafe { (*self.map.sgl()).dma_address };
        if first % u64::from(PAGE_SIZE) != 0 {
            return Err(EINVAL);
        }
        let key = self.map_sg()?;
        // SAFETY: `mr` is owned, and not registered.
        unsafe { (*self.mr.as_raw()).iova = 0 };
        Ok(RemoteKey { address: 0, ..key })
    }

    /// Maps the region as [`Region::map_sg`] does, for atomic operations of the peer on words of 8
    /// bytes. Other access is not allowed. Any context.
    ///
    /// # Errors
    ///
    /// Those of [`Region::map_sg`]. Also `EINVAL` if the data was not mapped with
    /// [`Direction::Both`].
    pub fn map_sg_for_atomics(&mut self) -> Result<RemoteKey> {
        if self.map.direction() != Direction::Both {
            return Err(EINVAL);
        }
        self.map_pages()?;
        let access = bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC
            | bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE;
        self.register.get_mut().wr.access = access as i32;
        self.set_key()
    }

    /// Maps the region to its data (`ib_map_mr_sg`).
    #[inline(always)]
    fn map_pages(&mut self) -> Result {
        if self.state.get() != State::Invalid {
            return Err(EBUSY);
        }
        let count: i32 = self.map.mapped().try_into()?;
        if count == 0 {
            return Err(EINVAL);
        }
        // SAFETY: `mr` is owned, and the table has `count` mapped entries.
        let mapped = unsafe {
            let (mr, sgl) = (self.mr.as_raw(), self.map.sgl());
            bindings::ib_map_mr_sg(mr, sgl, count, ptr::null_mut(), PAGE_SIZE)
        };
        match mapped {
            n if n == count => Ok(()),
            n if n < 0 => Err(Error::from_errno(n)),
            _ => Err(EINVAL),
        }
    }

    /// Sets the key for the next registration, and returns it.
    #[inline(always)]
    fn set_key(&mut self) -> Result<RemoteKey> {
        let mr = self.mr.as_raw();
        // SAFETY: `mr` is owned.
        let (address, length, rkey) = unsafe { ((*mr).iova, (*mr).length, (*mr).rkey) };
        self.register.get_mut().wr.key = rkey;
        self.state.set(State::Mapped);
        // Last, so that the compiler can merge this check with one of the caller.
        let length = length.try_into()?;
        Ok(RemoteKey {
            address,
            length,
            rkey,
        })
    }

    /// Returns whether a peer may access the data: in `Valid`, and in `Invalidating` until the
    /// invalidation has completed.
    #[inline]
    pub fn peer_may_access(&self) -> bool {
        !matches!(self.state.get(), State::Invalid | State::Mapped)
    }

    /// Marks the region as invalidated by the peer. Returns `false`, and changes nothing, unless
    /// `invalidation` proves it. Any context. There is no proof in these cases:
    ///
    /// - It has another key, or came before the region was registered.
    /// - It came on another queue pair than that of the registration.
    /// - Sends and receives of the queue pair complete in different queues. Their order is unknown
    ///   then, so the message may be older than the registration.
    #[inline]
    pub fn invalidated_by(&mut self, invalidation: Invalidation) -> bool {
        let invalidated = self.state.get() == State::Valid
            && invalidation.rkey() == self.rkey()
            && invalidation.can_be_of(self.registered.get());
        if invalidated {
            self.set_invalid();
        }
        invalidated
    }

    /// Marks the region as invalidated by [`Chain::invalidate`](super::wr::Chain::invalidate).
    /// Returns `false`, and changes nothing, unless `completion` is the successful one of that work
    /// request. Any context.
    pub fn invalidated(&mut self, completion: &Completion<'_>) -> bool {
        let State::Invalidating { cqe, queue } = self.state.get() else {
            return false;
        };
        // Another completion proves nothing. A later completion of the same entry cannot be
        // successful: after a failed invalidation, the queue pair completes no work request
        // successfully.
        let invalidated = completion.is_of(cqe, queue) && completion.result().is_ok();
        if invalidated {
            self.set_invalid();
        }
        invalidated
    }

    /// Enters `Invalid` after the key was invalidated, and advances the key.
    #[inline]
    fn set_invalid(&mut self) {
        // SAFETY: `mr` is owned. It is no longer registered, so its key may change.
        unsafe { advance_key(self.mr.raw) };
        // INVARIANT: The old key was invalidated. The new one is the next of 256 keys. The device
        // never had it, or all others were registered and invalidated since.
        self.state.set(State::Invalid);
    }

    /// Unmaps the data and returns it. Returns `None` if there is no data, or if the peer may still
    /// access it. Any context.
    #[inline(always)]
    pub fn release(&mut self) -> Option<D> {
        if self.peer_may_access() {
            return None;
        }
        // Without data, the state is `Invalid` already, and the map is empty.
        self.state.set(State::Invalid);
        self.map.unmap();
        self.data.take()
    }

    /// Marks the region as [invalidated](Self::invalidated_by) by the peer, then
    /// [releases](Self::release) the data. Any context.
    #[inline(always)]
    pub fn release_invalidated(&mut self, invalidation: Invalidation) -> Option<D> {
        self.invalidated_by(invalidation);
        self.release()
    }

    /// Deregisters the region (`ib_dereg_mr`) and returns its data, which no peer can access
    /// afterwards. Tries until the device does so. Sleeps. In atomic context, this drops the region instead.
    pub fn dereg(self) -> Option<D> {
        might_sleep();
        if !may_sleep() {
            // The region would be deregistered later, and a peer may access the data until then.
            return None;
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped, and each field is moved once. The others have no drop.
        let (mr, map, data) = unsafe {
            (
                ptr::read(&this.mr),
                ptr::read(&this.map),
                ptr::read(&this.data),
            )
        };
        drop(mr);
        drop(map);
        data
    }

    #[inline]
    fn rkey(&self) -> u32 {
        // SAFETY: `mr` is owned.
        unsafe { (*self.mr.as_raw()).rkey }
    }

    /// Checks that the region may be registered on the queue pair of `registered`, whose domain is `pd`
    /// and whose entry for failures is `cqe`: it is mapped, and all its registrations are on that queue
    /// pair. The first call binds it to that queue pair, also if nothing is posted then.
    ///
    /// # Errors
    ///
    /// `EINVAL` if not.
    #[inline]
    pub(in crate::rdma) fn admit(
        &self,
        pd: &Arc<ProtectionDomain>,
        registered: RegSeq,
        cqe: *mut bindings::ib_cqe,
    ) -> Result {
        // All else in one call, so that the error is not kept in a register.
        match self.state.get() == State::Mapped && self.registered.get().is_on_queue_of(registered)
        {
            true => Ok(()),
            false => self.admit_first(pd, registered, cqe),
        }
    }

    #[cold]
    #[inline(never)]
    fn admit_first(
        &self,
        pd: &Arc<ProtectionDomain>,
        registered: RegSeq,
        cqe: *mut bindings::ib_cqe,
    ) -> Result {
        let is_new = self.registered.get().is_never() && ptr::eq(&*self.mr.pd, &**pd);
        if self.state.get() != State::Mapped || !is_new {
            return Err(EINVAL);
        }
        // SAFETY: The region was never registered, so nobody else uses the work request.
        unsafe { (*self.register.get()).wr.wr.__bindgen_anon_1.wr_cqe = cqe };
        self.registered.set(registered);
        Ok(())
    }

    /// Returns the work request of the registration with this number, which was
    /// [admitted](Self::admit) and is posted next. It must be followed by another work request of the
    /// operation: then a device's driver has read this one when the operation completes.
    #[inline]
    pub(in crate::rdma) fn register(&self, registered: RegSeq) -> *mut bindings::ib_send_wr {
        self.registered.set(registered.after(self.registered.get()));
        self.state.set(State::Valid);
        let register = self.register.get();
        // SAFETY: A region is not `Sync`, and is not registered in state `Mapped`. So nobody else
        // accesses the work request. The pointer is made from that of the whole object.
        unsafe {
            (*register).state = &self.state;
            (&raw mut (*register).wr).cast()
        }
    }

    /// Returns a copy of the work request of the registration with this number, and the state that it
    /// changes. It was [admitted](Self::admit) and is posted next.
    #[inline]
    pub(in crate::rdma) fn register_copy(
        &self,
        registered: RegSeq,
    ) -> (bindings::ib_reg_wr, &Cell<State>) {
        self.registered.set(registered);
        // SAFETY: A region is not `Sync`, so nobody else accesses the work request.
        let mut register = unsafe { (*self.register.get()).wr };
        register.wr.next = ptr::null_mut();
        (register, &self.state)
    }

    /// Returns the mapped memory pieces, for a work request by which the device reads them.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the device must not read them.
    #[inline]
    pub(in crate::rdma) fn readable_entries(&self) -> Result<Entries<'_>> {
        match self.map.direction().is_to_device() {
            true => Ok(self.map.entries()),
            false => Err(EINVAL),
        }
    }

    /// Returns key and state, for a work request.
    #[inline]
    pub(crate) fn parts(&self) -> (u32, &Cell<State>) {
        (self.rkey(), &self.state)
    }

    /// Returns the protection domain.
    pub fn protection_domain(&self) -> &Arc<ProtectionDomain> {
        &self.mr.pd
    }
}

impl<D: Scatter> Drop for Region<D> {
    /// In atomic context, the region is deregistered later. Then the data leaks if the peer may access it.
    #[inline]
    fn drop(&mut self) {
        if self.peer_may_access() && !may_sleep() {
            leak_data(self.mr.device());
            self.map.leak();
            core::mem::forget(self.data.take());
        }
    }
}

fn leak_data(device: &DeviceRef) {
    pr_err!(
        "{}: the data of a memory region leaks: it was dropped in atomic context, and a peer may access it\n",
        device.name()
    );
}

/// Returns the access flags for data that is mapped in `direction`.
#[inline(always)]
fn allowed(direction: Direction) -> bindings::ib_access_flags {
    const READ: bindings::ib_access_flags = bindings::ib_access_flags_IB_ACCESS_REMOTE_READ;
    // The verbs require local write access for memory that the peer may write.
    const WRITE: bindings::ib_access_flags = bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
        | bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE;

    // A table, which takes fewer instructions than branches.
    const ALLOWED: [bindings::ib_access_flags; 3] = {
        let mut allowed = [0; 3];
        allowed[Direction::ToDevice as usize] = READ;
        allowed[Direction::FromDevice as usize] = WRITE;
        allowed[Direction::Both as usize] = READ | WRITE;
        allowed
    };
    ALLOWED[direction as usize]
}

/// Advances the key of a region: its lower 8 bits change. C: `ib_inc_rkey` and
/// `ib_update_fast_reg_key` in `include/rdma/ib_verbs.h`.
///
/// # Safety
///
/// The caller must own the region, which must not be registered.
#[inline]
unsafe fn advance_key(mr: NonNull<bindings::ib_mr>) {
    /// Offset of the lower 8 bits in a key.
    const COUNTER: usize = if cfg!(target_endian = "little") { 0 } else { 3 };

    let mr = mr.as_ptr();
    // SAFETY: By the safety requirements nobody else uses `mr`. The offset is within a key.
    unsafe {
        let next = ((*mr).rkey as u8).wrapping_add(1);
        // Only this byte, which takes fewer instructions than the whole keys.
        (&raw mut (*mr).lkey).cast::<u8>().add(COUNTER).write(next);
        (&raw mut (*mr).rkey).cast::<u8>().add(COUNTER).write(next);
    }
}
