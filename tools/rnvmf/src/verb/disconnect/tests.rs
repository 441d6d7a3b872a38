// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::kernel::mock::MockKernel;
use crate::model::controller::tests::live;
use crate::model::event::{Change, WaitResult};
use crate::model::namespace::tests::disk as namespace;
use crate::uapi::DiskUse;
use crate::verb::print::tests::Printed;

fn numbered(id: u32) -> Controller {
    Controller {
        id,
        device: format!("rnvmf{id}"),
        subsysnqn: format!("nqn.{}", id % 2),
        ..live()
    }
}

/// Returns a kernel with three controllers, two of them of nqn.0.
fn kernel() -> MockKernel {
    MockKernel {
        controllers: (0..3).map(numbered).collect(),
        ..MockKernel::default()
    }
}

fn run_mock(
    nqn: Option<&str>,
    device: &[&str],
    format: Format,
    kernel: &mut MockKernel,
) -> Result<String, Error> {
    let options = cli::Disconnect {
        nqn: nqn.map(str::to_owned),
        device: device.iter().map(|&name| name.into()).collect(),
    };
    let printed = Printed::of(format, |printer| run(&options, kernel, printer));
    assert_eq!(printed.err, "");
    printed.output()
}

/// Disconnects all three. Returns the standard output, the standard error output and the error.
fn run_mock_all(kernel: &mut MockKernel) -> (String, String, Error) {
    let options = DisconnectAll { unused: false };
    let run = |printer: &mut Printer<'_>| run_all(&options, kernel, printer);
    let Printed { out, err, end } = Printed::of(Format::Normal, run);
    (out, err, end.unwrap_err())
}

#[test]
fn a_subsystem_has_several() {
    let mut kernel = kernel();
    kernel.push_event(Change::Changed, numbered(0));
    kernel.push_event(Change::Removed, numbered(2));
    kernel.push_event(Change::Removed, numbered(0));
    assert_eq!(
        run_mock(Some("nqn.0"), &[], Format::Json, &mut kernel).unwrap(),
        "{\"schema\":1,\"disconnected\":[\"rnvmf0\",\"rnvmf2\"]}\n"
    );
    assert_eq!(kernel.disconnected, [0, 2]);
}

#[test]
fn a_name_is_taken_once() {
    let mut kernel = kernel();
    kernel.push_event(Change::Removed, numbered(1));
    let names = ["rnvmf1", "/dev/rnvmf1"];
    assert_eq!(
        run_mock(None, &names, Format::Normal, &mut kernel).unwrap(),
        "rnvmf1: disconnected\n"
    );
    assert_eq!(kernel.disconnected, [1]);
}

#[test]
fn an_unknown_one_changes_nothing() {
    for (nqn, device) in [
        (Some("nqn.9"), &[] as &[&str]),
        (None, &["rnvmf0", "rnvmf9"]),
    ] {
        let mut kernel = kernel();
        let error = run_mock(nqn, device, Format::Normal, &mut kernel).unwrap_err();
        assert_eq!(error.status, Status::NotFound);
        assert!(kernel.disconnected.is_empty());
    }
}

#[test]
fn lost_events_are_made_up_for() {
    let mut kernel = kernel();
    kernel.wait_results.push_back(WaitResult::EventsLost);
    kernel.push_event(Change::Removed, numbered(0));
    // The controller exists after the loss, so its event is awaited.
    assert!(run_mock(None, &["rnvmf0"], Format::Normal, &mut kernel).is_ok());
    assert!(kernel.wait_results.is_empty());
}

#[test]
fn giving_up_tells_what_is_left() {
    for (result, status, why) in [
        (WaitResult::Interrupted, Status::Failed, "interrupted"),
        (WaitResult::Deadline, Status::Timeout, "timed out"),
    ] {
        let mut kernel = kernel();
        kernel.wait_results.push_back(result);
        let error = run_mock(None, &["rnvmf0"], Format::Normal, &mut kernel).unwrap_err();
        assert_eq!(error.status, status);
        assert_eq!(
            error.message,
            format!("disconnect rnvmf0: {why}; the removal continues")
        );
    }
}

#[test]
fn one_that_is_refused_keeps_no_other() {
    let mut kernel = kernel();
    let no = Error::failed("not permitted");
    kernel.rejections.push_back(no);
    kernel.push_event(Change::Removed, numbered(2));
    let error = run_mock(Some("nqn.0"), &[], Format::Normal, &mut kernel).unwrap_err();
    assert_eq!(error.message, "disconnect rnvmf0: not permitted");
    assert_eq!(kernel.disconnected, [0, 2]);
    assert!(
        kernel.wait_results.is_empty(),
        "it did not wait for the other"
    );
}

#[test]
fn what_is_gone_is_told_though_another_is_not() {
    let mut kernel = kernel();
    kernel.rejections.push_back(Error::failed("a"));
    kernel.push_event(Change::Removed, numbered(2));
    kernel.wait_results.push_back(WaitResult::Interrupted);
    let (out, err, end) = run_mock_all(&mut kernel);
    assert_eq!(out, "rnvmf2: disconnected\n");
    assert_eq!(
        err,
        "rnvmf: disconnect rnvmf0: a\n\
         rnvmf: disconnect rnvmf1: interrupted; the removal continues\n"
    );
    assert_eq!(
        end.message,
        "disconnect: 2 of 3 controllers were not removed"
    );
    assert_eq!(end.status, Status::Failed);
}

