// SPDX-License-Identifier: GPL-2.0

//! The state of a run: started targets, pending attempts, and retries.

use super::classify::{classify, LogEntryClass};
use super::discoveries::{Discoveries, Discovery, LogReads};
use super::entry::{resolve_all, Action, Entry, NR_RESOLVERS};
use super::error_reports::ErrorReports;
use super::log_event::LogEvent;
use crate::config::ConfigFile;
use crate::error::{CtrlError, Error, Status};
use crate::host::SystemEnv;
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::model::discovery::DiscoveryLog;
use crate::model::event::{Change, DiscoveryEvent, Event, WaitResult};
use crate::model::options::{ConnectArgs, PersistentArgs, Target};
use crate::uapi::CtrlState;
use crate::verb::args::{connect_error, discover_error};
use crate::verb::attempt::{self, find_existing, ConnectAttempt, IfExists};
use crate::verb::print::Printer;
use crate::verb::wait::{deadline, deadline_error};
use std::mem::take;
use std::time::{Duration, Instant};

/// Limit of the number of discovery controllers, because referrals may lead on without end.
pub(super) const MAX_DISCOVERIES: usize = 32;

/// Time between retries, and between reads of the log of a discovery controller without events.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// The state of a run.
#[derive(Default)]
pub(super) struct RunState<'a> {
    /// The run follows discovery controllers and retries what failed. It ends at SIGINT or SIGTERM,
    /// at an error that aborts it, if all connects were denied, or when nothing is left to follow
    /// or retry. Otherwise it ends with the last pending attempt or discovery.
    is_persistent: bool,
    /// SIGINT or SIGTERM ended the persistent run.
    stopped: bool,
    /// The error that ended the run.
    aborted: Option<Error>,
    entries: Vec<Entry<'a>>,
    /// Attempts that are pending, or whose result is not printed.
    attempts: Vec<ConnectAttempt>,
    /// Targets that this run need not connect: an attempt is pending or has succeeded. They stay
    /// here when they are disconnected later, so that the run does not undo that. A persistent run
    /// connects the target of a dead controller again.
    started: Vec<Target>,
    /// Those whose controllers are dead, until the next retry.
    dead: Vec<Target>,
    discoveries: Discoveries<'a>,
    /// Events that are not printed.
    log_events: Vec<LogEvent>,
    errors: ErrorReports,
    /// Number of connects so far: of discovery controllers, too, of host names that were not
    /// resolved, and of invalid lines. A retry of a target counts again.
    nr_tried: usize,
    /// Time by which all pending attempts must have ended, and discoveries unless the run is
    /// persistent.
    deadline: Option<Instant>,
    /// Time of the next retry of what failed, and of the next read of polled logs.
    retry_at: Option<Instant>,
}

impl<'a> RunState<'a> {
    /// Creates the state before the run.
    pub(super) fn new(is_persistent: bool, file: &'a ConfigFile) -> Self {
        let mut errors = ErrorReports::default();
        for error in &file.errors {
            errors.push(error.clone());
        }
        Self {
            is_persistent,
            entries: file.lines.iter().map(Entry::new).collect(),
            errors,
            nr_tried: file.errors.len(),
            ..Self::default()
        }
    }

    /// Starts the entries of the file that are not started. Entries with a host name are last,
    /// `NR_RESOLVERS` at a time, so that a name server without an answer delays no others.
    pub(super) fn start_entries(&mut self, env: &SystemEnv, kernel: &mut impl Kernel) {
        let mut entries = take(&mut self.entries);
        let is_open = |entry: &&mut Entry<'_>| match &entry.action {
            Some(Action::Connect(args)) => !self.started.contains(&args.target),
            Some(Action::Discover { target, .. }) => self.errors.has(target),
            None => true,
        };
        let open = entries.iter_mut().filter(is_open);
        let (numeric, mut named): (Vec<_>, Vec<_>) = open.partition(|entry| entry.is_numeric());
        let mut left = Vec::new();
        for entry in numeric {
            let action = entry.resolve(env);
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

    /// Starts an entry. If its host name is not resolved, the last action is started again. Returns
    /// the previous discovery controller, if the name now resolves to another one.
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
        match entry.action.clone()? {
            Action::Connect(args) => {
                self.connect(&args, kernel);
                None
            }
            Action::Discover { target, args } => {
                self.discover(Discovery::new(target.clone(), args, true), kernel);
                match before? {
                    Action::Discover { target: before, .. } if before != target => Some(before),
                    _ => None,
                }
            }
        }
    }

