// SPDX-License-Identifier: GPL-2.0

//! `rnvme connect-all`: the connections of a file, and what discovery controllers know of, all at
//! once; and, if it is to be persistent, what they come to know of later.

mod finding;
mod news;

use super::connect::{
    begin, deadline, failed, give_up, hear, report, shaped, target, undo, wish, Attempt,
};
use super::print;
use crate::address::Endpoint;
use crate::cli::{ConnectAll, DiscoveryController, Format, Seed};
use crate::connections::{self, Line};
use crate::discovery::{Entry, Log};
use crate::error::{Error, Status};
use crate::event::Notice;
use crate::host::Places;
use crate::kernel::{Follow, Kernel, Target, Wish};
use finding::{sort, Finding};
use news::News;
use std::io::Write;
use std::mem::take;
use std::time::{Duration, Instant};

/// Most discovery controllers that are asked: who follows referrals has to stop somewhere.
const MOST_SEARCHES: usize = 32;

/// When what a log names is tried again that could not be connected.
const RETRY: Duration = Duration::from_secs(30);

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
    let mut work = Work {
        persistent: options.persistent,
        ..Work::default()
    };
    for line in &lines {
        work.begin(line, places, kernel);
    }
    while work.is_pending() {
        work.next(kernel);
        // What it ends with is told below.
        if work.persistent && work.is_pending() {
            work.abandon(kernel);
            work.tell(format, out, err)?;
        }
    }
    undo(&mut work.attempts, kernel);
    work.tell(format, out, err)?;
    work.end()
}

/// A discovery controller that is being asked, or followed.
struct Search<'a> {
    id: u32,
    target: Target,
    /// Whose options are taken over.
    seed: &'a Seed,
    /// A log led to it.
    referred: bool,
    /// What it knew of last.
    log: Option<Log>,
}

impl Search<'_> {
    fn entries(&self) -> &[Entry] {
        self.log.as_ref().map_or(&[], |log| &log.entries)
    }

    /// Whether its log has this, as a subsystem or as a discovery controller.
    fn names(&self, target: &Target) -> bool {
        let mut entries = self.entries().iter();
        entries.any(|entry| match sort(entry, &self.target) {
            Finding::Subsystem(named) | Finding::Referral(named) => named == *target,
            Finding::Nothing | Finding::Skipped(_) => false,
        })
    }
}

