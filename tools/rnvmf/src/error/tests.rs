// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::nlattr::tests::{attributes, number, text};

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
    assert_eq!(strerror(111), "Connection refused");
}

/// A failure as a target that does not know the subsystem causes it.
pub(crate) fn rejected() -> CtrlError {
    CtrlError {
        stage: Stage(ErrorStage::FabricsConnect as u32),
        errno: 2,
        message: "rejected by target: no such subsystem nqn.x".into(),
        reject_reason: None,
        cm_status: None,
        nvme_status: Some(0x4182),
        qid: Some(0),
        next_attempt: None,
    }
}

#[test]
fn reads_what_is_there() {
    let nest = attributes(vec![
        number(attribute::STAGE, 4u32),
        number(attribute::ERRNO, 2i32),
        number(attribute::NVME_STATUS, 0x4182u16),
        number(attribute::QID, 0u16),
        number(99, 7u32),
        text(
            attribute::MESSAGE,
            "rejected by target: no such subsystem nqn.x",
        ),
    ]);
    assert_eq!(CtrlError::read(&nest).unwrap(), rejected());
}

#[test]
fn a_newer_stage_has_a_number() {
    let nest = attributes(vec![
        number(attribute::STAGE, 77u32),
        number(attribute::ERRNO, 5i32),
    ]);
    let ctrl_error = CtrlError::read(&nest).unwrap();
    assert_eq!(ctrl_error.stage.to_string(), "stage-77");
    assert_eq!(ctrl_error.message, "stage-77 failed: Input/output error");
}

#[test]
fn a_stage_and_an_errno_are_needed() {
    let nest = attributes(vec![number(attribute::STAGE, 1u32)]);
    assert_eq!(
        CtrlError::read(&nest).unwrap_err().to_string(),
        "the kernel left out the attribute errno"
    );
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
