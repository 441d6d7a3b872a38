// SPDX-License-Identifier: GPL-2.0

use super::super::codec::find;
use super::super::family::GET_FAMILY;
use super::super::message::tests::{data, data_of, nest, number, text};
use super::super::socket::{open, Socket};
use super::*;
use crate::error::Status;
use crate::uapi::error;
use netlink_packet_core::{parse_u32, NLM_F_ACK};
use netlink_sys::protocols::NETLINK_USERSOCK;
use netlink_sys::SocketAddr;
use serde_json::json;
use std::time::Duration;

/// Returns the notification in a message.
fn read(bytes: &[u8]) -> Result<Option<WaitResult>, Error> {
    match split(bytes).unwrap().remove(0).payload {
        NetlinkPayload::InnerMessage(message) => event(&message),
        other => panic!("{other:?}"),
    }
}

/// Returns the notification in a message of nlctrl.
fn nlctrl_event(command: i32, family: &str) -> Result<Option<WaitResult>, Error> {
    let name = text(libc::CTRL_ATTR_FAMILY_NAME as u16, family);
    read(&data_of(libc::GENL_ID_CTRL, 0, command as u8, &[name]))
}

#[test]
fn removal_of_the_family_ends_notifications() {
    let end = nlctrl_event(libc::CTRL_CMD_DELFAMILY, "rnvmf").unwrap_err();
    assert_eq!(end.status, Status::NoModule);
    assert_eq!(end.message, "the rnvmf module was unloaded");
    let other = nlctrl_event(libc::CTRL_CMD_DELFAMILY, "nl80211");
    assert!(other.unwrap().is_none());
    // Commands of nlctrl and of the family have the same numbers.
    for command in (0..=255).filter(|&command| command != libc::CTRL_CMD_DELFAMILY) {
        assert!(nlctrl_event(command, "rnvmf").unwrap().is_none());
    }
}

#[test]
fn reads_a_namespace_event() {
    let message = [
        number(ns::CTRL_ID, 0),
        number(ns::NSID, 2),
        text(ns::NAME, "rnvmf0n2"),
        number(ns::SIZE, 4096),
        number(ns::BLOCK_SIZE, 4096),
    ];
    match read(&data(0, Command::NsDelNtf as u8, &message)).unwrap() {
        Some(WaitResult::Event(Event::Namespace(Change::Removed, namespace))) => {
            assert_eq!(namespace.nsid, 2);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn reads_the_result_of_a_discovery() {
    let read = |more: &[Vec<u8>]| {
        let message = [&[number(discovery::DISCOVERY_ID, 7)], more].concat();
        match read(&data(0, Command::DiscoverNtf as u8, &message)).unwrap() {
            Some(WaitResult::Discovery(DiscoveryEvent { id: 7, error })) => error,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read(&[]), None);
    let error = [
        number(error::STAGE, 13),
        number(error::ERRNO, libc::ENOLINK as u32),
        text(error::MESSAGE, "connection lost"),
    ];
    let soon = number(discovery::NEXT_ATTEMPT, 250);
    let failed = read(&[nest(discovery::ERROR, &error), soon]).unwrap();
    assert_eq!(failed.message, "connection lost");
    assert_eq!(failed.ctrl_error.unwrap().next_attempt, Some(250));
}

#[test]
fn messages_that_are_no_known_notifications_are_ignored() {
    for command in [Command::CtrlGet as u8, 200] {
        assert!(read(&data(0, command, &[])).unwrap().is_none());
    }
}

#[test]
fn a_malformed_notification_is_an_error() {
    for command in [Command::CtrlAddNtf, Command::NsAddNtf, Command::DiscoverNtf] {
        let error = read(&data(0, command as u8, &[])).unwrap_err();
        assert!(error
            .message
            .starts_with("the kernel sent a malformed message: "));
    }
}

#[test]
fn nlctrl_has_the_group_that_is_joined() {
    let mut socket = Socket::open(NLCTRL).unwrap();
    let name = json!({"family_name": "nlctrl"});
    let replies = socket.exchange(&GET_FAMILY, NLM_F_ACK, &name).unwrap();
    let groups = find(&replies[0], libc::CTRL_ATTR_MCAST_GROUPS as u16).unwrap();
    let group = find(&groups, 1).unwrap();
    let id = find(&group, libc::CTRL_ATTR_MCAST_GRP_ID as u16).unwrap();
    assert_eq!(parse_u32(&id).unwrap(), NLCTRL_NOTIFY);
}

// A group of a protocol for user space, which anyone may send to.
const GROUP: u32 = 31;
const EVENTS: u32 = 1000;

#[test]
fn an_overrun_is_reported_after_the_queued_notifications() {
    let signals = StopSignals::catch().unwrap();
    let socket = open(NETLINK_USERSOCK).unwrap();
    let mut listener = Listener::start(socket, GROUP, signals).unwrap();
    let sender = netlink_sys::Socket::new(NETLINK_USERSOCK).unwrap();
    for id in 0..EVENTS {
        let attributes = [number(discovery::DISCOVERY_ID, id)];
        let event = data(0, Command::DiscoverNtf as u8, &attributes);
        let group = SocketAddr::new(0, 1 << (GROUP - 1));
        // The group receives it; the kernel, a second receiver, does not listen.
        let refused = sender.send_to(&event, &group, 0).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }
    let mut next = 0;
    loop {
        match listener.wait(None).unwrap() {
            WaitResult::Discovery(DiscoveryEvent { id, error: None }) => assert_eq!(id, next),
            WaitResult::EventsLost => break,
            other => panic!("{other:?}"),
        }
        next += 1;
    }
    assert!(0 < next && next < EVENTS, "{next} of {EVENTS}");
    let deadline = Instant::now() + Duration::from_millis(10);
    assert!(matches!(
        listener.wait(Some(deadline)),
        Ok(WaitResult::Deadline)
    ));
    assert!(Instant::now() >= deadline);
}
