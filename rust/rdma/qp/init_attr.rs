// SPDX-License-Identifier: GPL-2.0

//! Initial attributes of a queue pair.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_qp_init_attr`

use super::{
    cq_entries::{
        QpCqEntries,
        ReceiveEntries,
        Srq, //
    },
    qp_type::sealed::Sealed,
    QpCap,
    QpContext,
    QueuePair,
    RdmaRwCap, //
};
use crate::{
    bindings,
    rdma::{
        cq::{
            CompletionQueue,
            CqEntries, //
        },
        device::{
            Device,
            DeviceRef, //
        },
        pd::ProtectionDomain, //
    },
};
use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Initial attributes of a queue pair with context `E`.
pub struct QpInitAttr<E: QpContext> {
    pub(super) pd: Arc<ProtectionDomain>,
    pub(super) send_cq: Arc<CompletionQueue>,
    pub(super) receive_cq: Arc<CompletionQueue>,
    pub(super) capacity: QpCap,
    pub(super) rdma_rw: Option<RdmaRwCap>,
    /// The queue set by [`with_srq`](Self::with_srq).
    pub(super) srq: Option<Arc<dyn Srq>>,
    pub(super) inline_bytes: u32,
    /// Scatter/gather entries of one receive.
    receive_sges: u32,
    _context: PhantomData<fn(E)>,
}

impl<E: QpContext> QpInitAttr<E> {
    /// Describes a queue pair of `pd` with the given capacity, whose sends and receives complete in
    /// `cq`.
    pub fn new(pd: Arc<ProtectionDomain>, cq: Arc<CompletionQueue>, capacity: QpCap) -> Self {
        Self {
            pd,
            send_cq: cq.clone(),
            receive_cq: cq,
            capacity,
            rdma_rw: None,
            srq: None,
            inline_bytes: 0,
            receive_sges: 1,
            _context: PhantomData,
        }
    }

    /// Allows up to `bytes` bytes of [`Inline`](crate::rdma::wr::Inline) data in a work request.
    /// Creating the queue pair fails if the device cannot have that many.
    pub fn with_inline(mut self, bytes: u32) -> Self {
        self.inline_bytes = bytes;
        self
    }

    /// Allows receives of up to `sges` pieces. A receive has one piece, or
    /// [two](crate::rdma::wr::ReceiveMemory).
    pub fn with_receive_sges(mut self, sges: u32) -> Self {
        self.receive_sges = sges;
        self
    }

    /// Sets a completion queue for the receives, apart from that of the sends.
    pub fn with_receive_cq(mut self, cq: Arc<CompletionQueue>) -> Self {
        self.receive_cq = cq;
        self
    }

    /// Makes the queue pair take its receives from `srq`.
    ///
    /// # Safety
    ///
    /// `srq` must be a [`SharedReceiveQueue<E>`](crate::rdma::srq::SharedReceiveQueue).
    pub(in crate::rdma) unsafe fn with_srq(mut self, srq: Arc<dyn Srq>) -> Self {
        self.srq = Some(srq);
        self
    }

    /// Adds capacity for [RDMA reads and writes](crate::rdma::rw) to that of the queue pair. The
    /// completion queue of the sends needs entries for their [work requests](RdmaRwCap::requests),
    /// too.
    pub fn with_rdma_rw(mut self, rdma_rw: RdmaRwCap) -> Self {
        self.rdma_rw = Some(rdma_rw);
        self
    }

    /// Returns how many work requests the RDMA reads and writes need.
    pub(super) fn rdma_rw_requests(&self) -> u32 {
        self.rdma_rw
            .map_or(0, |cap| cap.requests(self.device(), self.capacity))
    }

    /// Takes the entries of the completion queues that the queue pair can fill. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if a completion queue has too few; `ENOMEM`.
    pub(super) fn take_cq_entries(&self) -> Result<QpCqEntries> {
        // One for each work request, and one for the marker of the drain.
        let sends = self.capacity.sends.saturating_add(self.rdma_rw_requests());
        let sends = CqEntries::take(&self.send_cq, sends.saturating_add(1))?;
        let receives = match &self.srq {
            Some(srq) => ReceiveEntries::shared(srq, &self.receive_cq)?,
            None => {
                ReceiveEntries::own(&self.receive_cq, self.capacity.receives.saturating_add(1))?
            }
        };
        Ok(QpCqEntries::new(sends, receives))
    }

    /// Returns the device of the protection domain.
    pub(crate) fn device(&self) -> &DeviceRef {
        self.pd.device()
    }

    /// Returns whether the protection domain and the completion queues belong to `device`.
    pub(crate) fn are_of(&self, device: &Device) -> bool {
        **self.pd.device() == *device
            && **self.send_cq.device() == *device
            && **self.receive_cq.device() == *device
    }

    /// Returns the attributes for C. Each queue gets one more work request, for the marker of the
    /// drain.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the capacity overflows, or if the shared receive queue does not match the
    /// completion queues or the protection domain.
    ///
    /// # Safety
    ///
    /// - `queue` must be the address of the queue pair that is being created.
    /// - `self` must outlive the use of the result, and `queue` must be valid when the device uses
    ///   it.
    pub(super) unsafe fn attributes(
        &self,
        queue: *mut QueuePair<E>,
    ) -> Result<bindings::ib_qp_init_attr> {
        let receives = match &self.srq {
            Some(srq) => {
                self.check_srq(&**srq)?;
                0
            }
            // One more for the marker of the drain.
            None => self.capacity.receives.checked_add(1).ok_or(EINVAL)?,
        };
        Ok(bindings::ib_qp_init_attr {
            // Set when the queue pair is complete, see `QueuePair::receive_events`.
            event_handler: None,
            qp_context: queue.cast(),
            send_cq: self.send_cq.as_raw(),
            recv_cq: self.receive_cq.as_raw(),
            srq: self
                .srq
                .as_ref()
                .map_or(ptr::null_mut(), |srq| srq.as_raw()),
            // One more for the marker of the drain.
            cap: bindings::ib_qp_cap {
                max_send_wr: self.capacity.sends.checked_add(1).ok_or(EINVAL)?,
                max_recv_wr: receives,
                max_send_sge: self.capacity.send_sges,
                max_recv_sge: match receives {
                    0 => 0,
                    _ => self.receive_sges,
                },
                max_inline_data: self.inline_bytes,
                ..pin_init::zeroed()
            },
            sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: E::QpType::QP_TYPE,
            ..pin_init::zeroed()
        })
    }

    /// Returns whether sends and receives complete in the same queue.
    pub(super) fn has_one_cq(&self) -> bool {
        self.send_cq.as_raw() == self.receive_cq.as_raw()
    }

    /// Checks that the shared receive queue `srq` suits these attributes.
    ///
    /// The drain of a queue pair with shared receives needs one completion queue for both
    /// directions, see [`drain`](super::drain). The memory of the receives belongs to the
    /// protection domain of `srq`.
    fn check_srq(&self, srq: &dyn Srq) -> Result {
        if !self.has_one_cq() || srq.protection_domain().as_raw() != self.pd.as_raw() {
            return Err(EINVAL);
        }
        Ok(())
    }
}
