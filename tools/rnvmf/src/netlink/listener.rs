// SPDX-License-Identifier: GPL-2.0

//! The queue of kernel events and stop signals.
//!
//! One thread waits for the socket and one for signals, so a verb waits for events, for a signal and
//! for its deadline in one place.

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

/// Asks the verb to stop at each signal. A second signal ends the program if the verb has not seen the
/// first, as when it waits for something else.
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
            // The kernel drops messages until the socket is empty, and does not report that again. A
            // look at the state before then would miss what is dropped after it.
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
mod tests {
    use super::super::message::split;
    use super::super::message::tests::{data, data_of};
    use super::super::request::Request;
    use super::*;
    use crate::error::Status;
    use crate::model::event::DiscoveryEvent;
    use crate::nlattr::tests::{number, text};
    use crate::uapi::{discovery, Command};
    use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_USERSOCK};
    use netlink_sys::SocketAddr;
    use signal_hook::consts::SIGUSR1;
    use signal_hook::low_level::raise;

    #[test]
    fn who_was_asked_to_stop_knows_by_which_signal() {
        let signals = Signals::new([SIGUSR1]).unwrap();
        let handle = signals.handle();
        let (queue, received) = sync_channel(1);
        let (last, stop) = (StopSignal::new(), AtomicBool::new(false));
        assert_eq!(last.get(), None);
        raise(SIGUSR1).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| wait_for_signals(signals, &last, &stop, &queue));
            assert!(matches!(received.recv(), Ok(QueueItem::Stop)));
            handle.close();
        });
        assert_eq!(last.get(), Some(SIGUSR1));
    }

    /// The event in a message of nlctrl.
    fn nlctrl_event(command: i32, family: &str) -> Option<Result<WaitResult, Error>> {
        let name = text(libc::CTRL_ATTR_FAMILY_NAME as u16, family);
        let bytes = data_of(libc::GENL_ID_CTRL, 0, command as u8, &[name]);
        event(split(&bytes, GENERIC_HEADER).unwrap().remove(0))
    }

    #[test]
    fn the_end_of_the_family_is_the_end_of_events() {
        let end = nlctrl_event(libc::CTRL_CMD_DELFAMILY, "rnvmf")
            .unwrap()
            .unwrap_err();
        assert_eq!(end.status, Status::NoModule);
        assert_eq!(end.message, "the rnvmf module was unloaded");
        assert!(nlctrl_event(libc::CTRL_CMD_DELFAMILY, "nl80211").is_none());
        // A command of it may have the number of one of ours.
        for command in 0..=u8::MAX {
            let command = i32::from(command);
            assert!(
                command == libc::CTRL_CMD_DELFAMILY || nlctrl_event(command, "rnvmf").is_none()
            );
        }
    }

    #[test]
    fn families_have_the_group_that_is_joined() {
        let mut socket = Socket::open(NETLINK_GENERIC).unwrap();
        let name = libc::CTRL_ATTR_FAMILY_NAME as u16;
        let request = Request::generic(libc::CTRL_CMD_GETFAMILY as u8, 2, |_| None);
        let replies = socket.request(NLCTRL, &request.with(name, "nlctrl"));
        let replies = replies.map_err(Error::from).unwrap();
        let groups = libc::CTRL_ATTR_MCAST_GROUPS as u16;
        let groups = replies[0].attributes.nest(groups).unwrap().unwrap();
        let group = groups.entries().unwrap().remove(0);
        let id = group.u32(libc::CTRL_ATTR_MCAST_GRP_ID as u16);
        assert_eq!(id, Ok(Some(NLCTRL_NOTIFY)));
    }

    // Of a protocol on which anyone may tell a group something.
    const GROUP: u32 = 31;
    const EVENTS: u32 = 1000;

    #[test]
    fn a_loss_is_told_when_all_that_is_queued_was() {
        let mut socket = Socket::open(NETLINK_USERSOCK).unwrap();
        socket.add_membership(GROUP).unwrap();
        let sender = netlink_sys::Socket::new(NETLINK_USERSOCK).unwrap();
        for id in 0..EVENTS {
            let attributes = [number(discovery::DISCOVERY_ID, id)];
            let event = data(0, Command::DiscoverNtf as u8, &attributes);
            let group = SocketAddr::new(0, 1 << (GROUP - 1));
            // The group gets it, and the kernel, to whom it is sent too, does not listen.
            let refused = sender.send_to(&event, &group, 0).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        }
        let (queue, received) = sync_channel(EVENTS as usize + 1);
        thread::spawn(move || wait_for_events(socket, &queue));
        let mut next = 0;
        loop {
            match received.recv().unwrap() {
                QueueItem::Event(Ok(WaitResult::Discovery(DiscoveryEvent { id, error: None }))) => {
                    assert_eq!(id, next)
                }
                QueueItem::Event(Ok(WaitResult::EventsLost)) => break,
                _ => panic!("that was not told"),
            }
            next += 1;
        }
        assert!(0 < next && next < EVENTS, "{next} of {EVENTS}");
    }
}