    /// Forgets a discovery controller that a host name resolved to before, unless another entry or
    /// a log refers to it.
    fn leave_discovery(&mut self, target: &Target, kernel: &mut impl Kernel) {
        let is_configured = self.entries.iter().any(|entry| entry.discovers(target));
        if let (false, Some(at)) = (is_configured, self.discoveries.position(target)) {
            self.discoveries.0[at].is_configured = false;
            if !self.discoveries.offered().contains(target) {
                self.forget(target, kernel);
            }
        }
    }

    /// Schedules a retry of what failed, unless one is scheduled.
    fn schedule_retry(&mut self) {
        self.retry_at
            .get_or_insert_with(|| Instant::now() + RETRY_INTERVAL);
    }

    /// Starts to connect. An existing controller is accepted.
    fn connect(&mut self, args: &ConnectArgs, kernel: &mut impl Kernel) {
        if self.started.contains(&args.target) {
            return;
        }
        self.nr_tried += 1;
        self.started.push(args.target.clone());
        match ConnectAttempt::start(args, IfExists::Accept, kernel) {
            Ok(attempt) => {
                self.deadline = self.deadline.max(Some(deadline(&args.target)));
                self.attempts.push(attempt);
            }
            Err(error) => {
                let is_unloaded = is_unloaded(&error);
                self.handle_connect_error(&args.target, error);
                self.abort_if(is_unloaded, kernel);
            }
        }
    }

    fn handle_connect_error(&mut self, target: &Target, error: Error) {
        self.started.retain(|each| each != target);
        self.schedule_retry();
        let error = connect_error(&target.endpoint(), error);
        self.errors.report(target, error);
    }

