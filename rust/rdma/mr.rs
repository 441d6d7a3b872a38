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

use super::{
    cq::{
        Completion,
        Invalidation, //
    },
    dma::{
        Direction,
        Entries,
        ScatterMap, //
    },
    pd::ProtectionDomain,
};
use crate::{
    bindings,
    block::{
        Operations,
        Request,
        ScatterTable, //
    },
};
use core::{
    cell::Cell,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    alloc::Flags,
    error::from_err_ptr,
    prelude::*,
    sync::Arc, //
};

/// Pages of a region are of this size, in bytes.
pub const PAGE_SIZE: u32 = 4096;

/// Memory that a region can take: something that owns pages and can list them.
///
/// # Safety
///
/// [`Scatter::fill`] must fill the table with memory that stays valid, and is
/// touched by nobody else, as long as the implementor exists.
pub unsafe trait Scatter {
    /// Lists the memory. An empty table means no data. Any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the table cannot grow.
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result;
}

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

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// No peer can reach the memory: never registered, or invalidated.
    Closed,
    /// Has a new key and layout; the registration was not posted.
    Bound,
    /// Registration was posted: the peer may reach the memory.
    Valid,
    /// Invalidation was posted, and completes as this entry on this queue pair.
    Invalidating {
        cqe: *const bindings::ib_cqe,
        qp: *const bindings::ib_qp,
    },
}

/// A fast-registration region with the data it exposes.
///
/// # Invariants
///
/// - `mr` is a region of `pd`, owned by this object, unless it was deregistered.
/// - The memory that `mr` describes is mapped in `map` and owned by `data` while
///   the state is not `Closed`.
pub struct Region<D: Scatter> {
    mr: Option<NonNull<bindings::ib_mr>>,
    state: Cell<State>,
    map: ScatterMap,
    data: Option<D>,
    pd: Arc<ProtectionDomain>,
}

// SAFETY: The region is owned by this object; the verbs on it may be called from
// any thread, one at a time, which `&mut` sees to.
unsafe impl<D: Scatter + Send> Send for Region<D> {}

