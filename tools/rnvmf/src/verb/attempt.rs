// SPDX-License-Identifier: GPL-2.0

//! Connect attempts. The kernel only starts to connect; events report the end. Several attempts can
//! run at the same time.

use super::print::Printer;
use super::wait::{self, deadline_error, wait_removed, KERNEL_MARGIN};
use crate::address::Address;
use crate::error::{Error, Status};
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::model::event::{Change, Event, WaitResult};
use crate::model::options::{ConnectArgs, NewController, Target};
use crate::output::{json_line, Format};
use crate::uapi::CtrlState;
use serde_json::json;
use std::mem;
use std::time::Instant;

/// What a connect does if the same controller exists. One that is dead is replaced, unless its
/// disks are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfExists {
    /// It fails.
    Reject,
    /// It waits until the existing controller is live, and succeeds.
    Accept,
}

/// The end of an attempt: the live controller, or an error.
type AttemptResult = Result<Controller, Error>;

/// A connect attempt.
pub(super) struct ConnectAttempt {
    target: Target,
    /// Number of the controller.
    id: u32,
    /// Name of the controller.
    name: String,
    /// The controller existed before, so a failure does not remove it.
    existed: bool,
    /// The controller is dead and being removed; the arguments of the connect that follows.
    replacement: Option<ConnectArgs>,
    /// Number of disks when the last deadline passed.
    disks: u32,
    /// The result; `None` while the attempt is pending.
    result: Option<AttemptResult>,
}

impl ConnectAttempt {
    /// Starts to connect.
    pub(super) fn start(
        args: &ConnectArgs,
        if_exists: IfExists,
        kernel: &mut impl Kernel,
    ) -> Result<Self, Error> {
        let target = args.target.clone();
        let mut is_retry = false;
        let existing = loop {
            match kernel.connect(args) {
                Ok(new) => {
                    return Ok(Self {
                        target,
                        id: new.id,
                        name: new.name,
                        existed: false,
                        replacement: None,
                        disks: 0,
                        result: None,
                    })
                }
                Err(error) if error.status == Status::Exists => {
                    match find_existing(&args.target, kernel.controllers()?) {
                        Some(existing) => break existing,
                        None if is_retry => return Err(error),
                        // It may have been removed before it was searched for.
                        None => is_retry = true,
                    }
                }
                Err(error) => return Err(error),
            }
        };
        let is_dead = existing.state.known() == Some(CtrlState::Dead);
        if is_dead {
            remove_dead(&existing, kernel)?;
        } else if if_exists == IfExists::Reject {
            return Err(exists_error(&existing));
        }
        Ok(Self {
            target,
            id: existing.id,
            name: existing.device.clone(),
            existed: true,
            replacement: is_dead.then(|| args.clone()),
            disks: 0,
            // The error of a controller that is being deleted is that of an earlier connect.
            result: result_of(&existing)
                .filter(|_| !is_dead)
                .map(|result| result.map_err(|_| not_live_error(&existing))),
        })
    }

    /// Starts the connect that follows the removal of a dead controller.
    fn replace(&mut self, args: &ConnectArgs, kernel: &mut impl Kernel) {
        match kernel.connect(args) {
            Ok(NewController { id, name }) => {
                (self.id, self.name, self.existed) = (id, name, false)
            }
            Err(error) => self.result = Some(Err(error)),
        }
    }

    /// Updates a pending attempt after an event of its controller.
    fn update(&mut self, change: Change, controller: &Controller, kernel: &mut impl Kernel) {
        match (change, self.replacement.take()) {
            (Change::Removed, Some(args)) => self.replace(&args, kernel),
            (_, Some(args)) => self.replacement = Some(args),
            (Change::Removed, None) => self.result = Some(Err(removed_error(Some(controller)))),
            (Change::Added | Change::Changed, None) => self.result = result_of(controller),
        }
    }