#[test]
fn each_refusal_is_told() {
    for (last, result, more, status) in [
        (Status::Permission, None, "", Status::Permission),
        (Status::Failed, None, "", Status::Failed),
        (
            Status::Permission,
            Some(WaitResult::Deadline),
            "rnvmf: disconnect rnvmf2: timed out; the removal continues\n",
            Status::Failed,
        ),
    ] {
        let mut kernel = kernel();
        let first = Error::new(Status::Permission, "a");
        kernel.rejections = [first, Error::new(last, "b")].into();
        let is_left = result.is_some();
        match result {
            Some(result) => kernel.wait_results.push_back(result),
            None => kernel.push_event(Change::Removed, numbered(2)),
        }
        let (out, err, end) = run_mock_all(&mut kernel);
        assert_eq!(
            out,
            if is_left {
                ""
            } else {
                "rnvmf2: disconnected\n"
            }
        );
        let refused = "rnvmf: disconnect rnvmf0: a\nrnvmf: disconnect rnvmf1: b\n";
        assert_eq!(err, format!("{refused}{more}"));
        let left = if is_left { 3 } else { 2 };
        let text = format!("disconnect: {left} of 3 controllers were not removed");
        assert_eq!((end.status, end.message), (status, text));
    }
}

#[test]
fn all_may_be_none() {
    let out = run_mock_unused(false, Format::Json, &mut MockKernel::default());
    assert_eq!(out, "{\"schema\":1,\"disconnected\":[]}\n");
}

fn run_mock_unused(unused: bool, format: Format, kernel: &mut MockKernel) -> String {
    let options = DisconnectAll { unused };
    let printed = Printed::of(format, |printer| run_all(&options, kernel, printer));
    assert_eq!(printed.err, "");
    printed.output().unwrap()
}

fn disk(controller_id: u32, nsid: u32, usage: DiskUse) -> Namespace {
    Namespace {
        controller_id,
        name: format!("rnvmf{controller_id}n{nsid}"),
        usage: Some(usage as u32),
        ..namespace()
    }
}

#[test]
fn one_that_is_in_use_may_be_left() {
    for (unused, format, line, gone) in [
        (
            true,
            Format::Normal,
            "/dev/rnvmf1n2: in use, stays connected\n\
             rnvmf0: disconnected\nrnvmf2: disconnected\n",
            &[0, 2][..],
        ),
        (
            true,
            Format::Json,
            "{\"schema\":1,\"in_use\":[\"rnvmf1n2\"]}\n\
             {\"schema\":1,\"disconnected\":[\"rnvmf0\",\"rnvmf2\"]}\n",
            &[0, 2],
        ),
        (
            false,
            Format::Json,
            "{\"schema\":1,\"disconnected\":[\"rnvmf0\",\"rnvmf1\",\"rnvmf2\"]}\n",
            &[0, 1, 2],
        ),
    ] {
        let mut kernel = MockKernel {
            namespaces: vec![
                disk(0, 1, DiskUse::Closed),
                disk(1, 1, DiskUse::Closed),
                disk(1, 2, DiskUse::Claimed),
            ],
            ..kernel()
        };
        for id in gone {
            kernel.push_event(Change::Removed, numbered(*id));
        }
        assert_eq!(run_mock_unused(unused, format, &mut kernel), line);
        assert_eq!(kernel.disconnected, gone);
    }
}

#[test]
fn one_that_is_open_for_a_moment_goes() {
    let mut kernel = MockKernel {
        namespaces: vec![disk(0, 1, DiskUse::Open), disk(1, 1, DiskUse::Claimed)],
        closing: vec![(0, 2)],
        ..kernel()
    };
    // The other one goes during the first pause, which the event does not shorten.
    kernel.push_event(Change::Removed, numbered(2));
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.push_event(Change::Removed, numbered(0));
    assert_eq!(
        run_mock_unused(true, Format::Normal, &mut kernel),
        "/dev/rnvmf1n1: in use, stays connected\nrnvmf0: disconnected\nrnvmf2: disconnected\n"
    );
    assert_eq!(kernel.disconnected, [2, 0]);
}

#[test]
fn one_that_stays_open_stays() {
    let mut kernel = MockKernel {
        namespaces: vec![disk(0, 1, DiskUse::Closed), disk(0, 2, DiskUse::Open)],
        ..kernel()
    };
    kernel.push_event(Change::Removed, numbered(1));
    kernel.push_event(Change::Removed, numbered(2));
    for _ in 1..TRIES {
        kernel.wait_results.push_back(WaitResult::Deadline);
    }
    assert_eq!(
        run_mock_unused(true, Format::Normal, &mut kernel),
        "/dev/rnvmf0n2: in use, stays connected\nrnvmf1: disconnected\nrnvmf2: disconnected\n"
    );
    assert!(kernel.wait_results.is_empty());
}

#[test]
fn waiting_for_a_close_can_be_interrupted() {
    let mut kernel = MockKernel {
        namespaces: vec![disk(0, 2, DiskUse::Open)],
        ..kernel()
    };
    kernel.wait_results.push_back(WaitResult::Interrupted);
    let options = DisconnectAll { unused: true };
    let run = |printer: &mut Printer<'_>| run_all(&options, &mut kernel, printer);
    assert_eq!(
        Printed::of(Format::Normal, run).end.unwrap_err().message,
        "disconnect: interrupted; the removals that have started continue"
    );
}

#[test]
fn an_older_module_is_no_reason_to_disconnect_all() {
    let mut kernel = kernel();
    let old = Error::failed("older");
    kernel.rejections = [old.clone(), old.clone(), old].into();
    let options = DisconnectAll { unused: true };
    let run = |printer: &mut Printer<'_>| run_all(&options, &mut kernel, printer);
    let Printed { out, err, end } = Printed::of(Format::Normal, run);
    assert_eq!(out, "");
    assert_eq!(err.matches(": older\n").count(), 3, "{err}");
    let text = "disconnect: 3 of 3 controllers were not removed";
    assert_eq!(end.unwrap_err().message, text);
}
