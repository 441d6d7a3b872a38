// SPDX-License-Identifier: GPL-2.0

//! Transport services, and the operations that each of them supports.
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
/// The service is part of the type of the queue pair's [`QpContext`](super::QpContext). So code
/// that posts an operation that the service does not support does not compile.
pub trait QpType: sealed::Sealed + Send + Sync + 'static {
    /// Attributes of the transition from RESET to INIT.
    type Init<'a>: Transition;
    /// Attributes of the transition from INIT to RTR (ready to receive).
    type Rtr<'a>: Transition;
    /// Attributes of the transition from RTR to RTS (ready to send).
    type Rts: Transition;
}

/// A service with one peer, which supports RDMA writes: [`Rc`] and [`Uc`].
pub trait Connected: QpType {}

/// A service with acknowledgements, which supports RDMA reads, atomic operations and remote
/// invalidation: [`Rc`].
pub trait Reliable: Connected {}

/// Reliable connection: messages arrive once and in order, or the queue pair fails.
pub enum Rc {}

/// Unreliable connection: messages of any size. Lost and damaged ones are dropped without notice.
pub enum Uc {}

/// Unreliable datagrams: messages of at most one packet, to any peer.
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

    /// Constants of a service in C.
    pub trait Sealed {
        /// Type of the queue pair.
        const QP_TYPE: bindings::ib_qp_type;
        /// Port space of the connection manager.
        const PORT_SPACE: bindings::rdma_ucm_port_space;
        /// Whether sends are counted, because the drain has no work request to mark the last one.
        /// If so, a chain has one work request, which is signalled.
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
