// SPDX-License-Identifier: GPL-2.0

//! The ping-pong of libibverbs' programs, such as `ibv_rc_pingpong`, generic over the transport
//! service.
//!
//! The two ends exchange the addresses of their queue pairs over TCP. Then a message goes back and
//! forth on each queue pair a number of times. The client starts. Each end sends the next message
//! when it has received one and its own last one has completed.
//!
//! - [`engine`]: exchanges the messages.
//! - [`qp_setup`]: creates the queue pairs and their completion queue.
//! - [`settings`]: module parameters, named after the options of the programs.

#[path = "engine/engine.rs"]
pub(crate) mod engine;
mod qp_setup;
pub(crate) mod settings;

use crate::common::{
    exchange,
    formats::handshake::PingpongDest,
    peer::Peer,
    requirement::DeviceRequirement,
    step_error::{
        Step,
        StepError, //
    },
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
    PingPong,
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
        pd::ProtectionDomain,
        qp::{
            Init,
            Psn,
            QpInitAttr,
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

    /// The queue pairs' receives; `()` if each queue pair has its own.
    type Receives: Receives<Self>;

    /// Checks limits of the service.
    fn check(_settings: &Settings, _port: Port<'_>) -> Result<(), StepError> {
        Ok(())
    }

    /// Moves a queue pair to INIT, on `port`.
    fn initialise(
        reset: Reset<QpCtx<Self>>,
        port: Port<'_>,
    ) -> Result<Init<QpCtx<Self>>, TransitionError>;

    /// Connects a queue pair with the peer.
    fn connect(
        init: Init<QpCtx<Self>>,
        peer: Peer<'_>,
        psn: Psn,
    ) -> Result<Rts<QpCtx<Self>>, TransitionError>;
}

/// The receives of the queue pairs.
pub(crate) trait Receives<T: Transport>: Sized {
    /// Number of addresses that the program exchanges. Addresses without a queue pair are zero.
    const DESTS: usize;

    /// Returns the number of queue pairs, and of the receives that they share.
    fn counts(settings: &Settings) -> (u32, u32);

    /// Creates the receives that the queue pairs share. May sleep.
    fn new(
        engine: &Arc<PingPong>,
        pd: &Arc<ProtectionDomain>,
        settings: &Settings,
    ) -> Result<Self, StepError>;

    /// Makes a queue pair use these receives.
    fn attach(&self, parts: QpInitAttr<QpCtx<T>>) -> QpInitAttr<QpCtx<T>>;

    /// Posts used receives again when the shared ones run short. May sleep.
    fn refill(&mut self) -> Result<(), StepError>;

    /// Returns what the summary of the ping-pong says about the receives. May sleep.
    fn report(&self) -> Result<Summary, StepError>;
}

/// Each queue pair has its own receives; its completion handler posts them again.
impl<T: Transport> Receives<T> for () {
    const DESTS: usize = 1;

    fn counts(_: &Settings) -> (u32, u32) {
        (1, 0)
    }

    fn new(_: &Arc<PingPong>, _: &Arc<ProtectionDomain>, _: &Settings) -> Result<(), StepError> {
        Ok(())
    }

    fn attach(&self, parts: QpInitAttr<QpCtx<T>>) -> QpInitAttr<QpCtx<T>> {
        parts
    }

    fn refill(&mut self) -> Result<(), StepError> {
        Ok(())
    }

    fn report(&self) -> Result<Summary, StepError> {
        Ok(Summary::new(fmt!("")))
    }
}

/// No limit: only the end of the task ends the wait.
const EVER: Msecs = Msecs::new(u32::MAX);

/// Runs the ping-pong; this is the task of the sample.
///
/// The queue pairs remain until the task is stopped. If the last acknowledgement was lost, the peer
/// retries its message, and needs another acknowledgement.
pub(crate) fn run<T: Transport>(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let settings = Settings::get()?;
    let device = task.device(&settings.device)?;
    T::REQUIREMENT.check(&device)?;
    let port = device.port(settings.ib_port).ok_or(ENODEV).step("port")?;
    let source = port.gid(settings.gid_index).step("GID")?;
    T::check(&settings, port)?;
    let QpSetup {
        pd,
        engine,
        mut receives,
        inits,
        mut queue,
    } = QpSetup::<T>::new(task, &settings, &device, port)?;
    let none = PingpongDest::default();
    let mut mine = KVec::from_elem(none, T::Receives::DESTS, GFP_KERNEL).step("handshake")?;
    let mut theirs = KVec::from_elem(none, T::Receives::DESTS, GFP_KERNEL).step("handshake")?;
    for (mine, (init, psn)) in mine.iter_mut().zip(&inits) {
        *mine = exchange::local_dest(port, &source, init.number().get(), psn.get())?;
    }
    let mut pairs = KVec::new();
    let connect = |theirs: &[PingpongDest]| {
        for ((init, psn), theirs) in inits.into_iter().zip(theirs) {
            if theirs.qpn == 0 {
                let count = pairs.len();
                return Err(StepError::new("peer", fmt!("has only {count} queue pairs")));
            }
            let mut peer = Peer::told(theirs, settings.mtu, port, source.clone())?;
            peer.path = settings.route(peer.path);
            let route = T::Route::find(&pd, &peer).step("route")?;
            let pair = T::connect(init, peer, psn).step("connection")?;
            pair.queue_pair().context().set_route(route);
            pairs.push(pair, GFP_KERNEL).step("connection")?;
        }
        Ok(())
    };
    let server = &settings.server;
    exchange::exchange(task, server, settings.port, &mine, &mut theirs, connect)?;
    let start = Instant::<Monotonic>::now();
    let round = engine.run(task, &mut queue, &pairs, settings.patience, || {
        receives.refill()
    })?;
    let time = start.elapsed().as_micros_ceil();
    task.report(Ok(summary::<T>(&settings, &round, time, &receives)?));
    task.wait_for("end", EVER, || None)
}

/// Returns the summary of a ping-pong that took `time` microseconds.
fn summary<T: Transport>(
    settings: &Settings,
    round: &RoundResult,
    time: i64,
    receives: &T::Receives,
) -> Result<Summary, StepError> {
    let (iters, size, received) = (settings.iters, settings.size, round.received);
    let lost = iters.saturating_sub(received);
    let end = match (round.outcome, lost, round.resent) {
        (Outcome::Silent, _, _) if !T::RESENDS || received == 0 => {
            return Err(StepError::new(
                "peer",
                fmt!("timed out after {received} of {iters} messages"),
            ));
        }
        (Outcome::Unacknowledged, 0, 0) => Summary::new(fmt!(", last message not acknowledged")),
        (_, 0, 0) => Summary::new(fmt!("")),
        (_, lost, resent) => Summary::new(fmt!(", {lost} lost, {resent} resent")),
    };
    let report = receives.report()?;
    Ok(Summary::new(fmt!(
        "{received} of {iters} messages of {size} bytes in {time} us{report}{end}"
    )))
}
