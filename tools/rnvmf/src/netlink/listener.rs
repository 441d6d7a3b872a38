// SPDX-License-Identifier: GPL-2.0

//! The queue of kernel events and stop signals.
//!
//! One thread waits for the socket and one for signals, so a verb waits for events, for a signal
//! and for its deadline in one place.

use super::family::{is_family_removed, NLCTRL, NLCTRL_NOTIFY};
use super::message::{Message, MessageBody, GENERIC_HEADER};
use super::socket::{ReceiveError, Socket};
use crate::error::Error;
use crate::model::event::WaitResult;
use crate::signal::{StopSignal, STOP};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// The queue's length. More events wait in the socket; when that is full the kernel drops them and
/// reports `ENOBUFS`.
const QUEUE_LEN: usize = 256;

/// An item of the queue.
enum QueueItem {
    /// An event came, or no more can come.
    Event(Result<WaitResult, Error>),
    /// A signal came: wakes the verb, which looks at `stop`.
    Stop,
}

/// The queue.
pub(super) struct Listener {
    queue: Receiver<QueueItem>,
    /// A signal came that the verb has not seen.
    stop: Arc<AtomicBool>,
}

impl Listener {
    /// Starts to queue the events of a multicast group, SIGINT and SIGTERM.
    pub(super) fn start(mut socket: Socket, group: u32) -> Result<Self, Error> {
        // The members of a group are not told that it is gone; nlctrl's group is for that.
        socket.add_membership(NLCTRL_NOTIFY)?;
        socket.add_membership(group)?;
        let signals = Signals::new([SIGINT, SIGTERM])
            .map_err(|error| Error::from(error).context("signal handlers"))?;
        let (sender, queue) = sync_channel(QUEUE_LEN);
        let stop = Arc::new(AtomicBool::new(false));
        let (waker, stop_seen) = (sender.clone(), stop.clone());
        thread::spawn(move || wait_for_signals(signals, &STOP, &stop_seen, &waker));
        thread::spawn(move || wait_for_events(socket, &sender));
        Ok(Self { queue, stop })
    }

    /// Waits for the next event or signal; a signal comes before queued events.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Result<WaitResult, Error> {
        loop {
            if self.stop.swap(false, Ordering::Acquire) {
                return Ok(WaitResult::Interrupted);
            }
            let received = match deadline {
                Some(at) => {
                    let left = at.saturating_duration_since(Instant::now());
                    self.queue.recv_timeout(left)
                }
                None => self.queue.recv().map_err(RecvTimeoutError::from),
            };
            return match received {
                Ok(QueueItem::Event(result)) => result,
                Ok(QueueItem::Stop) => continue,
                Err(RecvTimeoutError::Timeout) => Ok(WaitResult::Deadline),
                Err(RecvTimeoutError::Disconnected) => {
                    Err(Error::failed("no more events can come"))
                }
            };
        }
    }
}

/// Asks the verb to stop at each signal. A second signal ends the program if the verb has not seen
/// the first, as when it waits for something else.
fn wait_for_signals(
    mut signals: Signals,
    last: &StopSignal,
    stop: &AtomicBool,
    queue: &SyncSender<QueueItem>,
) {
    for signal in signals.forever() {
        // Before `stop`, so that a verb that sees `stop` sees the signal.
        last.record(signal);
        if stop.swap(true, Ordering::AcqRel) {
            // It does not return for these two.
            let _ = emulate_default_handler(signal);
        }
        // A full queue wakes the verb anyway.
        let _ = queue.try_send(QueueItem::Stop);
    }
}

/// Queues events until the socket fails or the queue's reader is gone.
fn wait_for_events(mut socket: Socket, queue: &SyncSender<QueueItem>) {
    let mut overrun = false;
    loop {
        let received = if overrun {
            socket.receive_now(GENERIC_HEADER)
        } else {
            socket.receive(GENERIC_HEADER)
        };
        let results = match received {
            Ok(messages) => messages.into_iter().filter_map(event).collect(),
            Err(ReceiveError::Malformed(error)) => vec![Err(error)],
            // The kernel drops messages until the socket is empty, and does not report that again.
            // A look at the state before then would miss what is dropped after it.
            Err(ReceiveError::Socket(error)) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                overrun = true;
                continue;
            }
            Err(ReceiveError::Socket(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                overrun = false;
                vec![Ok(WaitResult::EventsLost)]
            }
            Err(ReceiveError::Socket(error)) => {
                vec![Err(Error::from(error).context("netlink events"))]
            }
        };
        let failed = results.iter().any(Result::is_err);
        let sent = results
            .into_iter()
            .try_for_each(|each| queue.send(QueueItem::Event(each)));
        if failed || sent.is_err() {
            return;
        }
    }
}

/// Returns the event in a message; `None` if this program does not know it.
fn event(message: Message) -> Option<Result<WaitResult, Error>> {
    let MessageBody::Payload(payload) = &message.body else {
        return None;
    };
    let command = *payload.header.first()?;
    let attributes = &payload.attributes;
    match is_family_removed(message.kind, command, attributes) {
        Ok(true) => Some(Err(Error::unloaded())),
        // An event of another family.
        Ok(false) if message.kind == NLCTRL => None,
        Ok(false) => WaitResult::read(command, attributes)
            .map_err(Error::from)
            .transpose(),
        Err(malformed) => Some(Err(malformed.into())),
    }
}

#[cfg(test)]
mod tests;
