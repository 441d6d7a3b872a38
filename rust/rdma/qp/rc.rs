// SPDX-License-Identifier: GPL-2.0

//! Attributes for the state transitions of a queue pair with reliable connection (RC).
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_qp_attr`

use super::{
    transition::{
        connect,
        initialise,
        sealed::Attributes,
        Cause, //
    },
    AckTimeout,
    Psn,
    Qpn,
    RetryCount,
    RnrTimer, //
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
use core::ops::BitOr;

/// Remote access that the peer has to registered memory of the protection domain
/// (`enum ib_access_flags`).
///
/// An access must be allowed by the queue pair and by the memory region. Allow no more than the
/// peer needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access(u32);

impl Access {
    /// None; the peer can only send.
    pub const NONE: Self = Self(0);
    /// RDMA write.
    pub const WRITE: Self = Self(bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE);
    /// RDMA read.
    pub const READ: Self = Self(bindings::ib_access_flags_IB_ACCESS_REMOTE_READ);
    /// Atomic operations.
    pub const ATOMIC: Self = Self(bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC);

    /// Returns the remote access flags in `raw`.
    pub(super) fn from_raw(raw: u32) -> Self {
        Self(raw & (Self::WRITE | Self::READ | Self::ATOMIC).0)
    }

    /// Returns whether every access in `other` is allowed.
    pub fn allows(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
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
    /// RDMA reads and atomic operations that the peer may have outstanding. At least the number
    /// that the peer was told.
    pub max_dest_rd_atomic: u8,
    /// Time that the peer must wait after a send that found no receive posted.
    pub min_rnr_timer: RnrTimer,
}

/// Attributes of the transition to RTS: how to send.
#[derive(Clone, Copy)]
pub struct Rts {
    /// First packet sequence number to send; the peer must expect it.
    pub sq_psn: Psn,
    /// Time to wait for the acknowledgement of a packet.
    pub timeout: AckTimeout,
    /// Retries for a packet that is not acknowledged. The queue pair fails after the last one.
    pub retry_count: RetryCount,
    /// Retries for a send to a peer that has no receive posted.
    pub rnr_retry: RetryCount,
    /// RDMA reads and atomic operations that this side may have outstanding, at most as many as the
    /// peer allows. 0 disables them.
    pub max_rd_atomic: u8,
}

impl Attributes for Init<'_> {
    const MASK: u32 = bindings::ib_qp_attr_mask_IB_QP_PORT
        | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX
        | bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS;

    fn fill(&self, device: &Device, raw: &mut bindings::ib_qp_attr) -> Result<(), Cause> {
        initialise(self.port, self.pkey_index, device, raw)?;
        raw.qp_access_flags = self.access.0 as i32;
        Ok(())
    }
}

impl Attributes for Rtr<'_> {
    const MASK: u32 = bindings::ib_qp_attr_mask_IB_QP_AV
        | bindings::ib_qp_attr_mask_IB_QP_PATH_MTU
        | bindings::ib_qp_attr_mask_IB_QP_DEST_QPN
        | bindings::ib_qp_attr_mask_IB_QP_RQ_PSN
        | bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC
        | bindings::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER;

    fn fill(&self, device: &Device, raw: &mut bindings::ib_qp_attr) -> Result<(), Cause> {
        let most = device.attributes().max_qp_rd_atom;
        if u32::from(self.max_dest_rd_atomic) > most {
            return Err(Cause::TooManyReads(self.max_dest_rd_atomic, most));
        }
        connect(&self.path, self.path_mtu, device, raw)?;
        raw.dest_qp_num = self.dest_qpn.get();
        raw.rq_psn = self.rq_psn.get();
        raw.max_dest_rd_atomic = self.max_dest_rd_atomic;
        raw.min_rnr_timer = self.min_rnr_timer.get();
        Ok(())
    }
}

impl Attributes for Rts {
    const MASK: u32 = bindings::ib_qp_attr_mask_IB_QP_SQ_PSN
        | bindings::ib_qp_attr_mask_IB_QP_TIMEOUT
        | bindings::ib_qp_attr_mask_IB_QP_RETRY_CNT
        | bindings::ib_qp_attr_mask_IB_QP_RNR_RETRY
        | bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC;

    fn fill(&self, device: &Device, raw: &mut bindings::ib_qp_attr) -> Result<(), Cause> {
        let most = device.attributes().max_qp_init_rd_atom;
        if u32::from(self.max_rd_atomic) > most {
            return Err(Cause::TooManyReads(self.max_rd_atomic, most));
        }
        raw.sq_psn = self.sq_psn.get();
        raw.timeout = self.timeout.get();
        raw.retry_cnt = self.retry_count.get();
        raw.rnr_retry = self.rnr_retry.get();
        raw.max_rd_atomic = self.max_rd_atomic;
        Ok(())
    }
}
