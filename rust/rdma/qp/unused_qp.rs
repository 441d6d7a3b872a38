// SPDX-License-Identifier: GPL-2.0

//! Queue pairs of the device that are destroyed after their [`QueuePair`](super::QueuePair).

use super::{
    cq_entries::{
        QpCqEntries,
        Srq, //
    },
    deferred_release::DeferredList,
};
use crate::{
    bindings,
    rdma::{
        cq::CompletionQueue,
        device::{
            Device,
            DeviceRef, //
        },
        pd::ProtectionDomain,
        sleeping_drop::OfDevice, //
    },
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::sync::Arc;

/// A queue pair of the device (`struct ib_qp`), and all that it uses. Dropping this destroys it, which sleeps.
///
/// # Invariants
///
/// - `raw` is a queue pair of the device of `pd`, which uses the other fields. Nobody else uses it, nothing is posted,
///   and no event of it is handled.
/// - The resources of `deferred` belong to `raw`.
pub(super) struct UnusedQp {
    pub(super) raw: NonNull<bindings::ib_qp>,
    pub(super) deferred: DeferredList,
    pub(super) pd: Arc<ProtectionDomain>,
    pub(super) _cq_entries: Option<QpCqEntries>,
    pub(super) _srq: Option<Arc<dyn Srq>>,
    pub(super) _cqs: [Arc<CompletionQueue>; 2],
}

// SAFETY: The verbs on a queue pair may be called from any thread, and the other fields are `Send`.
unsafe impl Send for UnusedQp {}

impl OfDevice for UnusedQp {
    fn device(&self) -> &DeviceRef {
        self.pd.device()
    }
}

impl Drop for UnusedQp {
    fn drop(&mut self) {
        // SAFETY: By the type invariants. It is destroyed next.
        unsafe { self.deferred.release(self.raw.as_ptr()) };
        // SAFETY: By the type invariants.
        unsafe { destroy(self.raw, self.pd.device()) };
    }
}

/// Destroys a queue pair of `device` (`ib_destroy_qp`). Waits for its event handlers. Sleeps.
///
/// # Safety
///
/// Nothing may be posted to the queue pair, and nobody may use it any more.
pub(super) unsafe fn destroy(raw: NonNull<bindings::ib_qp>, device: &Device) {
    device.insist("destroy a queue pair", || {
        // SAFETY: By the safety requirements of this function.
        unsafe { bindings::ib_destroy_qp_user(raw.as_ptr(), ptr::null_mut()) }
    });
}
