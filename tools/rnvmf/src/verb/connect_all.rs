// SPDX-License-Identifier: GPL-2.0

//! `rnvmf connect-all`: the connections of a file, and what discovery controllers know of, all at
//! once; and, if it is to be persistent, what they come to know of later.

mod classify;
mod entry;
mod log_event;
#[cfg(test)]
mod tests;

use super::connect::{begin, deadline, failed, give_up, hear, late, shaped, undo, ConnectAttempt};
use super::print;
use crate::cli::{ConnectAll, DiscoverArgs, DiscoveryCtrlArgs, Format};
use crate::config::{self, ConfigLine};
use crate::ctrl_error::CtrlError;
use crate::discovery::{DiscoveryLog, LogEntry};
use crate::error::{Error, Status};
use crate::event::WaitResult;
use crate::host::SystemEnv;
use crate::kernel::{ConnectArgs, Kernel, PersistentArgs, Target};
use crate::uapi::ErrorStage;
use classify::{sort, LogEntryClass};
use entry::{discover_error, resolve_all, Action, Entry, RESOLVERS};
use log_event::LogEvent;
use std::collections::HashSet;
use std::io::Write;
use std::mem::take;
use std::time::{Duration, Instant};

/// Most discovery controllers that are asked: who follows referrals has to stop somewhere.
const MAX_DISCOVERIES: usize = 32;

/// When what could not be connected is tried again, and who does not tell of changes asked again.
const RETRY: Duration = Duration::from_secs(30);

/// What is to be done.
pub(super) struct Config {
    lines: Vec<ConfigLine>,
    persistent: bool,
    format: Format,
}

/// What the options ask for, and the file.
pub(super) fn config(options: ConnectAll) -> Result<Config, Error> {
    let lines = match options.traddr {
        Some(traddr) => vec![ConfigLine::Discover(Box::new(DiscoverArgs {
            controller: DiscoveryCtrlArgs {
                traddr,
                nqn: options.nqn,
                fabrics: options.fabrics,
            },
            ctrl: options.ctrl,
        }))],
        None => config::read(&options.config)?,
    };
    Ok(Config {
        lines,
        persistent: options.persistent,
        format: options.output.format,
    })
}

/// Connect what is not connected; print what came of each, and fail if one did.
pub(super) fn run(
    config: &Config,
    env: &SystemEnv,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    let format = config.format;
    // Before the connects, so that no event of them can be missed.
    kernel.subscribe()?;
    let mut state = RunState {
        persistent: config.persistent,
        entries: config.lines.iter().map(Entry::new).collect(),
        ..RunState::default()
    };
    state.begin(env, kernel);
    let mut told = Ok(());
    loop {
        // What it ends with is told below.
        if state.goes_on() {
            state.abandon(kernel);
            told = state.tell(format, out, err);
        }
        if told.is_err() || !state.is_pending() {
            break;
        }
        state.next(env, kernel);
    }
    if told.is_err() {
        state.give_up(&Error::failed("nobody reads what is told"), kernel);
    }
    undo(&mut state.attempts, kernel);
    told?;
    state.tell(format, out, err)?;
    state.end()
}

/// A discovery controller that was asked, or is, or is followed.
struct Discovery<'a> {
    /// Its number, while the kernel asks or follows it.
    id: Option<u32>,
    /// It does not tell of changes: it is asked, and never followed.
    polled: bool,
    target: Target,
    /// Whose options are taken over.
    discover_args: &'a DiscoverArgs,
    /// A log led to it.
    referred: bool,
    /// What it knew of last.
    log: Option<DiscoveryLog>,
}

impl Discovery<'_> {
    fn entries(&self) -> &[LogEntry] {
        self.log.as_ref().map_or(&[], |log| &log.entries)
    }

    /// What its log has, subsystems and discovery controllers.
    fn names(&self) -> impl Iterator<Item = Target> + '_ {
        let entries = self.entries().iter();
        entries.filter_map(|entry| match sort(entry, &self.target) {
            LogEntryClass::Subsystem(named) | LogEntryClass::Referral(named) => Some(named),
            LogEntryClass::Nothing | LogEntryClass::Skipped(_) => None,
        })
    }
}

