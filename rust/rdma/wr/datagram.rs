// SPDX-License-Identifier: GPL-2.0

//! Work requests for datagrams.

use super::{
    payload::Payload,
    request::Request,
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
    /// Sends the payload as one datagram to queue pair `number` at `address`, whose
    /// Q_Key is `key`. It is the only request of its operation.
    ///
    /// A key with the highest bit set, which only privileged programs may use, stands
    /// for the queue pair's own.
    ///
    /// It completes when the device has sent it. Whether it arrives, nobody says: it
    /// is lost if there is no such queue pair, if the key is another, or if nothing is
    /// posted there to receive it.
    ///
    /// # Errors
    ///
    /// - `EMSGSIZE` if the payload is more than a packet holds, see
    ///   [`AddressHandle::mtu`]: a device would drop it, and say that it was sent;
    /// - `EINVAL` for an address of another domain, a second datagram, and what
    ///   [`Chain::send`] says of the payload.
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

    /// Sends a datagram as [`Chain::send_datagram`], with four bytes that the receiver's
    /// completion brings beside the data.
    ///
    /// # Errors
    ///
    /// As there.
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
        // The drain counts operations by their requests.
        if !self.is_empty() {
            return Err(EINVAL);
        }
        let sge_list = payload.gather(&mut self.sge_builder())?;
        if sge_list.length > address.mtu().bytes() {
            return Err(EMSGSIZE);
        }
        let wr = match immediate {
            None => self.wr(bindings::ib_wr_opcode_IB_WR_SEND, sge_list),
            Some(immediate) => {
                let mut wr = self.wr(bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM, sge_list);
                wr.ex.imm_data = immediate.to_be();
                wr
            }
        };
        self.push(Request::datagram(bindings::ib_ud_wr {
            wr,
            ah: address.as_raw(),
            remote_qpn: number.get(),
            remote_qkey: key.0,
            ..pin_init::zeroed()
        }))
    }
}
