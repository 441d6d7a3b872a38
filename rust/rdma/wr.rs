// SPDX-License-Identifier: GPL-2.0

//! Work requests, and who owns the memory that they name.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_send_wr`, `struct ib_recv_wr`
//!
//! An [`Operation`] is a pinned piece of memory with everything that a work
//! request names: its completion entry, buffers, regions. Posting consumes it;
//! its completion, successful or flushed, hands it to [`Complete::complete`]. So
//! no buffer can be freed or touched while a request names it, and a request
//! completes once to one owner.

use super::{
    cq::Completion,
    device::DeviceRef,
    mr::{
        Region,
        Scatter,
        State, //
    },
    qp::{
        Context,
        QueuePair, //
    },
};
use crate::bindings;
use core::{
    cell::Cell,
    marker::PhantomData,
    mem::MaybeUninit,
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    prelude::*,
    types::Opaque, //
};

/// Scatter/gather entries of one request that are ever sent.
pub const MAX_SGE: usize = 8;

/// One contiguous piece of mapped memory (`struct ib_sge`), borrowed from what
/// keeps it mapped.
#[derive(Clone, Copy)]
pub struct Sge<'a> {
    device: *mut bindings::ib_device,
    address: u64,
    length: u32,
    _memory: PhantomData<&'a [u8]>,
}

impl<'a> Sge<'a> {
    #[inline]
    pub(crate) fn new(device: &'a DeviceRef, address: u64, length: u32) -> Self {
        Self {
            device: device.as_raw(),
            address,
            length,
            _memory: PhantomData,
        }
    }

    /// Length in bytes.
    #[inline]
    pub fn length(&self) -> u32 {
        self.length
    }

    #[inline]
    fn as_raw<E: Context>(&self, queue: &QueuePair<E>) -> Result<bindings::ib_sge> {
        if self.device != queue.device().as_raw() {
            return Err(EINVAL);
        }
        Ok(bindings::ib_sge {
            addr: self.address,
            length: self.length,
            lkey: queue.protection_domain().local_dma_lkey(),
        })
    }
}

/// What happens when an operation completes on a queue pair of context `E`.
///
/// It borrows nothing: once posted it is the device's, for as long as that takes.
pub trait Complete<E: Context>: Sized + Send + 'static {
    /// Called once for every time that the operation was posted.
    ///
    /// Runs where the completion queue is polled, see
    /// [`Poll`](super::cq::Poll): usually in softirq, where it may not sleep and
    /// may not drop what must not be dropped there (buffers, regions, queues).
    fn complete(operation: Operation<Self>, queue: &QueuePair<E>, completion: &Completion<'_>);
}

/// An operation that receives into a buffer.
pub trait Receive<E: Context>: Complete<E> {
    /// The memory to be filled.
    fn buffer(&self) -> Sge<'_>;
}

/// The completion entry comes first, so its address is that of the slot.
#[repr(C)]
struct Slot<T> {
    cqe: Opaque<bindings::ib_cqe>,
    body: T,
}

/// Memory of work requests, in the hands of whoever may touch it.
///
/// # Invariants
///
/// Not posted: no work request names the memory.
pub struct Operation<T>(KBox<Slot<T>>);

impl<T> Operation<T> {
    /// Allocates the operation. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(body: T) -> Result<Self> {
        let slot = Slot {
            cqe: Opaque::zeroed(),
            body,
        };
        Ok(Self(KBox::new(slot, GFP_KERNEL)?))
    }

    /// Takes the operation apart.
    pub fn into_inner(self) -> T {
        KBox::into_inner(self.0).body
    }

    /// Sets the completion entry and gives up the memory.
    #[inline]
    fn into_posted<E: Context>(self) -> NonNull<Slot<T>>
    where
        T: Complete<E>,
    {
        let slot = KBox::into_raw(self.0);
        // SAFETY: `slot` is a live allocation that we own.
        unsafe {
            (*(*slot).cqe.get()).done = Some(completed::<T, E>);
            NonNull::new_unchecked(slot)
        }
    }

    /// # Safety
    ///
    /// `slot` must come from `into_posted`, and no request may name it any more.
    #[inline]
    unsafe fn from_posted(slot: NonNull<Slot<T>>) -> Self {
        // SAFETY: By the contract.
        // INVARIANT: As above.
        Self(unsafe { KBox::from_raw(slot.as_ptr()) })
    }
}

impl<T> Deref for Operation<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.body
    }
}

impl<T> DerefMut for Operation<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.body
    }
}

