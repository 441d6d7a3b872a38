// SPDX-License-Identifier: GPL-2.0

//! States of a queue pair that is connected by hand, as types.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `enum ib_qp_state`
//!
//! ```text
//! create ─▶ Reset ── into_init ──▶ Init ── into_rtr ──▶ Rtr ── into_rts ──▶ Rts
//!                                  (may post receives)           (may post sends)
//! ```
//!
//! Each state is a type, and each transition consumes the type of the state before it. The
//! attributes of a transition are a structure of the [service](super::QpType): none can be left
//! out, and no others can be set.
//!
//! Dropping a state drains the queue pair, also if there are other references to it, and destroys it with
//! the last of them. [`QueuePair::drain`] moves the queue pair from any state to the error
//! state, in which posted work requests are flushed. So can the device, which calls
//! [`QpContext::faulted`].
//!
//! The send queue drained state (SQD), in which attributes can be changed while sending is
//! suspended, is not supported. No consumer of the verbs in the kernel uses it.

use super::{
    transition::{
        self,
        Error, //
    },
    OwnedQp,
    QpContext,
    QpInitAttr,
    QpType,
    Qpn,
    QueuePair,
    State, //
};
use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// A queue pair in the RESET state: nothing can be posted.
pub struct Reset<E: QpContext>(OwnedQp<E>);

/// A queue pair in the INIT state: receives can be posted, before the peer starts to send.
pub struct Init<E: QpContext> {
    pub(in crate::rdma) queue: OwnedQp<E>,
    port: u32,
}

/// A queue pair in the RTR state: it receives, but cannot send yet.
pub struct Rtr<E: QpContext> {
    pub(in crate::rdma) queue: OwnedQp<E>,
    port: u32,
}

/// A queue pair in the RTS state: it can send and receive, as long as this is kept.
pub struct Rts<E: QpContext>(OwnedQp<E>);

/// Creates a queue pair of `init_attr`, to be connected by hand (`ib_create_qp`). `owner` is the
/// name that `rdma res show qp` prints. May sleep.
///
/// # Errors
///
/// - `EINVAL`: the protection domain and the completion queues belong to different devices, or the
///   capacity exceeds that of the device.
/// - `EOPNOTSUPP` or `EINVAL`: the device does not support the service.
/// - `ENOMEM`.
pub fn create<E: QpContext>(
    init_attr: QpInitAttr<E>,
    context: impl PinInit<E, kernel::error::Error>,
    owner: &'static CStr,
) -> Result<Reset<E>> {
    if !init_attr.are_of(init_attr.device()) {
        return Err(EINVAL);
    }
    let make = |pd, attributes: &mut _| {
        // SAFETY: The protection domain and everything that the attributes name are alive, and
        // belong to one device. The name is static.
        let raw = unsafe { bindings::ib_create_qp_kernel(pd, attributes, owner.as_char_ptr()) };
        NonNull::new(from_err_ptr(raw)?).ok_or(ENOMEM)
    };
    // SAFETY: `make` creates the queue pair with the attributes that it gets. Nobody else uses it.
    let queue = unsafe { QueuePair::create(init_attr, context, owner, make)? };
    queue.set_idle(true);
    Ok(Reset(OwnedQp::new(queue)))
}

impl<E: QpContext> Reset<E> {
    /// Returns the queue pair number, for the peer.
    pub fn number(&self) -> Qpn {
        Qpn::from_raw(self.0.number())
    }

    /// Moves the queue pair to INIT, on a port. May sleep.
    ///
    /// # Errors
    ///
    /// [`Error`] with a [`Cause`](super::Cause). The queue pair is destroyed.
    pub fn into_init(self, attributes: <E::QpType as QpType>::Init<'_>) -> Result<Init<E>, Error> {
        let step = (State::Reset, State::Init);
        let port = transition::reach(&self.0, None, step, &attributes)?;
        self.0.set_idle(false);
        Ok(Init {
            queue: self.0,
            port,
        })
    }
}

impl<E: QpContext> Init<E> {
    /// Returns the queue pair number, for the peer.
    pub fn number(&self) -> Qpn {
        Qpn::from_raw(self.queue.number())
    }

    /// Moves the queue pair to RTR: sets the peer, from which it then accepts packets. May sleep.
    ///
    /// # Errors
    ///
    /// [`Error`] with a [`Cause`](super::Cause). The queue pair is destroyed.
    pub fn into_rtr(self, attributes: <E::QpType as QpType>::Rtr<'_>) -> Result<Rtr<E>, Error> {
        let step = (State::Init, State::Rtr);
        self.queue.set_receiving();
        let port = transition::reach(&self.queue, Some(self.port), step, &attributes)?;
        Ok(Rtr {
            queue: self.queue,
            port,
        })
    }
}

impl<E: QpContext> Rtr<E> {
    /// Returns the queue pair number, for the peer.
    pub fn number(&self) -> Qpn {
        Qpn::from_raw(self.queue.number())
    }

    /// Moves the queue pair to RTS: it can send. May sleep.
    ///
    /// # Errors
    ///
    /// [`Error`] with a [`Cause`](super::Cause). The queue pair is destroyed.
    pub fn into_rts(self, attributes: <E::QpType as QpType>::Rts) -> Result<Rts<E>, Error> {
        let step = (State::Rtr, State::Rts);
        transition::reach(&self.queue, Some(self.port), step, &attributes)?;
        Ok(Rts(self.queue))
    }
}

impl<E: QpContext> Rts<E> {
    /// Returns the queue pair.
    pub fn queue_pair(&self) -> &Arc<QueuePair<E>> {
        &self.0
    }
}
