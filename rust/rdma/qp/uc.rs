// SPDX-License-Identifier: GPL-2.0

//! What an unreliably connected queue pair is told on its way to being ready.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_qp_attr`
//!
//! Nothing is acknowledged, so there is nothing to be said about trying again, and
//! nothing can be read.

use super::{
    transition::{
        connect,
        initialise,
        sealed::Attributes,
        Cause, //
    },
    Psn,
    Qpn, //
};
use crate::{
    bindings,
    rdma::{
        device::{
            Device,
            Mtu,
            Port, //
        },
        path::Path, //
    }, //
};

/// What the peer may do by itself to registered memory of the queue pair's domain
/// (`enum ib_access_flags`). The region decides as well: both must allow it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Nothing: it can send.
    None,
    /// Write it.
    Write,
}

/// Which port the queue pair is on, and what the peer may do.
#[derive(Clone, Copy)]
pub struct Init<'a> {
    /// The port.
    pub port: Port<'a>,
    /// The index of the P_Key, in the port's table, that its packets bear.
    pub pkey_index: u16,
    /// What the peer may do.
    pub access: Access,
}

/// Who the peer is; once this is set, its packets are taken.
pub struct Rtr<'a> {
    /// The way to it, from the port that the queue pair is on.
    pub path: Path<'a>,
    /// The payload of the packets; the peer must use the same. At most the active
    /// one of the port.
    pub path_mtu: Mtu,
    /// The number of its queue pair.
    pub dest_qpn: Qpn,
    /// The first packet that it sends.
    pub rq_psn: Psn,
}

/// How to send.
#[derive(Clone, Copy)]
pub struct Rts {
    /// The first packet; the peer must expect it.
    pub sq_psn: Psn,
}

impl Attributes for Init<'_> {
    const MASK: u32 = bindings::ib_qp_attr_mask_IB_QP_PORT
        | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX
        | bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS;

    fn fill(&self, device: &Device, raw: &mut bindings::ib_qp_attr) -> Result<(), Cause> {
        initialise(self.port, self.pkey_index, device, raw)?;
        if self.access == Access::Write {
            raw.qp_access_flags = bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE as i32;
        }
        Ok(())
    }
}

impl Attributes for Rtr<'_> {
    const MASK: u32 = bindings::ib_qp_attr_mask_IB_QP_AV
        | bindings::ib_qp_attr_mask_IB_QP_PATH_MTU
        | bindings::ib_qp_attr_mask_IB_QP_DEST_QPN
        | bindings::ib_qp_attr_mask_IB_QP_RQ_PSN;

    fn fill(&self, device: &Device, raw: &mut bindings::ib_qp_attr) -> Result<(), Cause> {
        connect(&self.path, self.path_mtu, device, raw)?;
        raw.dest_qp_num = self.dest_qpn.get();
        raw.rq_psn = self.rq_psn.get();
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
