// SPDX-License-Identifier: GPL-2.0
//! `--persistent`: changes of logs, losses and retries.

use super::*;
use std::io::Write;

/// Runs `rnvmf connect-all -a 10.0.0.9 --persistent` until the prepared events end, and interrupts
/// it. Returns the outputs.
fn follow(kernel: &mut MockKernel) -> (String, String) {
    kernel.wait_results.push_back(WaitResult::Interrupted);
    let line = [&["-a", "10.0.0.9", "-p", "-k", "7"], &IDENTITY[..]].concat();
    let (out, err, end) = run_mock_with(&line, kernel);
    assert_eq!(end, Ok(()));
    (out, err)
}

impl MockKernel {
    /// Adds the event of a changed log.
    fn log_is(&mut self, id: u32, genctr: u64, entries: Vec<LogEntry>) {
        let log = DiscoveryLog {
            genctr,
            ..log(entries)
        };
        self.discovery_logs.push_back(Ok(Some(log)));
        self.wait_results.push_back(discovery_done(id));
    }

    /// Adds the event of a failed discovery, which the kernel continues if there is a next attempt.
    fn failed(&mut self, id: u32, message: &str, next_attempt: Option<u32>) {
        let ctrl_error = CtrlError {
            message: message.into(),
            next_attempt,
            ..rejected()
        };
        self.ends(id, ctrl_error);
    }

    fn ends(&mut self, id: u32, ctrl_error: CtrlError) {
        let failed = discovery_failed(id, Error::from(ctrl_error));
        self.wait_results.push_back(failed);
    }
}

#[test]
fn what_a_log_names_later_is_connected_later() {
    let mut kernel = MockKernel {
        connect_replies: [made(0), made(1)].into(),
        ..MockKernel::default()
    };
    let (one, two) = (
        subsystem("nqn.x", "10.0.0.9"),
        subsystem("nqn.y", "10.0.0.9"),
    );
    kernel.log_is(0, 1, vec![one.clone()]);
    kernel.push_event(Change::Changed, numbered(0, live()));
    // The event of another program's discovery, and an unchanged log.
    kernel.wait_results.push_back(discovery_done(9));
    kernel.log_is(0, 1, vec![one.clone()]);
    kernel.log_is(0, 2, vec![one, two.clone()]);
    kernel.push_event(Change::Changed, numbered(1, live()));
    kernel.log_is(0, 3, vec![two]);
    let (out, err) = follow(&mut kernel);
    assert_eq!(
        out,
        "following 10.0.0.9:4420: 1 record, generation 1\n\
         rnvmf0: connected to nqn.x at 10.0.0.9:4420\n\
         following 10.0.0.9:4420: 2 records, generation 2\n\
         rnvmf1: connected to nqn.y at 10.0.0.9:4420\n\
         following 10.0.0.9:4420: 1 record, generation 3\n\
         removed from the log: nqn.x at rdma 10.0.0.9:4420\n"
    );
    assert_eq!(err, "");
    // Controllers stay connected.
    assert!(kernel.disconnected.is_empty());
    let [args] = &kernel.persistent_args[..] else {
        panic!("{:?}", kernel.persistent_args);
    };
    assert_eq!((args.keep_alive_tmo, args.reconnect_delay), (Some(7), None));
}

#[test]
fn what_comes_back_is_new() {
    let mut kernel = MockKernel {
        connect_replies: [made(0), Err(Error::new(Status::Exists, "it exists"))].into(),
        controllers: vec![existing()],
        ..MockKernel::default()
    };
    let entry = subsystem("nqn.2014-08.org.example:disk", "10.0.0.9");
    kernel.log_is(0, 1, vec![entry.clone()]);
    kernel.push_event(Change::Changed, live());
    kernel.log_is(0, 2, vec![]);
    kernel.log_is(0, 3, vec![entry]);
    let (out, _) = follow(&mut kernel);
    assert!(
        out.ends_with("generation 3\nrnvmf0: already connected\n"),
        "{out}"
    );
}