/// The completion of a posted `Slot<T>` on a queue pair of context `E`.
///
/// # Safety
///
/// Called by the core with a completion whose `wr_cqe` is that of a posted
/// `Slot<T>`, of which no other request is posted, on a queue pair that
/// [`QueuePair<E>`] made and that is alive.
unsafe extern "C" fn completed<T: Complete<E>, E: Context>(
    _cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: By the contract. The completion entry is the first member of the
    // slot; the context of the queue pair is its `QueuePair<E>`, since only
    // `QueuePair<E>` posts operations with this function.
    unsafe {
        let slot = (*wc).__bindgen_anon_1.wr_cqe.cast::<Slot<T>>();
        let operation = Operation::from_posted(NonNull::new_unchecked(slot));
        let queue = QueuePair::<E>::of_completion(wc);
        let completion = Completion::from_raw(NonNull::new_unchecked(wc));
        T::complete(operation, queue, &completion);
    }
}

/// An operation that could not be posted.
pub struct Unposted<T> {
    /// Why.
    pub error: Error,
    /// The memory, back in the caller's hands.
    pub operation: Operation<T>,
    /// A request ahead of the last one of the chain was posted nevertheless: the
    /// queue pair must be drained before it is used again.
    pub partial: bool,
}

/// A state that posting changes, and what it was.
struct Transition<'a> {
    state: &'a Cell<State>,
    before: State,
}

/// Work requests for one operation, in the order in which they will be executed.
///
/// Optionally a registration, which is not signalled, and then exactly one
/// request that completes the operation.
pub struct Chain<'a, 'q, E: Context> {
    queue: &'q QueuePair<E>,
    /// The entry of the operation.
    cqe: *mut bindings::ib_cqe,
    register: Option<(bindings::ib_reg_wr, Transition<'a>)>,
    last: Option<bindings::ib_send_wr>,
    invalidate: Option<Transition<'a>>,
    sges: [MaybeUninit<bindings::ib_sge>; MAX_SGE],
    gathered: usize,
}

impl<'a, 'q, E: Context> Chain<'a, 'q, E> {
    #[inline]
    fn new(queue: &'q QueuePair<E>, cqe: *mut bindings::ib_cqe) -> Self {
        Self {
            queue,
            cqe,
            register: None,
            last: None,
            invalidate: None,
            sges: [const { MaybeUninit::uninit() }; MAX_SGE],
            gathered: 0,
        }
    }

    /// Registers a bound region: the peer may use its key in what follows.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the region is not bound or of another domain, or if it is not
    /// the first request.
    #[inline]
    pub fn register<D: Scatter>(&mut self, region: &'a Region<D>) -> Result {
        let (mr, key, access, state) = self.region_parts(region)?;
        if state.get() != State::Bound || self.register.is_some() || self.last.is_some() {
            return Err(EINVAL);
        }
        let mut request = bindings::ib_reg_wr {
            mr: mr.as_ptr(),
            key,
            access: access as i32,
            ..pin_init::zeroed()
        };
        request.wr.opcode = bindings::ib_wr_opcode_IB_WR_REG_MR;
        // Unsignalled: it completes only if it fails, and that is then told to
        // the context of the queue pair.
        request.wr.__bindgen_anon_1.wr_cqe = self.queue.unsignalled();
        let before = state.replace(State::Valid);
        self.register = Some((request, Transition { state, before }));
        Ok(())
    }

    /// Sends the pieces of memory, in order, as one message.
    ///
    /// # Errors
    ///
    /// `EINVAL` for more than [`MAX_SGE`] pieces, memory mapped for another
    /// device, or a second completing request.
    #[inline]
    pub fn send(&mut self, pieces: impl IntoIterator<Item = Sge<'a>>) -> Result {
        for piece in pieces {
            let place = self.sges.get_mut(self.gathered).ok_or(EINVAL)?;
            place.write(piece.as_raw(self.queue)?);
            // At most as many as there are places.
            self.gathered = self.gathered.saturating_add(1);
        }
        self.finish(bindings::ib_send_wr {
            opcode: bindings::ib_wr_opcode_IB_WR_SEND,
            num_sge: self.gathered as i32,
            ..pin_init::zeroed()
        })
    }

    /// Invalidates a region of ours, after which the peer cannot use its key.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the region is not valid or of another domain, or for a second
    /// completing request.
    #[inline]
    pub fn invalidate<D: Scatter>(&mut self, region: &'a Region<D>) -> Result {
        let (_, key, _, state) = self.region_parts(region)?;
        if state.get() != State::Valid {
            return Err(EINVAL);
        }
        let mut request = bindings::ib_send_wr {
            opcode: bindings::ib_wr_opcode_IB_WR_LOCAL_INV,
            ..pin_init::zeroed()
        };
        request.ex.invalidate_rkey = key;
        self.finish(request)?;
        let before = state.replace(State::Invalidating {
            cqe: self.cqe,
            qp: self.queue.as_raw(),
        });
        self.invalidate = Some(Transition { state, before });
        Ok(())
    }

