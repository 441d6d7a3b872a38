// SPDX-License-Identifier: GPL-2.0

//! The exchange of both ends out of band, as the ping-pong programs of libibverbs do
//! it: over TCP, in the words of [`handshake`](super::formats::handshake).
//!
//! ```text
//! client                              server
//!    ── a PingpongDest for each queue pair ─▶   makes its queue pairs ready to send
//!    ◀─ a PingpongDest for each queue pair ──
//!    ── "done" ─▶
//! makes its queue pairs ready to send
//! ```
//!
//! As the programs do, each end has as many queue pairs as the other.

use super::{
    failure::{
        Failure,
        Step, //
    },
    formats::handshake::{
        PingpongDest,
        DEST_BYTES,
        DONE, //
    },
    task::SampleTask,
};
use kernel::prelude::*;
use rrdma::{
    errno::EAFNOSUPPORT,
    net::tcp::{
        self,
        Listener,
        Stream, //
    },
    rdma::{
        cm::Address,
        device::{
            GidEntry,
            Port, //
        },
    },
    sync::{
        Msecs,
        WaitLimits, //
    },
};

/// How long a peer may take from being connected to having said all.
const LIMIT: Msecs = Msecs::from_secs(20);

/// For a client, which may come when it likes.
const EVER: Msecs = Msecs::new(u32::MAX);

/// What a failed exchange is called.
const STEP: &str = "handshake";

/// Exchanges `mine` for as many ends of the peer's, which are left in `theirs`, and
/// has `connect` make the queue pairs ready when it is time. Sleeps.
///
/// The peer is the server at this address, or, if it is empty, the first client that
/// comes to that port. A server waits for it until the task is stopped.
///
/// # Errors
///
/// A failure of `listen`, `accept`, `connect` or `handshake`; or that of `connect`.
pub(crate) fn exchange(
    task: &SampleTask,
    server: &str,
    port: u16,
    mine: &[PingpongDest],
    theirs: &mut [PingpongDest],
    connect: impl FnOnce(&[PingpongDest]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for end in mine.iter().filter(|end| is_present(end)) {
        pr_info!("local address: {}\n", format_args!("{end}"));
    }
    let cancelled = || task.is_stopped();
    if server.is_empty() {
        let stream = accept(task, port, &cancelled)?;
        let patience = WaitLimits::new(LIMIT, &cancelled);
        receive(&stream, theirs, &patience)?;
        connect(theirs)?;
        send(&stream, mine, &patience)?;
        let mut done = [0; DONE.len()];
        stream.read_exact(&mut done, &patience).step(STEP)?;
        if done != *DONE {
            return Err(Failure::new(
                STEP,
                fmt!("the peer does not say that it is done"),
            ));
        }
        return Ok(());
    }
    let address = Address::parse(task.namespace(), server, port)
        .map_err(|_| Failure::new("server", fmt!("{server} is no address")))?;
    let patience = WaitLimits::new(LIMIT, &cancelled);
    let stream = Stream::connect(task.namespace(), &address, task.wake().clone(), &patience);
    let stream = stream.step("connect")?;
    send(&stream, mine, &patience)?;
    receive(&stream, theirs, &patience)?;
    stream.write_all(DONE, &patience).step(STEP)?;
    drop(stream);
    connect(theirs)
}

/// What the peer is to know of a queue pair on a port, with a GID of it.
pub(crate) fn local_dest(
    port: Port<'_>,
    source: &GidEntry<'_>,
    qpn: u32,
    psn: u32,
) -> Result<PingpongDest, Failure> {
    Ok(PingpongDest {
        lid: port.attributes().step("port")?.lid.try_into().step("LID")?,
        qpn,
        psn,
        gid: source.gid().bytes(),
    })
}

/// Waits for a client, of IPv6 or IPv4.
fn accept(task: &SampleTask, port: u16, cancelled: &dyn Fn() -> bool) -> Result<Stream, Failure> {
    let listen = |any: &str| {
        let address = Address::parse(task.namespace(), any, port).map_err(tcp::Error::Code)?;
        Listener::new(task.namespace(), &address, 1, task.wake().clone())
    };
    let listener = match listen("::") {
        Err(tcp::Error::Code(EAFNOSUPPORT)) => listen("0.0.0.0"),
        result => result,
    };
    let patience = WaitLimits::new(EVER, cancelled);
    listener.step("listen")?.accept(&patience).step("accept")
}

fn send(stream: &Stream, mine: &[PingpongDest], patience: &WaitLimits<'_>) -> Result<(), Failure> {
    for end in mine {
        stream.write_all(&end.encode(), patience).step(STEP)?;
    }
    Ok(())
}

fn receive(
    stream: &Stream,
    theirs: &mut [PingpongDest],
    patience: &WaitLimits<'_>,
) -> Result<(), Failure> {
    for end in theirs {
        let mut bytes = [0; DEST_BYTES];
        stream.read_exact(&mut bytes, patience).step(STEP)?;
        *end = PingpongDest::decode(&bytes).step(STEP)?;
        if is_present(end) {
            pr_info!("remote address: {}\n", format_args!("{end}"));
        }
    }
    Ok(())
}

/// Whether it is a queue pair's: a program that could have more tells of them, too, as
/// nothing but zeros.
fn is_present(end: &PingpongDest) -> bool {
    *end != PingpongDest::default()
}