    /// Adds a discovery controller if it is new, and requests its log.
    fn discover(&mut self, discovery: Discovery<'a>, kernel: &mut impl Kernel) {
        if let Some(at) = self.discoveries.position(&discovery.target) {
            self.discoveries.0[at].is_configured |= discovery.is_configured;
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

    /// Starts the kernel's discovery of a discovery controller. A persistent run follows it.
    fn start_discovery(&mut self, at: usize, kernel: &mut impl Kernel) {
        let discovery = &mut self.discoveries.0[at];
        let ctrl = &discovery.args.ctrl;
        let follows = self.is_persistent && discovery.reads == LogReads::Followed;
        let persistent = follows.then_some(PersistentArgs {
            keep_alive_tmo: ctrl.keep_alive_tmo,
            reconnect_delay: ctrl.reconnect.reconnect_delay,
        });
        match kernel.discover(&discovery.target, persistent) {
            Ok(id) => {
                discovery.id = Some(id);
                self.deadline = self.deadline.max(Some(deadline(&discovery.target)));
            }
            Err(error) => self.handle_discovery_error(at, error, kernel),
        }
    }

    /// Cancels the kernel's discovery of a discovery controller until the next retry, if there is
    /// one.
    fn pause_discovery(&mut self, at: usize, kernel: &mut impl Kernel) {
        let discovery = &mut self.discoveries.0[at];
        if let Some(id) = discovery.id.take() {
            kernel.cancel_discovery(id);
        }
        if discovery.reads != LogReads::Refused {
            self.schedule_retry();
        }
    }

    fn is_connecting(&self) -> bool {
        self.attempts.iter().any(ConnectAttempt::is_pending)
    }

    /// Whether the run has to wait for something.
    pub(super) fn is_active(&self) -> bool {
        self.discoveries.is_active()
            || self.is_connecting()
            || self.keeps_running() && self.retry_at.is_some()
    }

    /// Whether the run is persistent and goes on: it retries what fails.
    pub(super) fn keeps_running(&self) -> bool {
        self.is_persistent && !self.stopped && self.aborted.is_none() && !self.is_denied()
    }

    /// Whether all connects failed because the caller lacks a privilege.
    fn is_denied(&self) -> bool {
        self.errors.nr_denied > 0 && self.errors.nr_denied == self.nr_tried
    }

    /// Waits for an event, a signal or the next retry, and handles it.
    pub(super) fn wait(&mut self, env: &SystemEnv, kernel: &mut impl Kernel) {
        let retries = self.is_persistent && !self.is_connecting();
        let deadline = if retries {
            self.retry_at
        } else {
            self.deadline
        };
        let result = kernel.wait(deadline);
        let is_progress = |result| attempt::is_progress(&self.attempts, result);
        if !retries && result.as_ref().is_ok_and(is_progress) {
            // A discovery may have a later one.
            self.deadline = self
                .deadline
                .max(Some(attempt::next_deadline(&self.attempts)));
        }
        let handled = match result {
            Ok(WaitResult::Interrupted) if self.is_persistent => {
                self.stopped = true;
                self.discoveries.0.clear();
                Err(Error::failed("interrupted"))
            }
            Ok(WaitResult::Deadline) if retries => {
                self.retry(env, kernel);
                Ok(())
            }
            Ok(result) => self
                .note_dead(&result, kernel)
                .and_then(|()| attempt::apply(&mut self.attempts, &result, kernel))
                .map(|()| self.read_logs(&result, kernel)),
            Err(error) => Err(error),
        };
        if let Err(error) = handled {
            self.abort(&error, kernel);
        }
    }

    /// Schedules a retry of the targets whose controllers the result of a wait shows as dead. A target
    /// that is disconnected before the retry is not retried.
    fn note_dead(&mut self, result: &WaitResult, kernel: &mut impl Kernel) -> Result<(), Error> {
        match result {
            _ if !self.is_persistent => (),
            WaitResult::Event(Event::Controller(Change::Removed, gone)) => self
                .dead
                .retain(|target| find_existing(target, vec![(**gone).clone()]).is_none()),
            WaitResult::Event(Event::Controller(_, changed)) => {
                self.add_dead(vec![(**changed).clone()]);
            }
            WaitResult::EventsLost => {
                self.dead.clear();
                self.add_dead(kernel.controllers()?);
            }
            _ => (),
        }
        Ok(())
    }

    /// Schedules a retry of the targets that have a dead controller among these, but no attempt.
    fn add_dead(&mut self, mut controllers: Vec<Controller>) {
        controllers.retain(|each| each.state.known() == Some(CtrlState::Dead));
        for target in &self.started {
            let has_attempt = self.attempts.iter().any(|each| each.target() == target);
            let is_dead = find_existing(target, controllers.clone()).is_some();
            if is_dead && !has_attempt && !self.dead.contains(target) {
                self.dead.push(target.clone());
            }
        }
        if !self.dead.is_empty() {
            self.schedule_retry();
        }
    }

    /// Ends the run: fails all pending attempts and discoveries.
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

    /// Ends the run if the module is unloaded, because another request would load it.
    fn abort_if(&mut self, is_unloaded: bool, kernel: &mut impl Kernel) {
        if is_unloaded {
            self.abort(&Error::unloaded(), kernel);
        }
    }

    /// Starts to remove the controllers of failed attempts.
    pub(super) fn disconnect_failed(&mut self, kernel: &mut impl Kernel) {
        for attempt in &mut self.attempts {
            attempt.disconnect_if_failed(kernel);
        }
    }

    /// Removes the controllers of failed attempts and waits for the removal.
    pub(super) fn remove_failed(&mut self, kernel: &mut impl Kernel) {
        attempt::remove_failed(&mut self.attempts, kernel);
    }

    /// Reads the logs that the result of a wait concerns.
    fn read_logs(&mut self, result: &WaitResult, kernel: &mut impl Kernel) {
        // A persistent discovery has no deadline.
        let is_late = matches!(result, WaitResult::Deadline) && !self.is_persistent;
        let is_meant = |id: &u32| match result {
            WaitResult::Discovery(event) => *id == event.id,
            WaitResult::EventsLost => true,
            _ => is_late,
        };
        let ids = self
            .discoveries
            .0
            .iter()
            .filter_map(|discovery| discovery.id);
        let ids: Vec<u32> = ids.filter(is_meant).collect();
        for id in ids {
            let log = match result {
                WaitResult::Discovery(DiscoveryEvent {
                    error: Some(error), ..
                }) => Err((**error).clone()),
                _ => kernel.discovery_log(id),
            };
            // The log of another discovery controller may have removed this one.
            let Some(at) = self.discoveries.position_of_id(id) else {
                continue;
            };
            match log {
                Ok(None) if is_late => self.handle_discovery_error(at, deadline_error(), kernel),
                Ok(None) => {}
                Ok(Some(log)) => self.handle_log(at, log, kernel),
                Err(error) => self.handle_discovery_error(at, error, kernel),
            }
        }
    }

    /// Handles the error of a discovery. The kernel continues a persistent discovery if the error
    /// has the time of the next attempt. The last log stays valid.
    fn handle_discovery_error(&mut self, at: usize, mut error: Error, kernel: &mut impl Kernel) {
        let discovery = &mut self.discoveries.0[at];
        let target = discovery.target.clone();
        let is_unloaded = is_unloaded(&error);
        let ctrl_error = error.ctrl_error.as_deref();
        let continues = ctrl_error.is_some_and(|each| each.next_attempt.is_some());
        let polls = self.is_persistent
            && discovery.reads == LogReads::Followed
            && ctrl_error.is_some_and(CtrlError::has_no_events);
        if polls {
            discovery.reads = LogReads::Polled;
        } else if ctrl_error.is_some_and(CtrlError::is_no_discovery) {
            discovery.reads = LogReads::Refused;
        }
        if continues {
            error.message += "; retrying";
        } else if polls {
            let interval = RETRY_INTERVAL.as_secs();
            error.message += &format!("; reading its log every {interval} s");
        }
        let error = discover_error(&target.endpoint(), error);
        self.errors.report(&target, error);
        if continues {
            // Its host name may resolve to another address then.
            self.schedule_retry();
        } else {
            self.pause_discovery(at, kernel);
        }
        if polls {
            self.start_discovery(at, kernel);
        }
        self.abort_if(is_unloaded, kernel);
    }

    /// Handles a log: connects its subsystems and follows its referrals.
    fn handle_log(&mut self, at: usize, log: DiscoveryLog, kernel: &mut impl Kernel) {
        let discovery = &mut self.discoveries.0[at];
        let before = discovery.log.replace(log.clone());
        let (target, reads) = (discovery.target.clone(), discovery.reads);
        let recovered = self.errors.clear(&target);
        if recovered || before.as_ref() != Some(&log) {
            self.report_log(&target, &log, before.as_ref());
        }
        if !self.is_persistent || reads == LogReads::Polled {
            self.pause_discovery(at, kernel);
        }
        self.connect_log(at, kernel);
        if self.is_persistent {
            self.report_removed(&target, before, kernel);
        }
    }

    /// Reports a log that changed, or was read again after an error.
    fn report_log(&mut self, target: &Target, log: &DiscoveryLog, before: Option<&DiscoveryLog>) {
        if self.is_persistent {
            self.log_events.push(LogEvent::Read {
                followed: target.clone(),
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
            let is_new = !before.iter().any(|old| old.same_path(entry));
            if let (true, LogEntryClass::Unsupported(reason)) = (is_new, classify(entry, target)) {
                let skipped = entry.clone();
                self.log_events.push(LogEvent::Skipped { skipped, reason });
            }
        }
    }

    /// Connects the subsystems of a log that are not started, and follows its referrals.
    fn connect_log(&mut self, at: usize, kernel: &mut impl Kernel) {
        // The run may have been aborted.
        let Some(discovery) = self.discoveries.0.get(at) else {
            return;
        };
        let args = discovery.args;
        for class in discovery.classes().collect::<Vec<_>>() {
            match class {
                LogEntryClass::Subsystem(target) => {
                    let args = ConnectArgs {
                        target,
                        ctrl: args.ctrl.clone(),
                        duplicate_connect: false,
                    };
                    self.connect(&args, kernel);
                }
                LogEntryClass::Referral(target) => {
                    self.discover(Discovery::new(target, args, false), kernel);
                }
                LogEntryClass::Known | LogEntryClass::Unsupported(_) => (),
            }
        }
    }

    /// Reports the entries of the log `before` that are removed, and forgets their targets unless
    /// another log has them, so that they are new when they return. Controllers stay connected.
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
                self.log_events.push(LogEvent::Removed { gone: entry });
            }
            if let Some(target) = class.target().filter(|target| !offered.contains(target)) {
                self.forget(&target, kernel);
            }
        }
    }

    /// Forgets a target that no log has. If it is a discovery controller, also the targets that
    /// only its log has.
    fn forget(&mut self, target: &Target, kernel: &mut impl Kernel) {
        if !self.entries.iter().any(|entry| entry.connects(target)) {
            self.started.retain(|each| each != target);
        }
        self.errors.clear(target);
        let is_unused = |each: &Discovery<'_>| !each.is_configured && each.target == *target;
        if let Some(at) = self.discoveries.0.iter().position(is_unused) {
            let discovery = self.discoveries.0.remove(at);
            if let Some(id) = discovery.id {
                kernel.cancel_discovery(id);
            }
            self.report_removed(target, discovery.log, kernel);
        }
    }

    /// Retries the entries and the logs' subsystems that are not started or whose controllers are
    /// dead, and starts a discovery of each discovery controller that has none in the kernel.
    fn retry(&mut self, env: &SystemEnv, kernel: &mut impl Kernel) {
        self.retry_at = None;
        let dead = take(&mut self.dead);
        self.started.retain(|target| !dead.contains(target));
        let is_idle = |each: &&Discovery<'_>| each.id.is_none() && each.reads != LogReads::Refused;
        let idle = self.discoveries.0.iter().filter(is_idle);
        let idle: Vec<Target> = idle.map(|discovery| discovery.target.clone()).collect();
        self.start_entries(env, kernel);
        let mut at = 0;
        while let Some(discovery) = self.discoveries.0.get(at) {
            if idle.contains(&discovery.target) {
                self.start_discovery(at, kernel);
            }
            self.connect_log(at, kernel);
            at += 1;
        }
        let discoveries = self.discoveries.0.iter();
        let mut retried = discoveries.filter(|each| each.reads != LogReads::Refused);
        if retried.any(|discovery| self.errors.has(&discovery.target)) {
            self.schedule_retry();
        }
    }

    /// Prints events, the results of ended attempts, and errors.
    pub(super) fn print(&mut self, printer: &mut Printer<'_>) -> Result<(), Error> {
        for event in take(&mut self.log_events) {
            event.print(printer)?;
        }
        let attempts = take(&mut self.attempts).into_iter();
        let (pending, ended): (Vec<_>, _) = attempts.partition(ConnectAttempt::is_pending);
        self.attempts = pending;
        for attempt in ended {
            let target = attempt.target().clone();
            match attempt.finish() {
                Ok(connected) => {
                    self.errors.clear(&target);
                    connected.print(printer)?;
                }
                Err(error) => self.handle_connect_error(&target, error),
            }
        }
        for error in self.errors.take_pending() {
            printer.error(&error)?;
        }
        Ok(())
    }

    /// Returns the result of the run.
    pub(super) fn result(self) -> Result<(), Error> {
        let (failed, denied) = (self.errors.nr_failed, self.errors.nr_denied);
        if self.stopped || failed == 0 {
            return Ok(());
        }
        if self.is_persistent && !self.is_denied() && !self.discoveries.has_refused() {
            // The run was aborted, or nothing is left to follow or retry, which is no failure.
            return self
                .aborted
                .map_or(Ok(()), |why| Err(why.context("connect-all")));
        }
        let status = if denied == failed {
            Status::Permission
        } else if self.aborted.as_ref().is_some_and(is_unloaded) {
            Status::NoModule
        } else {
            // The same status for all errors, because rnvmf.service checks it.
            Status::Failed
        };
        let all = self.nr_tried;
        let text = format!("connect-all: {failed} of {all} connections failed");
        Err(Error::new(status, text))
    }
}

/// Whether an error means that the module is unloaded or being unloaded.
fn is_unloaded(error: &Error) -> bool {
    let is_cancelled = |ctrl_error: &CtrlError| ctrl_error.errno == libc::ECANCELED;
    error.status == Status::NoModule || error.ctrl_error.as_deref().is_some_and(is_cancelled)
}
