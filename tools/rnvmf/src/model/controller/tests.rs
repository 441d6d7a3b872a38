// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::nlattr::tests::{attributes, bytes, nest, number, text};

/// A live controller, everything known.
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
        hostid: Some("00112233-4455-6677-8899-aabbccddeeff".into()),
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

/// The same while it connects.
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

/// The same with namespaces that have no disk, one of which has no name.
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

/// The same after a loss.
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
    let message = attributes(vec![
        number(attribute::CTRL_ID, 0u32),
        text(attribute::NAME, "rnvmf0"),
        number(attribute::STATE, 2u32),
        text(attribute::TRADDR, "10.0.0.9"),
        number(attribute::TRSVCID, 4420u16),
        text(attribute::HOST_TRADDR, "10.0.0.1"),
        text(attribute::SUBSYSNQN, "nqn.2014-08.org.example:disk"),
        text(attribute::HOSTNQN, "nqn.2014-08.org.example:host"),
        bytes(
            attribute::HOSTID,
            &std::array::from_fn::<u8, 16, _>(|i| i as u8 * 0x11),
        ),
        number(attribute::NR_IO_QUEUES, 2u32),
        number(attribute::NR_WRITE_QUEUES, 1u32),
        number(attribute::NR_POLL_QUEUES, 0u32),
        number(attribute::QUEUE_SIZE, 128u32),
        number(attribute::KEEP_ALIVE_TMO, 5u32),
        number(attribute::CONNECT_TIMEOUT, 10_000u32),
        number(attribute::RECONNECT_DELAY, 10u32),
        number(attribute::CTRL_LOSS_TMO, 600u32),
        number(attribute::FAST_IO_FAIL_TMO, LOSS_TMO_NEVER),
        number(attribute::TOS, 0u8),
        number(attribute::CNTLID, 1u16),
        text(attribute::RDMA_DEVICE, "rxe0"),
        text(attribute::MODEL, "Linux"),
        text(attribute::SERIAL, "0123456789"),
        text(attribute::FIRMWARE, "7.3.4"),
        number(attribute::NR_NAMESPACES, 1u32),
        number(attribute::NR_NO_DISK, 0u32),
        number(attribute::MAX_TRANSFER, 1_048_576u32),
        number(attribute::INLINE_SIZE, 16_384u32),
        number(attribute::SCAN, 3u32),
        number(attribute::NR_RESETS, 2u32),
        number(attribute::NR_RECONNECTS, 1u32),
        number(1000, 1u32),
    ]);
    assert_eq!(Controller::read(&message).unwrap(), live());
}

#[test]
fn reads_a_nested_error() {
    let message = attributes(vec![
        number(attribute::CTRL_ID, 3u32),
        text(attribute::NAME, "rnvmf3"),
        number(attribute::STATE, 5u32),
        text(attribute::TRADDR, "fe80::1%eth0"),
        number(attribute::TRSVCID, 4421u16),
        text(attribute::SUBSYSNQN, "nqn.x"),
        nest(
            attribute::ERROR,
            vec![
                number(crate::uapi::error::STAGE, 0u32),
                number(crate::uapi::error::ERRNO, 110i32),
                text(crate::uapi::error::MESSAGE, "no answer"),
            ],
        ),
    ]);
    let controller = Controller::read(&message).unwrap();
    assert_eq!(controller.state.known(), Some(CtrlState::Dead));
    assert_eq!(controller.endpoint().to_string(), "[fe80::1%eth0]:4421");
    assert_eq!(controller.error.unwrap().message, "no answer");
}

#[test]
fn reads_refusals() {
    let refused = |nsid: u32, reason: &str| {
        nest(
            attribute::NO_DISK,
            vec![number(refusal::NSID, nsid), text(refusal::REASON, reason)],
        )
    };
    let message = attributes(vec![
        number(attribute::CTRL_ID, 0u32),
        text(attribute::NAME, "rnvmf0"),
        number(attribute::STATE, 2u32),
        text(attribute::TRADDR, "10.0.0.9"),
        number(attribute::TRSVCID, 4420u16),
        text(attribute::SUBSYSNQN, "nqn.x"),
        number(attribute::NR_NO_DISK, 3u32),
        refused(7, "not attached to the controller"),
        refused(2, "8 bytes of metadata per block are not supported"),
    ]);
    let controller = Controller::read(&message).unwrap();
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
fn what_is_left_out_is_named() {
    let message = attributes(vec![text(attribute::NAME, "rnvmf0")]);
    assert_eq!(
        Controller::read(&message).unwrap_err().to_string(),
        "the kernel left out the attribute ctrl-id"
    );
}
