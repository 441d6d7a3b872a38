// SPDX-License-Identifier: GPL-2.0

//! Following a discovery log: the connection is kept, and the log is read again whenever the target
//! says that it changed.
//!
//! What changes while there is no connection nobody tells, so the log is read each time that one
//! is made. It is made again whenever it is lost, and however long that takes: only the socket
//! that asked, or a target for which there is no use in that, ends it.

use super::{
    super::{aen::AenHandler, association, serve, setup},
    log::STAGE,
    Discovery, DiscoveryResult, Log,
};
use crate::{ctrl_error::CtrlError, disk::Queue};
use core::{
    convert::Infallible,
    ops::ControlFlow, //
};
use kernel::{
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    },
};
use nvme_proto::{format::async_event::AsyncEvent, policy::backoff::Backoff};
use rrdma::{
    errno, random,
    rdma::cm::Connected,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// How long after a change the log is read. Changes come in bursts, and the last of them may be
/// that the target closes the port and ends the connection: Linux's does not survive a look at the
/// log in between.
const SETTLE: Msecs = Msecs::new(200);

/// Follows the log of a persistent discovery.
pub(super) struct LogFollower<'a> {
    discovery: &'a Discovery,
}

impl<'a> LogFollower<'a> {
    /// Follows the log of `discovery`.
    pub(super) fn new(discovery: &'a Discovery) -> Self {
        Self { discovery }
    }

    /// Follows the log until that is not wanted any more, or of no use, and answers why. Pauses
    /// between attempts to connect are up to `longest`. Sleeps.
    pub(super) fn run(&self, longest: Msecs) -> CtrlError {
        let controller = &*self.discovery.controller;
        let (mut aer, mut attempts) = (AenHandler::new(), 0_u32);
        loop {
            let limit = Deadline::after(controller.settings().connect_timeout);
            let queue = setup::connect_watched(controller, limit);
            let began = Instant::<Monotonic>::now();
            let failure = match queue {
                Ok(queue) => self.follow_on(queue, &mut aer, limit),
                Err(failure) => failure,
            };
            controller.reset_connection();
            if controller.is_over(&failure) || failure.error == errno::EOPNOTSUPP {
                return failure;
            }
            // Who hangs up as soon as he is connected is not asked at once each time.
            if began.elapsed().as_millis() > longest.get().into() {
                attempts = 0;
            }
            let pause = Backoff::new(longest.get()).pause_ms(attempts, random::number());
            attempts = attempts.saturating_add(1);
            let next = Deadline::after(Msecs::new(pause));
            self.discovery
                .update(DiscoveryResult::Failed(failure, Some(next)));
            while next.left() > Msecs::new(0) && !self.discovery.is_cancelled() {
                controller.wait(next.left());
            }
        }
    }

    /// The same with one connection, by which the log is to be read for the first time until
    /// `limit`.
    #[inline(never)]
    fn follow_on(
        &self,
        queue: Connected<Queue>,
        aer: &mut AenHandler,
        limit: Deadline,
    ) -> CtrlError {
        aer.begin(true);
        let Err(failure) = self.read_on(&queue, aer, limit);
        association::end_admin(&queue);
        failure
    }

    /// Reads the log, and again whenever it changes.
    fn read_on(
        &self,
        queue: &Connected<Queue>,
        aer: &mut AenHandler,
        limit: Deadline,
    ) -> Result<Infallible, CtrlError> {
        let controller = &*self.discovery.controller;
        let mut deadline = limit;
        loop {
            let log = Log::read(&controller.admin(queue, deadline))?;
            self.discovery.update(DiscoveryResult::Read(log));
            self.await_change(queue, aer)?;
            deadline = Deadline::after(controller.settings().connect_timeout);
        }
    }

    /// Keeps the connection alive until the target says that the log changed.
    fn await_change(
        &self,
        queue: &Connected<Queue>,
        aer: &mut AenHandler,
    ) -> Result<(), CtrlError> {
        let controller = &*self.discovery.controller;
        let mut due = Deadline::NEVER;
        serve::serve(controller, queue, || {
            if self.discovery.is_cancelled() {
                return ControlFlow::Break(Err(CtrlError::cancelled(STAGE)));
            }
            let next = aer.poll(controller, queue.queue_pair(), |event| {
                if event == AsyncEvent::DiscoveryChanged {
                    due = due.min(Deadline::after(SETTLE));
                }
            });
            if !aer.is_open() {
                let why = format_args!("the target tells of no more changes");
                return ControlFlow::Break(Err(CtrlError::target(STAGE, why)));
            }
            match due.left() > Msecs::new(0) {
                true => ControlFlow::Continue(next.min(due)),
                false => ControlFlow::Break(Ok(())),
            }
        })?
    }
}
