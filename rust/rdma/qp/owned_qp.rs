// SPDX-License-Identifier: GPL-2.0

//! The reference to a queue pair that its connection holds.

use super::{
    QpContext,
    QueuePair, //
};
use core::ops::Deref;
use kernel::sync::Arc;

/// The reference to a queue pair of whoever connects it. Dropping it [drains](QueuePair::drain) the
/// queue pair, which sleeps.
///
/// A posted operation may own another reference to the queue pair. If the last one went with that, the
/// queue pair would be destroyed by its own completion handler, or never.
pub(in crate::rdma) struct OwnedQp<E: QpContext>(Arc<QueuePair<E>>);

impl<E: QpContext> OwnedQp<E> {
    pub(in crate::rdma) fn new(queue: Arc<QueuePair<E>>) -> Self {
        Self(queue)
    }
}

impl<E: QpContext> Deref for OwnedQp<E> {
    type Target = Arc<QueuePair<E>>;

    fn deref(&self) -> &Arc<QueuePair<E>> {
        &self.0
    }
}

impl<E: QpContext> Drop for OwnedQp<E> {
    fn drop(&mut self) {
        self.0.drain();
    }
}
