// SPDX-License-Identifier: GPL-2.0

use super::*;
use serde_json::from_value;

#[test]
fn normal_is_one_prefixed_line() {
    let error = Error::new(Status::Timeout, "no answer").context("connect to 10.0.0.9:4420");
    assert_eq!(
        error.render(Format::Normal),
        "rnvmf: connect to 10.0.0.9:4420: no answer"
    );
}

#[test]
fn json_has_schema_and_status() {
    let error = Error::new(Status::NotFound, "no controller \"x\"");
    assert_eq!(
        error.render(Format::Json),
        r#"{"schema":1,"error":{"status":3,"message":"no controller \"x\""}}"#
    );
}

#[test]
fn errors_of_files_have_their_status() {
    for (kind, status) in [
        (ErrorKind::PermissionDenied, Status::Permission),
        (ErrorKind::BrokenPipe, Status::BrokenPipe),
        (ErrorKind::NotFound, Status::Failed),
    ] {
        assert_eq!(Error::from(std::io::Error::from(kind)).status, status);
    }
    assert_eq!(Status::BrokenPipe as u8, 141);
}

#[test]
fn several_errors_have_one_status() {
    use Status::{Failed, NotFound, Permission};
    for (all, status) in [
        (&[][..], None),
        (&[Permission], Some(Permission)),
        (&[NotFound, NotFound], Some(NotFound)),
        (&[NotFound, NotFound, Permission], Some(Failed)),
    ] {
        assert_eq!(Status::common(all.iter().copied()), status);
    }
}

#[test]
fn who_is_asked_to_stop_ends_as_by_the_signal() {
    let failed = || Error::failed("connect-all: 1 of 2 connections failed");
    for (signal, status) in [(SIGINT, 130), (SIGTERM, 143)] {
        let stopped = failed().stopped_by(signal);
        assert_eq!(stopped.status as u8, status);
        assert_eq!(stopped.message, failed().message);
    }
    let unread = Error::new(Status::BrokenPipe, "Broken pipe");
    assert_eq!(unread.clone().stopped_by(SIGINT), unread);
}

#[test]
fn errno_text_has_no_number() {
    let error = std::io::Error::from_raw_os_error(111);
    assert_eq!(io_message(&error), "Connection refused");
}

/// Returns the error for a subsystem that the target does not have.
pub(crate) fn rejected() -> CtrlError {
    CtrlError {
        stage: Stage(ErrorStage::FabricsConnect as u32),
        errno: 2,
        message: "rejected by target: no such subsystem nqn.x".into(),
        reject_reason: None,
        cm_status: None,
        nvme_status: Some(0x4182),
        qid: Some(0),
        age: None,
        over: false,
        unanswered: false,
        next_attempt: None,
    }
}

#[test]
fn reads_what_is_there() {
    let message = json!({
        "stage": 4,
        "errno": 2,
        "nvme_status": 0x4182,
        "qid": 0,
        "message": "rejected by target: no such subsystem nqn.x",
    });
    assert_eq!(from_value::<CtrlError>(message).unwrap(), rejected());
}

#[test]
fn a_newer_stage_has_a_number() {
    assert_eq!(Stage(77).to_string(), "stage-77");
}

#[test]
fn stage_errno_and_message_are_required() {
    let error = from_value::<CtrlError>(json!({"stage": 1})).unwrap_err();
    assert_eq!(error.to_string(), "missing field `errno`");
}

#[test]
fn only_a_timeout_ends_as_one() {
    let late = CtrlError {
        errno: libc::ETIMEDOUT,
        ..rejected()
    };
    assert_eq!(Error::from(late).status, Status::Timeout);
    assert_eq!(Error::from(rejected()).status, Status::Failed);
}
