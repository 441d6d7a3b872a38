// SPDX-License-Identifier: GPL-2.0

//! Destinations of datagrams, as the connection manager resolves them.

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

/// The path to a queue pair or a multicast group, with the Q_Key that datagrams need.
///
/// Must be dropped before the CM ID that it comes from, which keeps the device registered.
///
/// # Invariants
///
/// `attributes` is valid and owns a reference to the GID table entry that it names.
pub(crate) struct Destination {
    attributes: bindings::rdma_ah_attr,
    number: Qpn,
    key: Qkey,
}

// SAFETY: A reference to a GID table entry may be dropped by any thread.
unsafe impl Send for Destination {}
// SAFETY: Methods that take `&self` only read.
unsafe impl Sync for Destination {}

impl Destination {
    /// Copies the destination from an event.
    ///
    /// # Safety
    ///
    /// `event` must be valid, and the answer to a service query or the join of a multicast group.
    pub(super) unsafe fn from_event(event: *const bindings::rdma_cm_event) -> Self {
        // SAFETY: By the safety requirements, the event has datagram parameters.
        let told = unsafe { &(*event).param.ud };
        let mut attributes = pin_init::zeroed();
        // SAFETY: The attributes of the event are valid. The copy takes its own reference.
        unsafe { bindings::rdma_copy_ah_attr(&mut attributes, &told.ah_attr) };
        // INVARIANT: `rdma_copy_ah_attr` has copied the attributes and taken a reference.
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

    /// Returns the GID of the destination.
    pub(crate) fn gid(&self) -> Gid {
        Gid::from_raw(self.attributes.grh.dgid)
    }

    /// Returns the LID of the destination; 0 with RoCE.
    pub(crate) fn lid(&self) -> u16 {
        if self.attributes.type_ != bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB {
            return 0;
        }
        // SAFETY: The attributes are those of InfiniBand, so this member of the union is set.
        unsafe { self.attributes.__bindgen_anon_1.ib.dlid }
    }

    /// Sets the Ethernet address of the destination. No effect unless it is RoCE.
    pub(crate) fn set_ethernet(&mut self, address: [u8; 6]) {
        if self.attributes.type_ == bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE {
            self.attributes.__bindgen_anon_1.roce.dmac = address;
        }
    }

    /// Creates an address handle for the destination, reached through `port`. Sleeps.
    pub(crate) fn address_handle(
        &self,
        pd: Arc<ProtectionDomain>,
        port: Port<'_>,
    ) -> Result<AddressHandle> {
        if *port.device() != **pd.device() {
            return Err(EINVAL);
        }
        // SAFETY: By the type invariant, the attributes are valid. The port belongs to the domain's
        // device, see above.
        unsafe { AddressHandle::of_attributes(pd, port, self.attributes) }
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the attributes are valid and own a reference.
        unsafe { bindings::rdma_destroy_ah_attr(&mut self.attributes) };
    }
}
