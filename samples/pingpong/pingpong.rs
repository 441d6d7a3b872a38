// SPDX-License-Identifier: GPL-2.0

//! The ping-pong that `ibv_rc_pingpong`, `ibv_uc_pingpong` and `ibv_ud_pingpong` play,
//! whichever service carries it.
//!
//! The two ends tell each other over TCP where they are, and then a message goes
//! there and back so many times. The client begins; each answers when it has got a
//! message and its own last one is off its hands.
//!
//! - [`rally`]: the messages, from the first to the last.
//! - [`table`]: the objects that they are played on.
//! - [`settings`]: the parameters, the ones of the programs.

pub(crate) mod rally;
pub(crate) mod settings;
mod table;

use crate::common::{
    exchange,
    failure::{
        Failure,
        Step, //
    },
    formats::handshake::End,
    job::{
        Job,
        Line, //
    },
    need::Need,
    peer::Peer,
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        Instant,
        Monotonic, //
    }, //
};
use rally::Player;
use rrdma::{
    rdma::{
        device::Port,
        pd::ProtectionDomain,
        qp::{
            Connected,
            Init,
            Psn,
            Reset,
            Rts,
            Service,
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
use table::Table;

/// A service, and how a queue pair of it is connected.
pub(crate) trait Transport: Send + Sync + Sized + 'static {
    /// The service.
    type Service: Service;

    /// What a message has to be told on its way, because the queue pair is not.
    type Route: Route<Self>;

    /// What the device must be able to do.
    const NEED: Need;

    /// Bytes of a header ahead of each message that is received.
    const HEADER: usize = 0;

    /// The program has a mark in each page of a message; otherwise all bytes are alike.
    const MARKS_PAGES: bool = true;

    /// Whether what is not acknowledged in some time has to be sent again by us,
    /// because the service does not.
    const SERVES_AGAIN: bool;

    /// Checks what the service limits.
    fn check(_settings: &Settings, _port: Port<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Puts the queue pair on a port.
    fn initialise(
        reset: Reset<Player<Self>>,
        port: Port<'_>,
    ) -> Result<Init<Player<Self>>, TransitionError>;

    /// Connects it with the peer.
    fn connect(
        init: Init<Player<Self>>,
        peer: Peer<'_>,
        psn: Psn,
    ) -> Result<Rts<Player<Self>>, TransitionError>;
}

/// The way of a message to the peer.
pub(crate) trait Route<T: Transport>: Sized + Send {
    /// Finds it.
    fn find(pd: &Arc<ProtectionDomain>, peer: &Peer<'_>) -> Result<Self>;

    /// Sends a message.
    fn send<'a>(&'a self, message: Sge<'a>, chain: &mut Chain<'a, '_, Player<T>>) -> Result;
}

/// A queue pair that is connected knows it.
impl<T: Transport<Service: Connected>> Route<T> for () {
    fn find(_: &Arc<ProtectionDomain>, _: &Peer<'_>) -> Result {
        Ok(())
    }

    fn send<'a>(&'a self, message: Sge<'a>, chain: &mut Chain<'a, '_, Player<T>>) -> Result {
        chain.send([message])
    }
}

/// How long the queue pair stays when all is done: if the peer has not heard our last
/// acknowledgement, it sends again and has to be answered.
const LINGER: Msecs = Msecs::new(300);

/// Plays. This is the job of the sample.
pub(crate) fn play<T: Transport>(job: &Arc<Job>) -> Result<Line, Failure> {
    let settings = Settings::get()?;
    let device = job.device(&settings.device)?;
    T::NEED.of(&device)?;
    settings.check(&device)?;
    let port = device.port(settings.ib_port).ok_or(ENODEV).step("port")?;
    let source = port.gid(settings.gid_index).step("GID")?;
    T::check(&settings, port)?;
    let Table {
        pd,
        init,
        mut queue,
    } = Table::<T>::set(job, &settings, &device, port)?;
    let psn = Psn::random();
    let mine = exchange::end(port, &source, init.number().get(), psn.get())?;
    let mut ready = None;
    let mut route = None;
    let connect = |theirs: &[End]| {
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
    exchange::exchange(job, server, settings.port, &[mine], &mut theirs, connect)?;
    let ready = ready.ok_or(EINVAL).step("connection")?;
    ready.queue_pair().context().set_route(route);
    let start = Instant::<Monotonic>::now();
    let score = rally::play(job, &settings, &mut queue, ready.queue_pair())?;
    let time = start.elapsed().as_micros_ceil();
    // Nothing is to come, so this fails when it is time, or when the job is stopped.
    let _ = job.wait_for("end", LINGER, || None::<()>);
    Ok(score.line(&settings, time))
}
