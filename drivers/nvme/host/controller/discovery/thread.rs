// SPDX-License-Identifier: GPL-2.0

//! The thread of a discovery: reads the log once, or follows it.
//!
//! To follow a log, the thread stays connected and reads the log after each Discovery Log Page
//! Change event. The target reports no changes while it is not connected, so the log is also read
//! after each connect. Reconnect attempts have no limit. The discovery ends when it is cancelled,
//! when the target refuses permanently, or when it does not support the event or the log.

use super::{
    super::{aen::AenHandler, association, serve, setup, Controller},
    log::STAGE,
    Discovery, DiscoveryResult, Log,
};
use crate::ctrl_error::CtrlError;
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
use rnvmf_disk::Queue;
use rrdma::{
    errno, random,
    rdma::cm::Connected,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// Time-out of the shutdown of the discovery controller.
const SHUTDOWN: Msecs = Msecs::from_secs(5);

/// Delay from a change event to reading the log. Changes come in bursts. The last one may be that
/// the target closes the port and ends the connection; the Linux target may crash if the log is
/// read in between.
const SETTLE: Msecs = Msecs::new(200);

/// Runs a discovery until it ends. Sleeps.
pub(crate) fn run(discovery: &Discovery) {
    let controller = &*discovery.controller;
    let last = match discovery.persistent {
        Some(longest) => Err(follow(discovery, longest)),
        None => read_once(controller),
    };
    let last = last.map_err(|error| {
        if !controller.is_deleting() {
            return error;
        }
        let why = format_args!("the discovery was cancelled");
        CtrlError::new(error.stage, errno::ECANCELED, why)
    });
    controller.release_device();
    discovery.finish(last.into());
}

/// Connects, reads the log and disconnects.
#[inline(never)]
fn read_once(controller: &Controller) -> Result<Log, CtrlError> {
    let deadline = Deadline::after(controller.settings().connect_timeout);
    let (queue, configuration) = setup::connect_admin(controller, deadline)?;
    let log = Log::read(&controller.admin(&queue, deadline))?;
    let admin = controller.admin(&queue, Deadline::after(SHUTDOWN));
    // Best effort: the target sees the disconnect in any case.
    if let Err(error) = admin.shut_down(configuration) {
        pr_debug!("{}: shutdown: {}\n", controller.name, error.message());
    }
    Ok(log)
}

/// Follows the log until the discovery ends; returns why. Pauses between reconnect attempts are
/// `longest` at most. Sleeps.
fn follow(discovery: &Discovery, longest: Msecs) -> CtrlError {
    let controller = &*discovery.controller;
    let (mut aer, mut attempts) = (AenHandler::new(), 0_u32);
    loop {
        let limit = Deadline::after(controller.settings().connect_timeout);
        let queue = setup::connect_watched(controller, limit);
        let began = Instant::<Monotonic>::now();
        let failure = match queue {
            Ok(queue) => follow_on(discovery, queue, &mut aer, limit),
            Err(failure) => failure,
        };
        controller.release_connection();
        if failure.is_final() || controller.is_deleting() {
            return failure;
        }
        if failure.error == errno::EOPNOTSUPP {
            // An I/O controller has neither these events nor the log.
            return read_once(controller).err().unwrap_or(failure);
        }
        // The pauses stay long for a target that disconnects soon after each connect.
        if began.elapsed().as_millis() > longest.get().into() {
            attempts = 0;
        }
        let pause = Backoff::new(longest.get()).pause_ms(attempts, random::number());
        attempts = attempts.saturating_add(1);
        let next = Deadline::after(Msecs::new(pause));
        discovery.update(DiscoveryResult::Failed(failure, Some(next)));
        while next.left() > Msecs::new(0) && !discovery.is_cancelled() {
            controller.wait(next.left());
        }
    }
}

/// Follows the log on one connection until it ends; returns why. `limit` is the deadline for the
/// first read.
#[inline(never)]
fn follow_on(
    discovery: &Discovery,
    queue: Connected<Queue>,
    aer: &mut AenHandler,
    limit: Deadline,
) -> CtrlError {
    aer.begin(true);
    let Err(failure) = read_on(discovery, &queue, aer, limit);
    association::end_admin(&queue);
    failure
}

/// Reads the log, and again after each change.
fn read_on(
    discovery: &Discovery,
    queue: &Connected<Queue>,
    aer: &mut AenHandler,
    limit: Deadline,
) -> Result<Infallible, CtrlError> {
    let controller = &*discovery.controller;
    let mut deadline = limit;
    loop {
        let log = Log::read(&controller.admin(queue, deadline))?;
        discovery.update(DiscoveryResult::Read(log));
        await_change(discovery, queue, aer)?;
        deadline = Deadline::after(controller.settings().connect_timeout);
    }
}

/// Keeps the connection alive until the target reports a change of the log.
fn await_change(
    discovery: &Discovery,
    queue: &Connected<Queue>,
    aer: &mut AenHandler,
) -> Result<(), CtrlError> {
    let controller = &*discovery.controller;
    let mut due = Deadline::NEVER;
    let queues = serve::KeepAliveQueues::admin_only(queue);
    serve::serve(controller, queues, Deadline::NEVER, || {
        if discovery.is_cancelled() {
            return ControlFlow::Break(Err(CtrlError::cancelled(STAGE)));
        }
        let next = aer.poll(controller, queue.queue_pair(), |event| {
            if event == AsyncEvent::DiscoveryChanged {
                due = due.min(Deadline::after(SETTLE));
            }
        });
        if !aer.is_open() {
            let why = format_args!("the target reports no more log changes");
            return ControlFlow::Break(Err(CtrlError::target(STAGE, why)));
        }
        match due.left() > Msecs::new(0) {
            true => ControlFlow::Continue(next.min(due)),
            false => ControlFlow::Break(Ok(())),
        }
    })?
}
