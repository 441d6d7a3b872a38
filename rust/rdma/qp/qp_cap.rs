// SPDX-License-Identifier: GPL-2.0

//! The room in a queue pair.
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

/// Room in a queue pair; a drain needs one more a direction, which is added.
#[derive(Clone, Copy)]
pub struct QpCap {
    /// Send requests, registrations and invalidations that may be posted at once.
    pub sends: u32,
    /// Receives that may be posted at once.
    pub receives: u32,
    /// Pieces of memory of one send.
    pub send_sges: u32,
}

impl QpCap {
    /// Entries that a completion queue for both directions must have.
    pub fn completions(&self) -> u32 {
        // One a request, and one for each drain marker.
        self.sends.saturating_add(self.receives).saturating_add(2)
    }
}

/// The [RDMA reads and writes](crate::rdma::rw) that a queue pair has room for.
#[derive(Clone, Copy)]
pub struct RdmaRwCap {
    /// So many under way, or prepared, at once.
    pub at_once: u32,
    /// Pieces of memory of one, at most: its pages, if these are apart.
    pub pieces: u32,
}

/// What reads and writes need of a queue pair, by how a device does them.
struct Needs {
    /// The port that this was found with.
    port: u32,
    /// Pieces of memory of one request.
    sges: u32,
    /// What the core calls contexts, each of which may have a region.
    contexts: u32,
    /// Send requests that the core makes room for by itself, given the contexts.
    by_core: u32,
    /// Send requests at worst.
    requests: u32,
}

impl RdmaRwCap {
    /// Send requests that they take at worst on `device`, of a queue pair with this
    /// `capacity`: a completion queue must have room for so many more.
    ///
    /// 0 if the device cannot read a peer's memory at all.
    pub fn requests(&self, device: &Device, capacity: QpCap) -> u32 {
        self.needs(device, capacity.send_sges)
            .map_or(0, |needs| needs.requests)
    }

    /// `None` if the device lacks what the core divides by.
    fn needs(&self, device: &Device, sges: u32) -> Option<Needs> {
        let attributes = device.attributes();
        if attributes.max_sge_rd == 0 || attributes.max_fast_reg_page_list_len == 0 {
            return None;
        }
        let sges = sges.max(attributes.max_sge_rd.min(attributes.max_send_sge));
        let at_a_time = NonZero::new(sges.min(attributes.max_sge_rd))?;
        // A device that needs regions on one port needs them on all.
        let port = device.ports().next().map_or(0, |port| port.number());
        // SAFETY: The device is registered; the port is one of its.
        let factor = unsafe { bindings::rdma_rw_mr_factor(device.as_raw(), port, self.pieces) };
        let contexts = self.at_once.saturating_mul(factor);
        // SAFETY: As above.
        let by_core = unsafe { bindings::rdma_rw_max_send_wr(device.as_raw(), port, contexts, 0) };
        let rest = u32::from(self.pieces % at_a_time != 0);
        let each = (self.pieces / at_a_time).saturating_add(rest);
        Some(Needs {
            port,
            sges,
            contexts,
            by_core,
            requests: by_core.max(self.at_once.saturating_mul(each)),
        })
    }

    /// Adds what they need to the attributes of a queue pair of `device`.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device cannot do reads and writes, `EINVAL` if its queues are
    /// too short for so many.
    pub(super) fn prepare(
        &self,
        device: &Device,
        attributes: &mut bindings::ib_qp_init_attr,
    ) -> Result {
        let needs = self
            .needs(device, attributes.cap.max_send_sge)
            .ok_or(EOPNOTSUPP)?;
        let others = attributes.cap.max_send_wr;
        // The core would make the queue smaller in silence.
        others
            .checked_add(needs.requests)
            .filter(|all| *all <= device.attributes().max_qp_wr)
            .ok_or(EINVAL)?;
        attributes.cap.max_send_wr =
            others.saturating_add(needs.requests.saturating_sub(needs.by_core));
        attributes.cap.max_send_sge = needs.sges;
        attributes.cap.max_rdma_ctxs = needs.contexts;
        // For the core to size by; the connection manager knows better.
        attributes.port_num = needs.port;
        Ok(())
    }
}
