// SPDX-License-Identifier: GPL-2.0

//! What C's headers have inline, in Rust: helpers in C would be calls on the way of every I/O.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use crate::bindings;
use kernel::prelude::*;

/// # Safety
///
/// `qp` must be a queue pair that is alive, the requests well-formed, and what they name must
/// stay until they complete. `bad` must be valid for writes.
#[inline]
pub(in crate::rdma::qp) unsafe fn ib_post_send(
    qp: *mut bindings::ib_qp,
    wr: *const bindings::ib_send_wr,
    bad: *mut *const bindings::ib_send_wr,
) -> c_int {
    // SAFETY: By the contract; the operations of a device are constant.
    match unsafe { (*(*qp).device).ops.post_send } {
        // SAFETY: By the contract.
        Some(post) => unsafe { post(qp, wr, bad) },
        // There is no device without.
        None => EINVAL.to_errno(),
    }
}

/// # Safety
///
/// As [`ib_post_send`], but for `bad`.
#[inline]
pub(in crate::rdma::qp) unsafe fn ib_post_recv(
    qp: *mut bindings::ib_qp,
    wr: *const bindings::ib_recv_wr,
) -> c_int {
    let mut bad = core::ptr::null();
    // SAFETY: By the contract; the operations of a device are constant.
    match unsafe { (*(*qp).device).ops.post_recv } {
        // SAFETY: By the contract.
        Some(post) => unsafe { post(qp, wr, &mut bad) },
        // There is no device without.
        None => EINVAL.to_errno(),
    }
}
