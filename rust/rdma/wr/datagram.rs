// SPDX-License-Identifier: GPL-2.0

//! Work requests that send datagrams.

use super::{
    payload::Payload,
    request::{
        Kind,
        Request, //
    },
    Chain, //
};
use crate::{
    bindings,
    errno::EMSGSIZE,
    rdma::{
        ah::AddressHandle,
        qp::{
            ud::Qkey,
            QpContext,
            Qpn,
            Ud, //
        },
    },
};
use core::ptr;
use kernel::prelude::*;

impl<'a, E: QpContext<QpType = Ud>> Chain<'a, '_, E> {
    /// Sends the payload as one datagram to queue pair `number` at `address`. `key` is the Q_Key of
    /// that queue pair. The datagram is the only work request of its operation.
    ///
    /// If the highest bit of `key` is set, the sending queue pair's own Q_Key is used. Such Q_Keys
    /// are reserved for privileged programs.
    ///
    /// The operation completes when the device has sent the datagram. A datagram is lost without
    /// notice if the destination queue pair does not exist, has another Q_Key, or has no receive
    /// posted.
    ///
    /// # Errors
    ///
    /// - `EMSGSIZE`: the payload is longer than a packet, see [`AddressHandle::mtu`]. A device
    ///   would drop the datagram and complete the work request successfully.
    /// - `EINVAL`: the address handle belongs to another protection domain, or the operation has a
    ///   datagram already.
    /// - Those of [`Chain::send`] for the payload.
    #[inline]
    pub fn send_datagram(
        &mut self,
        address: &'a AddressHandle,
        number: Qpn,
        key: Qkey,
        payload: impl Payload<'a>,
    ) -> Result {
        self.push_datagram(address, number, key, payload, None)
    }

    /// Sends a datagram as [`Chain::send_datagram`] does, with four bytes of immediate data. The
    /// completion of the receive has them in addition to the data.
    ///
    /// # Errors
    ///
    /// Those of [`Chain::send_datagram`].
    #[inline]
    pub fn send_datagram_with_immediate(
        &mut self,
        address: &'a AddressHandle,
        number: Qpn,
        key: Qkey,
        payload: impl Payload<'a>,
        immediate: u32,
    ) -> Result {
        self.push_datagram(address, number, key, payload, Some(immediate))
    }

    #[inline]
    fn push_datagram(
        &mut self,
        address: &'a AddressHandle,
        number: Qpn,
        key: Qkey,
        payload: impl Payload<'a>,
        immediate: Option<u32>,
    ) -> Result {
        let domain = self.queue().protection_domain();
        if !ptr::eq(address.protection_domain().as_raw(), domain.as_raw()) {
            return Err(EINVAL);
        }
        // The drain counts each work request of a datagram queue pair as one operation.
        if !self.is_empty() {
            return Err(EINVAL);
        }
        let sge_list = payload.gather(&mut self.sge_builder())?;
        if sge_list.length > address.mtu().bytes() {
            return Err(EMSGSIZE);
        }
        let (opcode, immediate) = match immediate {
            None => (bindings::ib_wr_opcode_IB_WR_SEND, 0),
            Some(data) => (bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM, data),
        };
        let mut wr = self.wr(opcode, sge_list);
        wr.ex.imm_data = immediate.to_be();
        let datagram = bindings::ib_ud_wr {
            wr,
            ah: address.as_raw(),
            remote_qpn: number.get(),
            remote_qkey: key.0,
            ..pin_init::zeroed()
        };
        self.push(Request::new(Kind { datagram }))
    }
}
