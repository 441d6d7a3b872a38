// SPDX-License-Identifier: GPL-2.0

//! Work requests for one operation, as they are made.

use super::{
    payload::{
        Payload,
        SgeBuilder,
        SgeList, //
    },
    request::Request,
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

/// Bytes of the words that atomic operations work on.
pub const ATOMIC_BYTES: u32 = 8;

/// Work requests for one operation, in the order in which they will be executed.
///
/// The last of them completes the operation; one before it completes only if it
/// fails, which is told to [`QpContext::failed`], and then the last one is flushed. So
/// memory that any of them names is the operation's.
///
/// Requests start in order, and end in order, but for one thing: what follows a
/// read or an atomic operation may start before its result is there. Make it
/// [`fenced`](Chain::fenced) if it depends on that.
///
/// # Invariants
///
/// The requests of `wr_buffer` from `first` on are borrowed from the operation for `'a`.
pub struct Chain<'a, 'q, E: QpContext> {
    queue: &'q QueuePair<E>,
    /// The entry of the operation.
    cqe: *mut bindings::ib_cqe,
    wr_buffer: WrBuffer<'q>,
    first: usize,
    /// Flags of the request to come.
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

    /// Starts the next request only when all reads and atomic operations before it
    /// have ended (`IB_SEND_FENCE`).
    #[inline]
    pub fn fenced(&mut self) -> &mut Self
    where
        E::QpType: Reliable,
    {
        self.flags |= bindings::ib_send_flags_IB_SEND_FENCE;
        self
    }

    /// Makes the message of the next request wake up a peer that waits for such
    /// messages only (`IB_SEND_SOLICITED`). Has no effect on what is no message.
    #[inline]
    pub fn solicited(&mut self) -> &mut Self {
        self.flags |= bindings::ib_send_flags_IB_SEND_SOLICITED;
        self
    }

    /// Registers a bound region: the peer may use its key in what follows.
    ///
    /// When soft-RoCE sends a request again, it also does again the registrations
    /// that follow it, and fails them, as a region can be registered once only:
    /// there, a lost packet may cost the connection (`req_retry`, `rxe_reg_fast_mr`).
    ///
    /// # Errors
    ///
    /// `EINVAL` if the region is not bound or of another domain, `ENOBUFS` if there
    /// is no room for one more request.
    #[inline]
    pub fn register<D: Scatter>(&mut self, region: &'a Region<D>) -> Result
    where
        E::QpType: Reliable,
    {
        let (mr, key, access, state) = self.region_parts(region)?;
        if state.get() != State::Bound {
            return Err(EINVAL);
        }
        let mut request = bindings::ib_reg_wr {
            mr: mr.as_ptr(),
            key,
            access: access as i32,
            ..pin_init::zeroed()
        };
        request.wr.opcode = bindings::ib_wr_opcode_IB_WR_REG_MR;
        request.wr.send_flags = self.take_flags();
        region.begin_registration(self.queue.registrations().begin());
        self.push_change(Request::register(request), state, State::Valid)
    }

    /// Invalidates a region of ours, after which the peer cannot use its key.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the region is not valid or of another domain, `ENOBUFS` if there
    /// is no room for one more request.
    #[inline]
    pub fn invalidate<D: Scatter>(&mut self, region: &'a Region<D>) -> Result
    where
        E::QpType: Reliable,
    {
        let (_, key, _, state) = self.region_parts(region)?;
        if state.get() != State::Valid {
            return Err(EINVAL);
        }
        let mut request = bindings::ib_send_wr {
            opcode: bindings::ib_wr_opcode_IB_WR_LOCAL_INV,
            send_flags: self.take_flags(),
            ..pin_init::zeroed()
        };
        request.ex.invalidate_rkey = key;
        let to = State::Invalidating {
            cqe: self.cqe,
            queue: self.queue.serial(),
        };
        self.push_change(Request::common(request), state, to)
    }

    /// Sends the payload as one message.
    ///
    /// # Errors
    ///
    /// `EINVAL` for memory that is mapped for another device or not to be read by
    /// one, or for more inline bytes than the queue pair was created for; `ENOBUFS`
    /// if there is no room for one more request, or for its pieces.
    #[inline]
    pub fn send(&mut self, payload: impl Payload<'a>) -> Result
    where
        E::QpType: Connected,
    {
        let sge_list = payload.gather(&mut self.sge_builder())?;
        let request = self.wr(bindings::ib_wr_opcode_IB_WR_SEND, sge_list);
        self.push(Request::common(request))
    }

    /// Sends the payload as one message, with a number for the completion of the
    /// peer's receive.
    ///
    /// # Errors
    ///
    /// As [`Chain::send`]; `EOPNOTSUPP` of an iWARP device, which knows no immediate
    /// data.
    #[inline]
    pub fn send_with_immediate(&mut self, payload: impl Payload<'a>, immediate: u32) -> Result
    where
        E::QpType: Connected,
    {
        self.check_immediate()?;
        let sge_list = payload.gather(&mut self.sge_builder())?;
        let mut request = self.wr(bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM, sge_list);
        request.ex.imm_data = immediate.to_be();
        self.push(Request::common(request))
    }

    /// Sends the payload as one message, before whose receive completes the peer's
    /// device invalidates a key of the peer's.
    ///
    /// # Errors
    ///
    /// As [`Chain::send`]; `EOPNOTSUPP` for [`Inline`](super::Inline) bytes of an iWARP
    /// device, of which the soft one takes such a request and is stuck; and what the
    /// device answers, if it cannot (`IB_DEVICE_MEM_MGT_EXTENSIONS`).
    #[inline]
    pub fn send_with_invalidate(&mut self, payload: impl Payload<'a>, rkey: u32) -> Result
    where
        E::QpType: Reliable,
    {
        let sge_list = payload.gather(&mut self.sge_builder())?;
        if sge_list.flags != 0 && self.queue.device().is_rnic() {
            return Err(EOPNOTSUPP);
        }
        let mut request = self.wr(bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV, sge_list);
        request.ex.invalidate_rkey = rkey;
        self.push(Request::common(request))
    }

    /// Writes the payload to the beginning of `target`. The peer is not told.
    ///
    /// # Errors
    ///
    /// As [`Chain::send`], and `EINVAL` if the payload is longer than the target.
    #[inline]
    pub fn write(&mut self, payload: impl Payload<'a>, target: RemoteKey) -> Result
    where
        E::QpType: Connected,
    {
        let sge_list = payload.gather(&mut self.sge_builder())?;
        self.push_write(bindings::ib_wr_opcode_IB_WR_RDMA_WRITE, sge_list, target, 0)
    }

    /// Writes the payload to the beginning of `target`, and then uses up a receive
    /// of the peer to give it a number.
    ///
    /// # Errors
    ///
    /// As [`Chain::write`]; `EOPNOTSUPP` of an iWARP device, which knows no immediate
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
        self.push_write(
            bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM,
            sge_list,
            target,
            immediate,
        )
    }

    /// Reads the beginning of `source` into the pieces, which it fills.
    ///
    /// # Errors
    ///
    /// `EINVAL` for memory that is mapped for another device or not to be written by
    /// one, or if the source is shorter than the pieces; `ENOBUFS` if there is no room
    /// for one more request, or for its pieces; `EOPNOTSUPP` of an iWARP device, which
    /// reads into registered memory only.
    #[inline]
    pub fn read(&mut self, pieces: impl IntoIterator<Item = Sge<'a>>, source: RemoteKey) -> Result
    where
        E::QpType: Reliable,
    {
        if self.queue.device().is_rnic() {
            return Err(EOPNOTSUPP);
        }
        let sge_list = self.sge_builder().gather(pieces, Sge::as_sink)?;
        let source = source.part(0, sge_list.length)?;
        let wr = self.wr(bindings::ib_wr_opcode_IB_WR_RDMA_READ, sge_list);
        self.push(Request::remote(bindings::ib_rdma_wr {
            wr,
            remote_addr: source.address,
            rkey: source.rkey,
        }))
    }

    /// Adds to the first word of `target`, modulo 2⁶⁴. What it was before goes
    /// into `before`, in the order of bytes of this host.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `target` has no word or is not aligned to one, or if `before` is
    /// not one, is mapped for another device or not to be written by one; `ENOBUFS` if
    /// there is no room for one more request; `EOPNOTSUPP` if the device has no atomic operations, see
    /// [`Attributes::atomics`](crate::rdma::device::Attributes).
    #[inline]
    pub fn fetch_and_add(&mut self, before: Sge<'a>, target: RemoteKey, add: u64) -> Result
    where
        E::QpType: Reliable,
    {
        let opcode = bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD;
        self.push_atomic(opcode, before, target, add, 0)
    }

    /// Replaces the first word of `target` by `swap` if it is `compare`. What it
    /// was before goes into `before`, in the order of bytes of this host.
    ///
    /// # Errors
    ///
    /// As [`Chain::fetch_and_add`].
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

    /// Refuses what iWARP does not have. To ask the device is no way: the soft one
    /// keeps the entry of a request that it has refused, and completes it when it stops.
    #[inline]
    fn check_immediate(&self) -> Result {
        match self.queue.device().is_rnic() {
            true => Err(EOPNOTSUPP),
            false => Ok(()),
        }
    }

    /// What the pieces of the next request are added with.
    #[inline]
    pub(super) fn sge_builder(&mut self) -> SgeBuilder<'_, 'q> {
        SgeBuilder {
            pieces: &mut self.wr_buffer.pieces,
            domain: self.queue.protection_domain(),
            inline_bytes: self.queue.inline_bytes(),
        }
    }

    #[inline]
    pub(super) fn queue(&self) -> &'q QueuePair<E> {
        self.queue
    }

    /// Whether the operation has no request yet.
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
    fn push_write(
        &mut self,
        opcode: bindings::ib_wr_opcode,
        sge_list: SgeList,
        target: RemoteKey,
        immediate: u32,
    ) -> Result {
        let target = target.part(0, sge_list.length)?;
        let mut wr = self.wr(opcode, sge_list);
        wr.ex.imm_data = immediate.to_be();
        self.push(Request::remote(bindings::ib_rdma_wr {
            wr,
            remote_addr: target.address,
            rkey: target.rkey,
        }))
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
        self.push(Request::atomic(bindings::ib_atomic_wr {
            wr,
            remote_addr: target.address,
            rkey: target.rkey,
            compare_add,
            swap,
            ..pin_init::zeroed()
        }))
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
        region.parts().ok_or(EINVAL)
    }

    #[inline]
    pub(super) fn push(&mut self, request: Request) -> Result {
        let cqe = self.queue.unsignalled();
        let request = self.wr_buffer.push(request).ok_or(ENOBUFS)?;
        // Unsignalled unless it turns out to be the last one.
        request.complete_failure(cqe);
        Ok(())
    }

    #[inline]
    fn push_change(&mut self, request: Request, state: &'a Cell<State>, to: State) -> Result {
        if self.wr_buffer.requests.is_full() {
            return Err(ENOBUFS);
        }
        // SAFETY: The state is borrowed from the operation, which stays as it is
        // until the request is posted, or the change undone.
        self.push(unsafe { request.change(state, to) })
    }

    /// Makes the last request complete the operation, and answers the room with the
    /// requests; they are none in case of an error.
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
