// SPDX-License-Identifier: GPL-2.0

//! Queries a queue pair's attributes from its device.
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

/// Attributes of a queue pair at the time of the query (`struct ib_qp_attr`).
///
/// Attributes that the transport service or the state does not have are zero, or set by the driver.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// The state.
    pub state: State,
    /// Maximum payload of a packet.
    pub path_mtu: Option<Mtu>,
    /// The port.
    pub port: u32,
    /// Index in the port's P_Key table.
    pub pkey_index: u16,
    /// Remote access that the peer has.
    pub access: Access,
    /// GID of the peer's port.
    pub destination: Gid,
    /// Number of the peer's queue pair.
    pub dest_qpn: Qpn,
    /// Next packet sequence number to receive; some drivers return the first one.
    pub rq_psn: Psn,
    /// Next packet sequence number to send; some drivers return the first one.
    pub sq_psn: Psn,
    /// RDMA reads and atomic operations that this side may have outstanding.
    pub max_rd_atomic: u8,
    /// RDMA reads and atomic operations that the peer may have outstanding.
    pub max_dest_rd_atomic: u8,
    /// Capacity of the send queue in work requests, including the one for the drain.
    pub max_send_wr: u32,
    /// Capacity of the receive queue in work requests, including the one for the drain.
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
    /// Queries the attributes from the device (`ib_query_qp`). May sleep.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device cannot be queried, or any error of the driver.
    pub fn query(&self) -> Result<Attributes> {
        let mut raw = bindings::ib_qp_attr::default();
        let mut created = bindings::ib_qp_init_attr::default();
        // SAFETY: The queue pair is alive, and both structures are valid for writes.
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
