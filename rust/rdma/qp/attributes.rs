// SPDX-License-Identifier: GPL-2.0

//! What a device says of a queue pair.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `ib_query_qp`

use super::{
    rc::Access,
    Psn,
    QpContext,
    Qpn,
    QueuePair,
    State, //
};
use crate::{
    bindings,
    rdma::device::{
        Gid,
        Mtu, //
    },
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// What a queue pair is configured to (`struct ib_qp_attr`), as of when it was asked;
/// what its service or its state does not have, is zero or what the driver makes
/// of it.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// Its state.
    pub state: State,
    /// The payload of its packets.
    pub path_mtu: Option<Mtu>,
    /// The port it is on.
    pub port: u32,
    /// The index of its P_Key.
    pub pkey_index: u16,
    /// What the peer may do.
    pub access: Access,
    /// The port that it is connected to.
    pub destination: Gid,
    /// The queue pair that it is connected to.
    pub dest_qpn: Qpn,
    /// The packet that it expects next, with drivers that know; else the first.
    pub rq_psn: Psn,
    /// The packet that it sends next, with drivers that know; else the first.
    pub sq_psn: Psn,
    /// Reads and atomic operations of its own that may be under way.
    pub max_rd_atomic: u8,
    /// Reads and atomic operations of the peer that may be under way.
    pub max_dest_rd_atomic: u8,
    /// Send requests that there is room for, that of the drain included.
    pub max_send_wr: u32,
    /// Receives that there is room for, that of the drain included.
    pub max_recv_wr: u32,
}

const ASKED: u32 = bindings::ib_qp_attr_mask_IB_QP_STATE
    | bindings::ib_qp_attr_mask_IB_QP_PATH_MTU
    | bindings::ib_qp_attr_mask_IB_QP_PORT
    | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX
    | bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS
    | bindings::ib_qp_attr_mask_IB_QP_AV
    | bindings::ib_qp_attr_mask_IB_QP_DEST_QPN
    | bindings::ib_qp_attr_mask_IB_QP_RQ_PSN
    | bindings::ib_qp_attr_mask_IB_QP_SQ_PSN
    | bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC
    | bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC
    | bindings::ib_qp_attr_mask_IB_QP_CAP;

impl<E: QpContext> QueuePair<E> {
    /// Asks the device (`ib_query_qp`). Sleeps.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP`, and what the driver answers.
    pub fn query(&self) -> Result<Attributes> {
        let mut raw = bindings::ib_qp_attr::default();
        let mut created = bindings::ib_qp_init_attr::default();
        // SAFETY: The queue pair is alive; the memory to be written is ours.
        to_result(unsafe {
            bindings::ib_query_qp(self.as_raw(), &mut raw, ASKED as i32, &mut created)
        })?;
        Ok(Attributes {
            state: State::from_raw(raw.qp_state),
            path_mtu: Mtu::from_raw(raw.path_mtu),
            port: raw.port_num,
            pkey_index: raw.pkey_index,
            access: Access::from_raw(raw.qp_access_flags as u32),
            destination: Gid::from_raw(raw.ah_attr.grh.dgid),
            dest_qpn: Qpn::from_raw(raw.dest_qp_num),
            rq_psn: Psn::truncate(raw.rq_psn),
            sq_psn: Psn::truncate(raw.sq_psn),
            max_rd_atomic: raw.max_rd_atomic,
            max_dest_rd_atomic: raw.max_dest_rd_atomic,
            max_send_wr: raw.cap.max_send_wr,
            max_recv_wr: raw.cap.max_recv_wr,
        })
    }
}