    /// Updates a pending attempt with the state of its controller; `None` if it is removed.
    fn set(&mut self, now: Option<&Controller>, kernel: &mut impl Kernel) {
        match (now, self.replacement.take()) {
            (Some(_), Some(args)) => self.replacement = Some(args),
            (None, Some(args)) => self.replace(&args, kernel),
            (Some(controller), None) => self.result = result_of(controller),
            (None, None) => self.result = Some(Err(removed_error(None))),
        }
    }

    /// Handles an expired deadline: fails the attempt, unless its controller got new disks since the last
    /// one. The kernel limits the time for each disk, and there may be a thousand.
    fn deadline_passed(&mut self, now: Option<Controller>) {
        let disks = now.as_ref().and_then(|controller| controller.nr_namespaces);
        let before = mem::replace(&mut self.disks, disks.unwrap_or(0));
        if !self.existed && self.disks > before {
            return;
        }
        // A controller that existed may reconnect for longer than one connect takes.
        let existing = now.filter(|_| self.existed);
        let late = || {
            existing
                .as_ref()
                .map_or_else(deadline_error, not_live_error)
        };
        self.result.get_or_insert_with(|| Err(late()));
    }

    /// Returns the subsystem.
    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Whether the attempt has not ended.
    pub(super) fn is_pending(&self) -> bool {
        self.result.is_none()
    }

    /// Returns the error of a failed attempt that created its controller.
    fn new_error(&mut self) -> Option<&mut Error> {
        let result = self.result.as_mut().filter(|_| !self.existed)?;
        result.as_mut().err()
    }

    /// Starts to remove the controller of a failed attempt. Errors are ignored: usually the kernel
    /// is removing the controller already.
    pub(super) fn disconnect_if_failed(&mut self, kernel: &mut impl Kernel) {
        if self.new_error().is_some() {
            let _ = kernel.disconnect(self.id);
        }
    }

    /// Returns the result of an attempt that has ended.
    pub(super) fn finish(self) -> Result<Connected, Error> {
        let result = self.result.unwrap_or_else(|| Err(deadline_error()));
        Ok(Connected {
            controller: result.map_err(|error| name_hint(error, &self.target.subsysnqn))?,
            target: self.target,
            existed: self.existed,
        })
    }
}

/// Returns the result of an attempt whose controller is in this state; `None` if it is pending.
fn result_of(controller: &Controller) -> Option<AttemptResult> {
    match controller.state.known() {
        Some(CtrlState::Live) => Some(Ok(controller.clone())),
        Some(CtrlState::Dead | CtrlState::Deleting) => Some(Err(removed_error(Some(controller)))),
        // A state that this program does not know precedes one that it knows.
        Some(CtrlState::New | CtrlState::Connecting | CtrlState::Resetting) | None => None,
    }
}

/// Whether the deadline restarts: it has passed, and [`apply`] looks for progress; or the controller of a
/// new attempt has changed.
pub(super) fn is_progress(attempts: &[ConnectAttempt], result: &WaitResult) -> bool {
    match result {
        WaitResult::Deadline => true,
        WaitResult::Event(Event::Controller(_, controller)) => attempts
            .iter()
            .any(|each| each.is_pending() && !each.existed && each.id == controller.id),
        _ => false,
    }
}

/// Returns the deadline after progress: the latest that a connect which starts now would have.
pub(super) fn next_deadline(attempts: &[ConnectAttempt]) -> Instant {
    let deadlines = attempts
        .iter()
        .map(|attempt| wait::deadline(&attempt.target));
    deadlines.max().unwrap_or_else(Instant::now)
}

/// Waits until all attempts have ended, and removes the controllers of those that failed.
pub(super) fn wait_all(
    attempts: &mut [ConnectAttempt],
    mut deadline: Instant,
    kernel: &mut impl Kernel,
) {
    while attempts.iter().any(ConnectAttempt::is_pending) {
        let result = kernel.wait(Some(deadline));
        if result
            .as_ref()
            .is_ok_and(|result| is_progress(attempts, result))
        {
            deadline = next_deadline(attempts);
        }
        let applied = result.and_then(|result| apply(attempts, &result, kernel));
        if let Err(error) = applied {
            fail_pending(attempts, &error, kernel);
        }
    }
    remove_failed(attempts, kernel);
}

