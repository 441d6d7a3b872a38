// SPDX-License-Identifier: GPL-2.0

//! Reference to the queue pair of a connection.

use super::{
    QpContext,
    QueuePair, //
};
use crate::rdma::sleeping_drop::may_sleep;
use core::{
    mem,
    ops::Deref, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The reference of a connection to its queue pair. Dropping it [drains](QueuePair::drain) the queue pair,
/// which sleeps. In atomic context, the queue pair leaks instead, with a log message: the device is not removed then.
///
/// Posted operations may own references to the queue pair, too. The drain completes these operations, so
/// none of them drops the last reference.
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
        match may_sleep() {
            true => self.0.drain(),
            false => {
                pr_err!(
                    "{}: queue pair {}: leaks: its connection was dropped in atomic context\n",
                    self.0.device().name(),
                    self.0.number()
                );
                mem::forget(self.0.clone());
            }
        }
    }
}
