// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::error::tests::rejected;
use crate::model::controller::tests::{connecting, live, recovering, rejecting};
use crate::model::namespace::tests::disk;

fn dead() -> Controller {
    Controller {
        device: "rnvmf1".into(),
        id: 1,
        state: crate::model::controller::State(5),
        error: Some(rejected()),
        ..connecting()
    }
}

#[test]
fn a_table_of_all() {
    assert_eq!(
        normal(&[live(), dead()]),
        include_str!("../golden/show.txt")
    );
    assert_eq!(normal(&[]), "");
}

#[test]
fn all_about_one() {
    assert_eq!(
        detail(&live(), &[disk()]),
        include_str!("../golden/show-live.txt")
    );
    // The disk belongs to another controller.
    assert_eq!(
        detail(&dead(), &[disk()]),
        include_str!("../golden/show-dead.txt")
    );
}

#[test]
fn what_has_no_disk_is_told() {
    assert_eq!(
        detail(&rejecting(), &[disk()]),
        include_str!("../golden/show-refusing.txt")
    );
    assert_eq!(
        json(&[rejecting()], &[]),
        include_str!("../golden/show-refusing.json")
    );
}

#[test]
fn attempts_are_counted() {
    let text = detail(&recovering(), &[]);
    assert!(
        text.contains("attempts to connect  3, next in 2 s, given up in 598 s\n"),
        "{text}"
    );
    let under_way = Controller {
        next_attempt: None,
        give_up: None,
        ..recovering()
    };
    let text = detail(&under_way, &[]);
    assert!(
        text.contains("attempts to connect  3, the last one under way\n"),
        "{text}"
    );
}

#[test]
fn an_error_of_the_past_is_no_fault() {
    for (age, when) in [
        (Some(0), "0 s ago, "),
        (Some(119_999), "119 s ago, "),
        (Some(120_000), "2 min ago, "),
        (Some(7_200_000), "2 h ago, "),
        (None, ""),
    ] {
        let error = CtrlError {
            age,
            over: true,
            ..rejected()
        };
        let controller = Controller {
            error: Some(error),
            ..live()
        };
        let text = detail(&controller, &[]);
        let why = rejected().message;
        let line = format!("\nlast error        {when}recovered since: {why}\n");
        assert!(text.contains(&line), "{text}");
        assert!(
            !text.contains("\nerror ") && !text.contains("failed stage"),
            "{text}"
        );
        // Programs compare the error with the state.
        let document = json(&[controller], &[]);
        assert!(
            document.contains(&why) && !document.contains("\"age\""),
            "{document}"
        );
    }
}

#[test]
fn json_is_stable() {
    assert_eq!(
        json(&[live(), dead()], &[disk()]),
        include_str!("../golden/show.json")
    );
}

#[test]
fn every_member_is_documented() {
    let guide = include_str!("../../../../../Documentation/reference.rst");
    let text = json(&[rejecting(), recovering(), dead()], &[disk()]);
    let mut open = vec![serde_json::from_str::<serde_json::Value>(&text).unwrap()];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Array(list) => open.extend(list),
            serde_json::Value::Object(members) => {
                for (name, value) in members {
                    assert!(guide.contains(&format!("``{name}``")), "{name}");
                    open.push(value);
                }
            }
            _ => (),
        }
    }
}
