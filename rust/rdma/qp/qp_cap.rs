// SPDX-License-Identifier: GPL-2.0

//! Capacity of a queue pair.
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_qp_cap`;
//! [`include/rdma/rw.h`](srctree/include/rdma/rw.h)

use crate::{
    bindings,
    errno::EOPNOTSUPP,
    rdma::device::Device, //
};
use core::num::NonZero;
use kernel::prelude::*;

/// Capacity of a queue pair in work requests. The one per direction that a drain needs is added.
#[derive(Clone, Copy)]
pub struct QpCap {
    /// Work requests of the send queue that may be outstanding, registrations and invalidations
    /// included.
    pub sends: u32,
    /// Receives that may be outstanding.
    pub receives: u32,
    /// Scatter/gather entries of one send.
    pub send_sges: u32,
}

impl QpCap {
    /// Returns the number of entries that the queue pair takes from a completion queue for both directions,
    /// without those of [`RdmaRwCap::requests`] and of the receives of a shared queue.
    pub fn completions(&self) -> u32 {
        // One for each work request, and one for each of the two drain markers.
        self.sends.saturating_add(self.receives).saturating_add(2)
    }
}

/// Number and size of the [RDMA reads and writes](crate::rdma::rw) that a queue pair has room for.
#[derive(Clone, Copy)]
pub struct RdmaRwCap {
    /// RDMA reads and writes that may be prepared or outstanding.
    pub at_once: u32,
    /// Those of one work request that may be prepared or outstanding instead.
    pub small_at_once: u32,
    /// Maximum number of memory pieces of one read or write: its pages, if they are not contiguous.
    pub pieces: u32,
}

/// Resources of a queue pair that RDMA reads and writes need on a device.
struct Needs {
    /// Port for which these were computed.
    port: u32,
    /// Scatter/gather entries of one work request.
    sges: u32,
    /// Number of `struct rdma_rw_ctx`; each may need a memory region.
    contexts: u32,
    /// Work requests that the core adds to the send queue for `contexts`.
    by_core: u32,
    /// Work requests in the worst case.
    requests: u32,
}

impl RdmaRwCap {
    /// Returns how many work requests of the send queue the reads and writes need in the worst
    /// case, on `device` and a queue pair of this `capacity`. The completion queue needs that many
    /// more entries.
    ///
    /// Returns 0 if the device does not support RDMA reads.
    pub fn requests(&self, device: &Device, capacity: QpCap) -> u32 {
        self.needs(device, capacity.send_sges)
            .map_or(0, |needs| needs.requests)
    }

    /// Returns `None` if the device has a limit of zero by which the core divides.
    fn needs(&self, device: &Device, sges: u32) -> Option<Needs> {
        let attributes = device.attributes();
        if attributes.max_sge_rd == 0 || attributes.max_fast_reg_page_list_len == 0 {
            return None;
        }
        let sges = sges.max(attributes.max_sge_rd.min(attributes.max_send_sge));
        let at_a_time = NonZero::new(sges.min(attributes.max_sge_rd))?;
        // A device that needs regions on one port needs them on all ports.
        let port = device.ports().next().map_or(0, |port| port.number());
        // SAFETY: The device is registered, and `port` is the number of one of its ports.
        let factor = unsafe { bindings::rdma_rw_mr_factor(device.as_raw(), port, self.pieces) };
        let contexts = self.at_once.saturating_mul(factor).max(self.small_at_once);
        // SAFETY: The device is registered, and `port` is the number of one of its ports.
        let by_core = unsafe { bindings::rdma_rw_max_send_wr(device.as_raw(), port, contexts, 0) };
        let rest = u32::from(self.pieces % at_a_time != 0);
        let each = (self.pieces / at_a_time).saturating_add(rest);
        Some(Needs {
            port,
            sges,
            contexts,
            by_core,
            requests: by_core
                .max(self.at_once.saturating_mul(each))
                .max(self.small_at_once),
        })
    }

    /// Adds the resources to the attributes of a queue pair of `device`.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: the device does not support RDMA reads.
    /// - `EINVAL`: the send queue would be longer than the device allows.
    pub(super) fn prepare(
        &self,
        device: &Device,
        attributes: &mut bindings::ib_qp_init_attr,
    ) -> Result {
        let needs = self
            .needs(device, attributes.cap.max_send_sge)
            .ok_or(EOPNOTSUPP)?;
        let others = attributes.cap.max_send_wr;
        // The core would silently cap the length of the queue (`rdma_rw_init_qp`).
        others
            .checked_add(needs.requests)
            .filter(|all| *all <= device.attributes().max_qp_wr)
            .ok_or(EINVAL)?;
        attributes.cap.max_send_wr =
            others.saturating_add(needs.requests.saturating_sub(needs.by_core));
        attributes.cap.max_send_sge = needs.sges;
        attributes.cap.max_rdma_ctxs = needs.contexts;
        // The core computes sizes with this port. The connection manager sets the final one.
        attributes.port_num = needs.port;
        Ok(())
    }
}
