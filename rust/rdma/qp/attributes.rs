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
    rdma::{
        attributes::attributes,
        device::{
            Gid,
            Mtu, //
        },
    },
};
use kernel::{
    error::to_result,
    prelude::*, //
};

attributes! {
    /// Attributes of a queue pair at the time of the query (`struct ib_qp_attr`).
    ///
    /// Attributes that the transport service or the state does not have are zero, or set by the
    /// driver.
    #[derive(Clone, Copy, Debug)]
    pub struct Attributes from |raw: bindings::ib_qp_attr| {
        /// The state.
        state: State = State::from_raw(raw.qp_state),
        /// Maximum payload of a packet.
        path_mtu: Option<Mtu> = Mtu::from_raw(raw.path_mtu),
        /// The port.
        port: u32 = raw.port_num,
        /// Index in the port's P_Key table.
        pkey_index: u16 = raw.pkey_index,
        /// Remote access that the peer has.
        access: Access = Access::from_raw(raw.qp_access_flags as u32),
        /// GID of the peer's port.
        destination: Gid = Gid::from_raw(raw.ah_attr.grh.dgid),
        /// Number of the peer's queue pair.
        dest_qpn: Qpn = Qpn::from_raw(raw.dest_qp_num),
        /// Next packet sequence number to receive; some drivers return the first one.
        rq_psn: Psn = Psn::truncate(raw.rq_psn),
        /// Next packet sequence number to send; some drivers return the first one.
        sq_psn: Psn = Psn::truncate(raw.sq_psn),
        /// RDMA reads and atomic operations that this side may have outstanding.
        max_rd_atomic: u8 = raw.max_rd_atomic,
        /// RDMA reads and atomic operations that the peer may have outstanding.
        max_dest_rd_atomic: u8 = raw.max_dest_rd_atomic,
        /// Capacity of the send queue in work requests, including the one for the drain.
        max_send_wr: u32 = raw.cap.max_send_wr,
        /// Capacity of the receive queue in work requests, including the one for the drain.
        max_recv_wr: u32 = raw.cap.max_recv_wr,
    }
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
        let mut raw = pin_init::zeroed::<bindings::ib_qp_attr>();
        let mut created = pin_init::zeroed::<bindings::ib_qp_init_attr>();
        // SAFETY: The queue pair is alive, and both structures are valid for writes.
        to_result(unsafe {
            bindings::ib_query_qp(self.as_raw(), &mut raw, ASKED as i32, &mut created)
        })?;
        Ok(raw.into())
    }
}
