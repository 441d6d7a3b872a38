// SPDX-License-Identifier: GPL-2.0

//! The ping-pong that `ibv_rc_pingpong`, `ibv_uc_pingpong` and `ibv_ud_pingpong` play,
//! whichever service carries it.
//!
//! The two ends tell each other over TCP where they are, and then a message goes
//! there and back so many times. The client begins; each answers when it has got a
//! message and its own last one is off its hands.
//!
//! - [`engine`]: the messages, from the first to the last.
//! - [`qp_setup`]: the objects that they use.
//! - [`settings`]: the parameters, the ones of the programs.

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
use engine::QpCtx;
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
            Connected,
            Init,
            Psn,
            QpType,
            Reset,
            Rts,
            TransitionError, //
        },
        wr::{
            Chain,
            Sge, //
        },
    },
    sync::Msecs,
};
use settings::Settings;

/// A service, and how a queue pair of it is connected.
pub(crate) trait Transport: Send + Sync + Sized + 'static {
    /// The service.
    type QpType: QpType;

    /// What a message has to be told on its way, because the queue pair is not.
    type Route: Route<Self>;

    /// What the device must be able to do.
    const REQUIREMENT: DeviceRequirement;

    /// Bytes of a header ahead of each message that is received.
    const HEADER: usize = 0;

    /// The program has a mark in each page of a message; otherwise all bytes are alike.
    const MARKS_PAGES: bool = true;

    /// Whether what is not acknowledged in some time has to be sent again by us,
    /// because the service does not.
    const RESENDS: bool;

    /// Checks what the service limits.
    fn check(_settings: &Settings, _port: Port<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Puts the queue pair on a port.
    fn initialise(
        reset: Reset<QpCtx<Self>>,
        port: Port<'_>,
    ) -> Result<Init<QpCtx<Self>>, TransitionError>;

    /// Connects it with the peer.
    fn connect(
        init: Init<QpCtx<Self>>,
        peer: Peer<'_>,
        psn: Psn,
    ) -> Result<Rts<QpCtx<Self>>, TransitionError>;
}

/// The way of a message to the peer.
pub(crate) trait Route<T: Transport>: Sized + Send {
    /// Finds it.
    fn find(pd: &Arc<ProtectionDomain>, peer: &Peer<'_>) -> Result<Self>;

    /// Sends a message.
    fn send<'a>(&'a self, message: Sge<'a>, chain: &mut Chain<'a, '_, QpCtx<T>>) -> Result;
}

/// A queue pair that is connected knows it.
impl<T: Transport<QpType: Connected>> Route<T> for () {
    fn find(_: &Arc<ProtectionDomain>, _: &Peer<'_>) -> Result {
        Ok(())
    }

    fn send<'a>(&'a self, message: Sge<'a>, chain: &mut Chain<'a, '_, QpCtx<T>>) -> Result {
        chain.send([message])
    }
}

/// How long the queue pair stays when all is done: if the peer has not got our last
/// acknowledgement, it sends again and has to be answered.
const LINGER: Msecs = Msecs::new(300);

/// Runs the ping-pong. This is the task of the sample.
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
    ready.queue_pair().context().set_route(route);
    let start = Instant::<Monotonic>::now();
    let round = engine::run(task, &settings, &mut queue, ready.queue_pair())?;
    let time = start.elapsed().as_micros_ceil();
    // Nothing is to come, so this fails when it is time, or when the task is stopped.
    let _ = task.wait_for("end", LINGER, || None::<()>);
    Ok(round.line(&settings, time))
}