#[test]
fn a_loss_is_told_once_and_its_end() {
    let mut kernel = MockKernel::default();
    kernel.failed(0, "connection refused", Some(250));
    kernel.failed(0, "connection refused", Some(500));
    kernel.log_is(0, 1, vec![]);
    kernel.failed(0, "the target disconnected", Some(250));
    kernel.wait_results.push_back(WaitResult::EventsLost);
    kernel.discovery_logs.push_back(Ok(None));
    kernel.log_is(0, 1, vec![]);
    let (out, err) = follow(&mut kernel);
    let line = "following 10.0.0.9:4420: 0 records, generation 1\n";
    assert_eq!(out, [line, line].concat());
    assert_eq!(
        err,
        "rnvmf: discover at 10.0.0.9:4420: connection refused; retrying\n\
         rnvmf: discover at 10.0.0.9:4420: the target disconnected; retrying\n"
    );
}

/// The kernel's error for a discovery controller without events for log changes.
fn no_events() -> CtrlError {
    CtrlError {
        stage: Stage(ErrorStage::Enable as u32),
        errno: libc::EOPNOTSUPP,
        message: "the target does not tell".into(),
        ..rejected()
    }
}

#[test]
fn who_does_not_tell_of_changes_is_asked_again() {
    let mut kernel = MockKernel {
        connect_replies: [made(0), made(1)].into(),
        ..MockKernel::default()
    };
    let one = || vec![subsystem("nqn.x", "10.0.0.9")];
    kernel.ends(0, no_events());
    kernel.log_is(1, 1, one());
    kernel.push_event(Change::Changed, numbered(0, live()));
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.log_is(2, 1, one());
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.failed(3, "connection refused", None);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.log_is(4, 2, vec![subsystem("nqn.y", "10.0.0.9")]);
    kernel.push_event(Change::Changed, numbered(1, live()));
    let (out, err) = follow(&mut kernel);
    assert_eq!(
        out,
        "following 10.0.0.9:4420: 1 record, generation 1\n\
         rnvmf0: connected to nqn.x at 10.0.0.9:4420\n\
         following 10.0.0.9:4420: 1 record, generation 2\n\
         removed from the log: nqn.x at rdma 10.0.0.9:4420\n\
         rnvmf1: connected to nqn.y at 10.0.0.9:4420\n"
    );
    assert_eq!(
        err,
        "rnvmf: discover at 10.0.0.9:4420: the target does not tell; reading its log every 30 s\n\
         rnvmf: discover at 10.0.0.9:4420: connection refused\n"
    );
    assert_eq!(
        (kernel.discover_targets.len(), kernel.persistent_args.len()),
        (5, 1)
    );
    assert_eq!(kernel.cancelled, [0, 1, 2, 3, 4]);
}

/// The kernel's error for a subsystem without a discovery log.
fn no_discovery() -> CtrlError {
    CtrlError {
        stage: Stage(ErrorStage::Discovery as u32),
        errno: libc::EOPNOTSUPP,
        message: "not a discovery subsystem".into(),
        ..rejected()
    }
}

#[test]
fn a_subsystem_without_a_log_ends_the_run() {
    let mut kernel = MockKernel::default();
    kernel.ends(0, no_discovery());
    let line = [&["-a", "10.0.0.9", "-p"], &IDENTITY[..]].concat();
    let (_, err, end) = run_mock_with(&line, &mut kernel);
    assert_eq!(
        err,
        "rnvmf: discover at 10.0.0.9:4420: not a discovery subsystem; \
         connect -n is for an NVM subsystem\n"
    );
    let end = end.unwrap_err();
    assert_eq!(end.status, Status::Failed);
    assert_eq!(end.message, "connect-all: 1 of 1 connections failed");
}

#[test]
fn a_subsystem_without_a_log_is_not_asked_again() {
    let mut kernel = MockKernel::default();
    let lines = ["discover -a 10.0.0.8", "discover -a 10.0.0.9"];
    kernel.ends(0, no_discovery());
    kernel.failed(1, "connection refused", None);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.log_is(2, 1, vec![]);
    let (out, err) = follow_lines("no-log", &lines, &mut kernel);
    assert_eq!(out, "following 10.0.0.9:4420: 0 records, generation 1\n");
    assert_eq!(err.lines().count(), 2, "{err}");
    assert_eq!(kernel.discover_targets.len(), 3);
}

