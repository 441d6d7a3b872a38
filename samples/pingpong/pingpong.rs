// SPDX-License-Identifier: GPL-2.0

//! The ping-pong of `ibv_rc_pingpong`, `ibv_uc_pingpong` and `ibv_ud_pingpong`, generic over the
//! transport service.
//!
//! The two ends exchange their addresses over TCP. Then a message goes back and forth a number of
//! times. The client starts. Each end sends the next message when it has received one and its own
//! last one has completed.
//!
//! - [`engine`]: exchanges the messages.
//! - [`qp_setup`]: creates the queue pair and its completion queue.
//! - [`settings`]: module parameters, named after the options of the programs.

#[path = "engine/engine.rs"]
pub(crate) mod engine;
mod qp_setup;
pub(crate) mod settings;

use crate::common::{
    exchange,
    failure::{
        Failure,
        Step, //
    },
    formats::handshake::PingpongDest,
    peer::Peer,
    requirement::DeviceRequirement,
    task::{
        SampleTask,
        Summary, //
    },
};
use engine::{
    qp_ctx::QpCtx,
    run::{
        Outcome,
        RoundResult, //
    },
    MessageProtocol,
    Route, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        Instant,
        Monotonic, //
    }, //
};
use qp_setup::QpSetup;
use rrdma::{
    rdma::{
        device::Port,
        qp::{
            Init,
            Psn,
            Reset,
            Rts,
            TransitionError, //
        },
    },
    sync::Msecs,
};
use settings::Settings;

/// A transport service, and how its queue pairs are connected.
pub(crate) trait Transport: MessageProtocol {
    /// Capability that the device must have.
    const REQUIREMENT: DeviceRequirement;

    /// Checks limits of the service.
    fn check(_settings: &Settings, _port: Port<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Moves the queue pair to INIT, on `port`.
    fn initialise(
        reset: Reset<QpCtx<Self>>,
        port: Port<'_>,
    ) -> Result<Init<QpCtx<Self>>, TransitionError>;

    /// Connects the queue pair with the peer.
    fn connect(
        init: Init<QpCtx<Self>>,
        peer: Peer<'_>,
        psn: Psn,
    ) -> Result<Rts<QpCtx<Self>>, TransitionError>;
}

/// Time to keep the queue pair when all messages are exchanged. If the last acknowledgement was
/// lost, the peer retries its message, and needs another acknowledgement.
const LINGER: Msecs = Msecs::new(300);

/// Runs the ping-pong; this is the task of the sample.
pub(crate) fn run<T: Transport>(task: &Arc<SampleTask>) -> Result<Summary, Failure> {
    let settings = Settings::get()?;
    let device = task.device(&settings.device)?;
    T::REQUIREMENT.check(&device)?;
    settings.check(&device)?;
    let port = device.port(settings.ib_port).ok_or(ENODEV).step("port")?;
    let source = port.gid(settings.gid_index).step("GID")?;
    T::check(&settings, port)?;
    let QpSetup {
        pd,
        engine,
        init,
        mut queue,
    } = QpSetup::<T>::new(task, &settings, &device, port)?;
    let psn = Psn::random();
    let mine = exchange::local_dest(port, &source, init.number().get(), psn.get())?;
    let mut ready = None;
    let mut route = None;
    let connect = |theirs: &[PingpongDest]| {
        if let [theirs] = theirs {
            let mut peer = Peer::told(theirs, settings.mtu, port, source.clone())?;
            peer.path = peer.path.with_service_level(settings.service_level);
            route = Some(T::Route::find(&pd, &peer).step("route")?);
            ready = Some(T::connect(init, peer, psn).step("connection")?);
        }
        Ok(())
    };
    let mut theirs = [mine];
    let server = &settings.server;
    exchange::exchange(task, server, settings.port, &[mine], &mut theirs, connect)?;
    let ready = ready.ok_or(EINVAL).step("connection")?;
    let pairs = [ready.queue_pair().clone()];
    for (pair, route) in pairs.iter().zip(route) {
        pair.context().set_route(route);
    }
    let start = Instant::<Monotonic>::now();
    let round = engine.run(task, &mut queue, &pairs, settings.patience, || Ok(()))?;
    let summary = summary::<T>(&settings, &round, start.elapsed().as_micros_ceil())?;
    // Nothing completes this wait: it ends by its timeout, or when the task is stopped.
    let _ = task.wait_for("end", LINGER, || None::<()>);
    Ok(summary)
}

/// Returns the summary of a ping-pong that took `time` microseconds.
fn summary<T: Transport>(
    settings: &Settings,
    round: &RoundResult,
    time: i64,
) -> Result<Summary, Failure> {
    let (iters, size, received) = (settings.iters, settings.size, round.received);
    let lost = iters.saturating_sub(received);
    let end = match (round.outcome, lost, round.resent) {
        (Outcome::Silent, _, _) if !T::RESENDS || received == 0 => {
            return Err(Failure::new(
                "peer",
                fmt!("timed out after {received} of {iters} messages"),
            ));
        }
        (Outcome::Unacknowledged, 0, 0) => Summary::new(fmt!(", last message not acknowledged")),
        (_, 0, 0) => Summary::new(fmt!("")),
        (_, lost, resent) => Summary::new(fmt!(", {lost} lost, {resent} resent")),
    };
    Ok(Summary::new(fmt!(
        "{received} of {iters} messages of {size} bytes in {time} us{end}"
    )))
}
