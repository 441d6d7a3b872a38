// SPDX-License-Identifier: GPL-2.0

//! `rnvmf connect-all`: the connections of a file, and what discovery controllers know of, all at
//! once; and, if it is to be persistent, what they come to know of later.

mod aim;
mod finding;
mod news;
#[cfg(test)]
mod tests;

use super::connect::{begin, deadline, failed, give_up, hear, late, shaped, undo, Attempt};
use super::print;
use crate::cli::{ConnectAll, DiscoveryController, Format, Seed};
use crate::connections::{self, Line};
use crate::discovery::{Entry, Log};
use crate::error::{Error, Status};
use crate::event::Notice;
use crate::failure::Failure;
use crate::host::Places;
use crate::kernel::{Follow, Kernel, Target, Wish};
use crate::uapi::ErrorStage;
use aim::{resolve_all, unfound, Aim, Goal, RESOLVERS};
use finding::{sort, Finding};
use news::News;
use std::collections::HashSet;
use std::io::Write;
use std::mem::take;
use std::time::{Duration, Instant};

/// Most discovery controllers that are asked: who follows referrals has to stop somewhere.
const MOST_SEARCHES: usize = 32;

/// When what could not be connected is tried again, and who does not tell of changes asked again.
const RETRY: Duration = Duration::from_secs(30);

/// What is to be done.
pub(super) struct Orders {
    lines: Vec<Line>,
    persistent: bool,
    format: Format,
}

/// What the options ask for, and the file.
pub(super) fn orders(options: ConnectAll) -> Result<Orders, Error> {
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
    Ok(Orders {
        lines,
        persistent: options.persistent,
        format: options.output.format,
    })
}

/// Connect what is not connected; print what came of each, and fail if one did.
pub(super) fn run(
    orders: &Orders,
    places: &Places,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    let format = orders.format;
    // Before the connects, so that no event of them can be missed.
    kernel.subscribe()?;
    let mut work = Work {
        persistent: orders.persistent,
        aims: orders.lines.iter().map(Aim::new).collect(),
        ..Work::default()
    };
    work.begin(places, kernel);
    let mut told = Ok(());
    loop {
        // What it ends with is told below.
        if work.goes_on() {
            work.abandon(kernel);
            told = work.tell(format, out, err);
        }
        if told.is_err() || !work.is_pending() {
            break;
        }
        work.next(places, kernel);
    }
    if told.is_err() {
        work.give_up(&Error::failed("nobody reads what is told"), kernel);
    }
    undo(&mut work.attempts, kernel);
    told?;
    work.tell(format, out, err)?;
    work.end()
}

