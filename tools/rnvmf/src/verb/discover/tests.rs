// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::cli::{Arguments, Verb};
use crate::error::tests::rejected;
use crate::error::{CtrlError, Stage, Status};
use crate::kernel::mock::MockKernel;
use crate::model::discovery::tests::{log, subsystem};
use crate::model::discovery::LogEntry;
use crate::model::event::tests::{discovery_done, discovery_failed};
use crate::uapi::ErrorStage;
use crate::verb::print::tests::Printed;
use clap::Parser;

fn run_mock(kernel: &mut MockKernel, more: &[&str]) -> Result<String, Error> {
    printed(kernel, more).output()
}

fn printed(kernel: &mut MockKernel, more: &[&str]) -> Printed {
    let line = ["rnvmf", "discover", "-a", "10.0.0.9", "-q", "nqn.h", "-I"];
    let line = line
        .iter()
        .chain(&["00112233-4455-6677-8899-aabbccddeeff"])
        .chain(more);
    let arguments = Arguments::try_parse_from(line).unwrap();
    let options = match arguments.verb {
        Verb::Discover(options) => options,
        other => panic!("{other:?}"),
    };
    let env = SystemEnv::default();
    let run = |printer: &mut Printer<'_>| run(&options, &env, kernel, printer);
    Printed::of(arguments.format, run)
}

fn kernel(
    wait_results: Vec<WaitResult>,
    logs: Vec<Result<Option<DiscoveryLog>, Error>>,
) -> MockKernel {
    MockKernel {
        wait_results: wait_results.into(),
        discovery_logs: logs.into(),
        ..MockKernel::default()
    }
}

fn found() -> Result<Option<DiscoveryLog>, Error> {
    Ok(Some(log(vec![subsystem("nqn.x", "10.0.0.9")])))
}

#[test]
fn the_log_is_printed_when_it_is_there() {
    let wait_results = vec![discovery_done(7), WaitResult::EventsLost, discovery_done(0)];
    let mut kernel = kernel(wait_results, vec![Ok(None), found()]);
    let text = run_mock(&mut kernel, &[]).unwrap();
    assert!(
        text.starts_with("1 record, generation 5\n\nrecord 0\n"),
        "{text}"
    );
    let [asked] = &kernel.discover_targets[..] else {
        panic!("asked not once");
    };
    assert_eq!(asked.subsysnqn, "nqn.2014-08.org.nvmexpress.discovery");
    assert_eq!((asked.trsvcid, asked.connect_timeout), (4420, 10_000));
}

#[test]
fn options_reach_the_kernel() {
    let mut kernel = kernel(vec![discovery_done(0)], vec![found()]);
    let more = [
        "-s",
        "8009",
        "-n",
        "nqn.own",
        "--timeout",
        "3",
        "-o",
        "json",
    ];
    let text = run_mock(&mut kernel, &more).unwrap();
    assert!(text.starts_with("{\"schema\":1,\"genctr\":5"), "{text}");
    let asked = &kernel.discover_targets[0];
    assert_eq!((asked.trsvcid, asked.connect_timeout), (8009, 3000));
    assert_eq!(asked.subsysnqn, "nqn.own");
}

#[test]
fn an_invalid_record_is_a_warning() {
    let invalid = LogEntry {
        invalid: Some("TRADDR: not printable ASCII".into()),
        ..subsystem("nqn.y", "\\x1b")
    };
    let log = || {
        let records = vec![subsystem("nqn.x", "10.0.0.9"), invalid.clone()];
        vec![Ok(Some(log(records)))]
    };
    let why = "record 1: TRADDR: not printable ASCII";
    let text = printed(&mut kernel(vec![discovery_done(0)], log()), &[]);
    assert!(
        text.out.contains("address    10.0.0.9:4420\n"),
        "{}",
        text.out
    );
    assert!(text.out.contains("address    \\x1b:4420\n"), "{}", text.out);
    assert_eq!(text.err, format!("rnvmf: warning: {why}\n"));
    assert_eq!(text.end, Ok(()));
    let json = printed(&mut kernel(vec![discovery_done(0)], log()), &["-o", "json"]);
    let document: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(document["records"][1]["traddr"], "\\x1b");
    assert_eq!(
        document["records"][1]["invalid"],
        "TRADDR: not printable ASCII"
    );
    let warning = format!("{{\"schema\":1,\"warning\":{{\"message\":\"{why}\"}}}}\n");
    assert_eq!(json.err, warning);
}

#[test]
fn what_goes_wrong_is_told_with_the_place() {
    let refused = Err(Error::failed("rejected"));
    // The module may be unloaded after the event, so its error is used without a request.
    let failed = discovery_failed(0, Error::failed("cancelled"));
    for (result, log, message) in [
        (failed, found(), "cancelled"),
        (discovery_done(0), refused, "rejected"),
        (WaitResult::Interrupted, found(), "interrupted"),
        (
            WaitResult::Deadline,
            found(),
            "timed out waiting for the kernel",
        ),
    ] {
        let mut kernel = kernel(vec![result], vec![log]);
        let error = run_mock(&mut kernel, &[]).unwrap_err();
        assert_eq!(
            error.message,
            format!("discover at 10.0.0.9:4420: {message}")
        );
    }
}

#[test]
fn a_subsystem_without_a_log_is_for_connect() {
    let error = CtrlError {
        stage: Stage(ErrorStage::Discovery as u32),
        errno: libc::EOPNOTSUPP,
        message: "not a discovery subsystem".into(),
        ..rejected()
    };
    let failed = discovery_failed(0, Error::from(error));
    let error = run_mock(&mut kernel(vec![failed], vec![]), &[]).unwrap_err();
    assert_eq!(error.status, Status::Failed);
    assert_eq!(
        error.message,
        "discover at 10.0.0.9:4420: not a discovery subsystem; \
         connect -n is for an NVM subsystem"
    );
}
