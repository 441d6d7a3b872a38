// SPDX-License-Identifier: GPL-2.0

//! Waits of the controller's thread, during which it keeps the connection alive.

use super::{
    Controller,
    IDLE, //
};
use crate::ctrl_error::CtrlError;
use core::ops::ControlFlow;
use nvme_proto::{
    format::identify::KeepAliveMode,
    policy::keep_alive::KeepAlive, //
};
use rnvmf_disk::Queue;
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
#[derive(Clone, Copy)]
pub(super) struct KeepAliveQueues<'a> {
    /// The queue that takes keep-alive commands.
    pub(super) admin: &'a Connected<Queue>,
    pub(super) io: &'a [Connected<Queue>],
    /// Which commands restart the target's keep-alive timer.
    pub(super) keep_alive_mode: KeepAliveMode,
}

impl<'a> KeepAliveQueues<'a> {
    /// Returns an admin queue without I/O queues.
    pub(super) fn admin_only(admin: &'a Connected<Queue>) -> Self {
        Self {
            admin,
            io: &[],
            keep_alive_mode: KeepAliveMode::CommandBased,
        }
    }

    /// Whether any I/O command completed that was sent since the last call. The target restarted its
    /// keep-alive timer when it received it. A slow command that was sent before does not count.
    fn take_traffic(self) -> bool {
        let mut any = false;
        for queue in self.io {
            any |= queue.queue_pair().context().take_traffic();
        }
        any
    }

    /// Polls the polled queues, because their users may sleep with requests in flight. Returns
    /// whether there are such queues.
    fn poll(self) -> bool {
        let mut any = false;
        for queue in self.io {
            let queue = queue.queue_pair().context();
            queue.poll();
            any |= queue.is_polled();
        }
        any
    }
}

/// Keeps the connection of `queues` alive until `is_done` breaks, or the connection is lost. Calls
/// `is_done` at each wake-up, and at the time that its last call returned. The response to a
/// keep-alive may take until `deadline`. Sleeps.
pub(super) fn serve<R>(
    controller: &Controller,
    queues: KeepAliveQueues<'_>,
    deadline: Deadline,
    mut is_done: impl FnMut() -> ControlFlow<R, Deadline>,
) -> Result<R, CtrlError> {
    let mut keep_alive = KeepAliveLoop::new(controller, queues, deadline);
    loop {
        keep_alive.check()?;
        match is_done() {
            ControlFlow::Break(answer) => return Ok(answer),
            ControlFlow::Continue(moment) => keep_alive.wait_or_keep_alive(moment)?,
        }
    }
}

/// The part of [`serve`] between the calls of its closure. Not generic, so compiled once.
struct KeepAliveLoop<'a> {
    controller: &'a Controller,
    queues: KeepAliveQueues<'a>,
    deadline: Deadline,
    policy: Option<KeepAlive>,
    period: Msecs,
    /// When a keep-alive may be due.
    next: Deadline,
}

impl<'a> KeepAliveLoop<'a> {
    #[inline(never)]
    fn new(controller: &'a Controller, queues: KeepAliveQueues<'a>, deadline: Deadline) -> Self {
        let policy = KeepAlive::new(controller.options.keep_alive_ms(), queues.keep_alive_mode);
        let period = policy.map_or(IDLE, |policy| Msecs::new(policy.period_ms()));
        Self {
            controller,
            queues,
            deadline,
            policy,
            period,
            next: Deadline::after(period).min(controller.keep_alive.due()),
        }
    }

    /// Fails if the connection is lost.
    #[inline(never)]
    fn check(&self) -> Result<(), CtrlError> {
        match self.controller.conn_error() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Waits until `moment`, or until the thread is woken. Sends a keep-alive instead if one is due.
    #[inline(never)]
    fn wait_or_keep_alive(&mut self, moment: Deadline) -> Result<(), CtrlError> {
        let (controller, queues) = (self.controller, self.queues);
        let left = self.next.left();
        if left > Msecs::new(0) {
            let limit = left.min(moment.left());
            // The holder of the scan lock may wait for polled requests whose users do not poll.
            let polls = controller.scan_lock.is_held() && queues.poll();
            controller.wait(if polls { limit.min(POLL) } else { limit });
            return Ok(());
        }
        // The target's timer restarts when it receives the command, not when the response arrives.
        self.next = Deadline::after(self.period);
        if (self.policy).is_some_and(|policy| policy.is_due(queues.take_traffic())) {
            let admin = controller.admin(queues.admin, self.deadline);
            admin.keep_alive(&controller.keep_alive)?;
        }
        Ok(())
    }
}
