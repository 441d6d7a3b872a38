// SPDX-License-Identifier: GPL-2.0

//! Builds the work requests of one operation.

use super::{
    payload::{
        Payload,
        SgeBuilder,
        SgeList, //
    },
    request::{
        Kind,
        Request, //
    },
    wr_buffer::WrBuffer,
    Sge, //
};
use crate::{
    bindings,
    errno::{
        ENOBUFS,
        EOPNOTSUPP, //
    },
    rdma::{
        mr::{
            Region,
            RemoteKey,
            State, //
        },
        qp::{
            Connected,
            QpContext,
            QueuePair,
            Reliable, //
        },
    },
    scatter::Scatter,
};
use core::{
    cell::Cell,
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::prelude::*;

/// Size in bytes of the words for atomic operations.
pub const ATOMIC_BYTES: u32 = 8;

/// The work requests of one operation, in the order of their execution.
///
/// The last work request completes the operation. An earlier one completes only if it fails. That
/// calls [`QpContext::failed`], and then the last one completes as flushed. So the memory that any
/// of them names must belong to the operation.
///
/// Work requests start and complete in order, with one exception. A work request behind an RDMA
/// read or an atomic operation may start before the result arrives. If it depends on the result,
/// make it [`fenced`](Chain::fenced).
///
/// # Invariants
///
/// The work requests of `wr_buffer` from `first` on borrow from the operation for `'a`.
pub struct Chain<'a, 'q, E: QpContext> {
    queue: &'q QueuePair<E>,
    /// Completion entry of the operation.
    cqe: *mut bindings::ib_cqe,
    wr_buffer: WrBuffer<'q>,
    first: usize,
    /// Flags of the next work request.
    flags: bindings::ib_send_flags,
    _operation: PhantomData<&'a ()>,
}

impl<'a, 'q, E: QpContext> Chain<'a, 'q, E> {
    #[inline]
    pub(super) fn new(
        queue: &'q QueuePair<E>,
        cqe: *mut bindings::ib_cqe,
        wr_buffer: WrBuffer<'q>,
    ) -> Self {
        let first = wr_buffer.requests.len();
        Self {
            queue,
            cqe,
            wr_buffer,
            first,
            flags: 0,
            _operation: PhantomData,
        }
    }

    /// Delays the next work request until all earlier RDMA reads and atomic operations have
    /// completed (`IB_SEND_FENCE`).
    #[inline]
    pub fn fenced(&mut self) -> &mut Self
    where
        E::QpType: Reliable,
    {
        self.flags |= bindings::ib_send_flags_IB_SEND_FENCE;
        self
    }

    /// Marks the message of the next work request as solicited (`IB_SEND_SOLICITED`): it wakes a
    /// peer that waits for solicited messages only. No effect on a work request that sends no
    /// message.
    #[inline]
    pub fn solicited(&mut self) -> &mut Self {
        self.flags |= bindings::ib_send_flags_IB_SEND_SOLICITED;
        self
    }

    /// Registers a bound region (`IB_WR_REG_MR`). The peer may use the key in later work requests.
    ///
    /// When soft-RoCE sends a work request again, it also repeats the registrations behind that
    /// work request. These fail, because a region can be registered only once. So there, a lost
    /// packet may break the connection (`req_retry`, `rxe_reg_fast_mr`).
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the region is not bound, belongs to another protection domain, or was registered
    ///   on another queue pair.
    /// - `ENOBUFS`: there is no room for another work request.
    #[inline]
    pub fn register<D: Scatter>(&mut self, region: &'a Region<D>) -> Result
    where
        E::QpType: Reliable,
    {
        let (mr, key, access, state) = self.region_parts(region)?;
        let registered = self.queue.registrations.begin();
        if state.get() != State::Mapped || !region.may_register(registered) {
            return Err(EINVAL);
        }
        let mut register = bindings::ib_reg_wr {
            mr: mr.as_ptr(),
            key,
            access: access as i32,
            ..pin_init::zeroed()
        };
        register.wr.opcode = bindings::ib_wr_opcode_IB_WR_REG_MR;
        register.wr.send_flags = self.take_flags();
        region.begin_registration(registered);
        self.push_change(Request::new(Kind { register }), state, State::Valid)
    }

    /// Invalidates a local region (`IB_WR_LOCAL_INV`). Afterwards the peer cannot use its key.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the region is not valid, or belongs to another protection domain.
    /// - `ENOBUFS`: there is no room for another work request.
    #[inline]
    pub fn invalidate<D: Scatter>(&mut self, region: &'a Region<D>) -> Result
    where
        E::QpType: Reliable,
    {
        let (_, key, _, state) = self.region_parts(region)?;
        if state.get() != State::Valid {
            return Err(EINVAL);
        }
        let mut common = bindings::ib_send_wr {
            opcode: bindings::ib_wr_opcode_IB_WR_LOCAL_INV,
            send_flags: self.take_flags(),
            ..pin_init::zeroed()
        };
        common.ex.invalidate_rkey = key;
        let to = State::Invalidating {
            cqe: self.cqe,
            queue: self.queue.serial(),
        };
        self.push_change(Request::new(Kind { common }), state, to)
    }

    /// Sends the payload as one message (`IB_WR_SEND`).
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the memory is mapped for another device or not for reading by the device, or
    ///   there are more inline bytes than the queue pair was created for.
    /// - `ENOBUFS`: there is no room for another work request or its memory pieces.
    #[inline]
    pub fn send(&mut self, payload: impl Payload<'a>) -> Result
    where
        E::QpType: Connected,
    {
        let sge_list = payload.gather(&mut self.sge_builder())?;
        let common = self.wr(bindings::ib_wr_opcode_IB_WR_SEND, sge_list);
        self.push(Request::new(Kind { common }))
    }

    /// Sends the payload as one message with immediate data (`IB_WR_SEND_WITH_IMM`), which the
    /// completion of the peer's receive has.
    ///
    /// # Errors
    ///
    /// Those of [`Chain::send`], and `EOPNOTSUPP` for an iWARP device, as iWARP has no immediate
    /// data.
    #[inline]
    pub fn send_with_immediate(&mut self, payload: impl Payload<'a>, immediate: u32) -> Result
    where
        E::QpType: Connected,
    {
        self.check_immediate()?;
        let sge_list = payload.gather(&mut self.sge_builder())?;
        let mut common = self.wr(bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM, sge_list);
        common.ex.imm_data = immediate.to_be();
        self.push(Request::new(Kind { common }))
    }

    /// Sends the payload as one message that invalidates a key of the peer (`IB_WR_SEND_WITH_INV`).
    /// The peer's device invalidates the key before the receive completes.
    ///
    /// # Errors
    ///
    /// Those of [`Chain::send`], and:
    ///
    /// - `EOPNOTSUPP` for [`Inline`](super::Inline) data on an iWARP device. Soft-iWARP accepts
    ///   such a work request, and then stops processing its send queue.
    /// - Any error of a device that does not support it (`IB_DEVICE_MEM_MGT_EXTENSIONS`), when
    ///   posted.
    #[inline]
    pub fn send_with_invalidate(&mut self, payload: impl Payload<'a>, rkey: u32) -> Result
    where
        E::QpType: Reliable,
    {
        let sge_list = payload.gather(&mut self.sge_builder())?;
        if sge_list.flags != 0 && self.queue.device().is_rnic() {
            return Err(EOPNOTSUPP);
        }
        let mut common = self.wr(bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV, sge_list);
        common.ex.invalidate_rkey = rkey;
        self.push(Request::new(Kind { common }))
    }

    /// Writes the payload to the start of `target` (`IB_WR_RDMA_WRITE`). The peer is not notified.
    ///
    /// # Errors
    ///
    /// Those of [`Chain::send`], and `EINVAL` if the payload is longer than the target.
    #[inline]
    pub fn write(&mut self, payload: impl Payload<'a>, target: RemoteKey) -> Result
    where
        E::QpType: Connected,
    {
        let sge_list = payload.gather(&mut self.sge_builder())?;
        self.push_remote(bindings::ib_wr_opcode_IB_WR_RDMA_WRITE, sge_list, target, 0)
    }

    /// Writes the payload to the start of `target` and then consumes a receive of the peer, whose
    /// completion has the immediate data (`IB_WR_RDMA_WRITE_WITH_IMM`).
    ///
    /// # Errors
    ///
    /// Those of [`Chain::write`], and `EOPNOTSUPP` for an iWARP device, as iWARP has no immediate
    /// data.
    #[inline]
    pub fn write_with_immediate(
        &mut self,
        payload: impl Payload<'a>,
        target: RemoteKey,
        immediate: u32,
    ) -> Result
    where
        E::QpType: Connected,
    {
        self.check_immediate()?;
        let sge_list = payload.gather(&mut self.sge_builder())?;
        self.push_remote(
            bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM,
            sge_list,
            target,
            immediate,
        )
    }

    /// Reads the start of `source` into the memory pieces and fills them (`IB_WR_RDMA_READ`).
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the memory is mapped for another device or not for writing by the device, or the
    ///   source is shorter than the pieces.
    /// - `ENOBUFS`: there is no room for another work request or its memory pieces.
    /// - `EOPNOTSUPP`: an iWARP device, which reads only into registered memory.
    #[inline]
    pub fn read(&mut self, pieces: impl IntoIterator<Item = Sge<'a>>, source: RemoteKey) -> Result
    where
        E::QpType: Reliable,
    {
        if self.queue.device().is_rnic() {
            return Err(EOPNOTSUPP);
        }
        let sge_list = self.sge_builder().gather(pieces, Sge::as_sink)?;
        self.push_remote(bindings::ib_wr_opcode_IB_WR_RDMA_READ, sge_list, source, 0)
    }

    /// Adds `add` to the first word of `target`, modulo 2⁶⁴ (`IB_WR_ATOMIC_FETCH_AND_ADD`). The old
    /// value is written to `before`, in host byte order.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `target` is shorter than a word or not aligned to one.
    /// - `EINVAL`: `before` is not one word, or is mapped for another device or not for writing by
    ///   the device.
    /// - `ENOBUFS`: there is no room for another work request or its memory piece.
    /// - `EOPNOTSUPP`: the device has no atomic operations, see
    ///   [`Attributes::atomics`](crate::rdma::device::Attributes).
    #[inline]
    pub fn fetch_and_add(&mut self, before: Sge<'a>, target: RemoteKey, add: u64) -> Result
    where
        E::QpType: Reliable,
    {
        let opcode = bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD;
        self.push_atomic(opcode, before, target, add, 0)
    }

    /// Replaces the first word of `target` by `swap` if it equals `compare`
    /// (`IB_WR_ATOMIC_CMP_AND_SWP`). The old value is written to `before`, in host byte order.
    ///
    /// # Errors
    ///
    /// Those of [`Chain::fetch_and_add`].
    #[inline]
    pub fn compare_and_swap(
        &mut self,
        before: Sge<'a>,
        target: RemoteKey,
        compare: u64,
        swap: u64,
    ) -> Result
    where
        E::QpType: Reliable,
    {
        let opcode = bindings::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP;
        self.push_atomic(opcode, before, target, compare, swap)
    }

    /// Refuses immediate data on iWARP devices, which do not have it. Posting it to find out is not
    /// safe: soft-iWARP keeps a work request that it refused, and completes it when the queue pair
    /// stops.
    #[inline]
    fn check_immediate(&self) -> Result {
        match self.queue.device().is_rnic() {
            true => Err(EOPNOTSUPP),
            false => Ok(()),
        }
    }

    /// Returns the builder for the memory pieces of the next work request.
    #[inline]
    pub(super) fn sge_builder(&mut self) -> SgeBuilder<'_, 'q> {
        SgeBuilder {
            pieces: &mut self.wr_buffer.pieces,
            memory: self.queue.local_memory(),
            inline_bytes: self.queue.inline_bytes(),
        }
    }

    #[inline]
    pub(super) fn queue(&self) -> &'q QueuePair<E> {
        self.queue
    }

    /// Returns whether the operation has no work request yet.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.wr_buffer.requests.len() == self.first
    }

    #[inline]
    fn take_flags(&mut self) -> bindings::ib_send_flags {
        core::mem::take(&mut self.flags)
    }

    #[inline]
    pub(super) fn wr(
        &mut self,
        opcode: bindings::ib_wr_opcode,
        sge_list: SgeList,
    ) -> bindings::ib_send_wr {
        bindings::ib_send_wr {
            opcode,
            sg_list: sge_list.sg_list,
            num_sge: sge_list.count as i32,
            send_flags: self.take_flags() | sge_list.flags,
            ..pin_init::zeroed()
        }
    }

    #[inline]
    fn push_remote(
        &mut self,
        opcode: bindings::ib_wr_opcode,
        sge_list: SgeList,
        target: RemoteKey,
        immediate: u32,
    ) -> Result {
        let target = target.part(0, sge_list.length)?;
        let mut wr = self.wr(opcode, sge_list);
        wr.ex.imm_data = immediate.to_be();
        let remote = bindings::ib_rdma_wr {
            wr,
            remote_addr: target.address,
            rkey: target.rkey,
        };
        self.push(Request::new(Kind { remote }))
    }

    #[inline]
    fn push_atomic(
        &mut self,
        opcode: bindings::ib_wr_opcode,
        before: Sge<'a>,
        target: RemoteKey,
        compare_add: u64,
        swap: u64,
    ) -> Result {
        if !self.queue.device().has_atomics() {
            return Err(EOPNOTSUPP);
        }
        let target = target.part(0, ATOMIC_BYTES)?;
        if target.address % u64::from(ATOMIC_BYTES) != 0 || before.length() != ATOMIC_BYTES {
            return Err(EINVAL);
        }
        let sge_list = self.sge_builder().gather([before], Sge::as_sink)?;
        let wr = self.wr(opcode, sge_list);
        let atomic = bindings::ib_atomic_wr {
            wr,
            remote_addr: target.address,
            rkey: target.rkey,
            compare_add,
            swap,
            ..pin_init::zeroed()
        };
        self.push(Request::new(Kind { atomic }))
    }

    #[inline]
    fn region_parts<D: Scatter>(
        &self,
        region: &'a Region<D>,
    ) -> Result<(NonNull<bindings::ib_mr>, u32, u32, &'a Cell<State>)> {
        if !ptr::eq(
            &**region.protection_domain(),
            &**self.queue.protection_domain(),
        ) {
            return Err(EINVAL);
        }
        Ok(region.parts())
    }

    #[inline]
    pub(super) fn push(&mut self, request: Request) -> Result {
        let cqe = self.queue.unsignalled();
        let request = self.wr_buffer.push(request).ok_or(ENOBUFS)?;
        // Unsignalled, unless `finish` finds that this is the last one.
        request.complete_failure(cqe);
        Ok(())
    }

    #[inline]
    fn push_change(&mut self, request: Request, state: &'a Cell<State>, to: State) -> Result {
        if self.wr_buffer.requests.is_full() {
            return Err(ENOBUFS);
        }
        // SAFETY: `state` is borrowed from the operation, which stays valid until the work request
        // is posted or the change is undone.
        self.push(unsafe { request.change(state, to) })
    }

    /// Makes the last work request complete the operation. Returns the buffer with the work
    /// requests; on error, those of this operation are removed.
    #[inline]
    pub(super) fn finish(mut self, built: Result) -> (WrBuffer<'q>, Result) {
        let is_empty = self.is_empty();
        let result = match (built, self.wr_buffer.requests.last()) {
            (Ok(()), Some(last)) if !is_empty => {
                last.complete(self.cqe);
                Ok(())
            }
            (Ok(()), _) => Err(EINVAL),
            (error, _) => error,
        };
        if result.is_err() {
            self.wr_buffer.undo(self.first);
        }
        (self.wr_buffer, result)
    }
}