impl<D: Scatter> Region<D> {
    /// Allocates a region of up to `pages` pages of 4 KiB (`ib_alloc_mr`). May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for more pages than the device can register, `ENOMEM`.
    pub fn new(pd: Arc<ProtectionDomain>, pages: u32) -> Result<Self> {
        let map = ScatterMap::new(pd.device().clone())?;
        // SAFETY: The domain is alive.
        let mr = from_err_ptr(unsafe {
            bindings::ib_alloc_mr(pd.as_raw(), bindings::ib_mr_type_IB_MR_TYPE_MEM_REG, pages)
        })?;
        // INVARIANT: Allocated above; nothing is exposed.
        Ok(Self {
            mr: Some(NonNull::new(mr).ok_or(ENOMEM)?),
            state: Cell::new(State::Closed),
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
    pub fn attach(&mut self, mut data: D, direction: Direction) -> Result<(), (Error, D)> {
        if self.data.is_some() {
            return Err((EBUSY, data));
        }
        let Some(table) = self.map.table() else {
            return Err((EBUSY, data));
        };
        let mut result = data.fill(table);
        if result.is_ok() && !self.map.is_empty() {
            result = self.map.map(direction);
        }
        if let Err(error) = result {
            self.map.unmap();
            return Err((error, data));
        }
        self.data = Some(data);
        Ok(())
    }

    /// The data, if the region has any.
    #[inline]
    pub fn data(&self) -> Option<&D> {
        self.data.as_ref()
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

    /// Lays the region over its data and gives it a new key; to be followed by
    /// [`Chain::register`](super::wr::Chain::register). Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no data, if it does not fit the region or has gaps
    /// within its pages; `EBUSY` if the region is registered.
    pub fn bind(&mut self) -> Result<RemoteKey> {
        let mr = self.mr.ok_or(EINVAL)?.as_ptr();
        if self.state.get() != State::Closed {
            return Err(EBUSY);
        }
        let count: i32 = self.map.mapped().try_into()?;
        if count == 0 {
            return Err(EINVAL);
        }
        // SAFETY: `mr` is ours by the type invariant; the table has `count`
        // mapped entries.
        let bound = unsafe {
            bindings::ib_map_mr_sg(mr, self.map.sgl(), count, ptr::null_mut(), PAGE_SIZE)
        };
        match bound {
            n if n == count => {}
            n if n < 0 => return Err(Error::from_errno(n)),
            _ => return Err(EINVAL),
        }
        // SAFETY: `mr` is ours and not registered, so its key may change.
        let (address, length, rkey) = unsafe {
            bindings::ib_advance_rkey(mr);
            ((*mr).iova, (*mr).length, (*mr).rkey)
        };
        self.state.set(State::Bound);
        Ok(RemoteKey {
            address,
            length: length.try_into()?,
            rkey,
        })
    }

    /// Whether a peer may reach the data.
    #[inline]
    pub fn is_valid(&self) -> bool {
        !matches!(self.state.get(), State::Closed | State::Bound)
    }

    /// Takes note that the peer invalidated the key. `false`, and no change, if
    /// it was another one.
    #[inline]
    pub fn invalidated_by(&mut self, invalidation: Invalidation) -> bool {
        let invalidated =
            self.state.get() == State::Valid && Some(invalidation.rkey()) == self.rkey();
        if invalidated {
            self.state.set(State::Closed);
        }
        invalidated
    }

    /// Takes note that the invalidation posted by
    /// [`Chain::invalidate`](super::wr::Chain::invalidate) succeeded, as its
    /// completion says. `false`, and no change, if it is another completion, or
    /// a failure.
    pub fn invalidated(&mut self, completion: &Completion<'_>) -> bool {
        let State::Invalidating { cqe, qp } = self.state.get() else {
            return false;
        };
        // Another completion proves nothing; nor does a later one of the entry,
        // as a queue pair on which an invalidation failed completes nothing well.
        let invalidated = completion.is_of(cqe, qp) && completion.result().is_ok();
        if invalidated {
            self.state.set(State::Closed);
        }
        invalidated
    }

    /// Unmaps the data and gives it back; `None` if there is none, or if the
    /// peer may still reach it. Any context.
    pub fn release(&mut self) -> Option<D> {
        if self.is_valid() || self.data.is_none() {
            return None;
        }
        self.state.set(State::Closed);
        self.map.unmap();
        self.data.take()
    }

    /// Frees the region itself (`ib_dereg_mr`), after which no peer can reach the
    /// data whatever happened before, and gives the data back. May sleep.
    pub fn dismantle(mut self) -> Option<D> {
        self.deregister();
        self.release()
    }

    fn deregister(&mut self) {
        if let Some(mr) = self.mr.take() {
            // SAFETY: `mr` is ours by the type invariant; owning `self` means that
            // no request that names it is posted. An error leaves nothing to do:
            // the core frees the region in any case but one that a kernel
            // consumer cannot cause (memory windows).
            unsafe { bindings::ib_dereg_mr(mr.as_ptr()) };
        }
        self.state.set(State::Closed);
    }

    fn rkey(&self) -> Option<u32> {
        // SAFETY: `mr` is ours by the type invariant.
        self.mr.map(|mr| unsafe { (*mr.as_ptr()).rkey })
    }

    /// The parts that a work request is made of: region, key, access, state.
    pub(crate) fn parts(&self) -> Option<(NonNull<bindings::ib_mr>, u32, u32, &Cell<State>)> {
        // Only what the direction needs: a peer may read what we send, and write
        // what we receive, which the verbs want to be writable locally, too.
        let access = match self.map.direction() {
            Direction::ToDevice => bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
            Direction::FromDevice => {
                bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
                    | bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE
            }
        };
        Some((self.mr?, self.rkey()?, access, &self.state))
    }

    /// The domain that the region belongs to.
    pub fn protection_domain(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }
}

impl<D: Scatter> Drop for Region<D> {
    fn drop(&mut self) {
        // Before the fields: the mapping and the data go after the region.
        self.deregister();
    }
}

/// Kernel memory of a region's own, for messages rather than for I/O.
///
/// The region that it is attached to owns it, so the processor gets at it before
/// and after, never while the device may.
pub struct Buffer(KVec<u8>);

impl Buffer {
    /// Allocates `length` zero bytes; what `flags` say of sleeping holds.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(length: usize, flags: Flags) -> Result<Self> {
        Ok(Self(KVec::from_elem(0u8, length, flags)?))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

// SAFETY: The vector is owned, its length never changes, and only `&mut` and `&`
// to a `Buffer` that is not attached reach its bytes.
unsafe impl Scatter for Buffer {
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result {
        table.fill_bytes(&mut self.0)
    }
}

/// A request of the block layer as a region takes it: with its own pages, or
/// with a payload that stands for them on the wire, such as the list of ranges
/// of a discard.
pub struct Carrier<T: Operations> {
    request: Request<T>,
    payload: Option<Buffer>,
}

impl<T: Operations> Carrier<T> {
    /// A request that is carried with its own pages, if `payload` is `None`.
    #[inline]
    pub fn new(request: Request<T>, payload: Option<Buffer>) -> Self {
        Self { request, payload }
    }

    /// The request.
    #[inline]
    pub fn request(&self) -> &Request<T> {
        &self.request
    }

    /// The request, to be ended; the payload is freed.
    #[inline]
    pub fn into_request(self) -> Request<T> {
        self.request
    }
}

// SAFETY: The pages of a request are the block layer's, which leaves them alone
// until the request is ended, for which the carrier has to be taken apart; a
// payload is a `Buffer`.
unsafe impl<T: Operations> Scatter for Carrier<T> {
    #[inline]
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result {
        match &mut self.payload {
            Some(payload) => payload.fill(table),
            None => table.fill(&self.request),
        }
    }
}
