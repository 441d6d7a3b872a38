// SPDX-License-Identifier: GPL-2.0

//! Attributes for the state transitions of a queue pair with unreliable connection (UC).
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_qp_attr`
//!
//! Without acknowledgements there are no attributes for retries, and RDMA reads are not supported.

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

/// Remote access that the peer has to registered memory of the protection domain
/// (`enum ib_access_flags`).
///
/// An access must be allowed by the queue pair and by the memory region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// None; the peer can only send.
    None,
    /// RDMA write.
    Write,
}

/// Attributes of the transition to INIT: port and remote access.
#[derive(Clone, Copy)]
pub struct Init<'a> {
    /// The port.
    pub port: Port<'a>,
    /// Index in the port's P_Key table of the P_Key that packets have.
    pub pkey_index: u16,
    /// Remote access that the peer has.
    pub access: Access,
}

/// Attributes of the transition to RTR: the peer. From then on, the queue pair accepts its packets.
pub struct Rtr<'a> {
    /// Path to the peer. It must start at the port of the queue pair.
    pub path: Path<'a>,
    /// Maximum payload of a packet, the same as at the peer. At most the active MTU of the port.
    pub path_mtu: Mtu,
    /// Number of the peer's queue pair.
    pub dest_qpn: Qpn,
    /// First packet sequence number that the peer sends.
    pub rq_psn: Psn,
}

/// Attributes of the transition to RTS: how to send.
#[derive(Clone, Copy)]
pub struct Rts {
    /// First packet sequence number to send. The peer of a connection must expect it.
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
