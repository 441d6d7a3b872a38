// SPDX-License-Identifier: GPL-2.0

//! Memory regions: data that a peer may read or write by a key.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_mr`
//!
//! A [`Region`] takes the data it exposes, and gives it back only when no peer
//! can reach it: before it was ever registered, after the peer or we invalidated
//! the key, or when the region itself is gone. Its states:
//!
//! ```text
//!           attach             bind              Chain::register
//!  Empty ───────────▶ Attached ─────▶ Bound ───────────────────────▶ Valid
//!    ▲                   │              │  ▲ (posting failed)          │
//!    │      release      │              │  └───────────────────────────┤
//!    └───────────────────┴──────────────┤                              │
//!    └────────────────────────────── Invalid ◀─────────────────────────┘
//!                                         invalidated_by (peer), or
//!                                         Chain::invalidate + invalidated
//! ```
//!
//! A region is used again and again, with a new key each time. Regions that a
//! queue pair's operations share are in a [`Pool`].
//!
//! A region is for one queue pair. It has the same key again after 256 registrations, and
//! what tells a peer's invalidation of that time from one of now is the order of the queue
//! pair's completions. That is not checked: where a region moves to another queue pair, a
//! message that waits there must not have been about it.
//!
//! Data goes in, is reached by its key, and comes out when nobody can:
//!
//! ```ignore
//! // samples/key_ping/client.rs
//! let mut region = self.regions.take().ok_or_else(none)?;
//! region
//!     .attach(data, direction)
//!     .map_err(|(error, _)| error)
//!     .step(step)?;
//! // The server learns the key, and no address of this kernel.
//! let key = region.bind_zero_based().step(step)?;
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
    device::Capabilities,
    dma::{
        Direction,
        Entries,
        ScatterMap, //
    },
    pd::ProtectionDomain,
};
use crate::{
    bindings,
    errno::EOPNOTSUPP,
    scatter::Scatter, //
};
use core::{
    cell::Cell,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::Arc, //
};

/// Pages of a region are of this size, in bytes.
pub const PAGE_SIZE: u32 = 4096;

/// What a peer needs to reach a registered region.
#[derive(Clone, Copy, Debug)]
pub struct RemoteKey {
    /// First address of the data, in the peer's requests.
    pub address: u64,
    /// Length in bytes.
    pub length: u32,
    /// The key.
    pub rkey: u32,
}

impl RemoteKey {
    /// Whether the first `length` bytes are within it, and do not wrap around the
    /// end of the address space, whatever a peer said.
    #[inline]
    pub fn covers(&self, length: u32) -> bool {
        length <= self.length && self.address.checked_add(length.into()).is_some()
    }

    /// The `length` bytes that start `offset` bytes behind the first one.
    ///
    /// # Errors
    ///
    /// `EINVAL` if they are not within it, or behind the end of all addresses.
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
    /// No peer can reach the memory: never registered, or invalidated. The region has
    /// a new key.
    Closed,
    /// Has a layout for its new key; the registration was not posted.
    Bound,
    /// Registration was posted: the peer may reach the memory.
    Valid,
    /// Invalidation was posted, and completes as this entry on the queue pair of this
    /// serial number.
    Invalidating {
        cqe: *const bindings::ib_cqe,
        queue: u64,
    },
}

/// A fast-registration region with the data it exposes.
///
/// # Invariants
///
/// - `mr` is a region of `pd`, owned by this object, unless it was deregistered.
/// - The memory that `mr` describes is mapped in `map` and owned by `data` while
///   the state is not `Closed`.
/// - While the state is `Closed` or `Bound`, the key of `mr` is one that the device
///   never had, or had 255 registrations ago, each of which was invalidated since. So no
///   peer can have invalidated it already, ahead of the registration to come.
pub struct Region<D: Scatter> {
    mr: Option<NonNull<bindings::ib_mr>>,
    state: Cell<State>,
    /// The latest registration.
    registered: Cell<RegSeq>,
    /// What a peer may do, and the device for it; set by `bind`.
    access: bindings::ib_access_flags,
    map: ScatterMap,
    data: Option<D>,
    pd: Arc<ProtectionDomain>,
}