/// Fails the pending attempts, except for those whose controller is live: its disk may be in use
/// although no event has reported the state yet.
pub(super) fn fail_pending(
    attempts: &mut [ConnectAttempt],
    error: &Error,
    kernel: &mut impl Kernel,
) {
    for attempt in attempts.iter_mut().filter(|each| each.is_pending()) {
        let now = kernel.controller(attempt.id).ok().flatten();
        let result = now.as_ref().and_then(result_of).and_then(Result::ok);
        attempt.result = Some(result.ok_or_else(|| error.clone()));
    }
}

/// Updates the pending attempts. An error ends all of them.
pub(super) fn apply(
    attempts: &mut [ConnectAttempt],
    result: &WaitResult,
    kernel: &mut impl Kernel,
) -> Result<(), Error> {
    let pending = attempts.iter_mut().filter(|each| each.is_pending());
    match result {
        WaitResult::Event(Event::Controller(change, controller)) => {
            for attempt in pending.filter(|each| each.id == controller.id) {
                attempt.update(*change, controller, kernel);
            }
        }
        WaitResult::Event(_) | WaitResult::Discovery(_) => (),
        WaitResult::EventsLost | WaitResult::Deadline => {
            for attempt in pending {
                let now = kernel.controller(attempt.id)?;
                attempt.set(now.as_ref(), kernel);
                if matches!(result, WaitResult::Deadline) {
                    attempt.deadline_passed(now);
                }
            }
        }
        WaitResult::Interrupted => return Err(Error::failed("interrupted")),
    }
    Ok(())
}

/// Removes the controllers of failed attempts and waits for the removal, so that the next connect
/// does not find them. If one remains, the error of its attempt says so.
pub(super) fn remove_failed(attempts: &mut [ConnectAttempt], kernel: &mut impl Kernel) {
    let deadline = Instant::now() + KERNEL_MARGIN;
    let mut remaining = Vec::new();
    let add = |attempt: &mut ConnectAttempt, why: &Error| {
        let text = format!("; {} is not removed: {}", attempt.name, why.message);
        if let Some(error) = attempt.new_error() {
            error.message += &text;
        }
    };
    for attempt in attempts.iter_mut() {
        if attempt.new_error().is_none() {
            continue;
        }
        match kernel.disconnect(attempt.id) {
            Ok(()) => remaining.push(attempt.id),
            // The kernel has removed it.
            Err(gone) if gone.status == Status::NotFound => (),
            Err(why) => add(attempt, &why),
        }
    }
    if let Err(why) = wait_removed(kernel, &mut remaining, deadline) {
        let left = |each: &&mut ConnectAttempt| remaining.contains(&each.id);
        attempts
            .iter_mut()
            .filter(left)
            .for_each(|attempt| add(attempt, &why));
    }
}

/// Returns the existing controller that makes the kernel reject a connect: the one with the same
/// addresses, subsystem and host, as far as they can be compared.
pub(super) fn find_existing(
    wanted: &Target,
    mut controllers: Vec<Controller>,
) -> Option<Controller> {
    let parse = |text: &String| text.parse::<Address>().ok();
    let addresses =
        |target: &String, host: &Option<String>| [parse(target), host.as_ref().and_then(parse)];
    let addresses_of = |each: &Controller| addresses(&each.traddr, &each.host_traddr);
    let ours = addresses(&wanted.traddr, &wanted.host_traddr);
    let may_equal = |(one, other): (&Option<Address>, &Option<Address>)| match (one, other) {
        (Some(one), Some(other)) => one.may_equal(other),
        (one, other) => one == other,
    };
    controllers.retain(|each| {
        each.subsysnqn == wanted.subsysnqn
            && each.trsvcid == wanted.trsvcid
            && ours.iter().zip(&addresses_of(each)).all(may_equal)
            && (each.hostnqn.as_ref()).is_none_or(|nqn| *nqn == wanted.hostnqn)
            && each.hostid.is_none_or(|id| id == wanted.hostid)
    });
    match controllers
        .iter()
        .position(|each| addresses_of(each) == ours)
    {
        Some(at) => Some(controllers.swap_remove(at)),
        None if controllers.len() == 1 => controllers.pop(),
        None => None,
    }
}

