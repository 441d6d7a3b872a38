// SPDX-License-Identifier: GPL-2.0

//! The state of a run: what is connected, what is under way, and what is retried.

use super::classify::{classify, LogEntryClass};
use super::discoveries::{Discoveries, Discovery, Source};
use super::entry::{resolve_all, Action, Entry, NR_RESOLVERS};
use super::error_reports::ErrorReports;
use super::log_event::LogEvent;
use crate::config::ConfigLine;
use crate::error::{CtrlError, Error, Status};
use crate::host::SystemEnv;
use crate::kernel::Kernel;
use crate::model::discovery::DiscoveryLog;
use crate::model::event::{DiscoveryEvent, WaitResult};
use crate::model::options::{ConnectArgs, PersistentArgs, Target};
use crate::output::Format;
use crate::uapi::ErrorStage;
use crate::verb::args::{connect_args_for, connect_error, discover_error};
use crate::verb::attempt::{self, ConnectAttempt, IfExists};
use crate::verb::print::print;
use crate::verb::wait::{deadline, deadline_error};
use std::io::Write;
use std::mem::take;
use std::time::{Duration, Instant};

/// Most discovery controllers that are asked, as referrals may go on without end.
pub(super) const MAX_DISCOVERIES: usize = 32;

/// The time between retries, and between reads of the log of a discovery controller without events.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// When each connection is made or has failed.
    Once,
    /// When the user stops it: it follows discovery controllers and retries what failed.
    Persistent,
}

/// The state of a run.
pub(super) struct RunState<'a> {
    mode: Mode,
    /// The user asked to stop.
    stopped: bool,
    /// Why the run cannot go on.
    aborted: Option<Error>,
    entries: Vec<Entry<'a>>,
    attempts: Vec<ConnectAttempt>,
    /// All that is connected or being connected.
    connected: Vec<Target>,
    discoveries: Discoveries<'a>,
    /// The events that are not printed yet.
    log_events: Vec<LogEvent>,
    errors: ErrorReports,
    /// How many connections were tried, those to discovery controllers included.
    nr_tried: usize,
    /// When all that is under way must have ended.
    deadline: Option<Instant>,
    /// When what failed is retried.
    retry_at: Option<Instant>,
}

impl<'a> RunState<'a> {
    /// A run that has not begun.
    pub(super) fn new(mode: Mode, lines: &'a [ConfigLine]) -> Self {
        Self {
            mode,
            stopped: false,
            aborted: None,
            entries: lines.iter().map(Entry::new).collect(),
            attempts: Vec::new(),
            connected: Vec::new(),
            discoveries: Discoveries::default(),
            log_events: Vec::new(),
            errors: ErrorReports::default(),
            nr_tried: 0,
            deadline: None,
            retry_at: None,
        }
    }

    fn is_persistent(&self) -> bool {
        self.mode == Mode::Persistent
    }

    /// Starts the entries that are not under way. Those with a host name come last, `NR_RESOLVERS`
    /// at a time, so a name server that does not answer delays no others.
    pub(super) fn start_entries(&mut self, env: &SystemEnv, kernel: &mut impl Kernel) {
        let mut entries = take(&mut self.entries);
        let (mut ready, mut named): (Vec<_>, Vec<_>) = entries.iter_mut().partition(|entry| {
            let action = entry.action.as_ref();
            entry.is_numeric() || action.is_some_and(|action| self.is_handled(action))
        });
        let mut left = Vec::new();
        for entry in &mut ready {
            let action = entry.action.clone();
            let action = action.map_or_else(|| entry.resolve(env), Ok);
            left.extend(self.start_entry(entry, action, kernel));
        }
        for some in named.chunks_mut(NR_RESOLVERS) {
            let actions = resolve_all(some, env);
            for (entry, action) in some.iter_mut().zip(actions) {
                left.extend(self.start_entry(entry, action, kernel));
            }
        }
        self.entries = entries;
        for target in left {
            self.leave_discovery(&target, kernel);
        }
    }

    /// Whether an action needs no retry.
    fn is_handled(&self, action: &Action<'_>) -> bool {
        match action {
            Action::Connect(args) => self.connected.contains(&args.target),
            Action::Discover { target, .. } => !self.errors.has(target),
        }
    }

