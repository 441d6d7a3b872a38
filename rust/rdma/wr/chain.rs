// SPDX-License-Identifier: GPL-2.0

//! Builds the work requests of one operation.

use super::{
    message::MessageMut,
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
        cq::RegSeq,
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
    ptr, //
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
    first: u32,
    /// Flags of the next work request.
    flags: bindings::ib_send_flags,
    /// Whether the operation has its last work request, which completes it.
    ended: bool,
    _operation: PhantomData<&'a ()>,
}

impl<'a, 'q, E: QpContext> Chain<'a, 'q, E> {
    #[inline]
    pub(super) fn new(
        queue: &'q QueuePair<E>,
        cqe: *mut bindings::ib_cqe,
        wr_buffer: WrBuffer<'q>,
    ) -> Self {
        let first = wr_buffer.list.len();
        Self {
            queue,
            cqe,
            wr_buffer,
            first,
            flags: 0,
            ended: false,
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
    ///   on another queue pair, or was to be.
    /// - `ENOBUFS`: there is no room for another work request.
    #[inline]
    pub fn register<D: Scatter>(&mut self, region: &'a Region<D>) -> Result
    where
        E::QpType: Reliable,
    {
        let registered = self.admit(region)?;
        let (mut register, state) = region.register_copy(registered);
        register.wr.send_flags = self.take_flags();
        self.push_change(Request::new(Kind { register }), state, State::Valid)
    }

    /// Registers a bound region, as [`register`](Self::register) does, and sends a message as the last
    /// work request. The first work request is the prepared one of the region, so this takes fewer
    /// instructions.
    ///
    /// # Errors
    ///
    /// Those of [`register`](Self::register) and [`send_message`](Self::send_message).
    #[inline(always)]
    pub fn register_and_send<D: Scatter>(
        &mut self,
        region: &'a Region<D>,
        message: impl Into<MessageMut<'a>>,
    ) -> Result
    where
        E::QpType: Reliable,
    {
        if self.flags != 0 || self.ended {
            self.register(region)?;
            return self.send_message(message);
        }
        // Checked before the list names the registration, which the message must follow.
        if self.wr_buffer.requests.is_full() {
            return Err(ENOBUFS);
        }
        let registered = self.admit(region)?;
        let sges = message.into().0.sges(self.queue)?;
        // SAFETY: The work request is in the region, which is borrowed from the operation. The message
        // follows, or the list is truncated.
        unsafe { self.wr_buffer.list.push(region.register(registered)) };
        self.push_message(sges, 1)
    }

    /// Sends a message as the last work request (`IB_WR_SEND`).
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the message is mapped for another device, or the operation has its last work
    ///   request.
    /// - `ENOBUFS`: there is no room for another work request.
    #[inline(always)]
    pub fn send_message(&mut self, message: impl Into<MessageMut<'a>>) -> Result
    where
        E::QpType: Reliable,
    {
        let sges = message.into().0.sges(self.queue)?;
        self.push_message(sges, 1)
    }

    /// Sends a message, followed by the data of a region, as the last work request.
    ///
    /// # Errors
    ///
    /// Those of [`send_message`](Self::send_message), and `EINVAL`: the region belongs to another
    /// protection domain, the device must not read the data, or there are more than
    /// [`MAX_MESSAGE_DATA`](super::MAX_MESSAGE_DATA) pieces.
    #[inline(always)]
    pub fn send_message_with<D: Scatter>(
        &mut self,
        message: impl Into<MessageMut<'a>>,
        region: &'a Region<D>,
    ) -> Result
    where
        E::QpType: Reliable,
    {
        self.check_domain(region)?;
        let MessageMut(message) = message.into();
        let sges = message.sges(self.queue)?;
        let count = message.append(region)?;
        self.push_message(sges, count)
    }

    /// Appends the last work request, which sends a message of `count` entries.
    #[inline(always)]
    fn push_message(&mut self, sges: *mut bindings::ib_sge, count: i32) -> Result {
        if self.ended {
            return Err(EINVAL);
        }
        let mut common = bindings::ib_send_wr {
            sg_list: sges,
            num_sge: count,
            opcode: bindings::ib_wr_opcode_IB_WR_SEND,
            send_flags: self.take_flags() | bindings::ib_send_flags_IB_SEND_SIGNALED,
            ..pin_init::zeroed()
        };
        common.__bindgen_anon_1.wr_cqe = self.cqe;
        let pushed = self.wr_buffer.push(Request::new(Kind { common }));
        pushed.ok_or(ENOBUFS)?;
        self.ended = true;
        Ok(())
    }

    /// Counts a registration of `region` that is about to be posted.
    #[inline(always)]
    fn admit<D: Scatter>(&self, region: &Region<D>) -> Result<RegSeq> {
        let registered = self.queue.registrations.begin();
        region.admit(
            self.queue.protection_domain(),
            registered,
            self.queue.unsignalled(),
        )?;
        Ok(registered)
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
        self.check_domain(region)?;
        let (key, state) = region.parts();
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
    /// - `EINVAL`: the connection has an initiator depth of 0, so the device would never send the read.
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
        self.queue.check_reads()?;
        let sge_list = self.sge_builder().gather(pieces, Sge::as_sink)?;
        self.push_remote(bindings::ib_wr_opcode_IB_WR_RDMA_READ, sge_list, source, 0)
    }

    /// Adds `add` to the first word of `target`, modulo 2⁶⁴ (`IB_WR_ATOMIC_FETCH_AND_ADD`). The old
    /// value is written to `before`, in host byte order.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `target` is shorter than a word or not aligned to one.
    /// - `EINVAL`: the connection has an initiator depth of 0, as for [`read`](Self::read).
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
        self.wr_buffer.list.len() == self.first
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
        self.queue.check_reads()?;
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
    fn check_domain<D: Scatter>(&self, region: &Region<D>) -> Result {
        let same = ptr::eq(
            &**region.protection_domain(),
            &**self.queue.protection_domain(),
        );
        match same {
            true => Ok(()),
            false => Err(EINVAL),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, mut request: Request) -> Result {
        if self.ended {
            return Err(EINVAL);
        }
        // Unsignalled, unless `finish` finds that this is the last one.
        request.complete_failure(self.queue.unsignalled());
        self.wr_buffer.push(request).ok_or(ENOBUFS)
    }

    #[inline]
    fn push_change(&mut self, request: Request, state: &'a Cell<State>, to: State) -> Result {
        if self.ended || self.wr_buffer.requests.is_full() {
            return Err(ENOBUFS);
        }
        // SAFETY: `state` is borrowed from the operation, which stays valid until the work request
        // is posted or the change is undone.
        self.push(unsafe { request.change(state, to) })
    }

    /// Makes the last work request complete the operation. Returns the buffer with the work
    /// requests; on error, those of this operation are removed.
    #[inline(always)]
    pub(super) fn finish(mut self, built: Result) -> (WrBuffer<'q>, Result) {
        let result = match built {
            Ok(()) if self.is_empty() => Err(EINVAL),
            Ok(()) if self.ended => Ok(()),
            Ok(()) => {
                // SAFETY: The list is not empty. Its last work request is in the buffer.
                unsafe { Request::complete(self.wr_buffer.list.last(), self.cqe) };
                Ok(())
            }
            error => error,
        };
        if result.is_err() {
            self.wr_buffer.list = self.wr_buffer.list.truncated(self.first);
        }
        (self.wr_buffer, result)
    }
}