// SAFETY: The region is owned by this object; the verbs on it may be called from
// any thread, one at a time, which `&mut` sees to.
unsafe impl<D: Scatter + Send> Send for Region<D> {}

impl<D: Scatter> Region<D> {
    /// Allocates a region of up to `pages` pages of [`PAGE_SIZE`] (`ib_alloc_mr`).
    /// May sleep.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device has no
    /// [registration by work request](Capabilities::MEM_MGT_EXTENSIONS), `EINVAL` for
    /// more pages than it can register, `ENOMEM`.
    pub fn new(pd: Arc<ProtectionDomain>, pages: u32) -> Result<Self> {
        let kind = bindings::ib_mr_type_IB_MR_TYPE_MEM_REG;
        Self::of_kind(pd, pages, kind, Capabilities::MEM_MGT_EXTENSIONS)
    }

    /// Allocates a region of up to `pieces` pieces of memory, which may begin and end
    /// anywhere. May sleep.
    ///
    /// # Errors
    ///
    /// As [`Region::new`]; `EOPNOTSUPP` too if the device cannot register
    /// [gaps](Capabilities::KERNEL_SG_GAPS_REG), as most cannot.
    pub fn with_gaps(pd: Arc<ProtectionDomain>, pieces: u32) -> Result<Self> {
        let kind = bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS;
        let needed = Capabilities::MEM_MGT_EXTENSIONS | Capabilities::KERNEL_SG_GAPS_REG;
        Self::of_kind(pd, pieces, kind, needed)
    }

    fn of_kind(
        pd: Arc<ProtectionDomain>,
        pages: u32,
        kind: bindings::ib_mr_type,
        needed: Capabilities,
    ) -> Result<Self> {
        if !pd.device().attributes().capabilities.contains(needed) {
            return Err(EOPNOTSUPP);
        }
        let map = ScatterMap::new(pd.device().clone())?;
        // SAFETY: The domain is alive.
        let mr = from_err_ptr(unsafe { bindings::ib_alloc_mr(pd.as_raw(), kind, pages) })?;
        let mr = NonNull::new(mr).ok_or(ENOMEM)?;
        // SAFETY: `mr` is ours and not registered. The device has the first key.
        unsafe { advance_key(mr) };
        // INVARIANT: Allocated above; nothing is exposed, and the key is new.
        Ok(Self {
            mr: Some(mr),
            state: Cell::new(State::Closed),
            registered: Cell::new(RegSeq::NEVER),
            access: 0,
            map,
            data: None,
            pd,
        })
    }

    /// Takes `data` and maps it for the device. Any context.
    ///
    /// # Errors
    ///
    /// Gives `data` back: `EBUSY` if the region has data, `ENOMEM`, or `EIO` if
    /// it cannot be mapped.
    #[inline(always)]
    pub fn attach(&mut self, mut data: D, direction: Direction) -> Result<(), (Error, D)> {
        if self.data.is_some() {
            return Err((EBUSY, data));
        }
        if let Err(error) = self.map.map(direction, &mut data) {
            return Err((error, data));
        }
        // There is none that would have to be dropped, see above.
        core::mem::forget(self.data.replace(data));
        Ok(())
    }

