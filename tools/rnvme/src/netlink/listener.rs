// SPDX-License-Identifier: GPL-2.0

//! Events of the kernel and requests to stop, in one queue.
//!
//! Two threads wait, one for the socket and one for signals, so that the verb waits for both and
//! for its deadline at one place.

use super::message::{Body, Message, GENERIC_HEADER};
use super::socket::Socket;
use crate::error::Error;
use crate::event::Notice;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Instant;

type Item = Result<Notice, Error>;

/// The queue.
pub(super) struct Listener(Receiver<Item>);

impl Listener {
    /// Start to queue events of a multicast group, and SIGINT and SIGTERM.
    pub(super) fn start(mut socket: Socket, group: u32) -> Result<Self, Error> {
        socket.join(group)?;
        let signals = Signals::new([SIGINT, SIGTERM])
            .map_err(|error| Error::from(error).during("signal handlers"))?;
        let (sender, receiver) = channel();
        let interrupts = sender.clone();
        thread::spawn(move || wait_for_signals(signals, &interrupts));
        thread::spawn(move || wait_for_events(socket, &sender));
        Ok(Self(receiver))
    }

    /// The next notice.
    pub(super) fn next(&self, deadline: Option<Instant>) -> Item {
        let received = match deadline {
            Some(at) => self
                .0
                .recv_timeout(at.saturating_duration_since(Instant::now())),
            None => self.0.recv().map_err(RecvTimeoutError::from),
        };
        match received {
            Ok(item) => item,
            Err(RecvTimeoutError::Timeout) => Ok(Notice::Deadline),
            Err(RecvTimeoutError::Disconnected) => Err(Error::failed("no more events can come")),
        }
    }
}

// In both threads, a queue that nobody reads any more is the end of the program.

fn wait_for_signals(mut signals: Signals, queue: &Sender<Item>) {
    for _ in signals.forever() {
        if queue.send(Ok(Notice::Interrupted)).is_err() {
            return;
        }
    }
}

fn wait_for_events(mut socket: Socket, queue: &Sender<Item>) {
    loop {
        let items = receive(&mut socket);
        let broken = items.iter().any(Result::is_err);
        for item in items {
            if queue.send(item).is_err() {
                return;
            }
        }
        if broken {
            return;
        }
    }
}

/// The notices of one datagram; an error is the last that comes.
fn receive(socket: &mut Socket) -> Vec<Item> {
    let messages = match socket.receive(GENERIC_HEADER) {
        Ok(Ok(messages)) => messages,
        Ok(Err(malformed)) => return vec![Err(malformed)],
        Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => return vec![Ok(Notice::Lost)],
        Err(error) => return vec![Err(Error::from(error).during("netlink events"))],
    };
    messages.into_iter().filter_map(event).collect()
}

/// The event in a message, if there is one that this program knows.
fn event(message: Message) -> Option<Item> {
    let Body::Data(data) = message.body else {
        return None;
    };
    let command = *data.header.first()?;
    Notice::read(command, &data.attributes)
        .map_err(Error::from)
        .transpose()
}
