// SPDX-License-Identifier: GPL-2.0

//! What a reliably connected queue pair is told on its way to being ready.
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

/// What the peer may do by itself to registered memory of the queue pair's domain
/// (`enum ib_access_flags`). The region decides as well: both must allow it. Give no
/// more than the peer needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access(u32);

impl Access {
    /// Nothing: it can send.
    pub const NONE: Self = Self(0);
    /// Write it.
    pub const WRITE: Self = Self(bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE);
    /// Read it.
    pub const READ: Self = Self(bindings::ib_access_flags_IB_ACCESS_REMOTE_READ);
    /// Change it atomically.
    pub const ATOMIC: Self = Self(bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC);

    /// Those of the flags that are about the peer.
    pub(super) fn from_raw(raw: u32) -> Self {
        Self(raw & (Self::WRITE | Self::READ | Self::ATOMIC).0)
    }

    /// Whether all that `other` allows is allowed.
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
    /// How many of its reads and atomic operations may be under way; it must not be
    /// more than it has been told.
    pub max_dest_rd_atomic: u8,
    /// How long it is to wait when it sends and no receive is posted.
    pub min_rnr_timer: RnrTimer,
}

/// How to send.
#[derive(Clone, Copy)]
pub struct Rts {
    /// The first packet; the peer must expect it.
    pub sq_psn: Psn,
    /// How long to wait for the acknowledgement of a packet.
    pub timeout: AckTimeout,
    /// How often to send a packet again that is not acknowledged. Then the
    /// connection is broken.
    pub retry_count: RetryCount,
    /// How often to send again to a peer that has no receive posted.
    pub rnr_retry: RetryCount,
    /// How many reads and atomic operations of ours may be under way; at most what
    /// the peer allows. With 0, there are none.
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