/// What is under way, and what came of it.
#[derive(Default)]
struct Work<'a> {
    /// Discovery controllers are followed until the user asks to stop.
    persistent: bool,
    stopped: bool,
    /// Of each attempt.
    wishes: Vec<Wish>,
    attempts: Vec<Attempt>,
    /// All that is connected, or is about to be.
    wanted: Vec<Target>,
    searches: Vec<Search<'a>>,
    /// All that were asked.
    asked: Vec<Target>,
    /// What is to be told.
    news: Vec<News>,
    failures: Vec<Error>,
    /// What was told last of each that is in trouble.
    troubles: Vec<(Target, String)>,
    /// How many connections were to be made, those to discovery controllers included.
    tried: usize,
    /// How often that failed.
    failed: usize,
    /// When all must have ended.
    last: Option<Instant>,
    /// When what a log names is tried again.
    retry: Option<Instant>,
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
                    Ok(target) => self.search(target, seed, false, kernel),
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
        if self.wanted.contains(&wish.target) {
            return;
        }
        self.tried += 1;
        self.wanted.push(wish.target.clone());
        match begin(true, &wish, kernel) {
            Ok(attempt) => {
                self.last = self.last.max(Some(deadline(&wish.target)));
                self.wishes.push(wish);
                self.attempts.push(attempt);
            }
            Err(error) => self.not_connected(&wish, error),
        }
    }

    /// A connection could not be made.
    fn not_connected(&mut self, wish: &Wish, error: Error) {
        self.wanted.retain(|target| *target != wish.target);
        self.retry.get_or_insert_with(|| Instant::now() + RETRY);
        self.trouble(&wish.target, failed(wish, error));
    }

    /// Tell of a trouble, unless it is the one that was told before.
    fn trouble(&mut self, target: &Target, error: Error) {
        let before = self.troubles.iter_mut().find(|(of, _)| of == target);
        match before {
            Some((_, message)) if *message == error.message => return,
            Some((_, message)) => message.clone_from(&error.message),
            None => self.troubles.push((target.clone(), error.message.clone())),
        }
        self.failures.push(error);
    }

    /// There is no trouble any more; whether there was.
    fn untroubled(&mut self, target: &Target) -> bool {
        let before = self.troubles.len();
        self.troubles.retain(|(of, _)| of != target);
        self.troubles.len() < before
    }

    /// Ask a discovery controller, once however many refer to it.
    fn search(&mut self, target: Target, seed: &'a Seed, referred: bool, kernel: &mut impl Kernel) {
        if self.asked.contains(&target) {
            return;
        }
        self.tried += 1;
        if self.asked.len() >= MOST_SEARCHES {
            let why = format!("more than {MOST_SEARCHES} discovery controllers");
            let error = unfound(target.endpoint(), Error::failed(why));
            return self.trouble(&target, error);
        }
        self.asked.push(target.clone());
        let follow = self.persistent.then_some(Follow {
            keep_alive_tmo: seed.shape.keep_alive_tmo,
            reconnect_delay: seed.shape.loss.reconnect_delay,
        });
        match kernel.discover(&target, follow) {
            Ok(id) => {
                self.last = self.last.max(Some(deadline(&target)));
                self.searches.push(Search {
                    id,
                    target,
                    seed,
                    referred,
                    log: None,
                });
            }
            Err(error) => self.trouble(&target, unfound(target.endpoint(), error)),
        }
    }

    fn is_connecting(&self) -> bool {
        self.attempts.iter().any(Attempt::is_pending)
    }

    fn is_pending(&self) -> bool {
        !self.searches.is_empty() || self.is_connecting()
    }

    /// Wait for what is next, and do what it asks for.
    fn next(&mut self, kernel: &mut impl Kernel) {
        let limit = match self.persistent && !self.is_connecting() {
            true => self.retry,
            false => self.last,
        };
        let heard = match kernel.next(limit) {
            Ok(Notice::Interrupted) if self.persistent => {
                self.stopped = true;
                self.searches.clear();
                Err(Error::failed("interrupted"))
            }
            Ok(Notice::Deadline) if self.persistent && !self.is_connecting() => {
                self.try_again(kernel);
                Ok(())
            }
            Ok(notice) => hear(&mut self.attempts, &notice, kernel).map(|()| {
                self.look(&notice, kernel);
            }),
            Err(error) => Err(error),
        };
        if let Err(error) = heard {
            self.give_up(&error);
        }
    }

    /// What is under way has failed; who is followed goes on, unless nobody can hear of it.
    fn give_up(&mut self, error: &Error) {
        give_up(&mut self.attempts, error);
        if self.persistent && error.status == Status::Timeout {
            return;
        }
        for search in take(&mut self.searches) {
            let place = search.target.endpoint();
            self.failures.push(unfound(place, error.clone()));
        }
    }

    /// Leave nothing of attempts that failed, but do not wait for that: there is more to hear.
    fn abandon(&self, kernel: &mut impl Kernel) {
        for attempt in &self.attempts {
            attempt.abandon(kernel);
        }
    }

    /// Look what searches have found.
    fn look(&mut self, notice: &Notice, kernel: &mut impl Kernel) {
        let is_meant = |search: &&Search<'_>| match notice {
            Notice::Discovered(id, _) => search.id == *id,
            Notice::Lost => true,
            _ => false,
        };
        let meant: Vec<u32> = self
            .searches
            .iter()
            .filter(is_meant)
            .map(|s| s.id)
            .collect();
        for id in meant {
            let log = match notice {
                Notice::Discovered(_, Some(error)) => Err((**error).clone()),
                _ => kernel.log(id),
            };
            // Another one's log may have been the end of this one.
            let Some(at) = self.searches.iter().position(|search| search.id == id) else {
                continue;
            };
            match log {
                Ok(None) => {}
                Ok(Some(log)) => self.found(at, log, kernel),
                Err(error) => self.not_found(at, error, kernel),
            }
        }
    }

    /// A search failed; one that is followed goes on, if the kernel does.
    fn not_found(&mut self, at: usize, mut error: Error, kernel: &mut impl Kernel) {
        let target = self.searches[at].target.clone();
        let failure = error.failure.as_ref();
        match failure.is_some_and(|failure| failure.next_attempt.is_some()) {
            true => error.message.push_str("; it is tried again"),
            false => kernel.forget(self.searches.remove(at).id),
        }
        self.trouble(&target, unfound(target.endpoint(), error));
    }

    /// Connect what a log has, and ask whom it refers to.
    fn found(&mut self, at: usize, log: Log, kernel: &mut impl Kernel) {
        let search = &mut self.searches[at];
        let before = search.log.replace(log.clone());
        let target = search.target.clone();
        let recovered = self.untroubled(&target);
        if recovered || before.as_ref() != Some(&log) {
            self.announce(&target, &log, before.as_ref());
        }
        self.pursue(at, kernel);
        match self.persistent {
            true => self.let_go(&target, before, kernel),
            false => kernel.forget(self.searches.remove(at).id),
        }
    }

    /// Tell of a log that is another one than before.
    fn announce(&mut self, target: &Target, log: &Log, before: Option<&Log>) {
        if self.persistent {
            self.news.push(News::Read {
                target: target.clone(),
                genctr: log.genctr,
                numrec: log.numrec,
            });
        }
        if log.entries.len() as u64 != log.numrec {
            let (some, all) = (log.entries.len(), log.numrec);
            let why = format!("only the first {some} of {all} records were read");
            let error = unfound(target.endpoint(), Error::failed(why));
            self.failures.push(error);
        }
        let before = before.map_or(&[][..], |log| &log.entries);
        for entry in &log.entries {
            if let Finding::Skipped(why) = sort(entry, target) {
                if !before.iter().any(|old| old.is_same(entry)) {
                    self.news.push(News::Skipped(entry.clone(), why));
                }
            }
        }
    }

    /// Connect what a log has that is not wanted yet.
    fn pursue(&mut self, at: usize, kernel: &mut impl Kernel) {
        let Search { target, seed, .. } = &self.searches[at];
        let entries = self.searches[at].entries().iter();
        let findings: Vec<Finding> = entries.map(|entry| sort(entry, target)).collect();
        let seed = *seed;
        for finding in findings {
            match finding {
                Finding::Subsystem(found) => self.connect(shaped(found, &seed.shape), kernel),
                Finding::Referral(found) => self.search(found, seed, true, kernel),
                Finding::Nothing | Finding::Skipped(_) => (),
            }
        }
    }

    /// Tell what a log has no more, and forget it, so that it is new if it comes back. What is
    /// connected stays so; a discovery controller that no log leads to is not followed any more.
    fn let_go(&mut self, by: &Target, before: Option<Log>, kernel: &mut impl Kernel) {
        for entry in before.into_iter().flat_map(|log| log.entries) {
            let mut searches = self.searches.iter();
            let now = searches.find(|search| search.target == *by);
            let stays = |search: &Search<'_>| search.entries().iter().any(|e| e.is_same(&entry));
            if now.is_some_and(stays) {
                continue;
            }
            let finding = sort(&entry, by);
            if finding != Finding::Nothing {
                self.news.push(News::Gone(entry));
            }
            if let Finding::Subsystem(gone) | Finding::Referral(gone) = finding {
                if !self.searches.iter().any(|search| search.names(&gone)) {
                    self.forget(&gone, kernel);
                }
            }
        }
    }

    /// No log has this any more.
    fn forget(&mut self, gone: &Target, kernel: &mut impl Kernel) {
        self.wanted.retain(|target| target != gone);
        self.untroubled(gone);
        let is_gone = |search: &Search<'_>| search.referred && search.target == *gone;
        if let Some(at) = self.searches.iter().position(is_gone) {
            kernel.forget(self.searches.remove(at).id);
            self.asked.retain(|target| target != gone);
        }
    }

    /// Connect what logs have that could not be connected before.
    fn try_again(&mut self, kernel: &mut impl Kernel) {
        self.retry = None;
        for at in 0..self.searches.len() {
            self.pursue(at, kernel);
        }
    }

    /// Print what there is to tell, and what came of each attempt that has ended.
    fn tell(
        &mut self,
        format: Format,
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> Result<(), Error> {
        for news in take(&mut self.news) {
            print(out, &news.render(format))?;
        }
        let attempts = take(&mut self.attempts);
        for (wish, attempt) in take(&mut self.wishes).into_iter().zip(attempts) {
            if attempt.is_pending() {
                self.wishes.push(wish);
                self.attempts.push(attempt);
                continue;
            }
            match attempt.end() {
                Ok((device, already)) => {
                    self.untroubled(&wish.target);
                    print(out, &report(format, &wish, &device, already))?;
                }
                Err(error) => self.not_connected(&wish, error),
            }
        }
        for error in take(&mut self.failures) {
            self.failed += 1;
            print(err, &(error.render(format) + "\n"))?;
        }
        Ok(())
    }

    /// How it ends.
    fn end(self) -> Result<(), Error> {
        if self.stopped || self.failed == 0 {
            return Ok(());
        }
        let (some, all) = (self.failed, self.tried);
        let text = format!("connect-all: {some} of {all} connections failed");
        Err(Error::failed(text))
    }
}

