// SPDX-License-Identifier: GPL-2.0

//! Events of the kernel and requests to stop, in one queue.
//!
//! Two threads wait, one for the socket and one for signals, so that the verb waits for both and
//! for its deadline at one place.

use super::family::{is_family_removed, NLCTRL, NLCTRL_NOTIFY};
use super::message::{Message, MessageBody, GENERIC_HEADER};
use super::socket::Socket;
use crate::error::{Error, Status};
use crate::event::WaitResult;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Most events that wait for a verb. More wait in the socket, and when that is full the kernel drops
/// them and says so.
const QUEUE: usize = 256;

/// The last signal that asked the program to stop; none is 0.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// The signal that asked the program to stop, if one did, whether a verb waited for something then or
/// not.
pub(crate) fn stop_signal() -> Option<i32> {
    signal_in(&ASKED)
}

fn signal_in(last: &AtomicI32) -> Option<i32> {
    Some(last.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
}

/// An item of the queue.
enum QueueItem {
    /// Something was heard.
    Event(Result<WaitResult, Error>),
    /// The user asks to stop: who waits looks at that.
    Stop,
}

/// The queue.
pub(super) struct Listener {
    queue: Receiver<QueueItem>,
    /// The user asks to stop.
    stop: Arc<AtomicBool>,
}

impl Listener {
    /// Start to queue events of a multicast group, and SIGINT and SIGTERM.
    pub(super) fn start(mut socket: Socket, group: u32) -> Result<Self, Error> {
        // Who is in a group is not told that it is gone; there is another group for that.
        socket.join(NLCTRL_NOTIFY)?;
        socket.join(group)?;
        let signals = Signals::new([SIGINT, SIGTERM])
            .map_err(|error| Error::from(error).context("signal handlers"))?;
        let (sender, queue) = sync_channel(QUEUE);
        let stop = Arc::new(AtomicBool::new(false));
        let (waker, asked) = (sender.clone(), stop.clone());
        thread::spawn(move || wait_for_signals(signals, &ASKED, &asked, &waker));
        thread::spawn(move || wait_for_events(socket, &sender));
        Ok(Self { queue, stop })
    }

    /// The next notice; what the user asks comes before what was heard.
    pub(super) fn next(&self, deadline: Option<Instant>) -> Result<WaitResult, Error> {
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
                Ok(QueueItem::Event(heard)) => heard,
                Ok(QueueItem::Stop) => continue,
                Err(RecvTimeoutError::Timeout) => Ok(WaitResult::Deadline),
                Err(RecvTimeoutError::Disconnected) => {
                    Err(Error::failed("no more events can come"))
                }
            };
        }
    }
}

/// A signal asks the verb to stop; if it has not come to that before the next one, because it waits
/// for something else, that one ends the program.
fn wait_for_signals(
    mut signals: Signals,
    last: &AtomicI32,
    asked: &AtomicBool,
    queue: &SyncSender<QueueItem>,
) {
    for signal in signals.forever() {
        last.store(signal, Ordering::Relaxed);
        // Who sees that he is asked sees the signal.
        if asked.swap(true, Ordering::AcqRel) {
            // It does not return for these two.
            let _ = emulate_default_handler(signal);
        }
        // If the queue is full, nobody waits for it.
        let _ = queue.try_send(QueueItem::Stop);
    }
}

/// Ends when the socket does, or when nobody reads the queue any more: the program is at its end.
fn wait_for_events(mut socket: Socket, queue: &SyncSender<QueueItem>) {
    let mut lost = false;
    loop {
        let received = match lost {
            false => socket.receive(GENERIC_HEADER),
            true => socket.receive_now(GENERIC_HEADER),
        };
        let heard = match received {
            Ok(Ok(messages)) => messages.into_iter().filter_map(event).collect(),
            Ok(Err(malformed)) => vec![Err(malformed)],
            // Until the socket is empty the kernel drops whatever comes, and does not say so again:
            // who looked at the state now would miss that.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                lost = true;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                lost = false;
                vec![Ok(WaitResult::Lost)]
            }
            Err(error) => vec![Err(Error::from(error).context("netlink events"))],
        };
        let broken = heard.iter().any(Result::is_err);
        let told = heard
            .into_iter()
            .try_for_each(|each| queue.send(QueueItem::Event(each)));
        if broken || told.is_err() {
            return;
        }
    }
}