    /// Starts an entry. If its name could not be resolved its last action is started. Returns the
    /// discovery controller that the name led to before, if it leads to another one now.
    fn start_entry(
        &mut self,
        entry: &mut Entry<'a>,
        action: Result<Action<'a>, Error>,
        kernel: &mut impl Kernel,
    ) -> Option<Target> {
        let mut before = None;
        match action {
            Ok(action) => {
                entry.last_error = None;
                before = entry.action.replace(action);
            }
            Err(error) => {
                self.nr_tried += 1;
                self.schedule_retry();
                if entry.last_error.as_ref() != Some(&error.message) {
                    entry.last_error = Some(error.message.clone());
                    self.errors.push(error);
                }
            }
        }
        match (before, entry.action.clone()?) {
            (_, Action::Connect(args)) => {
                self.connect(&args, kernel);
                None
            }
            (before, Action::Discover { target, args }) => {
                let discovery = Discovery::new(target.clone(), args, Source::Config);
                self.discover(discovery, kernel);
                match before {
                    Some(Action::Discover { target: before, .. }) if before != target => {
                        Some(before)
                    }
                    _ => None,
                }
            }
        }
    }

    /// A name does not lead to a discovery controller any more. Stops its discovery unless
    /// something else leads there.
    fn leave_discovery(&mut self, target: &Target, kernel: &mut impl Kernel) {
        if self.entries.iter().any(|entry| entry.discovers(target)) {
            return;
        }
        let Some(at) = self.discoveries.position(target) else {
            return;
        };
        self.discoveries.0[at].source = Source::Referral;
        if self.discoveries.offered().contains(target) {
            return;
        }
        self.stop_discovery(at, kernel);
        let discovery = self.discoveries.0.remove(at);
        self.errors.clear(target);
        self.report_removed(target, discovery.log, kernel);
    }

    /// Schedules a retry of what failed.
    fn schedule_retry(&mut self) {
        self.retry_at
            .get_or_insert_with(|| Instant::now() + RETRY_INTERVAL);
    }

    /// Starts to connect. A controller that exists is accepted.
    fn connect(&mut self, args: &ConnectArgs, kernel: &mut impl Kernel) {
        if self.connected.contains(&args.target) {
            return;
        }
        self.nr_tried += 1;
        self.connected.push(args.target.clone());
        match ConnectAttempt::start(args, IfExists::Accept, kernel) {
            Ok(attempt) => {
                self.deadline = self.deadline.max(Some(deadline(&args.target)));
                self.attempts.push(attempt);
            }
            Err(error) => {
                let unloaded = unloaded_error(&error);
                self.connect_failed(&args.target, error);
                self.abort_if(unloaded, kernel);
            }
        }
    }

    fn connect_failed(&mut self, target: &Target, error: Error) {
        self.connected.retain(|each| each != target);
        self.schedule_retry();
        let error = connect_error(&target.endpoint(), error);
        self.errors.report(target, error);
    }

    /// Adds a discovery controller, if it is a new one, and asks it for its log.
    fn discover(&mut self, discovery: Discovery<'a>, kernel: &mut impl Kernel) {
        if let Some(at) = self.discoveries.position(&discovery.target) {
            if discovery.source == Source::Config {
                self.discoveries.0[at].source = Source::Config;
            }
            return;
        }
        self.nr_tried += 1;
        if self.discoveries.0.len() >= MAX_DISCOVERIES {
            let why = format!("more than {MAX_DISCOVERIES} discovery controllers");
            let target = &discovery.target;
            let error = discover_error(&target.endpoint(), Error::failed(why));
            return self.errors.report(target, error);
        }
        self.discoveries.0.push(discovery);
        self.start_discovery(self.discoveries.0.len() - 1, kernel);
    }

    /// Starts the kernel's discovery of a discovery controller, which a persistent run follows.
    fn start_discovery(&mut self, at: usize, kernel: &mut impl Kernel) {
        let is_persistent = self.is_persistent();
        let discovery = &mut self.discoveries.0[at];
        let persistent = (is_persistent && !discovery.polled).then_some(PersistentArgs {
            keep_alive_tmo: discovery.args.ctrl.keep_alive_tmo,
            reconnect_delay: discovery.args.ctrl.reconnect.reconnect_delay,
        });
        match kernel.discover(&discovery.target, persistent) {
            Ok(id) => {
                discovery.id = Some(id);
                self.deadline = self.deadline.max(Some(deadline(&discovery.target)));
            }
            Err(error) => self.discovery_failed(at, error, kernel),
        }
    }

