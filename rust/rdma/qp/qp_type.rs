// SPDX-License-Identifier: GPL-2.0

//! Transport services: what a queue pair promises, and so what it can do.
//!
//! Source: InfiniBand Architecture Specification, volume 1, section 9.6 to 9.8.

use super::{
    rc,
    transition::Transition,
    uc,
    ud, //
};
use crate::bindings;

/// The transport service of a queue pair: [`Rc`], [`Uc`] or [`Ud`].
///
/// It is part of the type of a queue pair's [`QpContext`](super::QpContext), so an
/// operation that the service does not have cannot be asked for.
pub trait QpType: sealed::Sealed + Send + Sync + 'static {
    /// What a queue pair needs to be told to be initialised.
    type Init<'a>: Transition;
    /// What it needs to be told to be ready to receive.
    type Rtr<'a>: Transition;
    /// What it needs to be told to be ready to send.
    type Rts: Transition;
}

/// A service with one peer, whose memory may be written: [`Rc`] and [`Uc`].
pub trait Connected: QpType {}

/// A service that acknowledges: memory of the peer may be read and changed
/// atomically, and keys invalidated: [`Rc`].
pub trait Reliable: Connected {}

/// Reliable connection: everything arrives once, in order, or the queue pair fails.
pub enum Rc {}

/// Unreliable connection: messages of any size, of which the damaged and the lost
/// ones are dropped without notice.
pub enum Uc {}

/// Unreliable datagrams: messages of at most one packet to any peer.
pub enum Ud {}

impl QpType for Rc {
    type Init<'a> = rc::Init<'a>;
    type Rtr<'a> = rc::Rtr<'a>;
    type Rts = rc::Rts;
}

impl QpType for Uc {
    type Init<'a> = uc::Init<'a>;
    type Rtr<'a> = uc::Rtr<'a>;
    type Rts = uc::Rts;
}

impl QpType for Ud {
    type Init<'a> = ud::Init<'a>;
    type Rtr<'a> = ud::Rtr;
    type Rts = ud::Rts;
}

impl Connected for Rc {}
impl Connected for Uc {}
impl Reliable for Rc {}

pub(crate) mod sealed {
    use super::*;

    /// What the verbs call a service.
    pub trait Sealed {
        /// The type of the queue pair.
        const QP_TYPE: bindings::ib_qp_type;
        /// The port space of the connection manager.
        const PORT_SPACE: bindings::rdma_ucm_port_space;
        /// Sends are counted, because nothing can be posted to mark the last one. Then
        /// a chain is one request, which is signalled.
        const COUNTS_SENDS: bool = false;
    }

    impl Sealed for Rc {
        const QP_TYPE: bindings::ib_qp_type = bindings::ib_qp_type_IB_QPT_RC;
        const PORT_SPACE: bindings::rdma_ucm_port_space = bindings::rdma_ucm_port_space_RDMA_PS_TCP;
    }

    impl Sealed for Uc {
        const QP_TYPE: bindings::ib_qp_type = bindings::ib_qp_type_IB_QPT_UC;
        const PORT_SPACE: bindings::rdma_ucm_port_space = bindings::rdma_ucm_port_space_RDMA_PS_TCP;
    }

    impl Sealed for Ud {
        const QP_TYPE: bindings::ib_qp_type = bindings::ib_qp_type_IB_QPT_UD;
        const PORT_SPACE: bindings::rdma_ucm_port_space = bindings::rdma_ucm_port_space_RDMA_PS_UDP;
        const COUNTS_SENDS: bool = true;
    }
}