/// Returns the error of a connect that is rejected because of an existing controller.
fn exists_error(controller: &Controller) -> Error {
    let error = match controller.state.known() {
        Some(CtrlState::Live) => {
            Error::failed(format!("already connected as {}", controller.device))
        }
        _ => not_live_error(controller),
    };
    Error {
        status: Status::Exists,
        ..error
    }
}

/// Returns the error that the existing controller is not live.
fn not_live_error(controller: &Controller) -> Error {
    let Controller { device, state, .. } = controller;
    let context = format!("{device} exists and is {state}");
    match controller.error.clone() {
        Some(ctrl_error) => Error::from(ctrl_error).context(context),
        None => Error::failed(context),
    }
}

/// Starts to remove a dead controller. Fails if a disk of it is in use.
fn remove_dead(controller: &Controller, kernel: &mut impl Kernel) -> Result<(), Error> {
    let Controller { device, id, .. } = controller;
    let mut disks = kernel.namespaces()?;
    disks.retain(|disk| disk.controller_id == *id && disk.is_claimed());
    if let Some(disk) = disks.first() {
        let why = match disk.usage {
            Some(_) => "is in use",
            None => "may be in use, which this older module does not tell",
        };
        let mut error = exists_error(controller);
        error.message += &format!(
            "; /dev/{} {why}: unmount it and connect again, or rnvmf disconnect -d {device}",
            disk.name
        );
        return Err(error);
    }
    match kernel.disconnect(*id) {
        // Its removal is an event in any case.
        Err(error) if error.status != Status::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Adds to the error of a target without the subsystem what is unusual about its name. A target may have such
/// names, so the connect is tried.
fn name_hint(mut error: Error, nqn: &str) -> Error {
    if error.message.contains("no such subsystem") && !nqn.starts_with("nqn.") {
        error.message += "; the name does not begin with nqn.";
    }
    error
}

/// Returns the error that the controller was removed before it was live.
fn removed_error(controller: Option<&Controller>) -> Error {
    match controller.and_then(|controller| controller.error.clone()) {
        Some(ctrl_error) => ctrl_error.into(),
        None => Error::failed("the controller was removed while it connected"),
    }
}

/// An attempt that succeeded.
pub(super) struct Connected {
    target: Target,
    /// The controller existed before.
    pub(super) existed: bool,
    /// The live controller.
    controller: Controller,
}

impl Connected {
    /// Prints the connection, and a warning for each namespace without a disk. In JSON the document
    /// of the connection has these namespaces.
    pub(super) fn print(&self, printer: &mut Printer<'_>) -> Result<(), Error> {
        let Controller {
            device,
            refused_namespaces,
            ..
        } = &self.controller;
        let (nqn, endpoint) = (&self.target.subsysnqn, self.target.endpoint());
        printer.print(&match printer.format {
            Format::Json => {
                let refused = Some(refused_namespaces).filter(|list| !list.is_empty());
                json_line(&json!({
                    "device": device,
                    "already_connected": self.existed,
                    "refused_namespaces": refused,
                })) + "\n"
            }
            Format::Normal if self.existed => format!("{device}: already connected\n"),
            Format::Normal => format!("{device}: connected to {nqn} at {endpoint}\n"),
        })?;
        if printer.format == Format::Normal {
            for why in self.controller.rejection_lines() {
                // The controller is connected, so a failure to print a warning is ignored.
                let _ = writeln!(printer.err, "rnvmf: {device}: no disk: {why}");
            }
        }
        Ok(())
    }
}