/// The event in a message, if there is one that this program knows.
fn event(message: Message) -> Option<Result<WaitResult, Error>> {
    let MessageBody::Payload(data) = message.body else {
        return None;
    };
    let command = *data.header.first()?;
    let attributes = &data.attributes;
    match is_family_removed(message.kind, command, attributes) {
        Ok(true) => Some(Err(Error::new(
            Status::NoModule,
            "the rnvmf module was unloaded",
        ))),
        // Of other families.
        Ok(false) if message.kind == NLCTRL => None,
        Ok(false) => WaitResult::read(command, attributes)
            .map_err(Error::from)
            .transpose(),
        Err(malformed) => Some(Err(malformed.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::attributes::tests::{number, text};
    use super::super::message::split;
    use super::super::message::tests::{data, data_of};
    use super::super::request::Request;
    use super::*;
    use crate::uapi::{discovery, Command};
    use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_USERSOCK};
    use netlink_sys::SocketAddr;
    use signal_hook::consts::SIGUSR1;
    use signal_hook::low_level::raise;

    #[test]
    fn who_was_asked_to_stop_knows_by_which_signal() {
        let signals = Signals::new([SIGUSR1]).unwrap();
        let handle = signals.handle();
        let (queue, heard) = sync_channel(1);
        let (last, asked) = (AtomicI32::new(0), AtomicBool::new(false));
        assert_eq!(signal_in(&last), None);
        raise(SIGUSR1).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| wait_for_signals(signals, &last, &asked, &queue));
            assert!(matches!(heard.recv(), Ok(QueueItem::Stop)));
            handle.close();
        });
        assert_eq!(signal_in(&last), Some(SIGUSR1));
    }

    /// What is heard in a message of the family of families.
    fn told(command: i32, family: &str) -> Option<Result<WaitResult, Error>> {
        let name = text(libc::CTRL_ATTR_FAMILY_NAME as u16, family);
        let bytes = data_of(libc::GENL_ID_CTRL, 0, command as u8, &[name]);
        event(split(&bytes, GENERIC_HEADER).unwrap().remove(0))
    }

    #[test]
    fn the_end_of_the_family_is_the_end_of_events() {
        let end = told(libc::CTRL_CMD_DELFAMILY, "rnvmf")
            .unwrap()
            .unwrap_err();
        assert_eq!(end.status, Status::NoModule);
        assert_eq!(end.message, "the rnvmf module was unloaded");
        assert!(told(libc::CTRL_CMD_DELFAMILY, "nl80211").is_none());
        // A command of it may have the number of one of ours.
        for command in 0..=u8::MAX {
            let command = i32::from(command);
            assert!(command == libc::CTRL_CMD_DELFAMILY || told(command, "rnvmf").is_none());
        }
    }

    #[test]
    fn families_have_the_group_that_is_joined() {
        let mut socket = Socket::open(NETLINK_GENERIC).unwrap();
        let name = libc::CTRL_ATTR_FAMILY_NAME as u16;
        let request = Request::raw(libc::CTRL_CMD_GETFAMILY as u8, 2, |_| None);
        let replies = socket.ask(NLCTRL, &request.with(name, "nlctrl"));
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
        socket.join(GROUP).unwrap();
        let sender = netlink_sys::Socket::new(NETLINK_USERSOCK).unwrap();
        for id in 0..EVENTS {
            let attributes = [number(discovery::DISCOVERY_ID, id)];
            let event = data(0, Command::DiscoverNtf as u8, &attributes);
            let group = SocketAddr::new(0, 1 << (GROUP - 1));
            // The group gets it, and the kernel, to whom it is sent too, does not listen.
            let refused = sender.send_to(&event, &group, 0).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        }
        let (queue, heard) = sync_channel(EVENTS as usize + 1);
        thread::spawn(move || wait_for_events(socket, &queue));
        let mut next = 0;
        loop {
            match heard.recv().unwrap() {
                QueueItem::Event(Ok(WaitResult::Discovery(id, None))) => assert_eq!(id, next),
                QueueItem::Event(Ok(WaitResult::Lost)) => break,
                _ => panic!("that was not told"),
            }
            next += 1;
        }
        assert!(0 < next && next < EVENTS, "{next} of {EVENTS}");
    }
}
