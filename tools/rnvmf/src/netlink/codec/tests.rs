// SPDX-License-Identifier: GPL-2.0

use super::super::message::tests::{bytes, nest, number, text};
use super::*;
use crate::model::options::{ConnectArgs, CtrlArgs, ReconnectOptions, Target};
use crate::uapi::{ctrl, ns, refusal, stats, CONNECT_DO, DISCOVER_DO};
use serde_json::json;

fn decoded(set: &[Attribute], list: &[Vec<u8>]) -> Value {
    decode(&list.concat(), set).unwrap()
}

fn error(set: &[Attribute], list: &[Vec<u8>]) -> String {
    decode::<Value>(&list.concat(), set).unwrap_err().message
}

#[test]
fn every_type_is_decoded() {
    let list = [
        number(ctrl::CTRL_ID, 7),
        bytes(ctrl::TRSVCID, &4420u16.to_ne_bytes()),
        bytes(ctrl::TOS, &[9]),
        text(ctrl::NAME, "rnvmf0"),
        bytes(ctrl::HOSTID, &[0xa5; 16]),
        bytes(ctrl::PERSISTENT, &[]),
        number(1000, 1),
    ];
    let hostid = "a5".repeat(16);
    assert_eq!(
        decoded(ctrl::ATTRIBUTES, &list),
        json!({
            "ctrl_id": 7,
            "trsvcid": 4420,
            "tos": 9,
            "name": "rnvmf0",
            "hostid": hostid,
            "persistent": true,
        })
    );
    let errno = number(crate::uapi::error::ERRNO, -5i32 as u32);
    assert_eq!(
        decoded(ctrl::ATTRIBUTES, &[nest(ctrl::ERROR, &[errno])]),
        json!({"error": {"errno": -5}})
    );
}

#[test]
fn uint_takes_four_or_eight_bytes() {
    let long = bytes(stats::WRITES, &(1u64 << 40).to_ne_bytes());
    assert_eq!(
        decoded(stats::ATTRIBUTES, &[number(stats::READS, 7), long]),
        json!({"reads": 7, "writes": 1u64 << 40})
    );
    let short = bytes(stats::READS, &[0; 2]);
    assert!(error(stats::ATTRIBUTES, &[short]).contains("reads"));
}

#[test]
fn nests_may_occur_several_times() {
    let rejection = |nsid| nest(ctrl::NO_DISK, &[number(refusal::NSID, nsid)]);
    assert_eq!(
        decoded(ctrl::ATTRIBUTES, &[rejection(7), rejection(2)]),
        json!({"no_disk": [{"nsid": 7}, {"nsid": 2}]})
    );
}

#[test]
fn text_cannot_drive_a_terminal() {
    let name = text(ctrl::NAME, "a\x1b[2Jb");
    let read = decoded(ctrl::ATTRIBUTES, &[name]);
    assert_eq!(read, json!({"name": "a\u{fffd}[2Jb"}));
}

#[test]
fn lengths_must_fit() {
    let number_of = |length| bytes(ctrl::CTRL_ID, &[0; 8][..length]);
    for length in [0, 3, 5, 8] {
        assert!(error(ctrl::ATTRIBUTES, &[number_of(length)]).contains("ctrl-id"));
    }
    assert!(error(ns::ATTRIBUTES, &[bytes(ns::NGUID, &[0; 15])]).contains("nguid"));
    for broken in [&[3, 0, 1, 0][..], &[8, 0, 1, 0, 1, 2, 3], &[5, 0, 1]] {
        error(ctrl::ATTRIBUTES, &[broken.to_vec()]);
    }
    // The last attribute need not be padded.
    assert_eq!(
        decoded(ctrl::ATTRIBUTES, &[vec![5, 0, 14, 0, 9]]),
        json!({"tos": 9})
    );
}

#[test]
fn truncated_attributes_do_not_panic() {
    let rejection = [number(refusal::NSID, 7), text(refusal::REASON, "no")];
    let whole = [text(ctrl::NAME, "rnvmf0"), nest(ctrl::NO_DISK, &rejection)].concat();
    for length in 0..whole.len() {
        let _ = decode::<Value>(&whole[..length], ctrl::ATTRIBUTES);
        let mut nest = whole[12..12 + length.min(whole.len() - 12)].to_vec();
        if let Some(header) = nest.first_chunk_mut() {
            *header = (length as u16).to_ne_bytes();
        }
        let _ = decode::<Value>(&nest, ctrl::ATTRIBUTES);
    }
}

/// Returns a target with every option.
fn target() -> Target {
    Target {
        traddr: "10.0.0.9".into(),
        trsvcid: 4420,
        subsysnqn: "nqn.x".into(),
        hostnqn: "nqn.host".into(),
        hostid: Uuid::from_bytes([0xa5; 16]),
        host_traddr: Some("10.0.0.1".into()),
        connect_timeout: 1000,
        tos: Some(9),
    }
}

/// Encodes arguments and decodes the result.
fn round_trip(args: &Value, attributes: &[Attribute]) -> Value {
    decoded(ctrl::ATTRIBUTES, &[encode(args, attributes).unwrap()])
}

#[test]
fn a_connect_sends_every_option() {
    let args = ConnectArgs {
        target: target(),
        ctrl: CtrlArgs {
            nr_io_queues: Some(1),
            nr_write_queues: Some(2),
            nr_poll_queues: Some(3),
            queue_size: Some(128),
            keep_alive_tmo: Some(5),
            disable_sqflow: true,
            reconnect: ReconnectOptions {
                reconnect_delay: Some(6),
                ctrl_loss_tmo: Some(7),
                fast_io_fail_tmo: Some(u32::MAX),
                cqt: Some(8),
            },
        },
        duplicate_connect: true,
    };
    let mut args = json!(args);
    let encoded = round_trip(&args, CONNECT_DO.attributes);
    args["hostid"] = "a5".repeat(16).into();
    assert_eq!(encoded, args);
}

#[test]
fn a_discovery_sends_every_option() {
    let mut args = json!(target());
    args["persistent"] = true.into();
    args["keep_alive_tmo"] = 5.into();
    args["reconnect_delay"] = 6.into();
    let encoded = round_trip(&args, DISCOVER_DO.attributes);
    args["hostid"] = "a5".repeat(16).into();
    assert_eq!(encoded, args);
}

#[test]
fn absent_options_are_not_sent() {
    let args = json!({"traddr": "10.0.0.9", "tos": null, "disable_sqflow": false});
    let encoded = round_trip(&args, CONNECT_DO.attributes);
    assert_eq!(encoded, json!({"traddr": "10.0.0.9"}));
}

#[test]
fn values_must_fit() {
    for args in [
        json!({"tos": 256}),
        json!({"trsvcid": "x"}),
        json!({"hostid": "x"}),
    ] {
        assert!(encode(&args, CONNECT_DO.attributes).is_err(), "{args}");
    }
}
