// SPDX-License-Identifier: GPL-2.0

//! What the controller's thread does while it waits: it keeps the connection alive.

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

/// How often queues are polled for others.
const POLL: Msecs = Msecs::new(10);

/// Queues whose connection is kept alive.
pub(super) trait KeepAliveQueue {
    /// Whether any I/O command completed since the last call.
    fn take_traffic(&self) -> bool;

    /// What restarts the target's timer.
    fn keep_alive_mode(&self) -> KeepAliveMode;

    /// Polls in place of users who may sleep with requests in flight. Whether there are polled
    /// queues.
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

/// Keeps the connection of `queues` alive until `over` breaks, or the connection is lost. `over` is
/// called whenever the thread is woken, and at the moment that it returned. A keep-alive is waited
/// for until `deadline` at most. Sleeps.
pub(super) fn serve_until<R>(
    controller: &Controller,
    queues: &impl KeepAliveQueue,
    deadline: Deadline,
    mut over: impl FnMut() -> ControlFlow<R, Deadline>,
) -> Result<R, CtrlError> {
    let keep_alive = KeepAlive::new(controller.options.keep_alive_ms(), queues.keep_alive_mode());
    let period = keep_alive.map_or(IDLE, |k| Msecs::new(k.period_ms()));
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
            // The holder of the scan lock waits for requests, also of users who do not poll.
            let polls = controller.scan_lock.is_held() && queues.poll();
            controller.wait(if polls { limit.min(POLL) } else { limit });
            continue;
        }
        if let Some(keep_alive) = keep_alive {
            if keep_alive.is_due(queues.take_traffic()) {
                let limit = Msecs::new(keep_alive.timeout_ms());
                let thread = controller.thread_sender(queues.admin());
                thread.keep_alive(Deadline::after(limit).min(deadline))?;
            }
        }
        next = Deadline::after(period);
    }
}

/// As [`serve_until`], without a deadline.
pub(super) fn serve<R>(
    controller: &Controller,
    queues: &impl KeepAliveQueue,
    over: impl FnMut() -> ControlFlow<R, Deadline>,
) -> Result<R, CtrlError> {
    serve_until(controller, queues, Deadline::NEVER, over)
}
