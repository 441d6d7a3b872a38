// SPDX-License-Identifier: GPL-2.0

//! Connect attempts: the kernel only starts to connect, and events report how that ended. Several
//! attempts can be under way.

use super::wait::{deadline_error, wait_removed, RemoveResult, KERNEL_MARGIN};
use crate::address::Address;
use crate::error::{Error, Status};
use crate::kernel::Kernel;
use crate::model::controller::{Controller, NsRejection};
use crate::model::event::{Change, Event, WaitResult};
use crate::model::options::{ConnectArgs, NewController, Target};
use crate::output::{json_line, Format};
use crate::uapi::CtrlState;
use serde::Serialize;
use std::time::Instant;
use uuid::Uuid;

/// What to do if the same controller exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfExists {
    /// Fail.
    Reject,
    /// Wait until that one is live, which is success.
    Accept,
}

/// A controller that is to become live.
pub(super) struct ConnectAttempt {
    target: Target,
    id: u32,
    name: String,
    /// It existed before, and is not ours to remove.
    existed: bool,
    state: AttemptState,
}

#[derive(Debug, PartialEq, Eq)]
enum AttemptState {
    Pending,
    Live(Box<Controller>),
    Failed(Error),
}

impl AttemptState {
    /// Maps the state of a controller that connects.
    fn of(controller: &Controller) -> Self {
        match controller.state.known() {
            Some(CtrlState::Live) => Self::Live(Box::new(controller.clone())),
            Some(CtrlState::Dead | CtrlState::Deleting) => {
                Self::Failed(removed_error(Some(controller)))
            }
            // A state that this program does not know comes before one that it knows.
            Some(CtrlState::New | CtrlState::Connecting | CtrlState::Resetting) | None => {
                Self::Pending
            }
        }
    }
}

impl ConnectAttempt {
    /// Starts to connect.
    pub(super) fn start(
        args: &ConnectArgs,
        if_exists: IfExists,
        kernel: &mut impl Kernel,
    ) -> Result<Self, Error> {
        let reply = match request(args, kernel) {
            // The existing controller may have gone before it was looked for.
            Err(error) if error.status == Status::Exists => request(args, kernel),
            reply => reply,
        };
        let existing = match reply? {
            ConnectReply::Created(new) => {
                return Ok(Self {
                    target: args.target.clone(),
                    id: new.id,
                    name: new.name,
                    existed: false,
                    state: AttemptState::Pending,
                })
            }
            ConnectReply::Exists(existing) => *existing,
        };
        if if_exists == IfExists::Reject {
            return Err(exists_error(&existing));
        }
        let state = match AttemptState::of(&existing) {
            // Its error is of an earlier connect.
            AttemptState::Failed(_) => AttemptState::Failed(not_live_error(&existing)),
            state => state,
        };
        Ok(Self {
            target: args.target.clone(),
            id: existing.id,
            state,
            name: existing.device,
            existed: true,
        })
    }

    /// Returns what it connects to.
    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Whether it has not ended.
    pub(super) fn is_pending(&self) -> bool {
        self.state == AttemptState::Pending
    }

    /// Its state at the deadline, which is later than the kernel's own timeout.
    fn state_at_deadline(&self, now: Option<Controller>) -> AttemptState {
        let Some(controller) = now else {
            return AttemptState::Failed(removed_error(None));
        };
        match AttemptState::of(&controller) {
            // It lost its connection, and reconnects for longer than one connect may take.
            AttemptState::Pending if self.existed => {
                AttemptState::Failed(not_live_error(&controller))
            }
            AttemptState::Pending => AttemptState::Failed(deadline_error()),
            state => state,
        }
    }

    /// Starts to remove the controller if the attempt failed, without waiting for its removal.
    pub(super) fn disconnect_if_failed(&self, kernel: &mut impl Kernel) {
        if let (AttemptState::Failed(_), false) = (&self.state, self.existed) {
            // Most often the kernel is removing it already.
            let _ = kernel.disconnect(self.id);
        }
    }

    /// Returns how it ended.
    pub(super) fn finish(self) -> Result<Connected, Error> {
        let controller = match self.state {
            AttemptState::Failed(error) => return Err(error),
            AttemptState::Pending => None,
            AttemptState::Live(controller) => Some(controller),
        };
        Ok(Connected {
            target: self.target,
            device: self.name,
            existed: self.existed,
            controller,
        })
    }
}