/// What is under way, and what came of it.
#[derive(Default)]
struct RunState<'a> {
    /// Discovery controllers are followed until the user asks to stop.
    persistent: bool,
    stopped: bool,
    /// Why it cannot go on.
    broken: Option<Error>,
    entries: Vec<Entry<'a>>,
    /// Of each attempt.
    connect_requests: Vec<ConnectArgs>,
    attempts: Vec<ConnectAttempt>,
    /// All that is connected, or is about to be.
    wanted: Vec<Target>,
    /// All that were asked, each once.
    discoveries: Vec<Discovery<'a>>,
    /// What is to be told.
    log_event: Vec<LogEvent>,
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

impl<'a> RunState<'a> {
    /// Begin with the lines that are not under way. Those with a name come last, as many at a time
    /// as there are resolvers: a server of names that does not answer holds up the beginning of
    /// nothing else.
    fn begin(&mut self, env: &SystemEnv, kernel: &mut impl Kernel) {
        let mut entries = take(&mut self.entries);
        let (mut known, mut named): (Vec<_>, Vec<_>) = entries.iter_mut().partition(|entry| {
            entry.is_numeric() || entry.goal.as_ref().is_some_and(|goal| self.is_well(goal))
        });
        let mut left = Vec::new();
        for entry in &mut known {
            let goal = entry.goal.clone().map_or_else(|| entry.resolve(env), Ok);
            left.extend(self.entry(entry, goal, kernel));
        }
        for some in named.chunks_mut(RESOLVERS) {
            let goals = resolve_all(some, env);
            for (entry, goal) in some.iter_mut().zip(goals) {
                left.extend(self.entry(entry, goal, kernel));
            }
        }
        self.entries = entries;
        for target in left {
            self.leave(&target, kernel);
        }
    }

    /// Whether nothing else is to be tried for this.
    fn is_well(&self, goal: &Action<'_>) -> bool {
        match goal {
            Action::Connect(connect_args) => self.wanted.contains(&connect_args.target),
            Action::Discovery(target, _) => !self.is_troubled(target),
        }
    }

    /// Begin with a line whose name is resolved, or could not be: then it leads where it did before.
    /// The discovery controller that had the name before, if that is another one.
    fn entry(
        &mut self,
        entry: &mut Entry<'a>,
        goal: Result<Action<'a>, Error>,
        kernel: &mut impl Kernel,
    ) -> Option<Target> {
        let mut before = None;
        match goal {
            Ok(goal) => {
                entry.told = None;
                before = entry.goal.replace(goal);
            }
            Err(error) => {
                self.tried += 1;
                self.later();
                if entry.told.as_ref() != Some(&error.message) {
                    entry.told = Some(error.message.clone());
                    self.failures.push(error);
                }
            }
        }
        match (before, entry.goal.clone()?) {
            (_, Action::Connect(connect_args)) => {
                self.connect(connect_args, kernel);
                None
            }
            (before, Action::Discovery(target, discover_args)) => {
                self.search(target.clone(), discover_args, false, kernel);
                match before {
                    Some(Action::Discovery(before, _)) if before != target => Some(before),
                    _ => None,
                }
            }
        }
    }

    /// A discovery controller has its name no more: unless something else leads there, it is asked
    /// no more.
    fn leave(&mut self, target: &Target, kernel: &mut impl Kernel) {
        let leads_there = |entry: &Entry<'_>| matches!(&entry.goal, Some(Action::Discovery(to, _)) if to == target);
        if self.entries.iter().any(leads_there) {
            return;
        }
        let Some(at) = self.position(target) else {
            return;
        };
        self.discoveries[at].referred = true;
        if self.offered().contains(target) {
            return;
        }
        self.rest(at, kernel);
        let search = self.discoveries.remove(at);
        self.untroubled(target);
        self.let_go(target, search.log, kernel);
    }

