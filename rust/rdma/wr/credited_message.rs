// SPDX-License-Identifier: GPL-2.0

//! Messages that hold a credit of the send queue.

use super::Message;
use crate::{
    bindings,
    rdma::{
        dma::Writing,
        qp::{
            QpContext,
            QueuePair,
            Reliable, //
        },
    },
};
use core::{
    ffi::c_int,
    mem::MaybeUninit,
    ptr, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A message that is sent repeatedly on one queue pair. It holds a credit of the send queue as long as it exists,
/// so the send queue always has room for it.
///
/// An operation lends it mutably to be posted, so one work request at a time sends it.
/// It may be dropped in any context in which a reference to the queue pair may be dropped.
///
/// # Invariants
///
/// - The entries of `message` are for `queue`.
/// - This object owns one of the credits of `queue`.
pub struct CreditedMessage<E: QpContext> {
    message: Message,
    queue: Arc<QueuePair<E>>,
}

impl<E: QpContext> CreditedMessage<E>
where
    E::QpType: Reliable,
{
    /// Takes a credit of the send queue of `queue` for `message`. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the message is mapped for another device, or the queue pair was created without
    ///   capacity for sends.
    /// - `EAGAIN`: others hold all credits.
    pub fn new(mut message: Message, queue: Arc<QueuePair<E>>) -> Result<Self> {
        message.sges(&queue)?;
        queue.sq_credits.take(1)?;
        // INVARIANT: `sges` has bound the message; the credit was taken above.
        Ok(Self { message, queue })
    }
}

impl<E: QpContext> CreditedMessage<E> {
    /// Returns the queue pair. Any context.
    #[inline]
    pub fn queue(&self) -> &Arc<QueuePair<E>> {
        &self.queue
    }

    /// Returns the bytes for reading. See [`Message::read`]. Any context.
    #[inline]
    pub fn read(&mut self) -> &[u8] {
        self.message.read()
    }

    /// Returns a guard for writing the bytes. See [`Message::write`]. Any context.
    #[inline]
    pub fn write(&mut self) -> Writing<'_> {
        self.message.write()
    }

    /// Returns the whole buffer to the device. See [`Message::give_back`]. Any context.
    #[inline]
    pub fn give_back(&mut self) {
        self.message.give_back();
    }

    /// Writes to `send` a signalled work request that sends the message on `queue`, completes with `cqe`,
    /// and invalidates a key of the peer. It may be posted as long as `self` exists.
    ///
    /// It is written anew for each send: a driver may read its `next` after it has completed, when `self` has
    /// another owner.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the message belongs to another queue pair.
    #[inline(always)]
    pub(in crate::rdma) fn work_request<'a>(
        &mut self,
        send: &'a mut MaybeUninit<bindings::ib_send_wr>,
        queue: &QueuePair<E>,
        cqe: *mut bindings::ib_cqe,
        invalidate: Option<u32>,
    ) -> Result<&'a mut bindings::ib_send_wr> {
        if !ptr::eq(queue, &*self.queue) {
            return Err(EINVAL);
        }
        send.write(bindings::ib_send_wr {
            // By the type invariants.
            sg_list: self.message.bound_sges(),
            num_sge: 1,
            opcode: bindings::ib_wr_opcode_IB_WR_SEND,
            send_flags: bindings::ib_send_flags_IB_SEND_SIGNALED as c_int,
            ..pin_init::zeroed()
        });
        // SAFETY: Written above.
        let send = unsafe { send.assume_init_mut() };
        send.__bindgen_anon_1.wr_cqe = cqe;
        if let Some(rkey) = invalidate {
            send.opcode = bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV;
            send.ex.invalidate_rkey = rkey;
        }
        Ok(send)
    }
}

impl<E: QpContext> Drop for CreditedMessage<E> {
    fn drop(&mut self) {
        // By the type invariants.
        self.queue.sq_credits.put(1);
    }
}