    /// Mapped pieces of the data.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.map.mapped()
    }

    /// The mapped pieces, to be sent from or received to by local requests.
    pub fn entries(&self) -> Entries<'_> {
        self.map.entries()
    }

    /// Lays the region over its data, for a new key; to be followed by
    /// [`Chain::register`](super::wr::Chain::register). If it is not, but by
    /// [`Region::release`], the key is still new and the next one's. Any context.
    ///
    /// The peer may do what the direction says, and no more: read what the device
    /// may read, write what it may write.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no data, if it does not fit the region or has gaps
    /// within its pages; `EBUSY` if the region is registered.
    #[inline(always)]
    pub fn bind(&mut self) -> Result<RemoteKey> {
        let mr = self.map_sg()?;
        let direction = self.map.direction();
        let mut access = 0;
        if direction.is_to_device() {
            access |= bindings::ib_access_flags_IB_ACCESS_REMOTE_READ;
        }
        if direction.is_from_device() {
            // What a peer may write, the verbs want to be writable locally, too.
            access |= bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
                | bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE;
        }
        self.set_access(mr, access)
    }

    /// As [`Region::bind`], with addresses that start at 0 (`ib_map_mr_sg_zbva`).
    ///
    /// A peer then learns nothing of where the data is: with a soft device the address
    /// is else one of the kernel's.
    ///
    /// # Errors
    ///
    /// As [`Region::bind`]; `EINVAL` too if the data does not begin with a page, as
    /// devices find the place within the first page by the address.
    pub fn bind_zero_based(&mut self) -> Result<RemoteKey> {
        // SAFETY: The table has at least one entry; its address means something
        // only if it is mapped, which is looked at first.
        let first = unsafe { (*self.map.sgl()).dma_address };
        if self.map.mapped() == 0 || first % u64::from(PAGE_SIZE) != 0 {
            return Err(EINVAL);
        }
        let key = self.bind()?;
        if let Some(mr) = self.mr {
            // SAFETY: `mr` is ours and not registered.
            unsafe { (*mr.as_ptr()).iova = 0 };
        }
        Ok(RemoteKey { address: 0, ..key })
    }

    /// As [`Region::bind`], for a peer that compares and swaps, or fetches and adds,
    /// words of 8 bytes, and may not read or write otherwise.
    ///
    /// # Errors
    ///
    /// As [`Region::bind`]; `EINVAL` too if the data was not attached as
    /// [`Direction::Both`].
    pub fn bind_for_atomics(&mut self) -> Result<RemoteKey> {
        if self.map.direction() != Direction::Both {
            return Err(EINVAL);
        }
        let mr = self.map_sg()?;
        let access = bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC
            | bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE;
        self.set_access(mr, access)
    }

    /// Lays the region over its data (`ib_map_mr_sg`).
    #[inline(always)]
    fn map_sg(&mut self) -> Result<NonNull<bindings::ib_mr>> {
        let mr = self.mr.ok_or(EINVAL)?;
        if self.state.get() != State::Closed {
            return Err(EBUSY);
        }
        let count: i32 = self.map.mapped().try_into()?;
        if count == 0 {
            return Err(EINVAL);
        }
        // SAFETY: `mr` is ours by the type invariant; the table has `count`
        // mapped entries.
        let laid = unsafe {
            let sgl = self.map.sgl();
            bindings::ib_map_mr_sg(mr.as_ptr(), sgl, count, ptr::null_mut(), PAGE_SIZE)
        };
        match laid {
            n if n == count => Ok(mr),
            n if n < 0 => Err(Error::from_errno(n)),
            _ => Err(EINVAL),
        }
    }

    /// Says what the region is to be registered as, with `access`.
    #[inline(always)]
    fn set_access(
        &mut self,
        mr: NonNull<bindings::ib_mr>,
        access: bindings::ib_access_flags,
    ) -> Result<RemoteKey> {
        let mr = mr.as_ptr();
        // SAFETY: `mr` is ours.
        let (address, length, rkey) = unsafe { ((*mr).iova, (*mr).length, (*mr).rkey) };
        let key = RemoteKey {
            address,
            length: length.try_into()?,
            rkey,
        };
        self.access = access;
        self.state.set(State::Bound);
        Ok(key)
    }

    /// Whether a peer may reach the data.
    #[inline]
    pub fn is_valid(&self) -> bool {
        !matches!(self.state.get(), State::Closed | State::Bound)
    }

    /// Takes note that the peer invalidated the key. `false`, and no change, if
    /// it was another one, or before the region was registered, or told on another
    /// queue pair than it was registered on, or on one whose sends and receives
    /// complete in different queues: there the message may have come long ago.
    #[inline]
    pub fn invalidated_by(&mut self, invalidation: Invalidation) -> bool {
        let invalidated = self.state.get() == State::Valid
            && Some(invalidation.rkey()) == self.rkey()
            && invalidation.can_be_of(self.registered.get());
        if invalidated {
            self.close();
        }
        invalidated
    }

    /// Takes note that the invalidation posted by
    /// [`Chain::invalidate`](super::wr::Chain::invalidate) succeeded, as its
    /// completion says. `false`, and no change, if it is another completion, or
    /// a failure.
    pub fn invalidated(&mut self, completion: &Completion<'_>) -> bool {
        let State::Invalidating { cqe, queue } = self.state.get() else {
            return false;
        };
        // Another completion proves nothing; nor does a later one of the entry,
        // as a queue pair on which an invalidation failed completes nothing well.
        let invalidated = completion.is_of(cqe, queue) && completion.result().is_ok();
        if invalidated {
            self.close();
        }
        invalidated
    }

    /// The key is dead: the region gets a new one.
    #[inline]
    fn close(&mut self) {
        if let Some(mr) = self.mr {
            // SAFETY: `mr` is ours and registered no longer, so its key may change.
            unsafe { advance_key(mr) };
        }
        // INVARIANT: The last key that the device had is the one before this.
        self.state.set(State::Closed);
    }

    /// Unmaps the data and gives it back; `None` if there is none, or if the
    /// peer may still reach it. Any context in which `D` may be dropped, if it is then.
    #[inline(always)]
    pub fn release(&mut self) -> Option<D> {
        if self.is_valid() || self.data.is_none() {
            return None;
        }
        self.state.set(State::Closed);
        self.map.unmap();
        self.data.take()
    }

    /// Frees the region itself (`ib_dereg_mr`), after which no peer can reach the
    /// data whatever happened before, and gives the data back. A device that cannot free it is
    /// warned of, and keeps what a peer may reach. May sleep.
    pub fn dereg(mut self) -> Option<D> {
        self.deregister();
        self.release()
    }

    fn deregister(&mut self) {
        let was_valid = self.is_valid();
        if let Some(mr) = self.mr.take() {
            // SAFETY: `mr` is ours by the type invariant; owning `self` means that
            // no request that names it is posted.
            let gone = to_result(unsafe { bindings::ib_dereg_mr(mr.as_ptr()) });
            if let Err(error) = gone {
                let device = self.pd.device().name();
                pr_err!("{device}: a memory region cannot be freed: {error:?}\n");
                // A peer may still reach what it was registered for: nobody gets that again.
                if was_valid {
                    self.map.abandon();
                    core::mem::forget(self.data.take());
                }
            }
        }
        self.state.set(State::Closed);
    }

    fn rkey(&self) -> Option<u32> {
        // SAFETY: `mr` is ours by the type invariant.
        self.mr.map(|mr| unsafe { (*mr.as_ptr()).rkey })
    }

    /// Takes note that the region is about to be registered.
    #[inline]
    pub(in crate::rdma) fn begin_registration(&self, registered: RegSeq) {
        self.registered.set(registered);
    }

    /// The parts that a work request is made of: region, key, access, state.
    pub(crate) fn parts(&self) -> Option<(NonNull<bindings::ib_mr>, u32, u32, &Cell<State>)> {
        Some((self.mr?, self.rkey()?, self.access, &self.state))
    }

    /// The domain that the region belongs to.
    pub fn protection_domain(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }
}

/// Gives a region a key that no earlier registration of it used lately: 8 bits of it change. C:
/// `ib_inc_rkey` and `ib_update_fast_reg_key`.
///
/// # Safety
///
/// The region must be the caller's, and not registered.
#[inline]
unsafe fn advance_key(mr: NonNull<bindings::ib_mr>) {
    const COUNTER: u32 = 0xff;

    // SAFETY: By the contract.
    let mr = unsafe { &mut *mr.as_ptr() };
    let next = mr.rkey.wrapping_add(1) & COUNTER;
    mr.lkey = (mr.lkey & !COUNTER) | next;
    mr.rkey = (mr.rkey & !COUNTER) | next;
}

impl<D: Scatter> Drop for Region<D> {
    fn drop(&mut self) {
        // Before the fields: the mapping and the data go after the region.
        self.deregister();
    }
}
