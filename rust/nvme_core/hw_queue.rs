// SPDX-License-Identifier: GPL-2.0

//! A queue of a controller, as blk-mq sees it.

use crate::{
    bindings,
    transport::Transport,
    weak_controller::AssociationNumber, //
};
use core::{
    ptr::NonNull,
    sync::atomic::{
        AtomicU8,
        Ordering, //
    },
};

/// The commands that a queue admits while its controller is not live.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admits {
    /// Only Connect and authentication, while the controller is CONNECTING.
    Nothing,
    /// Fabrics commands. Connect has succeeded, but the controller is not enabled yet (CC.EN): it may
    /// end other commands with Command Sequence Error.
    Fabrics,
    /// All commands of the kernel.
    All,
}

/// A queue of a controller: the admin queue, or one that a hardware queue maps to.
///
/// # Invariants
///
/// `ctrl` is the controller that this queue is part of.
pub(crate) struct HwQueue<T: Transport> {
    pub(crate) ctrl: NonNull<bindings::nvme_ctrl>,
    pub(crate) qid: u16,
    pub(crate) data: T::Queue,
    /// An [`Admits`].
    admits: AtomicU8,
}

// SAFETY: The controller is not tied to a thread; C synchronises its use. The data is `Send`.
unsafe impl<T: Transport> Send for HwQueue<T> {}

// SAFETY: C synchronises the use of the controller. The data is `Sync`.
unsafe impl<T: Transport> Sync for HwQueue<T> {}

impl<T: Transport> HwQueue<T> {
    /// Creates a queue that admits nothing.
    ///
    /// # Safety
    ///
    /// The type invariants hold.
    pub(crate) unsafe fn new(ctrl: NonNull<bindings::nvme_ctrl>, qid: u16, data: T::Queue) -> Self {
        // INVARIANT: By the safety requirements of this function.
        Self {
            ctrl,
            qid,
            data,
            admits: AtomicU8::new(Admits::Nothing as u8),
        }
    }

    /// Sets which commands the queue admits. The store orders no other access. Any context.
    pub(crate) fn admit(&self, admits: Admits) {
        self.admits.store(admits as u8, Ordering::Relaxed);
    }

    /// Returns whether the queue admits commands: all, or Fabrics commands only if `is_fabrics`. Any context.
    pub(crate) fn admits(&self, is_fabrics: bool) -> bool {
        let admits = self.admits.load(Ordering::Relaxed);
        admits == Admits::All as u8 || (is_fabrics && admits == Admits::Fabrics as u8)
    }

    /// Admits nothing any more, and lets no submitter find the queue. Does nothing to a connection of another
    /// association. Only for the sequences of the controller, see [`disconnect`](Self::disconnect). May sleep.
    pub(crate) fn retract(&self, association: AssociationNumber) {
        self.admit(Admits::Nothing);
        T::retract(&self.data, association);
    }

    /// Admits nothing any more, and sends no further request. Does nothing to a connection of another association.
    /// Only for the sequences of the controller, see [`disconnect`](Self::disconnect). Sleeps.
    pub(crate) fn stop(&self, association: AssociationNumber) {
        self.admit(Admits::Nothing);
        T::stop(&self.data, association);
    }

    /// Disconnects the queue, and cancels its requests. Does nothing if it is disconnected, or was connected in
    /// another association. Only for the sequences of the controller, and while it is deleted: another time-out
    /// must not change what a queue of the next association admits. Sleeps.
    pub(crate) fn disconnect(&self, association: AssociationNumber) {
        self.admit(Admits::Nothing);
        T::disconnect(&self.data, association);
    }
}
