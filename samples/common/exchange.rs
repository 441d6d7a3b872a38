// SPDX-License-Identifier: GPL-2.0

//! Exchange of queue pair addresses over TCP.
//!
//! The protocol is that of the ping-pong programs of libibverbs; the messages are those of
//! [`handshake`](super::formats::handshake).
//!
//! ```text
//! client                              server
//!    ── a PingpongDest for each queue pair ─▶   makes its queue pairs ready to send
//!    ◀─ a PingpongDest for each queue pair ──
//!    ── "done" ─▶
//! makes its queue pairs ready to send
//! ```
//!
//! Both ends must have the same number of queue pairs.

use super::{
    formats::handshake::{
        PingpongDest,
        DEST_BYTES,
        DONE, //
    },
    step_error::{
        Step,
        StepError, //
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

/// Time limit from the TCP connection to the end of the exchange.
const LIMIT: Msecs = Msecs::from_secs(20);

/// No limit: clients may connect at any time.
const EVER: Msecs = Msecs::new(u32::MAX);

/// Name of the step in a [`StepError`].
const STEP: &str = "handshake";

/// Sends `mine` to the peer and stores the peer's addresses in `theirs`. Sleeps.
///
/// `server` is the address of the peer. If it is empty, this end is the server: it accepts one
/// client on `port`, and waits for it until the task is stopped.
///
/// `connect` gets the peer's addresses and makes the queue pairs ready to send. A server calls it
/// before it replies, a client at the end: so the client can send at once.
///
/// # Errors
///
/// The step is `server`, `connect`, `listen`, `accept` or `handshake`, or that of the closure
/// `connect`.
pub(crate) fn exchange(
    task: &SampleTask,
    server: &str,
    port: u16,
    mine: &[PingpongDest],
    theirs: &mut [PingpongDest],
    connect: impl FnOnce(&[PingpongDest]) -> Result<(), StepError>,
) -> Result<(), StepError> {
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
            return Err(StepError::new(STEP, fmt!("the peer did not send \"done\"")));
        }
        return Ok(());
    }
    let address = Address::parse(task.namespace(), server, port)
        .map_err(|_| StepError::new("server", fmt!("{server} is not an IP address")))?;
    let patience = WaitLimits::new(LIMIT, &cancelled);
    let stream = Stream::connect(task.namespace(), &address, task.wake().clone(), &patience);
    let stream = stream.step("connect")?;
    send(&stream, mine, &patience)?;
    receive(&stream, theirs, &patience)?;
    stream.write_all(DONE, &patience).step(STEP)?;
    drop(stream);
    connect(theirs)
}

/// Returns the address of a queue pair on `port`, with the GID `source`, to send to the peer.
pub(crate) fn local_dest(
    port: Port<'_>,
    source: &GidEntry<'_>,
    qpn: u32,
    psn: u32,
) -> Result<PingpongDest, StepError> {
    Ok(PingpongDest {
        lid: port.attributes().step("port")?.lid.try_into().step("LID")?,
        qpn,
        psn,
        gid: source.gid().bytes(),
    })
}

/// Waits for a client, over IPv6 or IPv4.
fn accept(task: &SampleTask, port: u16, cancelled: &dyn Fn() -> bool) -> Result<Stream, StepError> {
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

fn send(
    stream: &Stream,
    mine: &[PingpongDest],
    patience: &WaitLimits<'_>,
) -> Result<(), StepError> {
    for end in mine {
        stream.write_all(&end.encode(), patience).step(STEP)?;
    }
    Ok(())
}

fn receive(
    stream: &Stream,
    theirs: &mut [PingpongDest],
    patience: &WaitLimits<'_>,
) -> Result<(), StepError> {
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

/// Returns whether `end` is the address of a queue pair.
///
/// `srq_pingpong` always sends the largest possible number of addresses, and fills up with zeroes.
fn is_present(end: &PingpongDest) -> bool {
    *end != PingpongDest::default()
}
