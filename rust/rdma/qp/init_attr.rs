// SPDX-License-Identifier: GPL-2.0

//! What a queue pair is made of.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_qp_init_attr`

use super::{
    qp_type::sealed::Sealed,
    QpCap,
    QpContext,
    QueuePair,
    RdmaRwCap, //
};
use crate::{
    bindings,
    rdma::{
        cq::CompletionQueue,
        device::Device,
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

/// A shared receive queue, as a queue pair sees it.
pub(in crate::rdma) trait Srq: Send + Sync {
    /// The queue for C.
    fn as_raw(&self) -> *mut bindings::ib_srq;

    /// The domain of the memory of its receives.
    fn protection_domain(&self) -> &Arc<ProtectionDomain>;
}

/// What a queue pair of context `E` is made of.
pub struct QpInitAttr<E: QpContext> {
    pub(super) pd: Arc<ProtectionDomain>,
    pub(super) send_cq: Arc<CompletionQueue>,
    pub(super) receive_cq: Arc<CompletionQueue>,
    pub(super) capacity: QpCap,
    pub(super) rdma_rw: Option<RdmaRwCap>,
    /// The one that [`with_srq`](Self::with_srq) asks for.
    pub(super) srq: Option<Arc<dyn Srq>>,
    pub(super) inline_bytes: u32,
    _context: PhantomData<fn(E)>,
}

impl<E: QpContext> QpInitAttr<E> {
    /// A queue pair of `pd` with the given room, whose sends and receives
    /// complete in `cq`.
    pub fn new(pd: Arc<ProtectionDomain>, cq: Arc<CompletionQueue>, capacity: QpCap) -> Self {
        Self {
            pd,
            send_cq: cq.clone(),
            receive_cq: cq,
            capacity,
            rdma_rw: None,
            srq: None,
            inline_bytes: 0,
            _context: PhantomData,
        }
    }

    /// Lets requests hold so many bytes of [`Inline`](crate::rdma::wr::Inline) data. A
    /// queue pair of more than the device can is not created.
    pub fn with_inline(mut self, bytes: u32) -> Self {
        self.inline_bytes = bytes;
        self
    }

    /// Lets receives complete in a queue of their own.
    pub fn with_receive_cq(mut self, cq: Arc<CompletionQueue>) -> Self {
        self.receive_cq = cq;
        self
    }

    /// Takes receives from `srq`.
    ///
    /// # Safety
    ///
    /// The `srq_context` of `srq` must be what [`srq`](crate::rdma::srq) makes of it for queue
    /// pairs of context `E`.
    pub(in crate::rdma) unsafe fn with_srq(mut self, srq: Arc<dyn Srq>) -> Self {
        self.srq = Some(srq);
        self
    }

    /// Makes room for [RDMA reads and writes](crate::rdma::rw), beside what the capacity says. The
    /// completion queue of sends needs room for their
    /// [requests](RdmaRwCap::requests), too.
    pub fn with_rdma_rw(mut self, rdma_rw: RdmaRwCap) -> Self {
        self.rdma_rw = Some(rdma_rw);
        self
    }

    /// The device of the domain.
    pub(super) fn device(&self) -> &Device {
        self.pd.device()
    }

    /// Whether domain and queues are of this device.
    pub(crate) fn are_of(&self, device: &Device) -> bool {
        **self.pd.device() == *device
            && **self.send_cq.device() == *device
            && **self.receive_cq.device() == *device
    }

    /// # Safety
    ///
    /// The result is valid as long as `self` and, in use, as `queue`, which must
    /// be the address of the object to be.
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
            event_handler: Some(QueuePair::<E>::event),
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
                max_recv_sge: receives.min(1),
                max_inline_data: self.inline_bytes,
                ..pin_init::zeroed()
            },
            sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: E::QpType::QP_TYPE,
            ..pin_init::zeroed()
        })
    }

    /// Whether sends and receives complete in the same queue.
    pub(super) fn has_one_cq(&self) -> bool {
        self.send_cq.as_raw() == self.receive_cq.as_raw()
    }

    /// The drain of a queue pair that shares receives needs one completion queue, see
    /// there; the memory of receives is of the domain of the shared queue.
    fn check_srq(&self, srq: &dyn Srq) -> Result {
        if !self.has_one_cq() || srq.protection_domain().as_raw() != self.pd.as_raw() {
            return Err(EINVAL);
        }
        Ok(())
    }
}
