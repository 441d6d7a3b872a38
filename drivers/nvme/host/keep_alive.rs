// SPDX-License-Identifier: GPL-2.0

//! When the next keep-alive is due.

use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex, //
};
use nvme_proto::{
    format::identify::KeepAliveMode,
    policy::keep_alive::KeepAlive, //
};
use rrdma::sync::{
    Deadline,
    Msecs, //
};

/// When the next keep-alive is due. Its lock is a leaf.
#[pin_data]
pub(crate) struct KeepAliveTimer {
    /// The keep-alive time-out of the controller, in milliseconds; 0 for none.
    timeout_ms: u32,
    #[pin]
    due: Mutex<Deadline>,
}

impl KeepAliveTimer {
    /// A timer that has not been started.
    pub(crate) fn new(timeout_ms: u32) -> impl PinInit<Self> {
        pin_init!(Self {
            timeout_ms,
            due <- new_mutex!(Deadline::NEVER, "rnvmf::KeepAliveTimer::due"),
        })
    }

    /// Restarts the timer, for a command that restarts the target's timer. May sleep.
    pub(crate) fn restart(&self) {
        let keep_alive = KeepAlive::new(self.timeout_ms, KeepAliveMode::CommandBased);
        let next = keep_alive.map(|k| Deadline::after(Msecs::new(k.period_ms())));
        *self.due.lock() = next.unwrap_or(Deadline::NEVER);
    }

    /// Returns the keep-alive time-out of the controller; 0 for none.
    pub(crate) fn timeout(&self) -> Msecs {
        Msecs::new(self.timeout_ms)
    }

    /// Returns when the next keep-alive is due. May sleep.
    pub(crate) fn due(&self) -> Deadline {
        *self.due.lock()
    }
}