/// A discovery controller that was asked, or is, or is followed.
struct Search<'a> {
    /// Its number, while the kernel asks or follows it.
    id: Option<u32>,
    /// It does not tell of changes: it is asked, and never followed.
    polled: bool,
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
    /// Why it cannot go on.
    broken: Option<Error>,
    aims: Vec<Aim<'a>>,
    /// Of each attempt.
    wishes: Vec<Wish>,
    attempts: Vec<Attempt>,
    /// All that is connected, or is about to be.
    wanted: Vec<Target>,
    /// All that were asked, each once.
    searches: Vec<Search<'a>>,
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
    /// as there are resolvers: a server of names that does not answer holds up the beginning of
    /// nothing else.
    fn begin(&mut self, places: &Places, kernel: &mut impl Kernel) {
        let mut aims = take(&mut self.aims);
        let (mut known, mut named): (Vec<_>, Vec<_>) = aims.iter_mut().partition(|aim| {
            aim.is_numeric() || aim.goal.as_ref().is_some_and(|goal| self.is_well(goal))
        });
        let mut left = Vec::new();
        for aim in &mut known {
            let goal = aim.goal.clone().map_or_else(|| aim.resolve(places), Ok);
            left.extend(self.aim(aim, goal, kernel));
        }
        for some in named.chunks_mut(RESOLVERS) {
            let goals = resolve_all(some, places);
            for (aim, goal) in some.iter_mut().zip(goals) {
                left.extend(self.aim(aim, goal, kernel));
            }
        }
        self.aims = aims;
        for target in left {
            self.leave(&target, kernel);
        }
    }

    /// Whether nothing else is to be tried for this.
    fn is_well(&self, goal: &Goal<'_>) -> bool {
        match goal {
            Goal::Connect(wish) => self.wanted.contains(&wish.target),
            Goal::Search(target, _) => !self.is_troubled(target),
        }
    }

    /// Begin with a line whose name is resolved, or could not be: then it leads where it did before.
    /// The discovery controller that had the name before, if that is another one.
    fn aim(
        &mut self,
        aim: &mut Aim<'a>,
        goal: Result<Goal<'a>, Error>,
        kernel: &mut impl Kernel,
    ) -> Option<Target> {
        let mut before = None;
        match goal {
            Ok(goal) => {
                aim.told = None;
                before = aim.goal.replace(goal);
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
        match (before, aim.goal.clone()?) {
            (_, Goal::Connect(wish)) => {
                self.connect(wish, kernel);
                None
            }
            (before, Goal::Search(target, seed)) => {
                self.search(target.clone(), seed, false, kernel);
                match before {
                    Some(Goal::Search(before, _)) if before != target => Some(before),
                    _ => None,
                }
            }
        }
    }

    /// A discovery controller has its name no more: unless something else leads there, it is asked
    /// no more.
    fn leave(&mut self, target: &Target, kernel: &mut impl Kernel) {
        let leads_there =
            |aim: &Aim<'_>| matches!(&aim.goal, Some(Goal::Search(to, _)) if to == target);
        if self.aims.iter().any(leads_there) {
            return;
        }
        let Some(at) = self.position(target) else {
            return;
        };
        self.searches[at].referred = true;
        if self.offered().contains(target) {
            return;
        }
        self.rest(at, kernel);
        let search = self.searches.remove(at);
        self.untroubled(target);
        self.let_go(target, search.log, kernel);
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
            Err(error) => {
                let gone = gone(&error);
                self.not_connected(&wish, error);
                self.end_if(gone, kernel);
            }
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

    fn is_troubled(&self, target: &Target) -> bool {
        self.troubles.iter().any(|(of, _)| of == target)
    }

    /// There is no trouble any more; whether there was.
    fn untroubled(&mut self, target: &Target) -> bool {
        let before = self.troubles.len();
        self.troubles.retain(|(of, _)| of != target);
        self.troubles.len() < before
    }

    /// Ask a discovery controller, once however many refer to it.
    fn search(&mut self, target: Target, seed: &'a Seed, referred: bool, kernel: &mut impl Kernel) {
        if let Some(at) = self.position(&target) {
            self.searches[at].referred &= referred;
            return;
        }
        self.tried += 1;
        if self.searches.len() >= MOST_SEARCHES {
            let why = format!("more than {MOST_SEARCHES} discovery controllers");
            let error = unfound(target.endpoint(), Error::failed(why));
            return self.trouble(&target, error);
        }
        self.searches.push(Search {
            id: None,
            polled: false,
            target,
            seed,
            referred,
            log: None,
        });
        self.ask(self.searches.len() - 1, kernel);
    }

    /// Where a discovery controller is.
    fn position(&self, target: &Target) -> Option<usize> {
        self.searches
            .iter()
            .position(|search| search.target == *target)
    }

    /// Have the kernel ask a discovery controller, or follow it.
    fn ask(&mut self, at: usize, kernel: &mut impl Kernel) {
        let search = &mut self.searches[at];
        let follow = (self.persistent && !search.polled).then_some(Follow {
            keep_alive_tmo: search.seed.shape.keep_alive_tmo,
            reconnect_delay: search.seed.shape.loss.reconnect_delay,
        });
        match kernel.discover(&search.target, follow) {
            Ok(id) => {
                search.id = Some(id);
                self.last = self.last.max(Some(deadline(&search.target)));
            }
            Err(error) => self.not_found(at, error, kernel),
        }
    }

    /// A discovery controller is not asked any more now.
    fn rest(&mut self, at: usize, kernel: &mut impl Kernel) {
        if let Some(id) = self.searches[at].id.take() {
            kernel.forget(id);
        }
        self.later();
    }

    fn is_connecting(&self) -> bool {
        self.attempts.iter().any(Attempt::is_pending)
    }

    fn is_pending(&self) -> bool {
        self.searches.iter().any(|search| search.id.is_some())
            || self.is_connecting()
            || self.goes_on() && self.retry.is_some()
    }

    /// What failed is not the end.
    fn goes_on(&self) -> bool {
        self.persistent && !self.stopped && self.broken.is_none() && !self.is_denied()
    }

    /// The caller may do nothing of what there is to do.
    fn is_denied(&self) -> bool {
        self.denied > 0 && self.denied == self.tried
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
            self.give_up(&error, kernel);
        }
    }

    /// What is under way has failed.
    fn give_up(&mut self, error: &Error, kernel: &mut impl Kernel) {
        give_up(&mut self.attempts, error, kernel);
        for search in take(&mut self.searches) {
            if search.id.is_some() {
                let place = search.target.endpoint();
                self.failures.push(unfound(place, error.clone()));
            }
        }
        self.broken = Some(error.clone());
    }

    /// Give all up if there is a reason.
    fn end_if(&mut self, reason: Option<Error>, kernel: &mut impl Kernel) {
        if let Some(error) = reason {
            self.give_up(&error, kernel);
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
            Notice::Discovered(id, _) => search.id == Some(*id),
            Notice::Lost => true,
            _ => is_late,
        };
        let meant = self.searches.iter().filter(is_meant);
        let meant: Vec<u32> = meant.filter_map(|search| search.id).collect();
        for id in meant {
            let log = match notice {
                Notice::Discovered(_, Some(error)) => Err((**error).clone()),
                _ => kernel.log(id),
            };
            // Another one's log may have been the end of this one.
            let Some(at) = self
                .searches
                .iter()
                .position(|search| search.id == Some(id))
            else {
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

    /// A search failed; one that is followed goes on, if the kernel does. What was known stays so.
    fn not_found(&mut self, at: usize, mut error: Error, kernel: &mut impl Kernel) {
        let search = &mut self.searches[at];
        let target = search.target.clone();
        let gone = gone(&error);
        let failure = error.failure.as_deref();
        let goes_on = failure.is_some_and(|failure| failure.next_attempt.is_some());
        let is_polled = self.persistent && !search.polled && failure.is_some_and(tells_no_changes);
        search.polled |= is_polled;
        if goes_on {
            error.message.push_str("; it is tried again");
        } else if is_polled {
            let every = RETRY.as_secs();
            error
                .message
                .push_str(&format!("; it is asked every {every} s"));
        }
        self.trouble(&target, unfound(target.endpoint(), error));
        match goes_on {
            // Its name may be that of another one meanwhile.
            true => self.later(),
            false => self.rest(at, kernel),
        }
        if is_polled {
            self.ask(at, kernel);
        }
        self.end_if(gone, kernel);
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
        if !self.persistent || self.searches[at].polled {
            self.rest(at, kernel);
        }
        self.pursue(at, kernel);
        if self.persistent {
            self.let_go(&target, before, kernel);
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
        // All may have been given up meanwhile.
        let Some(search) = self.searches.get(at) else {
            return;
        };
        let entries = search.entries().iter();
        let findings: Vec<Finding> = entries.map(|entry| sort(entry, &search.target)).collect();
        let seed = search.seed;
        for finding in findings {
            match finding {
                Finding::Subsystem(found) => self.connect(shaped(found, &seed.shape), kernel),
                Finding::Referral(found) => self.search(found, seed, true, kernel),
                Finding::Nothing | Finding::Skipped(_) => (),
            }
        }
    }

    /// What logs have, of the discovery controllers that lines or such logs lead to: two may refer to
    /// each other that nothing leads to any more.
    fn offered(&self) -> HashSet<Target> {
        let mut offered = HashSet::new();
        let of_lines = self.searches.iter().filter(|search| !search.referred);
        let mut left: Vec<_> = of_lines.collect();
        while let Some(search) = left.pop() {
            for named in search.names() {
                if !offered.contains(&named) {
                    left.extend(self.position(&named).map(|at| &self.searches[at]));
                    offered.insert(named);
                }
            }
        }
        offered
    }

    /// Tell what a log has no more, and forget it, so that it is new if it comes back. What is
    /// connected stays so; a discovery controller that no log leads to is not followed any more.
    fn let_go(&mut self, by: &Target, before: Option<Log>, kernel: &mut impl Kernel) {
        let offered = self.offered();
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
                if !offered.contains(&gone) {
                    self.forget(&gone, kernel);
                }
            }
        }
    }

    /// No log has this any more; nor, if it is a discovery controller, what only its own log has.
    fn forget(&mut self, gone: &Target, kernel: &mut impl Kernel) {
        let is_of_a_line =
            |aim: &Aim<'_>| matches!(&aim.goal, Some(Goal::Connect(wish)) if wish.target == *gone);
        if !self.aims.iter().any(is_of_a_line) {
            self.wanted.retain(|target| target != gone);
        }
        self.untroubled(gone);
        let is_gone = |search: &Search<'_>| search.referred && search.target == *gone;
        if let Some(at) = self.searches.iter().position(is_gone) {
            let search = self.searches.remove(at);
            if let Some(id) = search.id {
                kernel.forget(id);
            }
            self.let_go(gone, search.log, kernel);
        }
    }

    /// Begin with what could not be connected before, of the lines and of what logs have, and ask
    /// the discovery controllers that are not followed.
    fn try_again(&mut self, places: &Places, kernel: &mut impl Kernel) {
        self.retry = None;
        let rests = |search: &&Search<'_>| search.id.is_none();
        let resting = self.searches.iter().filter(rests);
        let resting: Vec<Target> = resting.map(|search| search.target.clone()).collect();
        self.begin(places, kernel);
        let mut at = 0;
        while let Some(search) = self.searches.get(at) {
            if resting.contains(&search.target) {
                self.ask(at, kernel);
            }
            self.pursue(at, kernel);
            at += 1;
        }
        if self
            .searches
            .iter()
            .any(|search| self.is_troubled(&search.target))
        {
            self.later();
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
        let is_denied = self.is_denied();
        let unloaded = self.broken.as_ref().is_some_and(is_unloaded);
        match (self.stopped || self.failed == 0, self.persistent) {
            (true, _) => Ok(()),
            // What failed once was tried again, and all that there was to do is done.
            (false, true) if !is_denied => self
                .broken
                .map_or(Ok(()), |why| Err(why.during("connect-all"))),
            (false, _) => {
                let (some, all) = (self.failed, self.tried);
                let text = format!("connect-all: {some} of {all} connections failed");
                let status = match self.denied == some {
                    true => Status::Permission,
                    false if unloaded => Status::NoModule,
                    // However each failed: who starts this at boot has to know one status.
                    false => Status::Failed,
                };
                Err(Error::new(status, text))
            }
        }
    }
}

/// Why nothing can be asked of the kernel any more, if an error means that: the module goes, or is
/// gone. To look for it again would load it.
fn gone(error: &Error) -> Option<Error> {
    let is_cancelled = |failure: &Failure| failure.errno == libc::ECANCELED;
    let unloaded = is_unloaded(error) || error.failure.as_deref().is_some_and(is_cancelled);
    unloaded.then(Error::unloaded)
}

fn is_unloaded(error: &Error) -> bool {
    error.status == Status::NoModule
}

/// Whether a discovery controller failed because it can be asked only, and not be followed.
fn tells_no_changes(failure: &Failure) -> bool {
    failure.errno == libc::EOPNOTSUPP && failure.stage.0 == ErrorStage::Enable as u32
}
