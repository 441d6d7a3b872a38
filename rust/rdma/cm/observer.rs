// SPDX-License-Identifier: GPL-2.0

//! Watching what is heard of a connection.

use kernel::ffi::c_int;

/// An event of the connection manager (`struct rdma_cm_event`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Which one it is (`enum rdma_cm_event_type`).
    pub number: u32,
    /// What it brings: 0, a negative error number, or the reason of a rejection.
    pub status: c_int,
}

/// Somebody who watches an id, to tell of it: to trace it, for one.
pub trait Observer: Send + Sync + 'static {
    /// An event has come, and is not yet handled. Process context, under the locks of the
    /// connection manager: may sleep, but neither wait for the connection nor drop it.
    fn heard(&self, event: Event);
}
