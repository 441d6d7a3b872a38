// SPDX-License-Identifier: GPL-2.0

//! `rnvme connect-all`: the connections of a file, and what discovery controllers know of, all at
//! once.

mod finding;

use super::connect::{
    begin, deadline, failed, give_up, hear, report, shaped, target, undo, wish, Attempt,
};
use super::print;
use crate::address::Endpoint;
use crate::cli::{ConnectAll, DiscoveryController, Format, Seed};
use crate::connections::{self, Line};
use crate::discovery::{Entry, Log};
use crate::error::Error;
use crate::event::Notice;
use crate::host::Places;
use crate::kernel::{Kernel, Target, Wish};
use crate::render::json;
use finding::{sort, Finding};
use serde::Serialize;
use std::io::Write;
use std::time::Instant;

/// Most discovery controllers that are asked: who follows referrals has to stop somewhere.
const MOST_SEARCHES: usize = 32;

/// Connect what is not connected; print what came of each, and fail if one did.
pub(super) fn run(
    options: ConnectAll,
    places: &Places,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    let format = options.output.format;
    let lines = match options.traddr {
        Some(traddr) => vec![Line::Discover(Box::new(Seed {
            controller: DiscoveryController {
                traddr,
                nqn: options.nqn,
                access: options.access,
            },
            shape: options.shape,
        }))],
        None => connections::read(&options.config)?,
    };
    // Before the connects, so that no event of them can be missed.
    kernel.subscribe()?;
    let mut work = Work::default();
    for line in &lines {
        work.begin(line, places, kernel);
    }
    work.finish(kernel);
    work.tell(format, out, err)
}

/// A discovery controller that is being asked.
struct Search<'a> {
    id: u32,
    target: Target,
    /// Whose options are taken over.
    seed: &'a Seed,
}

/// What is under way, and what came of it.
#[derive(Default)]
struct Work<'a> {
    wishes: Vec<Wish>,
    attempts: Vec<Attempt>,
    searches: Vec<Search<'a>>,
    /// All that were asked.
    asked: Vec<Target>,
    skipped: Vec<(Entry, &'static str)>,
    failures: Vec<Error>,
    /// How many connections were to be made, those to discovery controllers included.
    tried: usize,
    /// When all must have ended.
    last: Option<Instant>,
}

impl<'a> Work<'a> {
    fn begin(&mut self, line: &'a Line, places: &Places, kernel: &mut impl Kernel) {
        match line {
            Line::Connect(options) => match wish(options, places) {
                Ok(wish) => self.connect(wish, kernel),
                Err(error) => self.never_tried(error),
            },
            Line::Discover(seed) => {
                let DiscoveryController {
                    traddr,
                    nqn,
                    access,
                } = &seed.controller;
                match target(traddr, nqn, access, places) {
                    Ok(target) => self.search(target, seed, kernel),
                    Err(error) => {
                        let place = Endpoint::new(traddr, access.trsvcid);
                        self.never_tried(unfound(place, error));
                    }
                }
            }
        }
    }

    fn never_tried(&mut self, error: Error) {
        self.tried += 1;
        self.failures.push(error);
    }

    /// Start with one connection; that it is there already is as good.
    fn connect(&mut self, wish: Wish, kernel: &mut impl Kernel) {
        if self.wishes.iter().any(|each| each.target == wish.target) {
            return;
        }
        self.tried += 1;
        match begin(true, &wish, kernel) {
            Ok(attempt) => {
                self.last = self.last.max(Some(deadline(&wish.target)));
                self.wishes.push(wish);
                self.attempts.push(attempt);
            }
            Err(error) => self.failures.push(failed(&wish, error)),
        }
    }

    /// Ask a discovery controller, once however many refer to it.
    fn search(&mut self, target: Target, seed: &'a Seed, kernel: &mut impl Kernel) {
        if self.asked.contains(&target) {
            return;
        }
        self.tried += 1;
        if self.asked.len() >= MOST_SEARCHES {
            let why = format!("more than {MOST_SEARCHES} discovery controllers");
            self.failures
                .push(unfound(target.endpoint(), Error::failed(why)));
            return;
        }
        self.asked.push(target.clone());
        match kernel.discover(&target) {
            Ok(id) => {
                self.last = self.last.max(Some(deadline(&target)));
                self.searches.push(Search { id, target, seed });
            }
            Err(error) => self.failures.push(unfound(target.endpoint(), error)),
        }
    }

    fn is_pending(&self) -> bool {
        !self.searches.is_empty() || self.attempts.iter().any(Attempt::is_pending)
    }