    #[inline]
    fn region_parts<D: Scatter>(
        &self,
        region: &'a Region<D>,
    ) -> Result<(NonNull<bindings::ib_mr>, u32, u32, &'a Cell<State>)> {
        if !ptr::eq(
            region.protection_domain().as_raw(),
            self.queue.protection_domain().as_raw(),
        ) {
            return Err(EINVAL);
        }
        region.parts().ok_or(EINVAL)
    }

    #[inline]
    fn finish(&mut self, mut request: bindings::ib_send_wr) -> Result {
        if self.last.is_some() {
            return Err(EINVAL);
        }
        request.send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED;
        self.last = Some(request);
        Ok(())
    }

    fn undo(&mut self) {
        if let Some((_, transition)) = self.register.take() {
            transition.state.set(transition.before);
        }
        self.undo_invalidate();
    }

    fn undo_invalidate(&mut self) {
        if let Some(transition) = self.invalidate.take() {
            transition.state.set(transition.before);
        }
    }

    /// Posts the chain; on error says whether its first part was posted.
    ///
    /// # Safety
    ///
    /// The chain's entry must be that of the operation that the pieces are
    /// borrowed from, and stay, with them, until the completion. After success nothing borrowed
    /// from the operation may be touched.
    #[inline]
    unsafe fn post(&mut self) -> Result<(), (Error, bool)> {
        let Some(last) = self.last.as_mut() else {
            self.undo();
            return Err((EINVAL, false));
        };
        last.__bindgen_anon_1.wr_cqe = self.cqe;
        last.sg_list = self.sges.as_mut_ptr().cast();
        let last: *mut _ = last;
        let first = match self.register.as_mut() {
            Some((register, _)) => {
                register.wr.next = last;
                &raw mut register.wr
            }
            None => last,
        };
        // SAFETY: The chain is well-formed and lives until the call returns; the
        // memory that it names stays by the contract.
        let result = unsafe { self.queue.post_raw_send(first) };
        let Err((error, bad)) = result else {
            return Ok(());
        };
        // `bad` is the first request that was not posted.
        let partial = ptr::eq(bad, last) && !ptr::eq(first, last);
        if partial {
            self.undo_invalidate();
        } else {
            self.undo();
        }
        Err((error, partial))
    }
}

impl<E: Context> QueuePair<E> {
    /// Posts the requests that `build` makes of `operation`. Any context.
    ///
    /// # Errors
    ///
    /// Gives the operation back: `ENOTCONN` if the queue pair is being drained,
    /// `EINVAL` for what the chain refused, `ENOMEM` if the queue is full.
    #[inline]
    pub fn post_send<T: Complete<E>>(
        &self,
        operation: Operation<T>,
        build: impl for<'a> FnOnce(&'a T, &mut Chain<'a, '_, E>) -> Result,
    ) -> Result<(), Unposted<T>> {
        let slot = operation.into_posted::<E>();
        let mut chain = Chain::new(self, slot.as_ptr().cast());
        // SAFETY: The slot is a live allocation that nobody else has.
        let body = unsafe { &(*slot.as_ptr()).body };
        let result = match build(body, &mut chain) {
            // SAFETY: The pieces of the chain are borrowed from the body of the
            // slot, by the lifetime in the signature of `build`, and the slot
            // stays until the completion takes it back. Nothing of it is touched
            // below unless posting failed.
            Ok(()) => unsafe { chain.post() },
            Err(error) => {
                chain.undo();
                Err((error, false))
            }
        };
        result.map_err(|(error, partial)| Unposted {
            error,
            // SAFETY: The request that completes the slot was not posted.
            operation: unsafe { Operation::from_posted(slot) },
            partial,
        })
    }

    /// Posts a receive. Any context.
    ///
    /// # Errors
    ///
    /// As [`QueuePair::post_send`].
    #[inline]
    pub fn post_receive<T: Receive<E>>(&self, operation: Operation<T>) -> Result<(), Unposted<T>> {
        let slot = operation.into_posted::<E>();
        // SAFETY: The slot is a live allocation that nobody else has.
        let buffer = unsafe { (*slot.as_ptr()).body.buffer() };
        let result = buffer.as_raw(self).and_then(|mut sge| {
            let mut request = bindings::ib_recv_wr {
                sg_list: &mut sge,
                num_sge: 1,
                ..pin_init::zeroed()
            };
            request.__bindgen_anon_1.wr_cqe = slot.as_ptr().cast();
            // SAFETY: The request is well-formed; the memory that it names is
            // the slot's, which stays until the completion takes it back.
            unsafe { self.post_raw_receive(&request) }
        });
        result.map_err(|error| Unposted {
            error,
            // SAFETY: The request was not posted.
            operation: unsafe { Operation::from_posted(slot) },
            partial: false,
        })
    }
}
