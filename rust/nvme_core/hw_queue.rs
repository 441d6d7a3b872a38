// SPDX-License-Identifier: GPL-2.0

//! A queue of a controller, as blk-mq sees it.

use crate::{
    bindings,
    transport::Transport, //
};
use core::ptr::NonNull;
use rrdma::sync::RelaxedBool;

/// A queue of a controller: the admin queue, or one that a hardware queue maps to.
///
/// # Invariants
///
/// `ctrl` is the controller that this queue is part of.
pub(crate) struct HwQueue<T: Transport> {
    pub(crate) ctrl: NonNull<bindings::nvme_ctrl>,
    pub(crate) qid: u16,
    pub(crate) data: T::Queue,
    /// Connect has succeeded: nvme-core sends other commands.
    pub(crate) live: RelaxedBool,
}

// SAFETY: The controller is not tied to a thread; C synchronises its use. The data is `Send`.
unsafe impl<T: Transport> Send for HwQueue<T> {}

// SAFETY: C synchronises the use of the controller. The data is `Sync`.
unsafe impl<T: Transport> Sync for HwQueue<T> {}

impl<T: Transport> HwQueue<T> {
    /// Disconnects the queue, and cancels its requests. Does nothing if it is disconnected. Sleeps.
    pub(crate) fn disconnect(&self) {
        self.live.set(false);
        T::disconnect(&self.data);
    }
}
