// SPDX-License-Identifier: GPL-2.0

//! Waits of the controller's thread, during which it keeps the connection alive.

use super::{
    Controller,
    IDLE, //
};
use crate::{ctrl_error::CtrlError, disk::Queue};
use core::ops::ControlFlow;
use nvme_proto::{
    format::identify::KeepAliveMode,
    policy::keep_alive::KeepAlive, //
};
use rrdma::{
    rdma::cm::Connected,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// Interval at which the controller's thread polls queues for their users.
const POLL: Msecs = Msecs::new(10);

/// The queues of a connection that is kept alive.
pub(super) trait KeepAliveQueue {
    /// Whether any I/O command completed since the last call.
    fn take_traffic(&self) -> bool;

    /// Which commands restart the target's keep-alive timer.
    fn keep_alive_mode(&self) -> KeepAliveMode;

    /// Polls the polled queues, because their users may sleep with requests in flight. Returns
    /// whether there are such queues.
    fn poll(&self) -> bool;

    /// The queue that takes keep-alive commands.
    fn admin(&self) -> &Connected<Queue>;
}

/// An admin queue without I/O queues.
impl KeepAliveQueue for Connected<Queue> {
    fn take_traffic(&self) -> bool {
        false
    }

    fn keep_alive_mode(&self) -> KeepAliveMode {
        KeepAliveMode::CommandBased
    }

    fn poll(&self) -> bool {
        false
    }

    fn admin(&self) -> &Connected<Queue> {
        self
    }
}

/// Keeps the connection of `queues` alive until `over` breaks, or the connection is lost. Calls
/// `over` whenever the thread is woken, and at the time that `over` returned. The response to a
/// keep-alive may take until `deadline`. Sleeps.
pub(super) fn serve_until<R>(
    controller: &Controller,
    queues: &dyn KeepAliveQueue,
    deadline: Deadline,
    mut over: impl FnMut() -> ControlFlow<R, Deadline>,
) -> Result<R, CtrlError> {
    let policy = KeepAlive::new(controller.options.keep_alive_ms(), queues.keep_alive_mode());
    let period = policy.map_or(IDLE, |policy| Msecs::new(policy.period_ms()));
    // When a keep-alive may be due.
    let mut next = Deadline::after(period).min(controller.keep_alive.due());
    loop {
        if let Some(error) = controller.notifier.error() {
            return Err(error.into());
        }
        let moment = match over() {
            ControlFlow::Break(answer) => return Ok(answer),
            ControlFlow::Continue(moment) => moment,
        };
        let left = next.left();
        if left > Msecs::new(0) {
            let limit = left.min(moment.left());
            // The holder of the scan lock may wait for polled requests whose users do not poll.
            let polls = controller.scan_lock.is_held() && queues.poll();
            controller.wait(if polls { limit.min(POLL) } else { limit });
            continue;
        }
        if policy.is_some_and(|policy| policy.is_due(queues.take_traffic())) {
            let admin = controller.admin(queues.admin(), deadline);
            admin.keep_alive(&controller.keep_alive)?;
        }
        next = Deadline::after(period);
    }
}

/// [`serve_until`] without a deadline.
pub(super) fn serve<R>(
    controller: &Controller,
    queues: &dyn KeepAliveQueue,
    over: impl FnMut() -> ControlFlow<R, Deadline>,
) -> Result<R, CtrlError> {
    serve_until(controller, queues, Deadline::NEVER, over)
}
