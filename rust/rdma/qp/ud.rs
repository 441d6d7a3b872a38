// SPDX-License-Identifier: GPL-2.0

//! Attributes for the state transitions of a queue pair for unreliable datagrams (UD).
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_qp_attr`
//!
//! The queue pair has no peer: each datagram has its own destination.

pub use super::uc::Rts;

use super::transition::{
    initialise,
    sealed::Attributes,
    Cause, //
};
use crate::{
    bindings,
    rdma::device::{
        Device,
        Port, //
    }, //
};

/// Q_Key: a datagram is received only if it has the Q_Key of the receiving queue pair.
///
/// It protects against misdirected datagrams, but not against attackers: every datagram carries it
/// in clear text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Qkey(pub u32);

/// Attributes of the transition to INIT: port and Q_Key.
#[derive(Clone, Copy)]
pub struct Init<'a> {
    /// The port.
    pub port: Port<'a>,
    /// Index in the port's P_Key table of the P_Key that packets have.
    pub pkey_index: u16,
    /// Q_Key of the queue pair.
    pub qkey: Qkey,
}

/// Attributes of the transition to RTR: none. From then on, the queue pair accepts datagrams.
#[derive(Clone, Copy)]
pub struct Rtr;

impl Attributes for Init<'_> {
    const MASK: u32 = bindings::ib_qp_attr_mask_IB_QP_PORT
        | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX
        | bindings::ib_qp_attr_mask_IB_QP_QKEY;

    fn fill(&self, device: &Device, raw: &mut bindings::ib_qp_attr) -> Result<(), Cause> {
        initialise(self.port, self.pkey_index, device, raw)?;
        raw.qkey = self.qkey.0;
        Ok(())
    }
}

impl Attributes for Rtr {
    const MASK: u32 = 0;

    fn fill(&self, _device: &Device, _raw: &mut bindings::ib_qp_attr) -> Result<(), Cause> {
        Ok(())
    }
}