#[test]
fn who_refuses_for_good_is_asked_anew_if_there_is_no_other() {
    let mut kernel = MockKernel::default();
    kernel.failed(0, "no such subsystem", None);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.failed(1, "no such subsystem", None);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.log_is(2, 1, vec![]);
    let (out, err) = follow(&mut kernel);
    assert_eq!(out, "following 10.0.0.9:4420: 0 records, generation 1\n");
    assert_eq!(err, "rnvmf: discover at 10.0.0.9:4420: no such subsystem\n");
    assert_eq!(kernel.persistent_args.len(), 3);
}

#[test]
fn it_ends_when_all_is_done() {
    let config = ConfigFile::new("persistent", "# none yet\n");
    let line = ["-p", "-f", config.0.to_str().unwrap()];
    assert_eq!(run_mock_with(&line, &mut MockKernel::default()).2, Ok(()));
    let config = ConfigFile::new("plain", LINES);
    let line = ["-p", "-f", config.0.to_str().unwrap()];
    let mut kernel = MockKernel {
        connect_replies: [made(0), made(1), made(2)].into(),
        ..MockKernel::default()
    };
    kernel.push_event(Change::Changed, numbered(0, live()));
    kernel.push_event(Change::Changed, numbered(1, dead_of("nqn.y")));
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.push_event(Change::Changed, numbered(2, live()));
    let (out, err, end) = run_mock_with(&line, &mut kernel);
    assert!(
        out.ends_with("rnvmf2: connected to nqn.y at 10.0.0.9:4420\n"),
        "{out}"
    );
    assert_eq!((err.lines().count(), end), (1, Ok(())));
}