    /// Wait until all has ended, and leave nothing of what failed.
    fn finish(&mut self, kernel: &mut impl Kernel) {
        while self.is_pending() {
            let heard = kernel.next(self.last).and_then(|notice| {
                hear(&mut self.attempts, &notice, kernel)?;
                self.look(&notice, kernel);
                Ok(())
            });
            if let Err(error) = heard {
                give_up(&mut self.attempts, &error);
                for search in self.searches.drain(..) {
                    let place = search.target.endpoint();
                    self.failures.push(unfound(place, error.clone()));
                }
            }
        }
        undo(&mut self.attempts, kernel);
    }

    /// Look which searches are over.
    fn look(&mut self, notice: &Notice, kernel: &mut impl Kernel) {
        let which = |search: &Search<'_>| match notice {
            Notice::Discovered(id, _) => search.id == *id,
            Notice::Lost => true,
            _ => false,
        };
        let over;
        (over, self.searches) = self.searches.drain(..).partition(which);
        for search in over {
            let log = match notice {
                Notice::Discovered(_, Some(error)) => Err((**error).clone()),
                _ => kernel.log(search.id),
            };
            match log {
                Ok(None) => self.searches.push(search),
                Ok(Some(log)) => self.follow(&search, log, kernel),
                Err(error) => self.failures.push(unfound(search.target.endpoint(), error)),
            }
        }
    }

    /// Connect what a log has, and ask whom it refers to.
    fn follow(&mut self, search: &Search<'a>, log: Log, kernel: &mut impl Kernel) {
        if log.entries.len() as u64 != log.numrec {
            let (some, all) = (log.entries.len(), log.numrec);
            let why = format!("only the first {some} of {all} records were read");
            self.failures
                .push(unfound(search.target.endpoint(), Error::failed(why)));
        }
        for entry in log.entries {
            match sort(&entry, &search.target) {
                Finding::Subsystem(target) => {
                    self.connect(shaped(target, &search.seed.shape), kernel)
                }
                Finding::Referral(target) => self.search(target, search.seed, kernel),
                Finding::Nothing => (),
                Finding::Skipped(why) => self.skipped.push((entry, why)),
            }
        }
    }

    /// Print what came of each.
    fn tell(
        mut self,
        format: Format,
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> Result<(), Error> {
        for (wish, attempt) in self.wishes.iter().zip(self.attempts) {
            match attempt.end() {
                Ok((device, already)) => print(out, &report(format, wish, &device, already))?,
                Err(error) => self.failures.push(failed(wish, error)),
            }
        }
        for (entry, why) in &self.skipped {
            print(out, &skip(format, entry, why))?;
        }
        for error in &self.failures {
            print(err, &(error.render(format) + "\n"))?;
        }
        if self.failures.is_empty() {
            return Ok(());
        }
        let (some, all) = (self.failures.len(), self.tried);
        let text = format!("connect-all: {some} of {all} connections failed");
        Err(Error::failed(text))
    }
}

fn unfound(place: Endpoint, error: Error) -> Error {
    error.during(format_args!("discover at {place}"))
}

#[derive(Serialize)]
struct Skipped<'a> {
    skipped: &'a Entry,
    reason: &'a str,
}

/// What is printed of an entry that is not connected.
fn skip(format: Format, entry: &Entry, reason: &str) -> String {
    match format {
        Format::Json => {
            json::line(&Skipped {
                skipped: entry,
                reason,
            }) + "\n"
        }
        Format::Normal => {
            let (trtype, place) = (entry.trtype, entry.endpoint());
            format!(
                "not connected: {} at {trtype} {place}: {reason}\n",
                entry.subnqn
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Arguments, Verb};
    use crate::controller::tests::{connecting, live};
    use crate::controller::{Controller, State};
    use crate::discovery::tests::{log, subsystem};
    use crate::discovery::{Flags, Kind, Transport};
    use crate::error::Status;
    use crate::event::{Change, Notice};
    use crate::failure::tests::rejected;
    use crate::kernel::tests::Script;
    use crate::kernel::Made;
    use crate::uapi::CtrlState;
    use clap::Parser;
    use std::path::PathBuf;

    const LINES: &str = "-a 10.0.0.9 -n nqn.2014-08.org.example:disk -q nqn.2014-08.org.example:host -I \
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
        let line = ["rnvme", "connect-all"].iter().chain(more);
        let options = match Arguments::try_parse_from(line).unwrap().verb {
            Verb::ConnectAll(options) => options,
            other => panic!("{other:?}"),
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let end = run(options, &Places::default(), kernel, &mut out, &mut err);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(out), text(err), end)
    }

    fn made(id: u32) -> Result<Made, Error> {
        let name = format!("rnvme{id}");
        Ok(Made { id, name })
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
    fn what_is_connected_stays_when_another_fails() {
        let config = Config::new("another", LINES);
        let exists = Err(Error::new(Status::Exists, "it exists"));
        let mut kernel = Script {
            connects: [exists, made(1)].into(),
            controllers: vec![live()],
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
}
