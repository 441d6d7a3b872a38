// SPDX-License-Identifier: GPL-2.0

//! The marker of a drain: a work request behind all others, whose completion shows that the
//! handlers of the others have run.
//!
//! C: `__ib_drain_sq` and `__ib_drain_rq` in `drivers/infiniband/core/verbs.c`, which post the same
//! work requests. For a completion queue that only its owner polls, they poll once in 100 ms. Here,
//! the drain polls until the marker has completed.

use crate::{
    bindings,
    rdma::qp::{
        ib_post_recv,
        ib_post_send, //
    },
    sync::{
        RelaxedBool,
        TimedCompletion, //
    }, //
};
use core::ptr;
use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

/// A marker. It is part of its queue pair, which is not freed before the marker has completed.
#[pin_data]
pub(in crate::rdma::qp) struct Marker {
    #[pin]
    cqe: Opaque<bindings::ib_cqe>,
    #[pin]
    pub(super) handled: TimedCompletion,
    /// Posted. A drain that gives up waiting is continued later, and must not post the marker again.
    posted: RelaxedBool,
}

impl Marker {
    pub(in crate::rdma::qp) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            cqe: Opaque::new(bindings::ib_cqe {
                done: Some(Self::done),
            }),
            handled <- TimedCompletion::new(),
            posted: RelaxedBool::new(false),
        })
    }

    pub(super) fn is_posted(&self) -> bool {
        self.posted.get()
    }

    /// Posts the marker behind the sends, as an RDMA write of zero bytes.
    ///
    /// # Safety
    ///
    /// `qp` must be a queue pair in its error state, whose completion queue has a free entry. The marker must
    /// not be posted. If this succeeds, it must stay valid until it has completed.
    pub(super) unsafe fn post_send(&self, qp: *mut bindings::ib_qp) -> Result {
        let mut write = bindings::ib_rdma_wr {
            wr: bindings::ib_send_wr {
                opcode: bindings::ib_wr_opcode_IB_WR_RDMA_WRITE,
                ..pin_init::zeroed()
            },
            ..pin_init::zeroed()
        };
        write.wr.__bindgen_anon_1.wr_cqe = self.cqe.get();
        let mut bad = ptr::null();
        // SAFETY: `qp` is alive by the safety requirements. `write` is a complete work request of
        // its opcode.
        to_result(unsafe { ib_post_send(qp, (&raw const write).cast(), &mut bad) })?;
        self.posted.set(true);
        Ok(())
    }

    /// Posts the marker behind the receives.
    ///
    /// # Safety
    ///
    /// `qp` must be a queue pair in its error state, whose completion queue has a free entry. The marker must
    /// not be posted. If this succeeds, it must stay valid until it has completed.
    pub(super) unsafe fn post_receive(&self, qp: *mut bindings::ib_qp) -> Result {
        let mut receive: bindings::ib_recv_wr = pin_init::zeroed();
        receive.__bindgen_anon_1.wr_cqe = self.cqe.get();
        // SAFETY: `qp` is alive by the safety requirements. The receive without a buffer is
        // well-formed.
        to_result(unsafe { ib_post_recv(qp, &receive) })?;
        self.posted.set(true);
        Ok(())
    }

    /// Completes `handled`.
    /// # Safety
    ///
    /// Called by the core with the completion of a posted marker.
    unsafe extern "C" fn done(_cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: By the safety requirements `wr_cqe` is the `cqe` of a marker, which is alive
        // until it has completed.
        let marker = unsafe {
            let cqe = (*wc).__bindgen_anon_1.wr_cqe;
            &*kernel::container_of!(Opaque::cast_from(cqe), Self, cqe)
        };
        marker.handled.complete();
    }
}
