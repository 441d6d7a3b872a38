// SPDX-License-Identifier: GPL-2.0

//! Room for transfers in a queue pair.

use crate::{
    bindings,
    errno::EOPNOTSUPP,
    rdma::{
        device::Device,
        qp::QpCap, //
    },
};
use core::num::NonZero;
use kernel::{
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    },
};

/// The transfers that a queue pair has room for.
#[derive(Clone, Copy)]
pub struct RdmaRwCap {
    /// So many under way, or prepared, at once.
    pub at_once: u32,
    /// Pieces of memory of one, at most: its pages, if these are apart.
    pub pieces: u32,
}

/// What transfers need of a queue pair, by how a device does them.
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
    /// `EOPNOTSUPP` if the device cannot do transfers, `EINVAL` if its queues are
    /// too short for so many.
    pub(in crate::rdma) fn prepare(
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

/// Places in a send queue that are for transfers.
///
/// All that share a queue pair share its send queue, so this is one counter: a
/// transfer costs two changes of it beside its requests.
pub(in crate::rdma) struct SqCredits {
    free: Atomic<u32>,
    all: u32,
}

impl SqCredits {
    /// As many as `transfers` need, if there are to be any.
    pub(in crate::rdma) fn new(cap: Option<&RdmaRwCap>, device: &Device, capacity: QpCap) -> Self {
        let all = cap.map_or(0, |cap| cap.requests(device, capacity));
        Self {
            free: Atomic::new(all),
            all,
        }
    }

    /// Takes places.
    ///
    /// # Errors
    ///
    /// `EINVAL` for more than there ever are, `EAGAIN` for more than there are now.
    pub(super) fn take(&self, places: u32) -> Result {
        if places > self.all {
            return Err(EINVAL);
        }
        let mut free = self.free.load(ordering::Relaxed);
        loop {
            let left = free.checked_sub(places).ok_or(EAGAIN)?;
            match self.free.cmpxchg(free, left, ordering::Acquire) {
                Ok(_) => return Ok(()),
                Err(now) => free = now,
            }
        }
    }

    /// Gives places back.
    pub(super) fn put(&self, places: u32) {
        self.free.fetch_add(places, ordering::Release);
    }
}
