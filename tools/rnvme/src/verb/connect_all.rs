// SPDX-License-Identifier: GPL-2.0

//! `rnvme connect-all`: the connections of a file, and what discovery controllers know of, all at
//! once; and, if it is to be persistent, what they come to know of later.

mod finding;
mod news;
#[cfg(test)]
mod tests;

use super::connect::{
    begin, deadline, failed, give_up, hear, late, shaped, target, undo, wish, Attempt,
};
use super::print;
use crate::address::{Address, Endpoint};
use crate::cli::{ConnectAll, DiscoveryController, Format, Seed};
use crate::connections::{self, Line};
use crate::discovery::{Entry, Log};
use crate::error::{Error, Status};
use crate::event::Notice;
use crate::host::Places;
use crate::kernel::{Follow, Kernel, Target, Wish};
use finding::{sort, Finding};
use news::News;
use std::collections::HashSet;
use std::io::Write;
use std::mem::take;
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

/// Most discovery controllers that are asked: who follows referrals has to stop somewhere.
const MOST_SEARCHES: usize = 32;

/// When what could not be connected is tried again.
const RETRY: Duration = Duration::from_secs(30);

/// Names that are resolved at a time.
const RESOLVERS: usize = 16;

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
        aims: lines.iter().map(Aim::new).collect(),
        ..Work::default()
    };
    work.begin(places, kernel);
    let mut told = Ok(());
    while told.is_ok() && work.is_pending() {
        work.next(places, kernel);
        // What it ends with is told below.
        if work.persistent && work.is_pending() {
            work.abandon(kernel);
            told = work.tell(format, out, err);
        }
    }
    if told.is_err() {
        work.give_up(&Error::failed("nobody reads what is told"));
    }
    undo(&mut work.attempts, kernel);
    told?;
    work.tell(format, out, err)?;
    work.end()
}

/// A line of the file, and what it asks for.
struct Aim<'a> {
    line: &'a Line,
    /// None until its name is resolved.
    goal: Option<Goal<'a>>,
    /// Why it could not be, as it was told last.
    told: Option<String>,
}

/// What a line asks for.
#[derive(Clone)]
enum Goal<'a> {
    Connect(Wish),
    Search(Target, &'a Seed),
}

impl<'a> Aim<'a> {
    fn new(line: &'a Line) -> Self {
        Self {
            line,
            goal: None,
            told: None,
        }
    }

    /// Whether nobody has to be asked for its address.
    fn is_numeric(&self) -> bool {
        let (traddr, ..) = self.line.target();
        traddr.parse::<Address>().is_ok()
    }
}

/// What a line asks for; that may take long, if its address is a name.
fn resolve<'a>(line: &'a Line, places: &Places) -> Result<Goal<'a>, Error> {
    match line {
        Line::Connect(options) => wish(options, places).map(Goal::Connect),
        Line::Discover(seed) => {
            let (traddr, nqn, access) = line.target();
            match target(traddr, nqn, access, places) {
                Ok(target) => Ok(Goal::Search(target, seed)),
                Err(error) => Err(unfound(Endpoint::new(traddr, access.trsvcid), error)),
            }
        }
    }
}

/// The same of several lines at the same time.
fn resolve_all<'a>(
    lines: impl Iterator<Item = &'a Line>,
    places: &Places,
) -> Vec<Result<Goal<'a>, Error>> {
    thread::scope(|scope| {
        let asked: Vec<_> = lines
            .map(|line| scope.spawn(|| resolve(line, places)))
            .collect();
        let answers = asked.into_iter().map(|each| each.join());
        answers
            .map(|answer| answer.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
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

    /// What its log has, subsystems and discovery controllers.
    fn names(&self) -> impl Iterator<Item = Target> + '_ {
        let entries = self.entries().iter();
        entries.filter_map(|entry| match sort(entry, &self.target) {
            Finding::Subsystem(named) | Finding::Referral(named) => Some(named),
            Finding::Nothing | Finding::Skipped(_) => None,
        })
    }
}

/// What is under way, and what came of it.
#[derive(Default)]
struct Work<'a> {
    /// Discovery controllers are followed until the user asks to stop.
    persistent: bool,
    stopped: bool,
    aims: Vec<Aim<'a>>,
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
    /// How often because the caller may not do that.
    denied: usize,
    /// When all must have ended.
    last: Option<Instant>,
    /// When what has failed is tried again.
    retry: Option<Instant>,
}

impl<'a> Work<'a> {
    /// Begin with the lines that are not under way. Those with a name come last, as many at a time
    /// as there are resolvers: a server of names that does not answer holds up nothing else.
    fn begin(&mut self, places: &Places, kernel: &mut impl Kernel) {
        let mut aims = take(&mut self.aims);
        let (mut numeric, mut named): (Vec<_>, Vec<_>) = aims
            .iter_mut()
            .partition(|aim| aim.goal.is_some() || aim.is_numeric());
        for aim in &mut numeric {
            let goal = aim
                .goal
                .clone()
                .map_or_else(|| resolve(aim.line, places), Ok);
            self.aim(aim, goal, kernel);
        }
        for some in named.chunks_mut(RESOLVERS) {
            let goals = resolve_all(some.iter().map(|aim| aim.line), places);
            for (aim, goal) in some.iter_mut().zip(goals) {
                self.aim(aim, goal, kernel);
            }
        }
        self.aims = aims;
    }

