// SPDX-License-Identifier: GPL-2.0

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
        assert!(command == libc::CTRL_CMD_DELFAMILY || nlctrl_event(command, "rnvmf").is_none());
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