    /// Stops the kernel's discovery of a discovery controller until the next retry.
    fn stop_discovery(&mut self, at: usize, kernel: &mut impl Kernel) {
        if let Some(id) = self.discoveries.0[at].id.take() {
            kernel.cancel_discovery(id);
        }
        self.schedule_retry();
    }

    fn is_connecting(&self) -> bool {
        self.attempts.iter().any(ConnectAttempt::is_pending)
    }

    /// Whether there is something to wait for.
    pub(super) fn is_active(&self) -> bool {
        self.discoveries.is_active()
            || self.is_connecting()
            || self.keeps_running() && self.retry_at.is_some()
    }

    /// Whether the run goes on after a failure.
    pub(super) fn keeps_running(&self) -> bool {
        self.is_persistent() && !self.stopped && self.aborted.is_none() && !self.is_denied()
    }

    /// Whether the caller lacks the privilege for all that was tried.
    fn is_denied(&self) -> bool {
        self.errors.nr_denied > 0 && self.errors.nr_denied == self.nr_tried
    }

    /// Waits for an event, a signal or the next retry, and handles it.
    pub(super) fn wait(&mut self, env: &SystemEnv, kernel: &mut impl Kernel) {
        let retries = self.is_persistent() && !self.is_connecting();
        let deadline = if retries {
            self.retry_at
        } else {
            self.deadline
        };
        let handled = match kernel.wait(deadline) {
            Ok(WaitResult::Interrupted) if self.is_persistent() => {
                self.stopped = true;
                self.discoveries.0.clear();
                Err(Error::failed("interrupted"))
            }
            Ok(WaitResult::Deadline) if retries => {
                self.retry(env, kernel);
                Ok(())
            }
            Ok(result) => attempt::apply(&mut self.attempts, &result, kernel).map(|()| {
                self.read_logs(&result, kernel);
            }),
            Err(error) => Err(error),
        };
        if let Err(error) = handled {
            self.abort(&error, kernel);
        }
    }

    /// Fails all that is under way.
    pub(super) fn abort(&mut self, error: &Error, kernel: &mut impl Kernel) {
        attempt::fail_pending(&mut self.attempts, error, kernel);
        for discovery in take(&mut self.discoveries.0) {
            if discovery.id.is_some() {
                let endpoint = discovery.target.endpoint();
                self.errors.push(discover_error(&endpoint, error.clone()));
            }
        }
        self.aborted = Some(error.clone());
    }

    fn abort_if(&mut self, error: Option<Error>, kernel: &mut impl Kernel) {
        if let Some(error) = error {
            self.abort(&error, kernel);
        }
    }

    /// Starts to remove the controllers of failed attempts, without waiting for that.
    pub(super) fn disconnect_failed(&self, kernel: &mut impl Kernel) {
        for attempt in &self.attempts {
            attempt.disconnect_if_failed(kernel);
        }
    }

    /// Removes the controllers of failed attempts, and waits until they are gone.
    pub(super) fn remove_failed(&mut self, kernel: &mut impl Kernel) {
        attempt::remove_failed(&mut self.attempts, kernel);
    }