#[test]
fn it_ends_with_the_module() {
    let identity = IDENTITY.join(" ");
    let lines = [
        "-a 10.0.0.7 -n nqn.x",
        "discover -a 10.0.0.8",
        "discover -a 10.0.0.9",
    ];
    let lines = lines.map(|line| format!("{line} {identity}\n"));
    let config = ConfigFile::new("module", &lines.concat());
    let line = ["-p", "-f", config.0.to_str().unwrap()];
    let mut kernel = MockKernel {
        connect_replies: [made(0)].into(),
        ..MockKernel::default()
    };
    let cancelled = CtrlError {
        errno: libc::ECANCELED,
        message: "the discovery was cancelled".into(),
        ..rejected()
    };
    kernel.ends(0, cancelled);
    let (_, err, end) = run_mock_with(&line, &mut kernel);
    assert_eq!(
        err,
        "rnvmf: discover at 10.0.0.8:4420: the discovery was cancelled\n\
         rnvmf: discover at 10.0.0.9:4420: the rnvmf module was unloaded\n\
         rnvmf: connect to 10.0.0.7:4420: the rnvmf module was unloaded\n"
    );
    let error = end.unwrap_err();
    assert_eq!(error.message, "connect-all: the rnvmf module was unloaded");
    assert_eq!(error.status, Status::NoModule);
    // The status is the same without --persistent.
    let mut kernel = MockKernel {
        connect_replies: [made(0)].into(),
        discovery_logs: [Err(Error::unloaded())].into(),
        ..MockKernel::default()
    };
    kernel.wait_results.push_back(discovery_done(0));
    assert_eq!(
        run_mock_with(&line[1..], &mut kernel).2.unwrap_err().status,
        error.status
    );
    // The module may be unloaded while no discovery is pending.
    let mut kernel = MockKernel::default();
    kernel.ends(0, no_events());
    kernel.log_is(1, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    kernel.connect_replies = [Err(Error::unloaded())].into();
    let line = [&["-a", "10.0.0.9", "-p"], &IDENTITY[..]].concat();
    assert_eq!(run_mock_with(&line, &mut kernel).2.unwrap_err(), error);
}

#[test]
fn a_name_may_be_that_of_another_one_later() {
    let (env, answers) = resolver(&["10.0.0.8", "10.0.0.8", "10.0.0.9"]);
    let mut kernel = MockKernel {
        connect_replies: [made(0)].into(),
        ..MockKernel::default()
    };
    kernel.log_is(
        0,
        1,
        vec![subsystem("nqn.x", "10.0.0.8"), referral("10.0.0.7")],
    );
    kernel.push_event(Change::Changed, numbered(0, live()));
    kernel.failed(0, "the target disconnected", Some(250));
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.log_is(2, 1, vec![]);
    // Without an error the host name is not resolved again.
    kernel.failed(2, "the target disconnected", Some(250));
    kernel.log_is(2, 1, vec![]);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.wait_results.push_back(WaitResult::Interrupted);
    let line = [&["-a", "a.example", "-p"], &IDENTITY[..]].concat();
    let (out, _, end) = run_mock_at(&env, &line, &mut kernel);
    assert!(
        out.ends_with(
            "removed from the log: nqn.x at rdma 10.0.0.8:4420\n\
             removed from the log: nqn.2014-08.org.nvmexpress.discovery at rdma 10.0.0.7:4420\n\
             following 10.0.0.9:4420: 0 records, generation 1\n\
             following 10.0.0.9:4420: 0 records, generation 1\n"
        ),
        "{out}"
    );
    assert_eq!(end, Ok(()));
    let asked: Vec<_> = kernel
        .discover_targets
        .iter()
        .map(|each| &each.traddr)
        .collect();
    assert_eq!(asked, ["10.0.0.8", "10.0.0.7", "10.0.0.9"]);
    assert_eq!(kernel.cancelled, [0, 1]);
    assert!(answers.lock().unwrap().is_empty());
}

#[test]
fn where_a_name_leads_to_nothing_it_is_looked_for_again() {
    let (env, _) = resolver(&["10.0.0.8", "", "10.0.0.9"]);
    let mut kernel = MockKernel {
        connect_replies: [made(0), made(1), made(2)].into(),
        ..MockKernel::default()
    };
    let config = ConfigFile::new(
        "moved",
        &format!("-a a.example -n nqn.x {}\n", IDENTITY.join(" ")),
    );
    for id in 0..2 {
        kernel.push_event(Change::Changed, numbered(id, dead()));
        kernel.wait_results.push_back(WaitResult::Deadline);
    }
    kernel.push_event(Change::Changed, numbered(2, live()));
    let line = ["-p", "-f", config.0.to_str().unwrap()];
    let (out, err, end) = run_mock_at(&env, &line, &mut kernel);
    assert_eq!(out, "rnvmf2: connected to nqn.x at 10.0.0.9:4420\n");
    let why = "connect to a.example:4420: cannot resolve host name a.example: it has no address";
    assert!(err.ends_with(&format!("rnvmf: {why}\n")), "{err}");
    assert_eq!((err.lines().count(), end), (2, Ok(())));
    let to: Vec<_> = kernel
        .connect_requests
        .iter()
        .map(|each| &each.target.traddr)
        .collect();
    assert_eq!(to, ["10.0.0.8", "10.0.0.8", "10.0.0.9"]);
}

type Answers = Arc<Mutex<VecDeque<&'static str>>>;

/// Returns an environment whose resolver returns these addresses in sequence; none for no address.
fn resolver(answers: &[&'static str]) -> (SystemEnv, Answers) {
    let answers = Arc::new(Mutex::new(answers.iter().copied().collect::<VecDeque<_>>()));
    let left = answers.clone();
    let resolver = move |_: &str| {
        let answer = left.lock().unwrap().pop_front();
        let answer = answer.expect("no name was to be looked for");
        Ok(answer.parse().into_iter().collect())
    };
    (SystemEnv::with_resolver(resolver), answers)
}

#[test]
fn referrals_come_and_go() {
    let mut kernel = MockKernel::default();
    kernel.log_is(0, 1, vec![referral("10.0.0.8")]);
    kernel.log_is(1, 1, vec![referral("10.0.0.9")]);
    kernel.log_is(0, 2, vec![]);
    kernel.log_is(0, 3, vec![referral("10.0.0.8")]);
    let (out, err) = follow(&mut kernel);
    assert_eq!(err, "");
    assert!(
        out.contains("removed from the log: nqn.2014-08.org.nvmexpress.discovery at rdma 10.0.0.8"),
        "{out}"
    );
    let asked: Vec<_> = kernel
        .discover_targets
        .iter()
        .map(|each| &each.traddr)
        .collect();
    assert_eq!(asked, ["10.0.0.9", "10.0.0.8", "10.0.0.8"]);
    assert_eq!(kernel.cancelled, [1]);
}

/// A forgotten discovery controller takes along what only its log has, even if two refer to each
/// other.
#[test]
fn whoever_a_dropped_referral_led_to_goes_with_it() {
    let mut kernel = MockKernel {
        connect_replies: [made(0), made(1)].into(),
        ..MockKernel::default()
    };
    let disk = || subsystem("nqn.x", "10.0.0.6");
    kernel.log_is(0, 1, vec![referral("10.0.0.8")]);
    kernel.log_is(1, 1, vec![referral("10.0.0.7"), disk()]);
    kernel.log_is(2, 1, vec![referral("10.0.0.8")]);
    kernel.push_event(Change::Changed, live());
    kernel.log_is(0, 2, vec![]);
    // All targets are new when the referral returns.
    kernel.log_is(0, 3, vec![referral("10.0.0.8")]);
    kernel.log_is(3, 1, vec![disk()]);
    kernel.push_event(Change::Changed, numbered(1, live()));
    let (out, err) = follow(&mut kernel);
    assert_eq!(err, "");
    assert!(out.contains("removed from the log: nqn.x at rdma"), "{out}");
    let asked: Vec<_> = kernel
        .discover_targets
        .iter()
        .map(|each| &each.traddr)
        .collect();
    assert_eq!(asked, ["10.0.0.9", "10.0.0.8", "10.0.0.7", "10.0.0.8"]);
    assert_eq!(kernel.cancelled, [1, 2]);
    assert_eq!(kernel.connect_requests.len(), 2);
}

#[test]
fn what_could_not_be_connected_is_tried_again() {
    let mut kernel = MockKernel {
        connect_replies: [made(0), made(0), made(0)].into(),
        ..MockKernel::default()
    };
    kernel.log_is(0, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    for _ in 0..2 {
        kernel.push_event(Change::Changed, dead());
        kernel.wait_results.push_back(WaitResult::Deadline);
    }
    kernel.push_event(Change::Changed, live());
    let (out, err) = follow(&mut kernel);
    assert!(
        out.ends_with("rnvmf0: connected to nqn.x at 10.0.0.9:4420\n"),
        "{out}"
    );
    // The same error is printed once.
    assert_eq!(
        err,
        "rnvmf: connect to 10.0.0.9:4420: rejected by target: no such subsystem nqn.x\n"
    );
    assert_eq!(kernel.disconnected, [0, 0]);
}

/// Returns a dead controller of a subsystem.
fn dead_of(subsysnqn: &str) -> Controller {
    Controller {
        subsysnqn: subsysnqn.into(),
        ..dead()
    }
}

#[test]
fn dead_controllers_are_replaced() {
    let mut kernel = MockKernel {
        connect_replies: [
            made(0),
            Err(Error::new(Status::Exists, "it exists")),
            made(1),
        ]
        .into(),
        controllers: vec![dead_of("nqn.x")],
        ..MockKernel::default()
    };
    kernel.log_is(0, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    kernel.push_event(Change::Changed, live());
    kernel.push_event(Change::Changed, dead_of("nqn.x"));
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.push_event(Change::Removed, dead_of("nqn.x"));
    kernel.push_event(Change::Changed, Controller { id: 1, ..live() });
    let (out, err) = follow(&mut kernel);
    assert_eq!(out.matches("connected to nqn.x").count(), 2, "{out}");
    assert_eq!((&err[..], &kernel.disconnected[..]), ("", &[0][..]));
}

#[test]
fn disconnected_dead_controllers_are_left() {
    let mut kernel = MockKernel {
        connect_replies: [made(0)].into(),
        ..MockKernel::default()
    };
    kernel.log_is(0, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    kernel.push_event(Change::Changed, live());
    kernel.push_event(Change::Changed, dead_of("nqn.x"));
    kernel.push_event(Change::Removed, dead_of("nqn.x"));
    kernel.wait_results.push_back(WaitResult::Deadline);
    let (_, err) = follow(&mut kernel);
    assert_eq!((&err[..], kernel.connect_requests.len()), ("", 1));
}

#[test]
fn who_stops_it_leaves_nothing_half_made() {
    let mut kernel = MockKernel {
        connect_replies: [made(0)].into(),
        controllers: vec![connecting()],
        ..MockKernel::default()
    };
    kernel.log_is(0, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    kernel.wait_results.push_back(WaitResult::Interrupted);
    kernel.push_event(Change::Removed, connecting());
    let line = [&["-a", "10.0.0.9", "-p"], &IDENTITY[..]].concat();
    let (_, err, end) = run_mock_with(&line, &mut kernel);
    assert_eq!(err, "rnvmf: connect to 10.0.0.9:4420: interrupted\n");
    assert_eq!((end, &kernel.disconnected[..]), (Ok(()), &[0][..]));
}

#[test]
fn a_deadline_ends_attempts_only() {
    let mut kernel = MockKernel {
        connect_replies: [made(0)].into(),
        controllers: vec![connecting()],
        ..MockKernel::default()
    };
    kernel.log_is(0, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.log_is(0, 2, vec![]);
    let (out, err) = follow(&mut kernel);
    assert!(
        out.ends_with("removed from the log: nqn.x at rdma 10.0.0.9:4420\n"),
        "{out}"
    );
    let why = "timed out waiting for the kernel";
    assert_eq!(err, format!("rnvmf: connect to 10.0.0.9:4420: {why}\n"));
}

/// Runs with a file of these lines until the prepared events end, and interrupts it.
fn follow_lines(test: &str, lines: &[&str], kernel: &mut MockKernel) -> (String, String) {
    let identity = IDENTITY.join(" ");
    let lines = lines.iter().map(|line| format!("{line} {identity}\n"));
    let config = ConfigFile::new(test, &lines.collect::<String>());
    kernel.wait_results.push_back(WaitResult::Interrupted);
    let line = ["-p", "-k", "7", "-f", config.0.to_str().unwrap()];
    let (out, err, end) = run_mock_with(&line, kernel);
    assert_eq!(end, Ok(()));
    (out, err)
}

#[test]
fn a_name_that_is_not_known_yet_holds_up_nothing_and_is_asked_for_again() {
    let mut kernel = MockKernel::default();
    let lines = ["discover -a no..name", "discover -a 10.0.0.9"];
    kernel.log_is(0, 1, vec![]);
    kernel.wait_results.push_back(WaitResult::Deadline);
    let (out, err) = follow_lines("unknown", &lines, &mut kernel);
    assert_eq!(out, "following 10.0.0.9:4420: 0 records, generation 1\n");
    let start = "rnvmf: discover at no..name:4420: cannot resolve host name no..name: ";
    assert!(err.starts_with(start), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert_eq!(kernel.discover_targets.len(), 1);
}

#[test]
fn a_name_that_is_not_known_yet_is_asked_for_again_if_it_is_the_only_one() {
    let mut kernel = MockKernel::default();
    kernel.wait_results.push_back(WaitResult::Deadline);
    let (out, err) = follow_lines("only", &["discover -a no..name"], &mut kernel);
    assert_eq!((out.as_str(), err.lines().count()), ("", 1), "{err}");
}

#[test]
fn what_the_kernel_cannot_begin_is_begun_later() {
    let mut kernel = MockKernel {
        rejections: [Error::failed("too many discoveries")].into(),
        ..MockKernel::default()
    };
    let lines = ["discover -a 10.0.0.8", "discover -a 10.0.0.9"];
    kernel.log_is(0, 1, vec![]);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.log_is(1, 1, vec![]);
    let (out, err) = follow_lines("later", &lines, &mut kernel);
    assert_eq!(
        out,
        "following 10.0.0.9:4420: 0 records, generation 1\n\
         following 10.0.0.8:4420: 0 records, generation 1\n"
    );
    assert_eq!(
        err,
        "rnvmf: discover at 10.0.0.8:4420: too many discoveries\n"
    );
}

#[test]
fn who_is_lost_for_good_is_asked_anew() {
    let mut kernel = MockKernel::default();
    let lines = ["discover -a 10.0.0.8", "discover -a 10.0.0.9"];
    kernel.failed(0, "the log changes", None);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.log_is(2, 1, vec![]);
    let (out, err) = follow_lines("anew", &lines, &mut kernel);
    assert_eq!(out, "following 10.0.0.8:4420: 0 records, generation 1\n");
    assert_eq!(err, "rnvmf: discover at 10.0.0.8:4420: the log changes\n");
    let asked: Vec<_> = kernel
        .discover_targets
        .iter()
        .map(|each| &each.traddr)
        .collect();
    assert_eq!(asked, ["10.0.0.8", "10.0.0.9", "10.0.0.8"]);
}

#[test]
fn a_line_that_could_not_be_connected_is_tried_again() {
    let mut kernel = MockKernel {
        connect_replies: [made(1), made(2)].into(),
        ..MockKernel::default()
    };
    let lines = ["-a 10.0.0.9 -n nqn.x", "discover -a 10.0.0.8"];
    kernel.push_event(Change::Changed, numbered(1, dead()));
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.push_event(Change::Changed, numbered(2, live()));
    let (out, err) = follow_lines("again", &lines, &mut kernel);
    assert_eq!(out, "rnvmf2: connected to nqn.x at 10.0.0.9:4420\n");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert_eq!(kernel.connect_requests.len(), 2);
}

#[test]
fn what_a_line_names_stays_known_when_a_log_drops_it() {
    let mut kernel = MockKernel {
        connect_replies: [made(1)].into(),
        ..MockKernel::default()
    };
    let lines = [
        "-a 10.0.0.9 -n nqn.x",
        "discover -a 10.0.0.8",
        "discover -a no..name",
    ];
    kernel.push_event(Change::Changed, numbered(1, live()));
    kernel.log_is(0, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    kernel.log_is(0, 2, vec![]);
    // The unresolved name causes a retry.
    kernel.wait_results.push_back(WaitResult::Deadline);
    let (out, _) = follow_lines("stays", &lines, &mut kernel);
    assert!(out.contains("removed from the log: nqn.x"), "{out}");
    assert_eq!(kernel.connect_requests.len(), 1);
}

/// A closed output.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs with closed outputs. Returns the result.
fn run_mock_to_nobody(
    env: &SystemEnv,
    more: &[&str],
    kernel: &mut MockKernel,
) -> Result<(), Error> {
    let config = Config::read(options(more).0).unwrap();
    let printer = &mut Printer {
        format: Format::Normal,
        out: &mut Closed,
        err: &mut Closed,
    };
    run(&config, env, kernel, printer)
}

#[test]
fn who_cannot_tell_leaves_nothing_half_made() {
    let mut kernel = MockKernel {
        connect_replies: [made(0)].into(),
        controllers: vec![connecting()],
        ..MockKernel::default()
    };
    kernel.log_is(0, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    kernel.push_event(Change::Removed, connecting());
    let line = [&["-a", "10.0.0.9", "-p"], &IDENTITY[..]].concat();
    assert!(run_mock_to_nobody(&SystemEnv::default(), &line, &mut kernel).is_err());
    assert_eq!(kernel.disconnected, [0]);
}

#[test]
fn what_cannot_begin_is_told_at_once() {
    let config = ConfigFile::new(
        "typo",
        &format!("discover -a typo {}\n", IDENTITY.join(" ")),
    );
    let line = ["-p", "-f", config.0.to_str().unwrap()];
    let env = resolver(&["no address"]).0;
    // No event is needed before.
    assert!(run_mock_to_nobody(&env, &line, &mut MockKernel::default()).is_err());
}