fn unfound(place: Endpoint, error: Error) -> Error {
    error.during(format_args!("discover at {place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Arguments, Verb};
    use crate::controller::tests::{connecting, live};
    use crate::controller::{Controller, State};
    use crate::discovery::tests::{log, subsystem};
    use crate::discovery::{Flags, Kind, Transport};
    use crate::event::{Change, Notice};
    use crate::failure::tests::rejected;
    use crate::failure::Failure;
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
            controllers: vec![live()],
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

    #[test]
    fn it_ends_where_there_is_nothing_to_follow() {
        let mut kernel = Script::default();
        kernel.failed(0, "the discovery was cancelled", None);
        let line = [&["-a", "10.0.0.9", "-p"], &IDENTITY[..]].concat();
        let (_, err, end) = play_with(&line, &mut kernel);
        let message = "rnvme: discover at 10.0.0.9:4420: the discovery was cancelled\n";
        assert_eq!(err, message);
        let message = end.unwrap_err().message;
        assert_eq!(message, "connect-all: 1 of 1 connections failed");
        assert_eq!(kernel.forgotten, [0]);
        let config = Config::new("persistent", "# none yet\n");
        let line = ["-p", "-f", config.0.to_str().unwrap()];
        assert_eq!(play_with(&line, &mut Script::default()).2, Ok(()));
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
}