    /// Reads the logs that a result of waiting is about.
    fn read_logs(&mut self, result: &WaitResult, kernel: &mut impl Kernel) {
        // A persistent discovery has no deadline.
        let is_late = matches!(result, WaitResult::Deadline) && !self.is_persistent();
        let is_meant = |discovery: &&Discovery<'_>| match result {
            WaitResult::Discovery(event) => discovery.id == Some(event.id),
            WaitResult::EventsLost => true,
            _ => is_late,
        };
        let meant = self.discoveries.0.iter().filter(is_meant);
        let meant: Vec<u32> = meant.filter_map(|discovery| discovery.id).collect();
        for id in meant {
            let log = match result {
                WaitResult::Discovery(DiscoveryEvent {
                    error: Some(error), ..
                }) => Err((**error).clone()),
                _ => kernel.discovery_log(id),
            };
            // The log of another one may have ended this discovery.
            let Some(at) = self.discoveries.position_of_id(id) else {
                continue;
            };
            match log {
                Ok(None) if is_late => self.discovery_failed(at, deadline_error(), kernel),
                Ok(None) => {}
                Ok(Some(log)) => self.log_read(at, log, kernel),
                Err(error) => self.discovery_failed(at, error, kernel),
            }
        }
    }

    /// A discovery failed. The kernel goes on with a persistent one if the error says so. The last
    /// log stays valid.
    fn discovery_failed(&mut self, at: usize, mut error: Error, kernel: &mut impl Kernel) {
        let is_persistent = self.is_persistent();
        let discovery = &mut self.discoveries.0[at];
        let target = discovery.target.clone();
        let unloaded = unloaded_error(&error);
        let ctrl_error = error.ctrl_error.as_deref();
        let goes_on = ctrl_error.is_some_and(|each| each.next_attempt.is_some());
        let polls = is_persistent && !discovery.polled && ctrl_error.is_some_and(has_no_events);
        discovery.polled |= polls;
        if goes_on {
            error.message.push_str("; it is tried again");
        } else if polls {
            let every = RETRY_INTERVAL.as_secs();
            let text = format!("; it is asked every {every} s");
            error.message.push_str(&text);
        }
        let error = discover_error(&target.endpoint(), error);
        self.errors.report(&target, error);
        if goes_on {
            // Its name may lead to another one by then.
            self.schedule_retry();
        } else {
            self.stop_discovery(at, kernel);
        }
        if polls {
            self.start_discovery(at, kernel);
        }
        self.abort_if(unloaded, kernel);
    }

    /// A log was read: connects what it has, and asks the discovery controllers that it refers to.
    fn log_read(&mut self, at: usize, log: DiscoveryLog, kernel: &mut impl Kernel) {
        let discovery = &mut self.discoveries.0[at];
        let before = discovery.log.replace(log.clone());
        let target = discovery.target.clone();
        let recovered = self.errors.clear(&target);
        if recovered || before.as_ref() != Some(&log) {
            self.report_log(&target, &log, before.as_ref());
        }
        if !self.is_persistent() || self.discoveries.0[at].polled {
            self.stop_discovery(at, kernel);
        }
        self.connect_entries(at, kernel);
        if self.is_persistent() {
            self.report_removed(&target, before, kernel);
        }
    }

    /// Reports a log that differs from the last one.
    fn report_log(&mut self, target: &Target, log: &DiscoveryLog, before: Option<&DiscoveryLog>) {
        if self.is_persistent() {
            self.log_events.push(LogEvent::Read {
                target: target.clone(),
                genctr: log.genctr,
                numrec: log.numrec,
            });
        }
        if log.entries.len() as u64 != log.numrec {
            let (some, all) = (log.entries.len(), log.numrec);
            let why = format!("only the first {some} of {all} records were read");
            let error = discover_error(&target.endpoint(), Error::failed(why));
            self.errors.push(error);
        }
        let before = before.map_or(&[][..], |log| &log.entries);
        for entry in &log.entries {
            if let LogEntryClass::Unsupported(reason) = classify(entry, target) {
                if !before.iter().any(|old| old.same_path(entry)) {
                    let entry = entry.clone();
                    self.log_events.push(LogEvent::Skipped { entry, reason });
                }
            }
        }
    }

    /// Connects what a log has that is not connected yet.
    fn connect_entries(&mut self, at: usize, kernel: &mut impl Kernel) {
        // The run may have been aborted.
        let Some(discovery) = self.discoveries.0.get(at) else {
            return;
        };
        let entries = discovery.entries().iter();
        let classes: Vec<LogEntryClass> = entries
            .map(|entry| classify(entry, &discovery.target))
            .collect();
        let args = discovery.args;
        for class in classes {
            match class {
                LogEntryClass::Subsystem(target) => {
                    self.connect(&connect_args_for(target, &args.ctrl), kernel);
                }
                LogEntryClass::Referral(target) => {
                    self.discover(Discovery::new(target, args, Source::Referral), kernel);
                }
                LogEntryClass::Known | LogEntryClass::Unsupported(_) => (),
            }
        }
    }

    /// Reports what a log has lost since `before`, and forgets it if no other log has it, so that
    /// it is new when it comes back. Controllers stay connected.
    fn report_removed(
        &mut self,
        discovery: &Target,
        before: Option<DiscoveryLog>,
        kernel: &mut impl Kernel,
    ) {
        let offered = self.discoveries.offered();
        for entry in before.into_iter().flat_map(|log| log.entries) {
            let stays = |now: &Discovery<'_>| now.entries().iter().any(|e| e.same_path(&entry));
            if self.discoveries.find(discovery).is_some_and(stays) {
                continue;
            }
            let class = classify(&entry, discovery);
            if class != LogEntryClass::Known {
                self.log_events.push(LogEvent::Removed(entry));
            }
            if let LogEntryClass::Subsystem(target) | LogEntryClass::Referral(target) = class {
                if !offered.contains(&target) {
                    self.forget(&target, kernel);
                }
            }
        }
    }

    /// Forgets a target that no log has any more. If it is a discovery controller, what only its
    /// log has is forgotten, too.
    fn forget(&mut self, target: &Target, kernel: &mut impl Kernel) {
        if !self.entries.iter().any(|entry| entry.connects(target)) {
            self.connected.retain(|each| each != target);
        }
        self.errors.clear(target);
        let is_unused =
            |each: &Discovery<'_>| each.source == Source::Referral && each.target == *target;
        if let Some(at) = self.discoveries.0.iter().position(is_unused) {
            let discovery = self.discoveries.0.remove(at);
            if let Some(id) = discovery.id {
                kernel.cancel_discovery(id);
            }
            self.report_removed(target, discovery.log, kernel);
        }
    }

    /// Retries the entries and the logs' subsystems that could not be connected, and asks the
    /// discovery controllers that the kernel has no discovery for.
    fn retry(&mut self, env: &SystemEnv, kernel: &mut impl Kernel) {
        self.retry_at = None;
        let is_idle = |discovery: &&Discovery<'_>| discovery.id.is_none();
        let idle = self.discoveries.0.iter().filter(is_idle);
        let idle: Vec<Target> = idle.map(|discovery| discovery.target.clone()).collect();
        self.start_entries(env, kernel);
        let mut at = 0;
        while let Some(discovery) = self.discoveries.0.get(at) {
            if idle.contains(&discovery.target) {
                self.start_discovery(at, kernel);
            }
            self.connect_entries(at, kernel);
            at += 1;
        }
        let mut discoveries = self.discoveries.0.iter();
        if discoveries.any(|discovery| self.errors.has(&discovery.target)) {
            self.schedule_retry();
        }
    }

    /// Prints what happened, and the result of each attempt that has ended.
    pub(super) fn print(
        &mut self,
        format: Format,
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> Result<(), Error> {
        for event in take(&mut self.log_events) {
            print(out, &event.render(format))?;
        }
        for attempt in take(&mut self.attempts) {
            if attempt.is_pending() {
                self.attempts.push(attempt);
                continue;
            }
            let target = attempt.target().clone();
            match attempt.finish() {
                Ok(connected) => {
                    self.errors.clear(&target);
                    print(out, &connected.report(format))?;
                    print(err, &connected.warnings(format))?;
                }
                Err(error) => self.connect_failed(&target, error),
            }
        }
        for error in self.errors.take_pending() {
            self.errors.count(&error);
            print(err, &(error.render(format) + "\n"))?;
        }
        Ok(())
    }

    /// Returns how the run ended.
    pub(super) fn result(self) -> Result<(), Error> {
        let (failed, denied) = (self.errors.nr_failed, self.errors.nr_denied);
        if self.stopped || failed == 0 {
            return Ok(());
        }
        if self.is_persistent() && !self.is_denied() {
            // What failed was retried, so all is connected unless the run was aborted.
            return match self.aborted {
                Some(why) => Err(why.context("connect-all")),
                None => Ok(()),
            };
        }
        let status = if denied == failed {
            Status::Permission
        } else if self.aborted.as_ref().is_some_and(is_unloaded) {
            Status::NoModule
        } else {
            // One status whatever the errors: rnvmf.service has to know it.
            Status::Failed
        };
        let all = self.nr_tried;
        let text = format!("connect-all: {failed} of {all} connections failed");
        Err(Error::new(status, text))
    }
}

/// Returns the error to abort with if the module is being unloaded or gone. Another request would
/// load it.
fn unloaded_error(error: &Error) -> Option<Error> {
    let is_cancelled = |ctrl_error: &CtrlError| ctrl_error.errno == libc::ECANCELED;
    let unloaded = is_unloaded(error) || error.ctrl_error.as_deref().is_some_and(is_cancelled);
    unloaded.then(Error::unloaded)
}

fn is_unloaded(error: &Error) -> bool {
    error.status == Status::NoModule
}

/// Whether a persistent discovery failed because the discovery controller has no event for changes.
fn has_no_events(ctrl_error: &CtrlError) -> bool {
    ctrl_error.errno == libc::EOPNOTSUPP && ctrl_error.stage.0 == ErrorStage::Enable as u32
}