/// Waits until every attempt has ended, and removes those that failed.
pub(super) fn wait_all(
    attempts: &mut [ConnectAttempt],
    deadline: Instant,
    kernel: &mut impl Kernel,
) {
    while attempts.iter().any(ConnectAttempt::is_pending) {
        let applied = kernel
            .wait(Some(deadline))
            .and_then(|result| apply(attempts, &result, kernel));
        if let Err(error) = applied {
            fail_pending(attempts, &error, kernel);
        }
    }
    remove_failed(attempts, kernel);
}

/// Fails the pending attempts, except for those whose controller is live by now: its disk may be in
/// use though no event has reported it yet.
pub(super) fn fail_pending(
    attempts: &mut [ConnectAttempt],
    error: &Error,
    kernel: &mut impl Kernel,
) {
    for attempt in attempts.iter_mut().filter(|each| each.is_pending()) {
        let now = kernel.controller(attempt.id).ok().flatten();
        attempt.state = match now.as_ref().map(AttemptState::of) {
            Some(live @ AttemptState::Live(_)) => live,
            _ => AttemptState::Failed(error.clone()),
        };
    }
}

/// Updates the pending attempts; an error ends all of them.
pub(super) fn apply(
    attempts: &mut [ConnectAttempt],
    result: &WaitResult,
    kernel: &mut impl Kernel,
) -> Result<(), Error> {
    let pending = attempts.iter_mut().filter(|each| each.is_pending());
    match result {
        WaitResult::Event(Event::Controller(change, controller)) => {
            for attempt in pending.filter(|each| each.id == controller.id) {
                attempt.state = match change {
                    Change::Removed => AttemptState::Failed(removed_error(Some(controller))),
                    _ => AttemptState::of(controller),
                };
            }
            Ok(())
        }
        WaitResult::Event(_) | WaitResult::Discovery(_) => Ok(()),
        WaitResult::EventsLost => {
            for attempt in pending {
                attempt.state = match kernel.controller(attempt.id)? {
                    Some(controller) => AttemptState::of(&controller),
                    None => AttemptState::Failed(removed_error(None)),
                };
            }
            Ok(())
        }
        WaitResult::Interrupted => Err(Error::failed("interrupted")),
        WaitResult::Deadline => {
            for attempt in pending {
                attempt.state = attempt.state_at_deadline(kernel.controller(attempt.id)?);
            }
            Ok(())
        }
    }
}

/// Removes the controllers of failed attempts, and waits until they are gone: another connect must
/// not find them. The error of an attempt names a controller that remains.
pub(super) fn remove_failed(attempts: &mut [ConnectAttempt], kernel: &mut impl Kernel) {
    let deadline = Instant::now() + KERNEL_MARGIN;
    let mut remaining = Vec::new();
    for attempt in attempts.iter_mut().filter(|each| !each.existed) {
        let AttemptState::Failed(error) = &mut attempt.state else {
            continue;
        };
        match kernel.disconnect(attempt.id) {
            Ok(()) => remaining.push(attempt.id),
            // The kernel removed it first.
            Err(gone) if gone.status == Status::NotFound => (),
            Err(why) => add_remaining(error, &attempt.name, &why.message),
        }
    }
    let why = match wait_removed(kernel, &mut remaining, deadline) {
        Ok(RemoveResult::Removed) => return,
        Ok(RemoveResult::Interrupted | RemoveResult::Deadline) => {
            "the kernel goes on to remove it".into()
        }
        Err(why) => why.message,
    };
    for attempt in attempts
        .iter_mut()
        .filter(|each| remaining.contains(&each.id))
    {
        if let AttemptState::Failed(error) = &mut attempt.state {
            add_remaining(error, &attempt.name, &why);
        }
    }
}

/// Adds to an error that a controller remains, and why.
fn add_remaining(error: &mut Error, name: &str, why: &str) {
    error.message.push_str(&format!("; {name} remains: {why}"));
}

/// How the kernel answered a connect.
enum ConnectReply {
    Created(NewController),
    /// This is the controller that exists.
    Exists(Box<Controller>),
}

/// Sends a connect. The error has the status `Exists` if the controller that exists is not found.
fn request(args: &ConnectArgs, kernel: &mut impl Kernel) -> Result<ConnectReply, Error> {
    let exists = match kernel.connect(args) {
        Ok(new) => return Ok(ConnectReply::Created(new)),
        Err(error) if error.status == Status::Exists => error,
        Err(error) => return Err(error),
    };
    let existing = find_existing(args, kernel.controllers()?).map(Box::new);
    existing.map(ConnectReply::Exists).ok_or(exists)
}

/// The addresses that a controller's connections are between, as far as they are known.
#[derive(PartialEq, Eq)]
struct Addresses {
    target: Option<Address>,
    host: Option<Address>,
}

