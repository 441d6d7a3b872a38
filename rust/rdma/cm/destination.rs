// SPDX-License-Identifier: GPL-2.0

//! Where datagrams go, as the connection manager finds it.

use crate::{
    bindings,
    rdma::{
        ah::AddressHandle,
        device::{
            Gid,
            Port, //
        },
        pd::ProtectionDomain,
        qp::{
            ud::Qkey,
            Qpn, //
        },
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The way to a queue pair, or to a group of them, with what a datagram must bear.
///
/// # Invariants
///
/// `attributes` are valid, and own a reference on the entry of the GID table that
/// they name. To be dropped while the id it comes from holds the device.
pub(crate) struct Destination {
    attributes: bindings::rdma_ah_attr,
    number: Qpn,
    key: Qkey,
}

// SAFETY: The entry of the GID table may be given back by any thread.
unsafe impl Send for Destination {}
// SAFETY: `&self` only reads.
unsafe impl Sync for Destination {}

impl Destination {
    /// # Safety
    ///
    /// `event` must be that of a handler that is called with the answer of a service,
    /// or with a group that was joined.
    pub(super) unsafe fn from_event(event: *const bindings::rdma_cm_event) -> Self {
        // SAFETY: By the contract, the event has the parameters of datagrams.
        let told = unsafe { &(*event).param.ud };
        let mut attributes = pin_init::zeroed();
        // SAFETY: The event's attributes are valid. The copy takes a reference.
        unsafe { bindings::rdma_copy_ah_attr(&mut attributes, &told.ah_attr) };
        // INVARIANT: As copied.
        Self {
            attributes,
            number: Qpn::from_raw(told.qp_num),
            key: Qkey(told.qkey),
        }
    }

    pub(crate) fn number(&self) -> Qpn {
        self.number
    }

    pub(crate) fn key(&self) -> Qkey {
        self.key
    }

    /// The GID of the other end.
    pub(crate) fn gid(&self) -> Gid {
        Gid::from_raw(self.attributes.grh.dgid)
    }

    /// The local identifier of the other end; 0 with RoCE.
    pub(crate) fn lid(&self) -> u16 {
        if self.attributes.type_ != bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB {
            return 0;
        }
        // SAFETY: The attributes are of InfiniBand.
        unsafe { self.attributes.__bindgen_anon_1.ib.dlid }
    }

    /// Sets the Ethernet address of the other end, if it has one.
    pub(crate) fn set_ethernet(&mut self, address: [u8; 6]) {
        if self.attributes.type_ == bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE {
            self.attributes.__bindgen_anon_1.roce.dmac = address;
        }
    }

    /// A handle for the way, which begins at `port`. Sleeps.
    pub(crate) fn address_handle(
        &self,
        pd: Arc<ProtectionDomain>,
        port: Port<'_>,
    ) -> Result<AddressHandle> {
        if *port.device() != **pd.device() {
            return Err(EINVAL);
        }
        // SAFETY: By the type invariant; the port is of the domain's device.
        unsafe { AddressHandle::of_attributes(pd, port, self.attributes) }
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::rdma_destroy_ah_attr(&mut self.attributes) };
    }
}
