// SPDX-License-Identifier: GPL-2.0

//! The states of a queue pair that is connected by hand, as types.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `enum ib_qp_state`
//!
//! ```text
//! create ─▶ Reset ── into_init ──▶ Init ── into_rtr ──▶ Rtr ── into_rts ──▶ Rts
//!                                  (may post receives)           (may post sends)
//! ```
//!
//! A state is a type, and each consumes the one before it; what a transition needs
//! to be told is a structure of the [service](super::QpType), so none of it can be
//! forgotten, and nothing else can be said. To drop any of them, or the last
//! reference on the queue pair of the last, drains and destroys it. The error
//! state, where everything that is posted is flushed, is entered from any by
//! [`QueuePair::drain`], and by the device, which tells the context.
//!
//! The send queue drained state (SQD), in which sending pauses so that attributes
//! can be changed, is not offered: no consumer of verbs in the kernel uses it.

use super::{
    transition::{
        self,
        Error, //
    },
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

/// A queue pair in its first state: it can do nothing yet.
pub struct Reset<E: QpContext>(Arc<QueuePair<E>>);

/// A queue pair on a port: receives can be posted, so that they are there when the
/// peer begins to send.
pub struct Init<E: QpContext> {
    pub(in crate::rdma) queue: Arc<QueuePair<E>>,
    port: u32,
}

/// A queue pair that takes what the peer sends, and cannot send itself yet.
pub struct Rtr<E: QpContext> {
    pub(in crate::rdma) queue: Arc<QueuePair<E>>,
    port: u32,
}

/// A queue pair that is ready.
pub struct Rts<E: QpContext>(Arc<QueuePair<E>>);

/// Creates a queue pair of `init_attr` (`ib_create_qp`), to be connected by hand. `owner`
/// is what `rdma res show qp` names. May sleep.
///
/// # Errors
///
/// `EINVAL` if domain and queues are of several devices, or have more room than the device;
/// `ENOMEM`; `EOPNOTSUPP`, or `EINVAL`, if it does not have the service.
pub fn create<E: QpContext>(
    init_attr: QpInitAttr<E>,
    context: impl PinInit<E, kernel::error::Error>,
    owner: &'static CStr,
) -> Result<Reset<E>> {
    if !init_attr.are_of(init_attr.device()) {
        return Err(EINVAL);
    }
    let make = |pd, attributes: &mut _| {
        // SAFETY: The domain and what the attributes name are alive, and of one
        // device; the name is static.
        let raw = unsafe { bindings::ib_create_qp_kernel(pd, attributes, owner.as_char_ptr()) };
        NonNull::new(from_err_ptr(raw)?).ok_or(ENOMEM)
    };
    // SAFETY: `make` does as it has to, and nobody else knows the queue pair.
    let queue = unsafe { QueuePair::create(init_attr, context, owner, make)? };
    queue.set_idle(true);
    Ok(Reset(queue))
}

impl<E: QpContext> Reset<E> {
    /// Its number, for the peer.
    pub fn number(&self) -> Qpn {
        Qpn::from_raw(self.0.number())
    }

    /// Puts it on a port. Sleeps.
    ///
    /// # Errors
    ///
    /// The queue pair is gone, see [`Cause`](super::Cause).
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
    /// Its number, for the peer.
    pub fn number(&self) -> Qpn {
        Qpn::from_raw(self.queue.number())
    }

    /// Tells it who the peer is, from which it will take packets. Sleeps.
    ///
    /// # Errors
    ///
    /// The queue pair is gone, see [`Cause`](super::Cause).
    pub fn into_rtr(self, attributes: <E::QpType as QpType>::Rtr<'_>) -> Result<Rtr<E>, Error> {
        let step = (State::Init, State::Rtr);
        let port = transition::reach(&self.queue, Some(self.port), step, &attributes)?;
        Ok(Rtr {
            queue: self.queue,
            port,
        })
    }
}

impl<E: QpContext> Rtr<E> {
    /// Its number, for the peer.
    pub fn number(&self) -> Qpn {
        Qpn::from_raw(self.queue.number())
    }

    /// Lets it send. Sleeps.
    ///
    /// # Errors
    ///
    /// The queue pair is gone, see [`Cause`](super::Cause).
    pub fn into_rts(self, attributes: <E::QpType as QpType>::Rts) -> Result<Rts<E>, Error> {
        let step = (State::Rtr, State::Rts);
        transition::reach(&self.queue, Some(self.port), step, &attributes)?;
        Ok(Rts(self.queue))
    }
}

impl<E: QpContext> Rts<E> {
    /// The queue pair.
    pub fn queue_pair(&self) -> &Arc<QueuePair<E>> {
        &self.0
    }
}
