// SPDX-License-Identifier: GPL-2.0

//! A request behind all the others, whose completion says that theirs are handled.
//!
//! C: `__ib_drain_sq` and `__ib_drain_rq`, which post the same. Where a queue is polled by its
//! owner they look into it once in 100 ms; here who drains polls until the marker is there.

use crate::{
    bindings,
    rdma::qp::{
        ib_post_recv,
        ib_post_send, //
    },
    sync::TimedCompletion, //
};
use core::ptr;
use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

/// A marker, which stays where it is until it has completed.
#[pin_data]
pub(super) struct Marker {
    #[pin]
    cqe: Opaque<bindings::ib_cqe>,
    #[pin]
    pub(super) handled: TimedCompletion,
}

impl Marker {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            cqe: Opaque::new(bindings::ib_cqe {
                done: Some(Self::done),
            }),
            handled <- TimedCompletion::new(),
        })
    }

    /// Posts it behind the sends: a write of nothing.
    ///
    /// # Safety
    ///
    /// `qp` is a queue pair in its error state with room for one more, and the marker stays
    /// until it has completed, if this succeeds.
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
        // SAFETY: By the requirements of this function; the request is the whole of a write.
        to_result(unsafe { ib_post_send(qp, (&raw const write).cast(), &mut bad) })
    }

    /// Posts it behind the receives.
    ///
    /// # Safety
    ///
    /// As with [`post_send`](Self::post_send).
    pub(super) unsafe fn post_receive(&self, qp: *mut bindings::ib_qp) -> Result {
        let mut receive: bindings::ib_recv_wr = pin_init::zeroed();
        receive.__bindgen_anon_1.wr_cqe = self.cqe.get();
        // SAFETY: By the requirements of this function; the request is well-formed.
        to_result(unsafe { ib_post_recv(qp, &receive) })
    }

    /// # Safety
    ///
    /// Called where the queue is polled, with the completion of a marker.
    unsafe extern "C" fn done(_cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: By the contract it is the entry of a marker that was posted.
        let marker = unsafe {
            let cqe = (*wc).__bindgen_anon_1.wr_cqe;
            &*kernel::container_of!(Opaque::cast_from(cqe), Self, cqe)
        };
        marker.handled.complete();
    }
}
