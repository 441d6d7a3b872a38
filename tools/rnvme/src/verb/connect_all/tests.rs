// SPDX-License-Identifier: GPL-2.0
//! Many connections at once: what is told of each, and what one that fails does to the others.

use super::*;
use crate::cli::{Arguments, Verb};
use crate::controller::tests::{connecting, live, refusing};
use crate::controller::{Controller, State};
use crate::discovery::tests::{log, subsystem};
use crate::discovery::{Flags, Kind, Transport};
use crate::error::Status;
use crate::event::{Change, Notice};
use crate::failure::tests::rejected;
use crate::failure::{Failure, Stage};
use crate::kernel::tests::Script;
use crate::kernel::Made;
use crate::uapi::CtrlState;
use crate::verb::connect::target;
use clap::Parser;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const LINES: &str =
    "-a 10.0.0.9 -n nqn.2014-08.org.example:disk -q nqn.2014-08.org.example:host -I \
    00112233-4455-6677-8899-aabbccddeeff\n-a 10.0.0.9 -n nqn.y -q nqn.2014-08.org.example:host -I \
    00112233-4455-6677-8899-aabbccddeeff\n";

/// A file that goes with the value.
struct Config(PathBuf);

impl Config {
    fn new(test: &str, text: &str) -> Self {
        let name = format!("rnvme-{}-{test}.conf", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

/// What is printed, to either output, and how it ends.
fn play(config: &Config, kernel: &mut Script) -> (String, String, Result<(), Error>) {
    play_with(&["-f", config.0.to_str().unwrap()], kernel)
}

fn play_with(more: &[&str], kernel: &mut Script) -> (String, String, Result<(), Error>) {
    play_at(&Places::default(), more, kernel)
}

fn play_at(
    places: &Places,
    more: &[&str],
    kernel: &mut Script,
) -> (String, String, Result<(), Error>) {
    let line = ["rnvme", "connect-all"].iter().chain(more);
    let options = match Arguments::try_parse_from(line).unwrap().verb {
        Verb::ConnectAll(options) => options,
        other => panic!("{other:?}"),
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let end = orders(options).and_then(|orders| run(&orders, places, kernel, &mut out, &mut err));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(out), text(err), end)
}

fn made(id: u32) -> Result<Made, Error> {
    let name = format!("rnvme{id}");
    Ok(Made { id, name })
}

/// One that is live, from any address.
fn there() -> Controller {
    Controller {
        host_traddr: None,
        ..live()
    }
}

fn numbered(id: u32, controller: Controller) -> Controller {
    Controller { id, ..controller }
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
    let config = Config::new("denied", LINES);
    let denied = || Err(Error::new(Status::Permission, "no"));
    for (second, status) in [
        (denied(), Status::Permission),
        (Err(Error::new(Status::Timeout, "late")), Status::Failed),
    ] {
        let mut kernel = Script {
            connects: [denied(), second].into(),
            ..Script::default()
        };
        let end = play(&config, &mut kernel).2.unwrap_err();
        assert_eq!(end.status, status);
        assert_eq!(end.message, "connect-all: 2 of 2 connections failed");
    }
}

/// Nor does he wait for it.
#[test]
fn who_may_do_nothing_follows_nobody() {
    let mut kernel = Script {
        refused: [Error::new(Status::Permission, "permission denied")].into(),
        ..Script::default()
    };
    let line = [&["-a", "10.0.0.9", "-p"], &IDENTITY[..]].concat();
    let (_, err, end) = play_with(&line, &mut kernel);
    let denied = "rnvme: discover at 10.0.0.9:4420: permission denied\n";
    assert_eq!(err, denied);
    assert_eq!(end.unwrap_err().status, Status::Permission);
}

#[test]
fn all_connect_at_once() {
    let config = Config::new("all", LINES);
    let mut kernel = Script {
        connects: [made(0), made(1)].into(),
        ..Script::default()
    };
    kernel.tell(Change::Changed, numbered(1, live()));
    kernel.tell(Change::Changed, numbered(0, live()));
    let (out, err, end) = play(&config, &mut kernel);
    assert_eq!(
        out,
        "rnvme0: connected to nqn.2014-08.org.example:disk at 10.0.0.9:4420\n\
         rnvme1: connected to nqn.y at 10.0.0.9:4420\n"
    );
    assert_eq!((err.as_str(), end), ("", Ok(())));
    assert!(kernel.disconnected.is_empty());
}

#[test]
fn namespaces_without_a_disk_are_told() {
    let config = Config::new("refusing", LINES);
    let mut kernel = Script {
        connects: [made(0), made(1)].into(),
        ..Script::default()
    };
    kernel.tell(Change::Changed, numbered(1, refusing()));
    kernel.tell(Change::Changed, numbered(0, live()));
    let (_, err, end) = play(&config, &mut kernel);
    assert_eq!(
        err,
        "rnvme: rnvme1: no disk: namespace 2: 8 bytes of metadata a block are not supported\n\
         rnvme: rnvme1: no disk: namespace 7: not attached to the controller\n\
         rnvme: rnvme1: no disk: 1 more namespace\n"
    );
    assert_eq!(end, Ok(()));
}

#[test]
fn what_is_connected_stays_when_another_fails() {
    let config = Config::new("another", LINES);
    let exists = Err(Error::new(Status::Exists, "it exists"));
    let mut kernel = Script {
        connects: [exists, made(1)].into(),
        controllers: vec![there()],
        ..Script::default()
    };
    kernel.tell(Change::Changed, numbered(1, dead()));
    kernel.tell(Change::Removed, numbered(1, dead()));
    let (out, err, end) = play(&config, &mut kernel);
    assert_eq!(out, "rnvme0: already connected\n");
    assert_eq!(
        err,
        "rnvme: connect to 10.0.0.9:4420: rejected by target: no such subsystem nqn.x\n"
    );
    let error = end.unwrap_err();
    assert_eq!(error.message, "connect-all: 1 of 2 connections failed");
    assert_eq!(error.status, Status::Failed);
    assert_eq!(kernel.disconnected, [1]);
}

#[test]
fn an_interrupt_undoes_what_is_pending_only() {
    let config = Config::new("interrupt", LINES);
    let mut kernel = Script {
        connects: [made(0), made(1)].into(),
        ..Script::default()
    };
    kernel.tell(Change::Changed, numbered(0, live()));
    kernel.notices.push_back(Notice::Interrupted);
    kernel.tell(Change::Removed, numbered(1, connecting()));
    let (out, err, end) = play(&config, &mut kernel);
    assert!(out.starts_with("rnvme0: connected"), "{out}");
    assert_eq!(err, "rnvme: connect to 10.0.0.9:4420: interrupted\n");
    assert!(end.is_err());
    assert_eq!(kernel.disconnected, [1]);
}

/// Its disk may be in use, though nobody has heard of it yet.
#[test]
fn an_interrupt_undoes_nothing_that_is_live() {
    let config = Config::new("live", LINES);
    let mut kernel = Script {
        connects: [made(0), made(1)].into(),
        controllers: vec![numbered(0, live()), numbered(1, connecting())],
        ..Script::default()
    };
    kernel.notices.push_back(Notice::Interrupted);
    kernel.tell(Change::Removed, numbered(1, connecting()));
    let (out, err, end) = play(&config, &mut kernel);
    assert!(out.starts_with("rnvme0: connected"), "{out}");
    assert_eq!(err, "rnvme: connect to 10.0.0.9:4420: interrupted\n");
    assert!(end.is_err());
    assert_eq!(kernel.disconnected, [1]);
}

#[test]
fn nothing_is_tried_where_a_line_is_wrong() {
    let config = Config::new("wrong", &format!("{LINES}-a 10.0.0.9\n"));
    let mut kernel = Script::default();
    let (_, _, end) = play(&config, &mut kernel);
    let error = end.unwrap_err();
    assert_eq!(error.status, Status::Usage);
    assert!(error.message.contains(".conf:3: the following required"));
    assert!(kernel.wishes.is_empty());
}

#[test]
fn nothing_to_connect_is_no_error() {
    let config = Config::new("nothing", "# none yet\n");
    let (out, err, end) = play(&config, &mut Script::default());
    assert_eq!((out.as_str(), err.as_str(), end), ("", "", Ok(())));
}

const IDENTITY: [&str; 4] = [
    "-q",
    "nqn.2014-08.org.example:host",
    "-I",
    "00112233-4455-6677-8899-aabbccddeeff",
];

/// Discover at 10.0.0.9, where the logs are these, one after the other.
fn discover(logs: Vec<Vec<Entry>>, more: &[&str], kernel: &mut Script) -> [String; 3] {
    for (id, entries) in (0..).zip(logs) {
        kernel.logs.push_back(Ok(Some(log(entries))));
        kernel.notices.push_back(Notice::Discovered(id, None));
    }
    let line = [&["-a", "10.0.0.9"], &IDENTITY[..], more].concat();
    let (out, err, end) = play_with(&line, kernel);
    [
        out,
        err,
        end.map_or_else(|error| error.message, |()| String::new()),
    ]
}

fn referral(traddr: &str) -> Entry {
    Entry {
        subtype: Kind::REFERRAL,
        ..subsystem("nqn.2014-08.org.nvmexpress.discovery", traddr)
    }
}

#[test]
fn what_a_log_has_is_connected_with_the_options_of_the_line() {
    let mut kernel = Script {
        connects: [made(0), made(1)].into(),
        ..Script::default()
    };
    let current = Entry {
        subtype: Kind::CURRENT,
        ..referral("10.0.0.9")
    };
    let entries = vec![
        current,
        subsystem("nqn.x", "10.0.0.9"),
        subsystem("nqn.x", "10.0.0.9"),
        subsystem("nqn.y", "10.0.1.9"),
    ];
    // Events come when they are asked for: the discovery is first.
    let more = ["-k", "7", "-l", "-1", "--timeout", "3"];
    kernel.logs.push_back(Ok(Some(log(entries))));
    kernel.notices.push_back(Notice::Discovered(0, None));
    kernel.tell(Change::Changed, numbered(1, live()));
    kernel.tell(Change::Changed, numbered(0, live()));
    let [out, err, end] = discover(vec![], &more, &mut kernel);
    assert_eq!(
        out,
        "rnvme0: connected to nqn.x at 10.0.0.9:4420\n\
         rnvme1: connected to nqn.y at 10.0.1.9:4420\n"
    );
    assert_eq!((err.as_str(), end.as_str()), ("", ""));
    for wish in &kernel.wishes {
        assert_eq!(wish.keep_alive_tmo, Some(7));
        assert_eq!(wish.target.connect_timeout, 3000);
        assert_eq!(wish.target.hostnqn, "nqn.2014-08.org.example:host");
    }
}

#[test]
fn referrals_are_followed_once() {
    let mut kernel = Script::default();
    let same = Entry {
        eflags: Flags(1),
        ..referral("10.0.0.7")
    };
    let first = vec![referral("10.0.0.8"), same];
    let second = vec![referral("10.0.0.9"), referral("10.0.0.8")];
    let told = discover(vec![first, second], &[], &mut kernel);
    assert_eq!(told, ["", "", ""]);
    let asked: Vec<_> = kernel.asked.iter().map(|each| &each.traddr).collect();
    assert_eq!(asked, ["10.0.0.9", "10.0.0.8"]);
}

#[test]
fn referrals_end_somewhere() {
    let mut kernel = Script::default();
    let logs = (0..MOST_SEARCHES).map(|n| vec![referral(&format!("10.0.1.{n}"))]);
    let [out, err, end] = discover(logs.collect(), &[], &mut kernel);
    assert_eq!(out, "");
    assert_eq!(
        err,
        "rnvme: discover at 10.0.1.31:4420: more than 32 discovery controllers\n"
    );
    assert_eq!(end, "connect-all: 1 of 33 connections failed");
    assert_eq!(kernel.asked.len(), MOST_SEARCHES);
}

#[test]
fn what_cannot_be_connected_is_named() {
    let tcp = Entry {
        trtype: Transport(3),
        ..subsystem("nqn.y", "10.0.0.8")
    };
    let mut kernel = Script::default();
    let told = discover(vec![vec![tcp.clone()]], &[], &mut kernel);
    let line = "not connected: nqn.y at tcp 10.0.0.8:4420: rnvme connects with RDMA only\n";
    assert_eq!(told, [line, "", ""]);
    let mut kernel = Script::default();
    let [out, ..] = discover(vec![vec![tcp]], &["-o", "json"], &mut kernel);
    assert!(
        out.starts_with("{\"schema\":1,\"skipped\":{\"trtype\":\"tcp\""),
        "{out}"
    );
}

#[test]
fn a_discovery_that_fails_stops_no_other() {
    let identity = IDENTITY.join(" ");
    let text = format!("discover -a 10.0.0.8 {identity}\ndiscover -a 10.0.0.9 {identity}\n");
    let config = Config::new("discover", &text);
    let mut kernel = Script {
        connects: [made(0)].into(),
        logs: [
            Err(Error::failed("rejected")),
            Ok(Some(log(vec![subsystem("nqn.x", "10.0.0.9")]))),
        ]
        .into(),
        ..Script::default()
    };
    kernel.notices.push_back(Notice::Lost);
    kernel.tell(Change::Changed, numbered(0, live()));
    let (out, err, end) = play(&config, &mut kernel);
    assert_eq!(out, "rnvme0: connected to nqn.x at 10.0.0.9:4420\n");
    assert_eq!(err, "rnvme: discover at 10.0.0.8:4420: rejected\n");
    let message = end.unwrap_err().message;
    assert_eq!(message, "connect-all: 1 of 3 connections failed");
}

#[test]
fn a_deadline_ends_discoveries() {
    let mut kernel = Script::default();
    kernel.notices.push_back(Notice::Deadline);
    kernel.logs.push_back(Ok(None));
    let [_, err, end] = discover(vec![], &[], &mut kernel);
    assert_eq!(
        err,
        "rnvme: discover at 10.0.0.9:4420: the kernel did not finish in time\n"
    );
    assert_eq!(end, "connect-all: 1 of 1 connections failed");
}

#[test]
fn what_was_not_read_is_a_failure() {
    let mut kernel = Script::default();
    let cut = Log {
        numrec: 2000,
        ..log(vec![])
    };
    kernel.logs.push_back(Ok(Some(cut)));
    kernel.notices.push_back(Notice::Discovered(0, None));
    let [_, err, _] = discover(vec![], &[], &mut kernel);
    assert_eq!(
        err,
        "rnvme: discover at 10.0.0.9:4420: only the first 0 of 2000 records were read\n"
    );
}
/// What is told when `rnvme connect-all -a 10.0.0.9 --persistent` hears these, and is stopped.
fn follow(kernel: &mut Script) -> (String, String) {
    kernel.notices.push_back(Notice::Interrupted);
    let line = [&["-a", "10.0.0.9", "-p", "-k", "7"], &IDENTITY[..]].concat();
    let (out, err, end) = play_with(&line, kernel);
    assert_eq!(end, Ok(()));
    (out, err)
}

impl Script {
    /// The log of a discovery is this from now on.
    fn log_is(&mut self, id: u32, genctr: u64, entries: Vec<Entry>) {
        let log = Log {
            genctr,
            ..log(entries)
        };
        self.logs.push_back(Ok(Some(log)));
        self.notices.push_back(Notice::Discovered(id, None));
    }

    /// A discovery failed; the kernel goes on with it or not.
    fn failed(&mut self, id: u32, message: &str, next_attempt: Option<u32>) {
        let failure = Failure {
            message: message.into(),
            next_attempt,
            ..rejected()
        };
        self.ends(id, failure);
    }

    fn ends(&mut self, id: u32, failure: Failure) {
        let error = Box::new(Error::from(failure));
        self.notices.push_back(Notice::Discovered(id, Some(error)));
    }
}

#[test]
fn what_a_log_names_later_is_connected_later() {
    let mut kernel = Script {
        connects: [made(0), made(1)].into(),
        ..Script::default()
    };
    let (one, two) = (
        subsystem("nqn.x", "10.0.0.9"),
        subsystem("nqn.y", "10.0.0.9"),
    );
    kernel.log_is(0, 1, vec![one.clone()]);
    kernel.tell(Change::Changed, numbered(0, live()));
    // Another program's, and one that says nothing new.
    kernel.notices.push_back(Notice::Discovered(9, None));
    kernel.log_is(0, 1, vec![one.clone()]);
    kernel.log_is(0, 2, vec![one, two.clone()]);
    kernel.tell(Change::Changed, numbered(1, live()));
    kernel.log_is(0, 3, vec![two]);
    let (out, err) = follow(&mut kernel);
    assert_eq!(
        out,
        "following 10.0.0.9:4420: 1 record, generation 1\n\
         rnvme0: connected to nqn.x at 10.0.0.9:4420\n\
         following 10.0.0.9:4420: 2 records, generation 2\n\
         rnvme1: connected to nqn.y at 10.0.0.9:4420\n\
         following 10.0.0.9:4420: 1 record, generation 3\n\
         offered no more: nqn.x at rdma 10.0.0.9:4420\n"
    );
    assert_eq!(err, "");
    // What is connected stays so.
    assert!(kernel.disconnected.is_empty());
    let [follow] = &kernel.followed[..] else {
        panic!("{:?}", kernel.followed);
    };
    assert_eq!(
        (follow.keep_alive_tmo, follow.reconnect_delay),
        (Some(7), None)
    );
}

#[test]
fn what_comes_back_is_new() {
    let mut kernel = Script {
        connects: [made(0), Err(Error::new(Status::Exists, "it exists"))].into(),
        controllers: vec![there()],
        ..Script::default()
    };
    let entry = subsystem("nqn.2014-08.org.example:disk", "10.0.0.9");
    kernel.log_is(0, 1, vec![entry.clone()]);
    kernel.tell(Change::Changed, live());
    kernel.log_is(0, 2, vec![]);
    kernel.log_is(0, 3, vec![entry]);
    let (out, _) = follow(&mut kernel);
    assert!(
        out.ends_with("generation 3\nrnvme0: already connected\n"),
        "{out}"
    );
}

#[test]
fn a_loss_is_told_once_and_its_end() {
    let mut kernel = Script::default();
    kernel.failed(0, "nobody listens there", Some(250));
    kernel.failed(0, "nobody listens there", Some(500));
    kernel.log_is(0, 1, vec![]);
    kernel.failed(0, "the target disconnected", Some(250));
    kernel.notices.push_back(Notice::Lost);
    kernel.logs.push_back(Ok(None));
    kernel.log_is(0, 1, vec![]);
    let (out, err) = follow(&mut kernel);
    let line = "following 10.0.0.9:4420: 0 records, generation 1\n";
    assert_eq!(out, [line, line].concat());
    assert_eq!(
        err,
        "rnvme: discover at 10.0.0.9:4420: nobody listens there; it is tried again\n\
         rnvme: discover at 10.0.0.9:4420: the target disconnected; it is tried again\n"
    );
}

/// The kernel cannot follow who does not tell of changes.
fn tells_no_changes() -> Failure {
    Failure {
        stage: Stage(ErrorStage::Enable as u32),
        errno: libc::EOPNOTSUPP,
        message: "the target does not tell".into(),
        ..rejected()
    }
}

#[test]
fn who_does_not_tell_of_changes_is_asked_again() {
    let mut kernel = Script {
        connects: [made(0), made(1)].into(),
        ..Script::default()
    };
    let one = || vec![subsystem("nqn.x", "10.0.0.9")];
    kernel.ends(0, tells_no_changes());
    kernel.log_is(1, 1, one());
    kernel.tell(Change::Changed, numbered(0, live()));
    kernel.notices.push_back(Notice::Deadline);
    kernel.log_is(2, 1, one());
    kernel.notices.push_back(Notice::Deadline);
    kernel.failed(3, "nobody listens there", None);
    kernel.notices.push_back(Notice::Deadline);
    kernel.log_is(4, 2, vec![subsystem("nqn.y", "10.0.0.9")]);
    kernel.tell(Change::Changed, numbered(1, live()));
    let (out, err) = follow(&mut kernel);
    assert_eq!(
        out,
        "following 10.0.0.9:4420: 1 record, generation 1\n\
         rnvme0: connected to nqn.x at 10.0.0.9:4420\n\
         following 10.0.0.9:4420: 1 record, generation 2\n\
         offered no more: nqn.x at rdma 10.0.0.9:4420\n\
         rnvme1: connected to nqn.y at 10.0.0.9:4420\n"
    );
    assert_eq!(
        err,
        "rnvme: discover at 10.0.0.9:4420: the target does not tell; it is asked every 30 s\n\
         rnvme: discover at 10.0.0.9:4420: nobody listens there\n"
    );
    assert_eq!((kernel.asked.len(), kernel.followed.len()), (5, 1));
    assert_eq!(kernel.forgotten, [0, 1, 2, 3, 4]);
}

#[test]
fn who_refuses_for_good_is_asked_anew_if_there_is_no_other() {
    let mut kernel = Script::default();
    kernel.failed(0, "no such subsystem", None);
    kernel.notices.push_back(Notice::Deadline);
    kernel.failed(1, "no such subsystem", None);
    kernel.notices.push_back(Notice::Deadline);
    kernel.log_is(2, 1, vec![]);
    let (out, err) = follow(&mut kernel);
    assert_eq!(out, "following 10.0.0.9:4420: 0 records, generation 1\n");
    assert_eq!(err, "rnvme: discover at 10.0.0.9:4420: no such subsystem\n");
    assert_eq!(kernel.followed.len(), 3);
}

#[test]
fn it_ends_when_all_is_done() {
    let config = Config::new("persistent", "# none yet\n");
    let line = ["-p", "-f", config.0.to_str().unwrap()];
    assert_eq!(play_with(&line, &mut Script::default()).2, Ok(()));
    let config = Config::new("plain", LINES);
    let line = ["-p", "-f", config.0.to_str().unwrap()];
    let mut kernel = Script {
        connects: [made(0), made(1), made(2)].into(),
        ..Script::default()
    };
    kernel.tell(Change::Changed, numbered(0, live()));
    kernel.tell(Change::Changed, numbered(1, dead()));
    kernel.notices.push_back(Notice::Deadline);
    kernel.tell(Change::Changed, numbered(2, live()));
    let (out, err, end) = play_with(&line, &mut kernel);
    assert!(
        out.ends_with("rnvme2: connected to nqn.y at 10.0.0.9:4420\n"),
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
    let config = Config::new("module", &lines.concat());
    let line = ["-p", "-f", config.0.to_str().unwrap()];
    let mut kernel = Script {
        connects: [made(0)].into(),
        ..Script::default()
    };
    let cancelled = Failure {
        errno: libc::ECANCELED,
        message: "the discovery was cancelled".into(),
        ..rejected()
    };
    kernel.ends(0, cancelled);
    let (_, err, end) = play_with(&line, &mut kernel);
    assert_eq!(
        err,
        "rnvme: discover at 10.0.0.8:4420: the discovery was cancelled\n\
         rnvme: discover at 10.0.0.9:4420: the rnvme module was unloaded\n\
         rnvme: connect to 10.0.0.7:4420: the rnvme module was unloaded\n"
    );
    let error = end.unwrap_err();
    assert_eq!(error.message, "connect-all: the rnvme module was unloaded");
    assert_eq!(error.status, Status::NoModule);
    // Who does not follow knows it by the status, too.
    let mut kernel = Script {
        connects: [made(0)].into(),
        logs: [Err(Error::unloaded())].into(),
        ..Script::default()
    };
    kernel.notices.push_back(Notice::Discovered(0, None));
    assert_eq!(
        play_with(&line[1..], &mut kernel).2.unwrap_err().status,
        error.status
    );
    // It may go while nobody is asked.
    let mut kernel = Script::default();
    kernel.ends(0, tells_no_changes());
    kernel.log_is(1, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    kernel.connects = [Err(Error::unloaded())].into();
    let line = [&["-a", "10.0.0.9", "-p"], &IDENTITY[..]].concat();
    assert_eq!(play_with(&line, &mut kernel).2.unwrap_err(), error);
}

#[test]
fn a_name_may_be_that_of_another_one_later() {
    let (names, answers) = names(&["10.0.0.8", "10.0.0.8", "10.0.0.9"]);
    let mut kernel = Script {
        connects: [made(0)].into(),
        ..Script::default()
    };
    kernel.log_is(
        0,
        1,
        vec![subsystem("nqn.x", "10.0.0.8"), referral("10.0.0.7")],
    );
    kernel.tell(Change::Changed, numbered(0, live()));
    kernel.failed(0, "the target disconnected", Some(250));
    kernel.notices.push_back(Notice::Deadline);
    kernel.notices.push_back(Notice::Deadline);
    kernel.log_is(2, 1, vec![]);
    // All is well: it is not looked for.
    kernel.failed(2, "the target disconnected", Some(250));
    kernel.log_is(2, 1, vec![]);
    kernel.notices.push_back(Notice::Deadline);
    kernel.notices.push_back(Notice::Interrupted);
    let line = [&["-a", "a.example", "-p"], &IDENTITY[..]].concat();
    let (out, _, end) = play_at(&names, &line, &mut kernel);
    assert!(
        out.ends_with(
            "offered no more: nqn.x at rdma 10.0.0.8:4420\n\
             offered no more: nqn.2014-08.org.nvmexpress.discovery at rdma 10.0.0.7:4420\n\
             following 10.0.0.9:4420: 0 records, generation 1\n\
             following 10.0.0.9:4420: 0 records, generation 1\n"
        ),
        "{out}"
    );
    assert_eq!(end, Ok(()));
    let asked: Vec<_> = kernel.asked.iter().map(|each| &each.traddr).collect();
    assert_eq!(asked, ["10.0.0.8", "10.0.0.7", "10.0.0.9"]);
    assert_eq!(kernel.forgotten, [0, 1]);
    assert!(answers.lock().unwrap().is_empty());
}

#[test]
fn where_a_name_leads_to_nothing_it_is_looked_for_again() {
    let (names, _) = names(&["10.0.0.8", "", "10.0.0.9"]);
    let mut kernel = Script {
        connects: [made(0), made(1), made(2)].into(),
        ..Script::default()
    };
    let config = Config::new(
        "moved",
        &format!("-a a.example -n nqn.x {}\n", IDENTITY.join(" ")),
    );
    for id in 0..2 {
        kernel.tell(Change::Changed, numbered(id, dead()));
        kernel.notices.push_back(Notice::Deadline);
    }
    kernel.tell(Change::Changed, numbered(2, live()));
    let line = ["-p", "-f", config.0.to_str().unwrap()];
    let (out, err, end) = play_at(&names, &line, &mut kernel);
    assert_eq!(out, "rnvme2: connected to nqn.x at 10.0.0.9:4420\n");
    let why = "connect to a.example:4420: cannot resolve host name a.example: it has no address";
    assert!(err.ends_with(&format!("rnvme: {why}\n")), "{err}");
    assert_eq!((err.lines().count(), end), (2, Ok(())));
    let to: Vec<_> = kernel
        .wishes
        .iter()
        .map(|each| &each.target.traddr)
        .collect();
    assert_eq!(to, ["10.0.0.8", "10.0.0.8", "10.0.0.9"]);
}

type Answers = Arc<Mutex<VecDeque<&'static str>>>;

/// Host names have these addresses, one after the other, or none.
fn names(answers: &[&'static str]) -> (Places, Answers) {
    let answers = Arc::new(Mutex::new(answers.iter().copied().collect::<VecDeque<_>>()));
    let left = answers.clone();
    let names = move |_: &str| {
        let answer = left.lock().unwrap().pop_front();
        let answer = answer.expect("no name was to be looked for");
        Ok(answer.parse().into_iter().collect())
    };
    (Places::with_names(names), answers)
}

#[test]
fn referrals_come_and_go() {
    let mut kernel = Script::default();
    kernel.log_is(0, 1, vec![referral("10.0.0.8")]);
    kernel.log_is(1, 1, vec![referral("10.0.0.9")]);
    kernel.log_is(0, 2, vec![]);
    kernel.log_is(0, 3, vec![referral("10.0.0.8")]);
    let (out, err) = follow(&mut kernel);
    assert_eq!(err, "");
    assert!(
        out.contains("offered no more: nqn.2014-08.org.nvmexpress.discovery at rdma 10.0.0.8"),
        "{out}"
    );
    let asked: Vec<_> = kernel.asked.iter().map(|each| &each.traddr).collect();
    assert_eq!(asked, ["10.0.0.9", "10.0.0.8", "10.0.0.8"]);
    assert_eq!(kernel.forgotten, [1]);
}

/// What only the log of a forgotten one led to is forgotten, too, also where two refer to each other.
#[test]
fn whoever_a_dropped_referral_led_to_goes_with_it() {
    let mut kernel = Script {
        connects: [made(0), made(1)].into(),
        ..Script::default()
    };
    let disk = || subsystem("nqn.x", "10.0.0.6");
    kernel.log_is(0, 1, vec![referral("10.0.0.8")]);
    kernel.log_is(1, 1, vec![referral("10.0.0.7"), disk()]);
    kernel.log_is(2, 1, vec![referral("10.0.0.8")]);
    kernel.tell(Change::Changed, live());
    kernel.log_is(0, 2, vec![]);
    // Of those that come back all is new.
    kernel.log_is(0, 3, vec![referral("10.0.0.8")]);
    kernel.log_is(3, 1, vec![disk()]);
    kernel.tell(Change::Changed, numbered(1, live()));
    let (out, err) = follow(&mut kernel);
    assert_eq!(err, "");
    assert!(out.contains("offered no more: nqn.x at rdma"), "{out}");
    let asked: Vec<_> = kernel.asked.iter().map(|each| &each.traddr).collect();
    assert_eq!(asked, ["10.0.0.9", "10.0.0.8", "10.0.0.7", "10.0.0.8"]);
    assert_eq!(kernel.forgotten, [1, 2]);
    assert_eq!(kernel.wishes.len(), 2);
}

#[test]
fn what_could_not_be_connected_is_tried_again() {
    let mut kernel = Script {
        connects: [made(0), made(0), made(0)].into(),
        ..Script::default()
    };
    kernel.log_is(0, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    for _ in 0..2 {
        kernel.tell(Change::Changed, dead());
        kernel.notices.push_back(Notice::Deadline);
    }
    kernel.tell(Change::Changed, live());
    let (out, err) = follow(&mut kernel);
    assert!(
        out.ends_with("rnvme0: connected to nqn.x at 10.0.0.9:4420\n"),
        "{out}"
    );
    // The same reason is not told twice.
    assert_eq!(
        err,
        "rnvme: connect to 10.0.0.9:4420: rejected by target: no such subsystem nqn.x\n"
    );
    assert_eq!(kernel.disconnected, [0, 0]);
}

#[test]
fn who_stops_it_leaves_nothing_half_made() {
    let mut kernel = Script {
        connects: [made(0)].into(),
        controllers: vec![connecting()],
        ..Script::default()
    };
    kernel.log_is(0, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    kernel.notices.push_back(Notice::Interrupted);
    kernel.tell(Change::Removed, connecting());
    let line = [&["-a", "10.0.0.9", "-p"], &IDENTITY[..]].concat();
    let (_, err, end) = play_with(&line, &mut kernel);
    assert_eq!(err, "rnvme: connect to 10.0.0.9:4420: interrupted\n");
    assert_eq!((end, &kernel.disconnected[..]), (Ok(()), &[0][..]));
}

#[test]
fn a_deadline_ends_attempts_only() {
    let mut kernel = Script {
        connects: [made(0)].into(),
        controllers: vec![connecting()],
        ..Script::default()
    };
    kernel.log_is(0, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    kernel.notices.push_back(Notice::Deadline);
    kernel.log_is(0, 2, vec![]);
    let (out, err) = follow(&mut kernel);
    assert!(
        out.ends_with("offered no more: nqn.x at rdma 10.0.0.9:4420\n"),
        "{out}"
    );
    let why = "the kernel did not finish in time";
    assert_eq!(err, format!("rnvme: connect to 10.0.0.9:4420: {why}\n"));
}

/// Follow what is in a file; then it is stopped.
fn follow_lines(test: &str, lines: &[&str], kernel: &mut Script) -> (String, String) {
    let identity = IDENTITY.join(" ");
    let lines = lines.iter().map(|line| format!("{line} {identity}\n"));
    let config = Config::new(test, &lines.collect::<String>());
    kernel.notices.push_back(Notice::Interrupted);
    let line = ["-p", "-k", "7", "-f", config.0.to_str().unwrap()];
    let (out, err, end) = play_with(&line, kernel);
    assert_eq!(end, Ok(()));
    (out, err)
}

#[test]
fn a_name_that_is_not_known_yet_holds_up_nothing_and_is_asked_for_again() {
    let mut kernel = Script::default();
    let lines = ["discover -a no..name", "discover -a 10.0.0.9"];
    kernel.log_is(0, 1, vec![]);
    kernel.notices.push_back(Notice::Deadline);
    let (out, err) = follow_lines("unknown", &lines, &mut kernel);
    assert_eq!(out, "following 10.0.0.9:4420: 0 records, generation 1\n");
    let start = "rnvme: discover at no..name:4420: cannot resolve host name no..name: ";
    assert!(err.starts_with(start), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert_eq!(kernel.asked.len(), 1);
}

#[test]
fn a_name_that_is_not_known_yet_is_asked_for_again_if_it_is_the_only_one() {
    let mut kernel = Script::default();
    kernel.notices.push_back(Notice::Deadline);
    let (out, err) = follow_lines("only", &["discover -a no..name"], &mut kernel);
    assert_eq!((out.as_str(), err.lines().count()), ("", 1), "{err}");
}

#[test]
fn what_the_kernel_cannot_begin_is_begun_later() {
    let mut kernel = Script {
        refused: [Error::failed("too many discoveries")].into(),
        ..Script::default()
    };
    let lines = ["discover -a 10.0.0.8", "discover -a 10.0.0.9"];
    kernel.log_is(0, 1, vec![]);
    kernel.notices.push_back(Notice::Deadline);
    kernel.log_is(1, 1, vec![]);
    let (out, err) = follow_lines("later", &lines, &mut kernel);
    assert_eq!(
        out,
        "following 10.0.0.9:4420: 0 records, generation 1\n\
         following 10.0.0.8:4420: 0 records, generation 1\n"
    );
    assert_eq!(
        err,
        "rnvme: discover at 10.0.0.8:4420: too many discoveries\n"
    );
}

#[test]
fn who_is_lost_for_good_is_asked_anew() {
    let mut kernel = Script::default();
    let lines = ["discover -a 10.0.0.8", "discover -a 10.0.0.9"];
    kernel.failed(0, "the log changes", None);
    kernel.notices.push_back(Notice::Deadline);
    kernel.log_is(2, 1, vec![]);
    let (out, err) = follow_lines("anew", &lines, &mut kernel);
    assert_eq!(out, "following 10.0.0.8:4420: 0 records, generation 1\n");
    assert_eq!(err, "rnvme: discover at 10.0.0.8:4420: the log changes\n");
    let asked: Vec<_> = kernel.asked.iter().map(|each| &each.traddr).collect();
    assert_eq!(asked, ["10.0.0.8", "10.0.0.9", "10.0.0.8"]);
}

#[test]
fn a_line_that_could_not_be_connected_is_tried_again() {
    let mut kernel = Script {
        connects: [made(1), made(2)].into(),
        ..Script::default()
    };
    let lines = ["-a 10.0.0.9 -n nqn.x", "discover -a 10.0.0.8"];
    kernel.tell(Change::Changed, numbered(1, dead()));
    kernel.notices.push_back(Notice::Deadline);
    kernel.tell(Change::Changed, numbered(2, live()));
    let (out, err) = follow_lines("again", &lines, &mut kernel);
    assert_eq!(out, "rnvme2: connected to nqn.x at 10.0.0.9:4420\n");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert_eq!(kernel.wishes.len(), 2);
}

#[test]
fn what_a_line_names_stays_known_when_a_log_drops_it() {
    let mut kernel = Script {
        connects: [made(1)].into(),
        ..Script::default()
    };
    let lines = [
        "-a 10.0.0.9 -n nqn.x",
        "discover -a 10.0.0.8",
        "discover -a no..name",
    ];
    kernel.tell(Change::Changed, numbered(1, live()));
    kernel.log_is(0, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    kernel.log_is(0, 2, vec![]);
    // The name makes it try again.
    kernel.notices.push_back(Notice::Deadline);
    let (out, _) = follow_lines("stays", &lines, &mut kernel);
    assert!(out.contains("offered no more: nqn.x"), "{out}");
    assert_eq!(kernel.wishes.len(), 1);
}

/// Nobody reads it.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn who_cannot_tell_leaves_nothing_half_made() {
    let mut kernel = Script {
        connects: [made(0)].into(),
        controllers: vec![connecting()],
        ..Script::default()
    };
    kernel.log_is(0, 1, vec![subsystem("nqn.x", "10.0.0.9")]);
    kernel.tell(Change::Removed, connecting());
    let line = ["rnvme", "connect-all", "-a", "10.0.0.9", "-p"];
    let line = [&line[..], &IDENTITY[..]].concat();
    let options = match Arguments::try_parse_from(line).unwrap().verb {
        Verb::ConnectAll(options) => options,
        other => panic!("{other:?}"),
    };
    let end = run(
        &orders(options).unwrap(),
        &Places::default(),
        &mut kernel,
        &mut Closed,
        &mut Closed,
    );
    assert!(end.is_err());
    assert_eq!(kernel.disconnected, [0]);
}

#[test]
fn what_cannot_begin_is_told_at_once() {
    let config = Config::new(
        "typo",
        &format!("discover -a typo {}\n", IDENTITY.join(" ")),
    );
    let line = [
        "rnvme",
        "connect-all",
        "-p",
        "-f",
        config.0.to_str().unwrap(),
    ];
    let options = match Arguments::try_parse_from(line).unwrap().verb {
        Verb::ConnectAll(options) => options,
        other => panic!("{other:?}"),
    };
    let places = names(&["no address"]).0;
    // It hears nothing before.
    let mut kernel = Script::default();
    let orders = orders(options).unwrap();
    assert!(run(&orders, &places, &mut kernel, &mut Closed, &mut Closed).is_err());
}

#[test]
fn programs_are_told_in_json() {
    let target = |options: &ConnectAll| {
        let (access, nqn) = (&options.access, &options.nqn);
        target("10.0.0.9", nqn, access, &Places::default()).unwrap()
    };
    let line = [&["rnvme", "connect-all", "-a", "10.0.0.9"], &IDENTITY[..]].concat();
    let target = match Arguments::try_parse_from(line).unwrap().verb {
        Verb::ConnectAll(options) => target(&options),
        other => panic!("{other:?}"),
    };
    let read = News::Read {
        target,
        genctr: 5,
        numrec: 2,
    };
    assert_eq!(
        read.render(Format::Json),
        "{\"schema\":1,\"followed\":{\"traddr\":\"10.0.0.9\",\"trsvcid\":4420,\
         \"subsysnqn\":\"nqn.2014-08.org.nvmexpress.discovery\"},\"genctr\":5,\"numrec\":2}\n"
    );
    let gone = News::Gone(subsystem("nqn.x", "10.0.0.9")).render(Format::Json);
    assert!(
        gone.starts_with("{\"schema\":1,\"gone\":{\"trtype\":\"rdma\""),
        "{gone}"
    );
}
