// SPDX-License-Identifier: GPL-2.0

//! Events of a CM ID, to trace them.

use kernel::ffi::c_int;

/// An event of the connection manager (`struct rdma_cm_event`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Type of the event (`enum rdma_cm_event_type`).
    pub number: u32,
    /// Status of the event: 0, a negative error number, or the reason of a rejection.
    pub status: c_int,
}

/// Receives the events of a CM ID, for example to trace them.
pub trait Observer: Send + Sync + 'static {
    /// Called for each event, before it is handled.
    ///
    /// Process context, may sleep; locks of the connection manager are held. Must neither wait for
    /// the connection nor drop it.
    fn heard(&self, event: Event);
}
