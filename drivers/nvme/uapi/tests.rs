// SPDX-License-Identifier: GPL-2.0

use crate::{ctrl, discovery, error, ns, Command, CtrlState, CONNECT_DO, CTRL_GET_DUMP};

#[test]
fn entries_have_a_number_and_a_name() {
    assert_eq!(CtrlState::from_raw(2), Some(CtrlState::Live));
    assert_eq!(CtrlState::Live.name(), "live");
    assert_eq!(CtrlState::from_raw(6), None);
    assert_eq!(Command::from_raw(0), None);
}

#[test]
fn attributes_are_listed_by_number() {
    for set in [
        ctrl::ATTRIBUTES,
        discovery::ATTRIBUTES,
        error::ATTRIBUTES,
        ns::ATTRIBUTES,
    ] {
        assert!(set.iter().map(|each| each.id).eq(1..=set.len() as u16));
    }
    assert_eq!(ns::ATTRIBUTES[ns::NSID as usize - 1].name, "nsid");
}

#[test]
fn requests_name_their_attributes() {
    let connect = CONNECT_DO;
    assert!(connect.admin && connect.command == Command::Connect as u8);
    let first = connect.attributes[0];
    assert_eq!((first.id, first.name), (ctrl::TRADDR, "traddr"));
    assert_eq!(connect.set.len(), ctrl::ATTRIBUTES.len());
    assert!(CTRL_GET_DUMP.attributes.is_empty());
}
