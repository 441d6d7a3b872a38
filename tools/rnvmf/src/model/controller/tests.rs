// SPDX-License-Identifier: GPL-2.0

use super::*;
use serde_json::{from_value, json};

/// A live controller with all attributes.
pub(crate) fn live() -> Controller {
    Controller {
        device: "rnvmf0".into(),
        id: 0,
        state: State(CtrlState::Live as u32),
        transport: "rdma",
        traddr: "10.0.0.9".into(),
        trsvcid: 4420,
        subsysnqn: "nqn.2014-08.org.example:disk".into(),
        host_traddr: Some("10.0.0.1".into()),
        hostnqn: Some("nqn.2014-08.org.example:host".into()),
        hostid: "00112233-4455-6677-8899-aabbccddeeff".parse().ok(),
        cntlid: Some(1),
        rdma_device: Some("rxe0".into()),
        nr_io_queues: Some(2),
        nr_write_queues: Some(1),
        nr_poll_queues: Some(0),
        queue_size: Some(128),
        keep_alive_tmo: Some(5),
        connect_timeout: Some(10_000),
        reconnect_delay: Some(10),
        ctrl_loss_tmo: Some(LossTmo(600)),
        fast_io_fail_tmo: Some(LossTmo(LOSS_TMO_NEVER)),
        cqt: None,
        held_writes: None,
        held_writes_due: None,
        attempts: None,
        next_attempt: None,
        give_up: None,
        nr_resets: Some(2),
        nr_reconnects: Some(1),
        tos: Some(0),
        model: Some("Linux".into()),
        serial: Some("0123456789".into()),
        firmware: Some("7.3.4".into()),
        nr_namespaces: Some(1),
        nr_refused_namespaces: Some(0),
        refused_namespaces: Vec::new(),
        max_transfer: Some(1_048_576),
        inline_size: Some(16_384),
        scan: Some(3),
        error: None,
    }
}

/// The same controller while it connects.
pub(crate) fn connecting() -> Controller {
    Controller {
        state: State(CtrlState::Connecting as u32),
        host_traddr: None,
        cntlid: None,
        rdma_device: None,
        nr_io_queues: None,
        nr_write_queues: None,
        nr_poll_queues: None,
        queue_size: None,
        nr_resets: Some(0),
        nr_reconnects: Some(0),
        model: None,
        serial: None,
        firmware: None,
        nr_namespaces: None,
        nr_refused_namespaces: None,
        max_transfer: None,
        inline_size: None,
        scan: None,
        ..live()
    }
}

/// The same controller with namespaces without disks. The kernel does not name one of them.
pub(crate) fn rejecting() -> Controller {
    let rejection = |nsid, reason: &str| NsRejection {
        nsid,
        reason: reason.into(),
    };
    Controller {
        nr_refused_namespaces: Some(3),
        refused_namespaces: vec![
            rejection(2, "8 bytes of metadata per block are not supported"),
            rejection(7, "not attached to the controller"),
        ],
        ..live()
    }
}

/// The same controller after a connection loss.
pub(crate) fn recovering() -> Controller {
    Controller {
        state: State(CtrlState::Connecting as u32),
        error: Some(crate::error::tests::rejected()),
        attempts: Some(3),
        next_attempt: Some(1900),
        give_up: Some(597_001),
        ..live()
    }
}

#[test]
fn reads_everything() {
    let message = json!({
        "ctrl_id": 0,
        "name": "rnvmf0",
        "state": 2,
        "traddr": "10.0.0.9",
        "trsvcid": 4420,
        "host_traddr": "10.0.0.1",
        "subsysnqn": "nqn.2014-08.org.example:disk",
        "hostnqn": "nqn.2014-08.org.example:host",
        "hostid": "00112233445566778899aabbccddeeff",
        "nr_io_queues": 2,
        "nr_write_queues": 1,
        "nr_poll_queues": 0,
        "queue_size": 128,
        "keep_alive_tmo": 5,
        "connect_timeout": 10_000,
        "reconnect_delay": 10,
        "ctrl_loss_tmo": 600,
        "fast_io_fail_tmo": LOSS_TMO_NEVER,
        "tos": 0,
        "cntlid": 1,
        "rdma_device": "rxe0",
        "model": "Linux",
        "serial": "0123456789",
        "firmware": "7.3.4",
        "nr_namespaces": 1,
        "nr_no_disk": 0,
        "max_transfer": 1_048_576,
        "inline_size": 16_384,
        "scan": 3,
        "nr_resets": 2,
        "nr_reconnects": 1,
    });
    assert_eq!(from_value::<Controller>(message).unwrap(), live());
}

#[test]
fn reads_a_nested_error() {
    let message = json!({
        "ctrl_id": 3,
        "name": "rnvmf3",
        "state": 5,
        "traddr": "fe80::1%eth0",
        "trsvcid": 4421,
        "subsysnqn": "nqn.x",
        "error": {"stage": 0, "errno": 110, "message": "no answer"},
    });
    let controller: Controller = from_value(message).unwrap();
    assert_eq!(controller.state.known(), Some(CtrlState::Dead));
    assert_eq!(controller.endpoint().to_string(), "[fe80::1%eth0]:4421");
    assert_eq!(controller.error.unwrap().message, "no answer");
}

#[test]
fn reads_rejections() {
    let message = json!({
        "ctrl_id": 0,
        "name": "rnvmf0",
        "state": 2,
        "traddr": "10.0.0.9",
        "trsvcid": 4420,
        "subsysnqn": "nqn.x",
        "nr_no_disk": 3,
        "no_disk": [
            {"nsid": 7, "reason": "not attached to the controller"},
            {"nsid": 2, "reason": "8 bytes of metadata per block are not supported"},
        ],
    });
    let controller: Controller = from_value(message).unwrap();
    assert_eq!(controller.rejection_lines(), rejecting().rejection_lines());
    assert_eq!(
        controller.rejection_lines(),
        [
            "namespace 2: 8 bytes of metadata per block are not supported",
            "namespace 7: not attached to the controller",
            "1 more namespace",
        ]
    );
    assert!(live().rejection_lines().is_empty());
    assert!(connecting().rejection_lines().is_empty());
}

#[test]
fn ten_comes_after_two() {
    let called = |device: &str| Controller {
        device: device.into(),
        ..live()
    };
    let mut all = ["rnvmf10", "rnvmf2", "rnvmf1"].map(called);
    Controller::sort(&mut all);
    let names = all.map(|each| each.device);
    assert_eq!(names, ["rnvmf1", "rnvmf2", "rnvmf10"]);
}

#[test]
fn a_newer_state_has_a_number() {
    assert_eq!(State(42).to_string(), "state-42");
    assert_eq!(State(42).known(), None);
}

#[test]
fn a_missing_attribute_is_named() {
    let error = from_value::<Controller>(json!({"name": "rnvmf0"})).unwrap_err();
    assert_eq!(error.to_string(), "missing field `ctrl_id`");
}

#[test]
fn a_disk_is_no_controller_but_names_it() {
    let all = [live()];
    let message = |name| Controller::find(name, &all).unwrap_err().message;
    for name in ["rnvmf0n1", "/dev/rnvmf0n12", "/dev/rnvmf0n1p3"] {
        let wanted = format!("no controller {name}: see rnvmf show; {name} is a disk of rnvmf0");
        assert_eq!(message(name), wanted);
    }
    for name in ["rnvmf1n1", "rnvmf0n", "rnvmf0n1p", "rnvmf0x1", "rnvmf00n1"] {
        assert_eq!(
            message(name),
            format!("no controller {name}: see rnvmf show")
        );
    }
}
