// SPDX-License-Identifier: GPL-2.0
//! Several connects at the same time: their output, and the effect of a failure on the others.

mod persistent;

use super::log_event::LogEvent;
use super::state::MAX_DISCOVERIES;
use super::*;
use crate::cli::{Arguments, Verb};
use crate::error::tests::rejected;
use crate::error::{CtrlError, Stage, Status};
use crate::kernel::mock::MockKernel;
use crate::model::controller::tests::{connecting, live, rejecting};
use crate::model::controller::{Controller, State};
use crate::model::discovery::tests::{log, subsystem};
use crate::model::discovery::{DiscoveryLog, EFlags, LogEntry, SubType, TrType};
use crate::model::event::tests::{discovery_done, discovery_failed};
use crate::model::event::{Change, WaitResult};
use crate::model::options::NewController;
use crate::output::Format;
use crate::uapi::{CtrlState, ErrorStage};
use crate::verb::args::target;
use crate::verb::print::tests::Printed;
use clap::Parser;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LINES: &str =
    "-a 10.0.0.9 -n nqn.2014-08.org.example:disk -q nqn.2014-08.org.example:host -I \
    00112233-4455-6677-8899-aabbccddeeff\n-a 10.0.0.9 -n nqn.y -q nqn.2014-08.org.example:host -I \
    00112233-4455-6677-8899-aabbccddeeff\n";

/// A configuration file, removed with the value.
struct ConfigFile(PathBuf);

