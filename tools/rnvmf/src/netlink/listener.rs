// SPDX-License-Identifier: GPL-2.0

//! Waits for notifications and stop signals.

use super::codec::decode;
use super::family::{is_removed, NLCTRL, NLCTRL_NOTIFY};
use super::message::{split, Message};
use crate::error::Error;
use crate::model::discovery::DiscoveryReply;
use crate::model::event::{Change, DiscoveryEvent, Event, WaitResult};
use crate::signal::StopSignals;
use crate::uapi::{ctrl, discovery, ns, Command};
use netlink_packet_core::NetlinkPayload;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::time::Instant;

/// Receives notifications and stop signals.
pub(super) struct Listener {
    socket: netlink_sys::Socket,
    signals: StopSignals,
    /// Received notifications that `wait` has not returned.
    queue: VecDeque<WaitResult>,
    /// The kernel dropped notifications, which `wait` has not reported.
    overrun: bool,
}

impl Listener {
    /// Joins the multicast group. Notifications are queued from now on.
    pub(super) fn start(
        socket: netlink_sys::Socket,
        group: u32,
        signals: StopSignals,
    ) -> Result<Self, Error> {
        let join = || -> io::Result<()> {
            socket.set_non_blocking(true)?;
            // Only nlctrl reports the removal of the family and its group.
            socket.add_membership(NLCTRL_NOTIFY)?;
            socket.add_membership(group)
        };
        join().map_err(|error| Error::from(error).context("netlink multicast group"))?;
        Ok(Self {
            socket,
            signals,
            queue: VecDeque::new(),
            overrun: false,
        })
    }

    /// Waits for the next notification or stop signal. A signal precedes queued notifications.
    pub(super) fn wait(&mut self, deadline: Option<Instant>) -> Result<WaitResult, Error> {
        loop {
            if self.signals.take() {
                return Ok(WaitResult::Interrupted);
            }
            if let Some(event) = self.queue.pop_front() {
                return Ok(event);
            }
            match self.socket.recv_from_full() {
                Ok((datagram, _)) => {
                    for message in split(&datagram)? {
                        if let NetlinkPayload::InnerMessage(message) = message.payload {
                            self.queue.extend(event(&message)?);
                        }
                    }
                }
                // The kernel drops more notifications until the socket is empty, without another
                // error. So the loss is reported when the socket is empty: state that is read
                // from then on is complete.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => self.overrun = true,
                Err(error) if error.kind() != ErrorKind::WouldBlock => {
                    return Err(Error::from(error).context("netlink events"));
                }
                Err(_) if std::mem::take(&mut self.overrun) => return Ok(WaitResult::EventsLost),
                Err(_) if !self.is_ready_by(deadline)? => return Ok(WaitResult::Deadline),
                Err(_) => (),
            }
        }
    }

    /// Waits for the socket or a signal. Returns `false` if the deadline passes first.
    fn is_ready_by(&self, deadline: Option<Instant>) -> io::Result<bool> {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        // A duration that is too long for the type is no limit.
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let on_read = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = [self.socket.as_fd(), self.signals.wakeup.as_fd()].map(on_read);
        match poll(&mut fds, timeout.as_ref()) {
            Err(Errno::INTR) => Ok(true),
            ready => Ok(ready? > 0),
        }
    }
}

/// Decodes a notification; `None` if this program does not know it.
fn event(message: &Message) -> Result<Option<WaitResult>, Error> {
    if message.family == NLCTRL {
        return if is_removed(message) {
            Err(Error::unloaded())
        } else {
            Ok(None)
        };
    }
    let from = &message.attributes;
    let controller = |change| Ok(Event::Controller(change, decode(from, ctrl::ATTRIBUTES)?));
    let namespace = |change| Ok(Event::Namespace(change, decode(from, ns::ATTRIBUTES)?));
    let event = match Command::from_raw(message.command) {
        Some(Command::CtrlAddNtf) => controller(Change::Added),
        Some(Command::CtrlChangeNtf) => controller(Change::Changed),
        Some(Command::CtrlDelNtf) => controller(Change::Removed),
        Some(Command::NsAddNtf) => namespace(Change::Added),
        Some(Command::NsChangeNtf) => namespace(Change::Changed),
        Some(Command::NsDelNtf) => namespace(Change::Removed),
        Some(Command::DiscoverNtf) => {
            let reply: DiscoveryReply = decode(from, discovery::ATTRIBUTES)?;
            return Ok(Some(WaitResult::Discovery(DiscoveryEvent {
                id: reply.discovery_id,
                error: reply.log().err().map(Box::new),
            })));
        }
        _ => return Ok(None),
    };
    event.map(|event| Some(WaitResult::Event(event)))
}

#[cfg(test)]
mod tests;