    /// Begin with a line whose name is resolved, or could not be.
    fn aim(&mut self, aim: &mut Aim<'a>, goal: Result<Goal<'a>, Error>, kernel: &mut impl Kernel) {
        match goal {
            Ok(goal) => {
                aim.goal = Some(goal.clone());
                match goal {
                    Goal::Connect(wish) => self.connect(wish, kernel),
                    Goal::Search(target, seed) => self.search(target, seed, false, kernel),
                }
            }
            Err(error) => {
                self.tried += 1;
                self.later();
                if aim.told.as_ref() != Some(&error.message) {
                    aim.told = Some(error.message.clone());
                    self.failures.push(error);
                }
            }
        }
    }

    /// What has failed is tried again, if this goes on.
    fn later(&mut self) {
        self.retry.get_or_insert_with(|| Instant::now() + RETRY);
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
        self.later();
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
            Err(error) => self.unasked(&target, unfound(target.endpoint(), error)),
        }
    }

    /// A discovery controller is not asked any more; it may be again.
    fn unasked(&mut self, target: &Target, error: Error) {
        if self.persistent {
            self.asked.retain(|asked| asked != target);
            self.later();
        }
        self.trouble(target, error);
    }

    fn is_connecting(&self) -> bool {
        self.attempts.iter().any(Attempt::is_pending)
    }

    fn is_pending(&self) -> bool {
        !self.searches.is_empty() || self.is_connecting()
    }

    /// Wait for what is next, and do what it asks for.
    fn next(&mut self, places: &Places, kernel: &mut impl Kernel) {
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
                self.try_again(places, kernel);
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

    /// What is under way has failed.
    fn give_up(&mut self, error: &Error) {
        give_up(&mut self.attempts, error);
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
        // Who is followed may take as long as it likes.
        let is_late = matches!(notice, Notice::Deadline) && !self.persistent;
        let is_meant = |search: &&Search<'_>| match notice {
            Notice::Discovered(id, _) => search.id == *id,
            Notice::Lost => true,
            _ => is_late,
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
                Ok(None) if is_late => self.not_found(at, late(), kernel),
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
        if failure.is_some_and(|failure| failure.next_attempt.is_some()) {
            error.message.push_str("; it is tried again");
            return self.trouble(&target, unfound(target.endpoint(), error));
        }
        kernel.forget(self.searches.remove(at).id);
        self.unasked(&target, unfound(target.endpoint(), error));
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
        let named: HashSet<Target> = self.searches.iter().flat_map(Search::names).collect();
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
                if !named.contains(&gone) {
                    self.forget(&gone, kernel);
                }
            }
        }
    }

    /// No log has this any more.
    fn forget(&mut self, gone: &Target, kernel: &mut impl Kernel) {
        let is_of_a_line =
            |aim: &Aim<'_>| matches!(&aim.goal, Some(Goal::Connect(wish)) if wish.target == *gone);
        if !self.aims.iter().any(is_of_a_line) {
            self.wanted.retain(|target| target != gone);
        }
        self.untroubled(gone);
        let is_gone = |search: &Search<'_>| search.referred && search.target == *gone;
        if let Some(at) = self.searches.iter().position(is_gone) {
            kernel.forget(self.searches.remove(at).id);
        }
        // Who is asked yet was not found by a log alone.
        let searches = &self.searches;
        let is_asked = |target: &Target| searches.iter().any(|search| search.target == *target);
        self.asked
            .retain(|target| target != gone || is_asked(target));
    }

    /// Begin with what could not be connected before, of the lines and of what logs have.
    fn try_again(&mut self, places: &Places, kernel: &mut impl Kernel) {
        self.retry = None;
        self.begin(places, kernel);
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
                Ok(connected) => {
                    self.untroubled(&wish.target);
                    print(out, &connected.report(format, &wish))?;
                    print(err, &connected.warnings(format))?;
                }
                Err(error) => self.not_connected(&wish, error),
            }
        }
        for error in take(&mut self.failures) {
            self.failed += 1;
            self.denied += usize::from(error.status == Status::Permission);
            print(err, &(error.render(format) + "\n"))?;
        }
        Ok(())
    }

    /// How it ends.
    fn end(self) -> Result<(), Error> {
        if self.stopped || self.failed == 0 {
            return Ok(());
        }
        if self.persistent {
            return Err(Error::failed(
                "connect-all: there is nothing left to follow",
            ));
        }
        let (some, all) = (self.failed, self.tried);
        let text = format!("connect-all: {some} of {all} connections failed");
        let status = match self.denied == some {
            true => Status::Permission,
            // However each failed: who starts this at boot has to know one status.
            false => Status::Failed,
        };
        Err(Error::new(status, text))
    }
}

fn unfound(place: Endpoint, error: Error) -> Error {
    error.during(format_args!("discover at {place}"))
}