impl ConfigFile {
    fn new(test: &str, text: &str) -> Self {
        let name = format!("rnvmf-{}-{test}.conf", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for ConfigFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

/// Returns the standard output, the standard error output and the result.
fn run_mock(config: &ConfigFile, kernel: &mut MockKernel) -> (String, String, Result<(), Error>) {
    run_mock_with(&["-f", config.0.to_str().unwrap()], kernel)
}

fn run_mock_with(more: &[&str], kernel: &mut MockKernel) -> (String, String, Result<(), Error>) {
    run_mock_at(&SystemEnv::default(), more, kernel)
}

fn run_mock_at(
    env: &SystemEnv,
    more: &[&str],
    kernel: &mut MockKernel,
) -> (String, String, Result<(), Error>) {
    let (options, format) = options(more);
    let run = |printer: &mut Printer<'_>| run(&Config::read(options)?, env, kernel, printer);
    let Printed { out, err, end } = Printed::of(format, run);
    (out, err, end)
}

/// Parses the options of `rnvmf connect-all`.
fn options(more: &[&str]) -> (ConnectAll, Format) {
    let line = ["rnvmf", "connect-all"].iter().chain(more);
    let arguments = Arguments::try_parse_from(line).unwrap();
    match arguments.verb {
        Verb::ConnectAll(options) => (options, arguments.format),
        other => panic!("{other:?}"),
    }
}

fn made(id: u32) -> Result<NewController, Error> {
    let name = format!("rnvmf{id}");
    Ok(NewController { id, name })
}

/// Returns a live controller without a source address.
fn existing() -> Controller {
    Controller {
        host_traddr: None,
        ..live()
    }
}

fn numbered(id: u32, controller: Controller) -> Controller {
    Controller {
        id,
        device: format!("rnvmf{id}"),
        ..controller
    }
}

fn dead() -> Controller {
    Controller {
        state: State(CtrlState::Dead as u32),
        error: Some(rejected()),
        ..connecting()
    }
}

#[test]
fn who_may_do_nothing_is_told_so() {
    let config = ConfigFile::new("denied", LINES);
    let denied = || Err(Error::new(Status::Permission, "no"));
    for (second, status) in [
        (denied(), Status::Permission),
        (Err(Error::new(Status::Timeout, "late")), Status::Failed),
    ] {
        let mut kernel = MockKernel {
            connect_replies: [denied(), second].into(),
            ..MockKernel::default()
        };
        let end = run_mock(&config, &mut kernel).2.unwrap_err();
        assert_eq!(end.status, status);
        assert_eq!(end.message, "connect-all: 2 of 2 connections failed");
    }
}

/// A persistent run ends at once.
#[test]
fn who_may_do_nothing_follows_nobody() {
    let mut kernel = MockKernel {
        rejections: [Error::new(Status::Permission, "permission denied")].into(),
        ..MockKernel::default()
    };
    let line = [&["-a", "10.0.0.9", "-p"], &IDENTITY[..]].concat();
    let (_, err, end) = run_mock_with(&line, &mut kernel);
    let denied = "rnvmf: discover at 10.0.0.9:4420: permission denied\n";
    assert_eq!(err, denied);
    assert_eq!(end.unwrap_err().status, Status::Permission);
}

#[test]
fn all_connect_at_once() {
    let config = ConfigFile::new("all", LINES);
    let mut kernel = MockKernel {
        connect_replies: [made(0), made(1)].into(),
        ..MockKernel::default()
    };
    kernel.push_event(Change::Changed, numbered(1, live()));
    kernel.push_event(Change::Changed, numbered(0, live()));
    let (out, err, end) = run_mock(&config, &mut kernel);
    assert_eq!(
        out,
        "rnvmf0: connected to nqn.2014-08.org.example:disk at 10.0.0.9:4420\n\
         rnvmf1: connected to nqn.y at 10.0.0.9:4420\n"
    );
    assert_eq!((err.as_str(), end), ("", Ok(())));
    assert!(kernel.disconnected.is_empty());
}

#[test]
fn namespaces_without_a_disk_are_told() {
    let config = ConfigFile::new("refusing", LINES);
    let mut kernel = MockKernel {
        connect_replies: [made(0), made(1)].into(),
        ..MockKernel::default()
    };
    kernel.push_event(Change::Changed, numbered(1, rejecting()));
    kernel.push_event(Change::Changed, numbered(0, live()));
    let (_, err, end) = run_mock(&config, &mut kernel);
    assert_eq!(
        err,
        "rnvmf: rnvmf1: no disk: namespace 2: 8 bytes of metadata per block are not supported\n\
         rnvmf: rnvmf1: no disk: namespace 7: not attached to the controller\n\
         rnvmf: rnvmf1: no disk: 1 more namespace\n"
    );
    assert_eq!(end, Ok(()));
}

#[test]
fn what_is_connected_stays_when_another_fails() {
    let config = ConfigFile::new("another", LINES);
    let exists = Err(Error::new(Status::Exists, "it exists"));
    let mut kernel = MockKernel {
        connect_replies: [exists, made(1)].into(),
        controllers: vec![existing()],
        ..MockKernel::default()
    };
    kernel.push_event(Change::Changed, numbered(1, dead()));
    kernel.push_event(Change::Removed, numbered(1, dead()));
    let (out, err, end) = run_mock(&config, &mut kernel);
    assert_eq!(out, "rnvmf0: already connected\n");
    assert_eq!(
        err,
        "rnvmf: connect to 10.0.0.9:4420: rejected by target: no such subsystem nqn.x\n"
    );
    let error = end.unwrap_err();
    assert_eq!(error.message, "connect-all: 1 of 2 connections failed");
    assert_eq!(error.status, Status::Failed);
    assert_eq!(kernel.disconnected, [1]);
}

#[test]
fn an_interrupt_undoes_what_is_pending_only() {
    let config = ConfigFile::new("interrupt", LINES);
    let mut kernel = MockKernel {
        connect_replies: [made(0), made(1)].into(),
        ..MockKernel::default()
    };
    kernel.push_event(Change::Changed, numbered(0, live()));
    interrupted_before_the_second(&config, &mut kernel);
}

/// The first controller is live before the interrupt and stays; the second one is removed.
fn interrupted_before_the_second(config: &ConfigFile, kernel: &mut MockKernel) {
    kernel.wait_results.push_back(WaitResult::Interrupted);
    kernel.push_event(Change::Removed, numbered(1, connecting()));
    let (out, err, end) = run_mock(config, kernel);
    assert!(out.starts_with("rnvmf0: connected"), "{out}");
    assert_eq!(err, "rnvmf: connect to 10.0.0.9:4420: interrupted\n");
    assert!(end.is_err());
    assert_eq!(kernel.disconnected, [1]);
}

/// Its disk may be in use although no event has reported the state.
#[test]
fn an_interrupt_undoes_nothing_that_is_live() {
    let config = ConfigFile::new("live", LINES);
    let mut kernel = MockKernel {
        connect_replies: [made(0), made(1)].into(),
        controllers: vec![numbered(0, live()), numbered(1, connecting())],
        ..MockKernel::default()
    };
    interrupted_before_the_second(&config, &mut kernel);
}

#[test]
fn a_wrong_line_hides_no_other() {
    let config = ConfigFile::new("wrong", &format!("-a 10.0.0.9\n{LINES}-D\n"));
    let mut kernel = MockKernel {
        connect_replies: [made(0), made(1)].into(),
        ..MockKernel::default()
    };
    kernel.push_event(Change::Changed, numbered(0, live()));
    kernel.push_event(Change::Changed, numbered(1, live()));
    let (out, err, end) = run_mock(&config, &mut kernel);
    assert_eq!(out.lines().count(), 2, "{out}");
    let [first, last] = &err.lines().collect::<Vec<_>>()[..] else {
        panic!("{err}");
    };
    assert!(first.contains(".conf:1: the following required"), "{err}");
    assert!(last.contains(".conf:4: "), "{err}");
    let error = end.unwrap_err();
    assert_eq!(error.status, Status::Failed);
    assert_eq!(error.message, "connect-all: 2 of 4 connections failed");
}

#[test]
fn nothing_is_tried_where_all_lines_are_wrong() {
    let config = ConfigFile::new("all-wrong", "-a 10.0.0.9\n");
    let mut kernel = MockKernel::default();
    let (_, _, end) = run_mock(&config, &mut kernel);
    let error = end.unwrap_err();
    assert_eq!(error.status, Status::Usage);
    assert!(error.message.contains(".conf:1: the following required"));
    assert!(!kernel.subscribed);
}

#[test]
fn nothing_to_connect_is_no_error() {
    let config = ConfigFile::new("nothing", "# none yet\n");
    let (out, err, end) = run_mock(&config, &mut MockKernel::default());
    assert_eq!((out.as_str(), err.as_str(), end), ("", "", Ok(())));
}

const IDENTITY: [&str; 4] = [
    "-q",
    "nqn.2014-08.org.example:host",
    "-I",
    "00112233-4455-6677-8899-aabbccddeeff",
];

/// Discovers at 10.0.0.9, with these logs in sequence. Returns the outputs and the error.
fn discover(logs: Vec<Vec<LogEntry>>, more: &[&str], kernel: &mut MockKernel) -> [String; 3] {
    for (id, entries) in (0..).zip(logs) {
        kernel.discovery_logs.push_back(Ok(Some(log(entries))));
        kernel.wait_results.push_back(discovery_done(id));
    }
    let line = [&["-a", "10.0.0.9"], &IDENTITY[..], more].concat();
    let (out, err, end) = run_mock_with(&line, kernel);
    [
        out,
        err,
        end.map_or_else(|error| error.message, |()| String::new()),
    ]
}

fn referral(traddr: &str) -> LogEntry {
    LogEntry {
        subtype: SubType::REFERRAL,
        ..subsystem("nqn.2014-08.org.nvmexpress.discovery", traddr)
    }
}

#[test]
fn what_a_log_has_is_connected_with_the_options_of_the_line() {
    let mut kernel = MockKernel {
        connect_replies: [made(0), made(1)].into(),
        ..MockKernel::default()
    };
    let current = LogEntry {
        subtype: SubType::CURRENT,
        ..referral("10.0.0.9")
    };
    let entries = vec![
        current,
        subsystem("nqn.x", "10.0.0.9"),
        subsystem("nqn.x", "10.0.0.9"),
        subsystem("nqn.y", "10.0.1.9"),
    ];
    // The mock returns the events in this order.
    let more = ["-k", "7", "-l", "-1", "--timeout", "3"];
    kernel.discovery_logs.push_back(Ok(Some(log(entries))));
    kernel.wait_results.push_back(discovery_done(0));
    kernel.push_event(Change::Changed, numbered(1, live()));
    kernel.push_event(Change::Changed, numbered(0, live()));
    let [out, err, end] = discover(vec![], &more, &mut kernel);
    assert_eq!(
        out,
        "rnvmf0: connected to nqn.x at 10.0.0.9:4420\n\
         rnvmf1: connected to nqn.y at 10.0.1.9:4420\n"
    );
    assert_eq!((err.as_str(), end.as_str()), ("", ""));
    for args in &kernel.connect_requests {
        assert_eq!(args.ctrl.keep_alive_tmo, Some(7));
        assert_eq!(args.target.connect_timeout, 3000);
        assert_eq!(args.target.hostnqn, "nqn.2014-08.org.example:host");
    }
}

#[test]
fn referrals_are_followed_once() {
    let mut kernel = MockKernel::default();
    let same = LogEntry {
        eflags: EFlags(1),
        ..referral("10.0.0.7")
    };
    let first = vec![referral("10.0.0.8"), same];
    let second = vec![referral("10.0.0.9"), referral("10.0.0.8")];
    let told = discover(vec![first, second], &[], &mut kernel);
    assert_eq!(told, ["", "", ""]);
    let asked: Vec<_> = kernel
        .discover_targets
        .iter()
        .map(|each| &each.traddr)
        .collect();
    assert_eq!(asked, ["10.0.0.9", "10.0.0.8"]);
}

#[test]
fn referrals_end_somewhere() {
    let mut kernel = MockKernel::default();
    let logs = (0..MAX_DISCOVERIES).map(|n| vec![referral(&format!("10.0.1.{n}"))]);
    let [out, err, end] = discover(logs.collect(), &[], &mut kernel);
    assert_eq!(out, "");
    assert_eq!(
        err,
        "rnvmf: discover at 10.0.1.31:4420: more than 32 discovery controllers\n"
    );
    assert_eq!(end, "connect-all: 1 of 33 connections failed");
    assert_eq!(kernel.discover_targets.len(), MAX_DISCOVERIES);
}

#[test]
fn what_cannot_be_connected_is_named() {
    let tcp = LogEntry {
        trtype: TrType(3),
        ..subsystem("nqn.y", "10.0.0.8")
    };
    let mut kernel = MockKernel::default();
    let told = discover(vec![vec![tcp.clone()]], &[], &mut kernel);
    let line = "not connected: nqn.y at tcp 10.0.0.8:4420: rnvmf supports RDMA only\n";
    assert_eq!(told, [line, "", ""]);
    let mut kernel = MockKernel::default();
    let [out, ..] = discover(vec![vec![tcp]], &["-o", "json"], &mut kernel);
    assert!(
        out.starts_with("{\"schema\":1,\"skipped\":{\"trtype\":\"tcp\""),
        "{out}"
    );
}

#[test]
fn an_invalid_record_does_not_hide_the_others() {
    let invalid = LogEntry {
        invalid: Some("TRADDR: not printable ASCII".into()),
        ..subsystem("nqn.y", "\\x1b")
    };
    let connect = |more: &[&str]| {
        let records = vec![invalid.clone(), subsystem("nqn.x", "10.0.0.9")];
        let mut kernel = MockKernel {
            connect_replies: [made(0)].into(),
            discovery_logs: [Ok(Some(log(records)))].into(),
            wait_results: [discovery_done(0)].into(),
            ..MockKernel::default()
        };
        kernel.push_event(Change::Changed, numbered(0, live()));
        discover(vec![], more, &mut kernel)
    };
    let why = "not connected: nqn.y at rdma \\x1b:4420: TRADDR: not printable ASCII";
    let line = "rnvmf0: connected to nqn.x at 10.0.0.9:4420\n";
    let warning = format!("rnvmf: warning: {why}\n");
    assert_eq!(connect(&[]), [line, &warning, ""]);
    let [out, err, end] = connect(&["-o", "json"]);
    assert!(out.contains("\"traddr\":\"\\\\x1b\""), "{out}");
    assert!(out.contains("\"invalid\":\"TRADDR: not"), "{out}");
    assert!(
        err.contains("{\"message\":\"not connected: nqn.y at"),
        "{err}"
    );
    assert_eq!(end, "");
}

#[test]
fn a_discovery_that_fails_stops_no_other() {
    let identity = IDENTITY.join(" ");
    let text = format!("discover -a 10.0.0.8 {identity}\ndiscover -a 10.0.0.9 {identity}\n");
    let config = ConfigFile::new("discover", &text);
    let mut kernel = MockKernel {
        connect_replies: [made(0)].into(),
        discovery_logs: [
            Err(Error::failed("rejected")),
            Ok(Some(log(vec![subsystem("nqn.x", "10.0.0.9")]))),
        ]
        .into(),
        ..MockKernel::default()
    };
    kernel.wait_results.push_back(WaitResult::EventsLost);
    kernel.push_event(Change::Changed, numbered(0, live()));
    let (out, err, end) = run_mock(&config, &mut kernel);
    assert_eq!(out, "rnvmf0: connected to nqn.x at 10.0.0.9:4420\n");
    assert_eq!(err, "rnvmf: discover at 10.0.0.8:4420: rejected\n");
    let message = end.unwrap_err().message;
    assert_eq!(message, "connect-all: 1 of 3 connections failed");
}

#[test]
fn a_deadline_ends_discoveries() {
    let mut kernel = MockKernel::default();
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.discovery_logs.push_back(Ok(None));
    let [_, err, end] = discover(vec![], &[], &mut kernel);
    assert_eq!(
        err,
        "rnvmf: discover at 10.0.0.9:4420: timed out waiting for the kernel\n"
    );
    assert_eq!(end, "connect-all: 1 of 1 connections failed");
}

#[test]
fn progress_of_a_connect_leaves_discoveries_their_time() {
    let identity = IDENTITY.join(" ");
    let discover = format!("discover -a 10.0.0.8 --timeout 60 {identity}\n");
    let text = format!("{discover}-a 10.0.0.9 -n nqn.x {identity}\n");
    let config = ConfigFile::new("deadlines", &text);
    let mut kernel = MockKernel {
        connect_replies: [made(0)].into(),
        discovery_logs: [Ok(Some(log(vec![])))].into(),
        ..MockKernel::default()
    };
    kernel.push_event(Change::Added, numbered(0, connecting()));
    kernel.push_event(Change::Changed, numbered(0, live()));
    kernel.wait_results.push_back(discovery_done(0));
    let least = Instant::now() + Duration::from_secs(60);
    assert_eq!(run_mock(&config, &mut kernel).2, Ok(()));
    assert_eq!(kernel.deadlines.len(), 3);
    assert!(kernel.deadlines.iter().all(|each| *each >= Some(least)));
}

#[test]
fn what_was_not_read_is_a_failure() {
    let mut kernel = MockKernel::default();
    let cut = DiscoveryLog {
        numrec: 2000,
        ..log(vec![])
    };
    kernel.discovery_logs.push_back(Ok(Some(cut)));
    kernel.wait_results.push_back(discovery_done(0));
    let [_, err, _] = discover(vec![], &[], &mut kernel);
    assert_eq!(
        err,
        "rnvmf: discover at 10.0.0.9:4420: only the first 0 of 2000 records were read\n"
    );
}

#[test]
fn programs_are_told_in_json() {
    let line = [&["-a", "10.0.0.9"], &IDENTITY[..]].concat();
    let options = Config::read(options(&line).0).unwrap();
    let target = target(&options.file.lines[0].subsystem(), &SystemEnv::default()).unwrap();
    let read = LogEvent::Read {
        followed: target,
        genctr: 5,
        numrec: 2,
    };
    assert_eq!(
        read.render(Format::Json),
        "{\"schema\":1,\"followed\":{\"traddr\":\"10.0.0.9\",\"trsvcid\":4420,\
         \"subsysnqn\":\"nqn.2014-08.org.nvmexpress.discovery\"},\"genctr\":5,\"numrec\":2}\n"
    );
    let gone = LogEvent::Removed {
        gone: subsystem("nqn.x", "10.0.0.9"),
    };
    let gone = gone.render(Format::Json);
    assert!(
        gone.starts_with("{\"schema\":1,\"gone\":{\"trtype\":\"rdma\""),
        "{gone}"
    );
}
