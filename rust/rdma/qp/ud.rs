// SPDX-License-Identifier: GPL-2.0

//! What a queue pair for datagrams is told on its way to being ready.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_qp_attr`
//!
//! It has no peer: each datagram says where it goes.

use super::{
    transition::{
        initialise,
        sealed::Attributes,
        Cause, //
    },
    Psn, //
};
use crate::{
    bindings,
    rdma::device::{
        Device,
        Port, //
    }, //
};

/// The Q_Key: who does not know it cannot send to the queue pair.
///
/// It keeps strays off, not attackers: it is in every datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Qkey(pub u32);

/// Which port the queue pair is on, and what its senders must know.
#[derive(Clone, Copy)]
pub struct Init<'a> {
    /// The port.
    pub port: Port<'a>,
    /// The index of the P_Key, in the port's table, that its packets bear.
    pub pkey_index: u16,
    /// What datagrams to it must bear.
    pub qkey: Qkey,
}

/// Nothing; once this is said, datagrams are taken.
#[derive(Clone, Copy)]
pub struct Rtr;

/// How to send.
#[derive(Clone, Copy)]
pub struct Rts {
    /// The number of the first packet.
    pub sq_psn: Psn,
}

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

impl Attributes for Rts {
    const MASK: u32 = bindings::ib_qp_attr_mask_IB_QP_SQ_PSN;

    fn fill(&self, _device: &Device, raw: &mut bindings::ib_qp_attr) -> Result<(), Cause> {
        raw.sq_psn = self.sq_psn.get();
        Ok(())
    }
}