    /// What has failed is tried again, if this goes on.
    fn later(&mut self) {
        self.retry.get_or_insert_with(|| Instant::now() + RETRY);
    }

    /// Start with one connection; that it is there already is as good.
    fn connect(&mut self, connect_args: ConnectArgs, kernel: &mut impl Kernel) {
        if self.wanted.contains(&connect_args.target) {
            return;
        }
        self.tried += 1;
        self.wanted.push(connect_args.target.clone());
        match begin(true, &connect_args, kernel) {
            Ok(attempt) => {
                self.last = self.last.max(Some(deadline(&connect_args.target)));
                self.connect_requests.push(connect_args);
                self.attempts.push(attempt);
            }
            Err(error) => {
                let gone = gone(&error);
                self.not_connected(&connect_args, error);
                self.end_if(gone, kernel);
            }
        }
    }

    /// A connection could not be made.
    fn not_connected(&mut self, connect_args: &ConnectArgs, error: Error) {
        self.wanted.retain(|target| *target != connect_args.target);
        self.later();
        self.trouble(&connect_args.target, failed(connect_args, error));
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
    fn search(
        &mut self,
        target: Target,
        discover_args: &'a DiscoverArgs,
        referred: bool,
        kernel: &mut impl Kernel,
    ) {
        if let Some(at) = self.position(&target) {
            self.discoveries[at].referred &= referred;
            return;
        }
        self.tried += 1;
        if self.discoveries.len() >= MAX_DISCOVERIES {
            let why = format!("more than {MAX_DISCOVERIES} discovery controllers");
            let error = discover_error(target.endpoint(), Error::failed(why));
            return self.trouble(&target, error);
        }
        self.discoveries.push(Discovery {
            id: None,
            polled: false,
            target,
            discover_args,
            referred,
            log: None,
        });
        self.ask(self.discoveries.len() - 1, kernel);
    }

    /// Where a discovery controller is.
    fn position(&self, target: &Target) -> Option<usize> {
        self.discoveries
            .iter()
            .position(|search| search.target == *target)
    }

    /// Have the kernel ask a discovery controller, or follow it.
    fn ask(&mut self, at: usize, kernel: &mut impl Kernel) {
        let search = &mut self.discoveries[at];
        let follow = (self.persistent && !search.polled).then_some(PersistentArgs {
            keep_alive_tmo: search.discover_args.ctrl.keep_alive_tmo,
            reconnect_delay: search.discover_args.ctrl.reconnect.reconnect_delay,
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
        if let Some(id) = self.discoveries[at].id.take() {
            kernel.forget(id);
        }
        self.later();
    }

    fn is_connecting(&self) -> bool {
        self.attempts.iter().any(ConnectAttempt::is_pending)
    }

    fn is_pending(&self) -> bool {
        self.discoveries.iter().any(|search| search.id.is_some())
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
    fn next(&mut self, env: &SystemEnv, kernel: &mut impl Kernel) {
        let limit = match self.persistent && !self.is_connecting() {
            true => self.retry,
            false => self.last,
        };
        let heard = match kernel.next(limit) {
            Ok(WaitResult::Interrupted) if self.persistent => {
                self.stopped = true;
                self.discoveries.clear();
                Err(Error::failed("interrupted"))
            }
            Ok(WaitResult::Deadline) if self.persistent && !self.is_connecting() => {
                self.try_again(env, kernel);
                Ok(())
            }
            Ok(result) => hear(&mut self.attempts, &result, kernel).map(|()| {
                self.look(&result, kernel);
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
        for search in take(&mut self.discoveries) {
            if search.id.is_some() {
                let place = search.target.endpoint();
                self.failures.push(discover_error(place, error.clone()));
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
    fn look(&mut self, result: &WaitResult, kernel: &mut impl Kernel) {
        // Who is followed may take as long as it likes.
        let is_late = matches!(result, WaitResult::Deadline) && !self.persistent;
        let is_meant = |search: &&Discovery<'_>| match result {
            WaitResult::Discovery(id, _) => search.id == Some(*id),
            WaitResult::Lost => true,
            _ => is_late,
        };
        let meant = self.discoveries.iter().filter(is_meant);
        let meant: Vec<u32> = meant.filter_map(|search| search.id).collect();
        for id in meant {
            let log = match result {
                WaitResult::Discovery(_, Some(error)) => Err((**error).clone()),
                _ => kernel.log(id),
            };
            // Another one's log may have been the end of this one.
            let Some(at) = self
                .discoveries
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
        let search = &mut self.discoveries[at];
        let target = search.target.clone();
        let gone = gone(&error);
        let ctrl_error = error.ctrl_error.as_deref();
        let goes_on = ctrl_error.is_some_and(|ctrl_error| ctrl_error.next_attempt.is_some());
        let is_polled =
            self.persistent && !search.polled && ctrl_error.is_some_and(tells_no_changes);
        search.polled |= is_polled;
        if goes_on {
            error.message.push_str("; it is tried again");
        } else if is_polled {
            let every = RETRY.as_secs();
            error
                .message
                .push_str(&format!("; it is asked every {every} s"));
        }
        self.trouble(&target, discover_error(target.endpoint(), error));
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
    fn found(&mut self, at: usize, log: DiscoveryLog, kernel: &mut impl Kernel) {
        let search = &mut self.discoveries[at];
        let before = search.log.replace(log.clone());
        let target = search.target.clone();
        let recovered = self.untroubled(&target);
        if recovered || before.as_ref() != Some(&log) {
            self.announce(&target, &log, before.as_ref());
        }
        if !self.persistent || self.discoveries[at].polled {
            self.rest(at, kernel);
        }
        self.pursue(at, kernel);
        if self.persistent {
            self.let_go(&target, before, kernel);
        }
    }

    /// Tell of a log that is another one than before.
    fn announce(&mut self, target: &Target, log: &DiscoveryLog, before: Option<&DiscoveryLog>) {
        if self.persistent {
            self.log_event.push(LogEvent::Read {
                target: target.clone(),
                genctr: log.genctr,
                numrec: log.numrec,
            });
        }
        if log.entries.len() as u64 != log.numrec {
            let (some, all) = (log.entries.len(), log.numrec);
            let why = format!("only the first {some} of {all} records were read");
            let error = discover_error(target.endpoint(), Error::failed(why));
            self.failures.push(error);
        }
        let before = before.map_or(&[][..], |log| &log.entries);
        for entry in &log.entries {
            if let LogEntryClass::Skipped(why) = sort(entry, target) {
                if !before.iter().any(|old| old.same_path(entry)) {
                    self.log_event.push(LogEvent::Skipped(entry.clone(), why));
                }
            }
        }
    }

    /// Connect what a log has that is not wanted yet.
    fn pursue(&mut self, at: usize, kernel: &mut impl Kernel) {
        // All may have been given up meanwhile.
        let Some(search) = self.discoveries.get(at) else {
            return;
        };
        let entries = search.entries().iter();
        let findings: Vec<LogEntryClass> =
            entries.map(|entry| sort(entry, &search.target)).collect();
        let discover_args = search.discover_args;
        for classify in findings {
            match classify {
                LogEntryClass::Subsystem(found) => {
                    self.connect(shaped(found, &discover_args.ctrl), kernel)
                }
                LogEntryClass::Referral(found) => self.search(found, discover_args, true, kernel),
                LogEntryClass::Nothing | LogEntryClass::Skipped(_) => (),
            }
        }
    }

    /// What logs have, of the discovery controllers that lines or such logs lead to: two may refer to
    /// each other that nothing leads to any more.
    fn offered(&self) -> HashSet<Target> {
        let mut offered = HashSet::new();
        let of_lines = self.discoveries.iter().filter(|search| !search.referred);
        let mut left: Vec<_> = of_lines.collect();
        while let Some(search) = left.pop() {
            for named in search.names() {
                if !offered.contains(&named) {
                    left.extend(self.position(&named).map(|at| &self.discoveries[at]));
                    offered.insert(named);
                }
            }
        }
        offered
    }

    /// Tell what a log has no more, and forget it, so that it is new if it comes back. What is
    /// connected stays so; a discovery controller that no log leads to is not followed any more.
    fn let_go(&mut self, by: &Target, before: Option<DiscoveryLog>, kernel: &mut impl Kernel) {
        let offered = self.offered();
        for entry in before.into_iter().flat_map(|log| log.entries) {
            let mut discoveries = self.discoveries.iter();
            let now = discoveries.find(|search| search.target == *by);
            let stays =
                |search: &Discovery<'_>| search.entries().iter().any(|e| e.same_path(&entry));
            if now.is_some_and(stays) {
                continue;
            }
            let classify = sort(&entry, by);
            if classify != LogEntryClass::Nothing {
                self.log_event.push(LogEvent::Gone(entry));
            }
            if let LogEntryClass::Subsystem(gone) | LogEntryClass::Referral(gone) = classify {
                if !offered.contains(&gone) {
                    self.forget(&gone, kernel);
                }
            }
        }
    }

    /// No log has this any more; nor, if it is a discovery controller, what only its own log has.
    fn forget(&mut self, gone: &Target, kernel: &mut impl Kernel) {
        let is_of_a_line = |entry: &Entry<'_>| matches!(&entry.goal, Some(Action::Connect(connect_args)) if connect_args.target == *gone);
        if !self.entries.iter().any(is_of_a_line) {
            self.wanted.retain(|target| target != gone);
        }
        self.untroubled(gone);
        let is_gone = |search: &Discovery<'_>| search.referred && search.target == *gone;
        if let Some(at) = self.discoveries.iter().position(is_gone) {
            let search = self.discoveries.remove(at);
            if let Some(id) = search.id {
                kernel.forget(id);
            }
            self.let_go(gone, search.log, kernel);
        }
    }

    /// Begin with what could not be connected before, of the lines and of what logs have, and ask
    /// the discovery controllers that are not followed.
    fn try_again(&mut self, env: &SystemEnv, kernel: &mut impl Kernel) {
        self.retry = None;
        let rests = |search: &&Discovery<'_>| search.id.is_none();
        let resting = self.discoveries.iter().filter(rests);
        let resting: Vec<Target> = resting.map(|search| search.target.clone()).collect();
        self.begin(env, kernel);
        let mut at = 0;
        while let Some(search) = self.discoveries.get(at) {
            if resting.contains(&search.target) {
                self.ask(at, kernel);
            }
            self.pursue(at, kernel);
            at += 1;
        }
        if self
            .discoveries
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
        for log_event in take(&mut self.log_event) {
            print(out, &log_event.render(format))?;
        }
        let attempts = take(&mut self.attempts);
        for (connect_args, attempt) in take(&mut self.connect_requests).into_iter().zip(attempts) {
            if attempt.is_pending() {
                self.connect_requests.push(connect_args);
                self.attempts.push(attempt);
                continue;
            }
            match attempt.end() {
                Ok(connected) => {
                    self.untroubled(&connect_args.target);
                    print(out, &connected.report(format, &connect_args))?;
                    print(err, &connected.warnings(format))?;
                }
                Err(error) => self.not_connected(&connect_args, error),
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
                .map_or(Ok(()), |why| Err(why.context("connect-all"))),
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
    let is_cancelled = |ctrl_error: &CtrlError| ctrl_error.errno == libc::ECANCELED;
    let unloaded = is_unloaded(error) || error.ctrl_error.as_deref().is_some_and(is_cancelled);
    unloaded.then(Error::unloaded)
}

fn is_unloaded(error: &Error) -> bool {
    error.status == Status::NoModule
}

/// Whether a discovery controller failed because it can be asked only, and not be followed.
fn tells_no_changes(ctrl_error: &CtrlError) -> bool {
    ctrl_error.errno == libc::EOPNOTSUPP && ctrl_error.stage.0 == ErrorStage::Enable as u32
}