impl Addresses {
    fn new(traddr: &str, host_traddr: Option<&String>) -> Self {
        Self {
            target: traddr.parse().ok(),
            host: host_traddr.and_then(|text| text.parse().ok()),
        }
    }

    fn may_equal(&self, other: &Self) -> bool {
        let may_equal = |one: &Option<Address>, other: &Option<Address>| match (one, other) {
            (Some(one), Some(other)) => one.may_equal(other),
            (one, other) => one == other,
        };
        may_equal(&self.target, &other.target) && may_equal(&self.host, &other.host)
    }
}

/// Returns the controller for which the kernel refuses a connect: one of the same addresses,
/// subsystem and host, as the kernel compares them.
pub(super) fn find_existing(
    args: &ConnectArgs,
    mut controllers: Vec<Controller>,
) -> Option<Controller> {
    let wanted = &args.target;
    let hostid = Uuid::from_bytes(wanted.hostid).to_string();
    let addresses = Addresses::new(&wanted.traddr, wanted.host_traddr.as_ref());
    let addresses_of = |each: &Controller| Addresses::new(&each.traddr, each.host_traddr.as_ref());
    controllers.retain(|each| {
        each.subsysnqn == wanted.subsysnqn
            && each.trsvcid == wanted.trsvcid
            && addresses_of(each).may_equal(&addresses)
            && (each.hostnqn.as_ref()).is_none_or(|nqn| *nqn == wanted.hostnqn)
            && each.hostid.as_ref().is_none_or(|id| *id == hostid)
    });
    let equal = |each: &Controller| addresses_of(each) == addresses;
    match controllers.iter().position(equal) {
        Some(at) => Some(controllers.swap_remove(at)),
        None if controllers.len() == 1 => controllers.pop(),
        None => None,
    }
}

/// The same controller exists, so there cannot be another one.
fn exists_error(controller: &Controller) -> Error {
    let error = match AttemptState::of(controller) {
        AttemptState::Live(_) => {
            Error::failed(format!("already connected as {}", controller.device))
        }
        _ => not_live_error(controller),
    };
    Error {
        status: Status::Exists,
        ..error
    }
}

/// The controller that exists is not live.
fn not_live_error(controller: &Controller) -> Error {
    let Controller { device, state, .. } = controller;
    let context = format!("{device} is there, and {state}");
    let mut error = match controller.error.clone() {
        Some(ctrl_error) => Error::from(ctrl_error).context(context),
        None => Error::failed(context),
    };
    if state.known() == Some(CtrlState::Dead) {
        let text = format!("; disconnect it first: rnvmf disconnect -d {device}");
        error.message.push_str(&text);
    }
    error
}

/// The controller that should have become live is gone.
fn removed_error(controller: Option<&Controller>) -> Error {
    match controller.and_then(|controller| controller.error.clone()) {
        Some(ctrl_error) => ctrl_error.into(),
        None => Error::failed("the controller was removed while it connected"),
    }
}

/// An attempt that succeeded.
pub(super) struct Connected {
    target: Target,
    /// Name of the controller.
    device: String,
    /// It existed before.
    pub(super) existed: bool,
    /// The controller when it became live.
    controller: Option<Box<Controller>>,
}

#[derive(Serialize)]
struct Document<'a> {
    device: &'a str,
    already_connected: bool,
    #[serde(skip_serializing_if = "<[NsRejection]>::is_empty")]
    refused_namespaces: &'a [NsRejection],
}

impl Connected {
    /// Returns the line that reports it, with its end.
    pub(super) fn report(&self, format: Format) -> String {
        let device = &self.device;
        let controller = self.controller.as_ref();
        match format {
            Format::Json => {
                json_line(&Document {
                    device,
                    already_connected: self.existed,
                    refused_namespaces: controller.map_or(&[], |c| &c.refused_namespaces),
                }) + "\n"
            }
            Format::Normal if self.existed => format!("{device}: already connected\n"),
            Format::Normal => {
                let (nqn, endpoint) = (&self.target.subsysnqn, self.target.endpoint());
                format!("{device}: connected to {nqn} at {endpoint}\n")
            }
        }
    }

    /// Returns a line for each namespace that has no disk. In JSON the report has them.
    pub(super) fn warnings(&self, format: Format) -> String {
        let Some(controller) = self.controller.as_ref().filter(|_| format != Format::Json) else {
            return String::new();
        };
        let rejections = controller.rejection_lines().into_iter();
        rejections
            .map(|line| ["rnvmf: ", &self.device, ": no disk: ", &line, "\n"].concat())
            .collect()
    }
}
