// SPDX-License-Identifier: GPL-2.0

//! `rnvmf connect`: the kernel only starts to connect; the events tell how it went.

#[cfg(test)]
mod tests;

use super::print;
use super::wait_removed::{self, RemoveResult};
use crate::address::{Address, Endpoint};
use crate::cli::{self, Connect, CtrlArgs, FabricsArgs, Format};
use crate::controller::{Controller, NsRejection};
use crate::error::{warn, Error, Status};
use crate::event::{Change, Event, WaitResult};
use crate::host::SystemEnv;
use crate::kernel::{ConnectArgs, Kernel, NewController, ReconnectOptions, Target};
use crate::render::json;
use crate::uapi::{CtrlState, CTRL_LOSS_TMO_DEFAULT, LOSS_TMO_NEVER, RECONNECT_DELAY_DEFAULT};
use serde::Serialize;
use std::io::Write;
use std::slice;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How much longer than the kernel's own timeout to wait for it to tell of it.
const KERNEL_MARGIN: Duration = Duration::from_secs(5);

/// What the kernel takes where nothing is said.
const DEFAULTS: ReconnectOptions = ReconnectOptions {
    reconnect_delay: Some(RECONNECT_DELAY_DEFAULT),
    ctrl_loss_tmo: Some(CTRL_LOSS_TMO_DEFAULT),
    fast_io_fail_tmo: Some(LOSS_TMO_NEVER),
};

#[derive(Serialize)]
struct Document<'a> {
    device: &'a str,
    already_connected: bool,
    #[serde(skip_serializing_if = "<[NsRejection]>::is_empty")]
    refused_namespaces: &'a [NsRejection],
}

/// What the options ask for, with names and defaults worked out.
pub(super) fn connect_args(options: &Connect, env: &SystemEnv) -> Result<ConnectArgs, Error> {
    let Connect {
        traddr, fabrics, ..
    } = options;
    let target = target(traddr, &options.nqn, fabrics, env).map_err(|error| {
        let target = Endpoint::new(traddr, fabrics.trsvcid);
        error.context(format_args!("connect to {target}"))
    })?;
    Ok(ConnectArgs {
        duplicate_connect: options.duplicate_connect,
        ..shaped(target, &options.ctrl)
    })
}

/// The subsystem that is asked for, with names and defaults worked out.
pub(super) fn target(
    traddr: &str,
    nqn: &str,
    fabrics: &FabricsArgs,
    env: &SystemEnv,
) -> Result<Target, Error> {
    let address = env.resolve(traddr, fabrics.host_traddr.as_ref(), fabrics.timeout)?;
    let host = env.identify(fabrics.hostnqn.as_deref(), fabrics.hostid)?;
    Ok(Target {
        traddr: address.to_string(),
        trsvcid: fabrics.trsvcid,
        subsysnqn: nqn.to_owned(),
        hostnqn: host.nqn,
        hostid: host.id.into_bytes(),
        host_traddr: fabrics.host_traddr.as_ref().map(Address::to_string),
        connect_timeout: fabrics.timeout * 1000,
        tos: fabrics.tos,
    })
}

/// A connect to a target.
pub(super) fn shaped(target: Target, ctrl: &CtrlArgs) -> ConnectArgs {
    ConnectArgs {
        target,
        nr_io_queues: ctrl.nr_io_queues,
        nr_write_queues: ctrl.nr_write_queues,
        nr_poll_queues: ctrl.nr_poll_queues,
        queue_size: ctrl.queue_size,
        keep_alive_tmo: ctrl.keep_alive_tmo,
        disable_sqflow: ctrl.disable_sqflow,
        reconnect: reconnect(&ctrl.reconnect),
        duplicate_connect: false,
    }
}

/// The options of a loss as the kernel takes them; the command line lets -1 through for never.
pub(super) fn reconnect(options: &cli::ReconnectArgs) -> ReconnectOptions {
    let limit = |seconds: i64| u32::try_from(seconds).unwrap_or(LOSS_TMO_NEVER);
    ReconnectOptions {
        reconnect_delay: options.reconnect_delay,
        ctrl_loss_tmo: options.ctrl_loss_tmo.map(limit),
        fast_io_fail_tmo: options.fast_io_fail_tmo.map(limit),
    }
}

/// Connect, and print the name of the controller.
pub(super) fn run(
    options: &Connect,
    connect_args: &ConnectArgs,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    let format = options.output.format;
    let connected =
        connect(options, connect_args, kernel).map_err(|error| failed(connect_args, error))?;
    // One that was there has kept what it had.
    if let (Some(ineffective), false) = (
        connect_args.reconnect.ineffective(&DEFAULTS),
        connected.already,
    ) {
        warn(&ineffective, format, err);
    }
    print(out, &connected.report(format, connect_args))?;
    // What was asked for is done, whoever listens.
    let _ = err.write_all(connected.warnings(format).as_bytes());
    Ok(())
}

/// What is said of a connect that did not work.
pub(super) fn failed(connect_args: &ConnectArgs, error: Error) -> Error {
    let target = connect_args.target.endpoint();
    error.context(format_args!("connect to {target}"))
}

/// A connect that worked.
pub(super) struct Connected {
    /// The name of the controller.
    device: String,
    /// It was there before.
    already: bool,
    /// The controller when it was live.
    controller: Option<Box<Controller>>,
}

impl Connected {
    /// What is printed of it.
    pub(super) fn report(&self, format: Format, connect_args: &ConnectArgs) -> String {
        let device = &self.device;
        let controller = self.controller.as_ref();
        match format {
            Format::Json => {
                json::line(&Document {
                    device,
                    already_connected: self.already,
                    refused_namespaces: controller.map_or(&[], |c| &c.refused_namespaces),
                }) + "\n"
            }
            Format::Normal if self.already => format!("{device}: already connected\n"),
            Format::Normal => {
                let Target { subsysnqn, .. } = &connect_args.target;
                let target = connect_args.target.endpoint();
                format!("{device}: connected to {subsysnqn} at {target}\n")
            }
        }
    }

    /// A line for each namespace that has no disk; in JSON the report has them.
    pub(super) fn warnings(&self, format: Format) -> String {
        let Some(controller) = self.controller.as_ref().filter(|_| format != Format::Json) else {
            return String::new();
        };
        let rejection_lines = controller.rejection_lines().into_iter();
        rejection_lines
            .map(|refusal| ["rnvmf: ", &self.device, ": no disk: ", &refusal, "\n"].concat())
            .collect()
    }
}

/// Connect, and wait until the controller is live.
fn connect(
    options: &Connect,
    connect_args: &ConnectArgs,
    kernel: &mut impl Kernel,
) -> Result<Connected, Error> {
    // Before the connect, so that no event of it can be missed.
    kernel.subscribe()?;
    let mut attempt = begin(options.idempotent, connect_args, kernel)?;
    wait_all(
        slice::from_mut(&mut attempt),
        deadline(&connect_args.target),
        kernel,
    );
    attempt.end()
}

/// When a connect that begins now must have ended in the kernel.
pub(super) fn deadline(target: &Target) -> Instant {
    Instant::now() + Duration::from_millis(u64::from(target.connect_timeout)) + KERNEL_MARGIN
}

/// A controller that is to become live.
pub(super) struct ConnectAttempt {
    id: u32,
    name: String,
    /// It was there before, and is not ours to remove.
    already: bool,
    progress: AttemptState,
}

#[derive(Debug, PartialEq, Eq)]
enum AttemptState {
    Pending,
    Live(Box<Controller>),
    Failed(Error),
}

impl ConnectAttempt {
    pub(super) fn is_pending(&self) -> bool {
        self.progress == AttemptState::Pending
    }

    /// What it is at the deadline, which is beyond that of the kernel.
    fn overdue(&self, now: Option<Controller>) -> AttemptState {
        let Some(controller) = now else {
            return AttemptState::Failed(removed(None));
        };
        match judge(&controller) {
            // It was lost some time, and the kernel takes longer to connect again.
            AttemptState::Pending if self.already => AttemptState::Failed(is_not_live(&controller)),
            AttemptState::Pending => AttemptState::Failed(late()),
            other => other,
        }
    }

    /// Have the kernel remove what failed, without waiting for it.
    pub(super) fn abandon(&self, kernel: &mut impl Kernel) {
        if let (AttemptState::Failed(_), false) = (&self.progress, self.already) {
            // Most often the kernel is removing it already.
            let _ = kernel.disconnect(self.id);
        }
    }

    /// What came of it.
    pub(super) fn end(self) -> Result<Connected, Error> {
        let controller = match self.progress {
            AttemptState::Failed(error) => return Err(error),
            AttemptState::Pending => None,
            AttemptState::Live(controller) => Some(controller),
        };
        Ok(Connected {
            device: self.name,
            already: self.already,
            controller,
        })
    }
}

/// What came of asking for a controller.
enum ConnectReply {
    NewController(NewController),
    /// The same is there.
    Exists(Box<Controller>),
}

/// Ask for a controller; the error says that there is the same if that is all that is known of it.
fn ask(connect_args: &ConnectArgs, kernel: &mut impl Kernel) -> Result<ConnectReply, Error> {
    let exists = match kernel.connect(connect_args) {
        Ok(made) => return Ok(ConnectReply::NewController(made)),
        Err(error) if error.status == Status::Exists => error,
        Err(error) => return Err(error),
    };
    let existing = find(connect_args, kernel.controllers()?).map(Box::new);
    existing.map(ConnectReply::Exists).ok_or(exists)
}

/// Start to connect; one that is there already will do if that is wanted.
pub(super) fn begin(
    idempotent: bool,
    connect_args: &ConnectArgs,
    kernel: &mut impl Kernel,
) -> Result<ConnectAttempt, Error> {
    let asked = match ask(connect_args, kernel) {
        // It may have gone before it was looked for.
        Err(error) if error.status == Status::Exists => ask(connect_args, kernel),
        asked => asked,
    };
    let existing = match asked? {
        ConnectReply::NewController(made) => {
            return Ok(ConnectAttempt {
                id: made.id,
                name: made.name,
                already: false,
                progress: AttemptState::Pending,
            })
        }
        ConnectReply::Exists(existing) => *existing,
    };
    if !idempotent {
        return Err(is_there(&existing));
    }
    let progress = match judge(&existing) {
        // What it failed with is not what came of this connect.
        AttemptState::Failed(_) => AttemptState::Failed(is_not_live(&existing)),
        other => other,
    };
    Ok(ConnectAttempt {
        id: existing.id,
        progress,
        name: existing.device,
        already: true,
    })
}

/// Wait until every attempt has ended, and leave nothing of those that failed.
pub(super) fn wait_all(
    attempts: &mut [ConnectAttempt],
    deadline: Instant,
    kernel: &mut impl Kernel,
) {
    while attempts.iter().any(ConnectAttempt::is_pending) {
        let heard = kernel
            .next(Some(deadline))
            .and_then(|result| hear(attempts, &result, kernel));
        if let Err(error) = heard {
            give_up(attempts, &error, kernel);
        }
    }
    undo(attempts, kernel);
}

/// What is pending has failed, unless it is live by now, though nobody has heard of it: its disk may
/// be in use.
pub(super) fn give_up(attempts: &mut [ConnectAttempt], error: &Error, kernel: &mut impl Kernel) {
    for attempt in attempts.iter_mut().filter(|each| each.is_pending()) {
        let now = kernel.controller(attempt.id).ok().flatten();
        attempt.progress = match now.as_ref().map(judge) {
            Some(live @ AttemptState::Live(_)) => live,
            _ => AttemptState::Failed(error.clone()),
        };
    }
}

/// Look what a notice means for the attempts; an error ends all of them.
pub(super) fn hear(
    attempts: &mut [ConnectAttempt],
    result: &WaitResult,
    kernel: &mut impl Kernel,
) -> Result<(), Error> {
    let pending = attempts.iter_mut().filter(|each| each.is_pending());
    match result {
        WaitResult::Event(Event::Controller(change, controller)) => {
            for attempt in pending.filter(|each| each.id == controller.id) {
                attempt.progress = match change {
                    Change::Removed => AttemptState::Failed(removed(Some(controller))),
                    _ => judge(controller),
                };
            }
            Ok(())
        }
        WaitResult::Event(_) | WaitResult::Discovery(..) => Ok(()),
        WaitResult::Lost => {
            for attempt in pending {
                attempt.progress = match kernel.controller(attempt.id)? {
                    Some(controller) => judge(&controller),
                    None => AttemptState::Failed(removed(None)),
                };
            }
            Ok(())
        }
        WaitResult::Interrupted => Err(Error::failed("interrupted")),
        WaitResult::Deadline => {
            for attempt in pending {
                attempt.progress = attempt.overdue(kernel.controller(attempt.id)?);
            }
            Ok(())
        }
    }
}

/// What the state of a controller that connects means.
fn judge(controller: &Controller) -> AttemptState {
    match controller.state.known() {
        Some(CtrlState::Live) => AttemptState::Live(Box::new(controller.clone())),
        Some(CtrlState::Dead | CtrlState::Deleting) => {
            AttemptState::Failed(removed(Some(controller)))
        }
        // A state that is not known here is on the way to one that is.
        Some(CtrlState::New | CtrlState::Connecting | CtrlState::Resetting) | None => {
            AttemptState::Pending
        }
    }
}

/// The deadline, which is beyond that of the kernel, has passed.
pub(super) fn late() -> Error {
    Error::new(Status::Timeout, "the kernel did not finish in time")
}

/// Why there cannot be another one beside a controller.
fn is_there(controller: &Controller) -> Error {
    let error = match judge(controller) {
        AttemptState::Live(_) => {
            Error::failed(format!("already connected as {}", controller.device))
        }
        _ => is_not_live(controller),
    };
    Error {
        status: Status::Exists,
        ..error
    }
}

/// Why a controller that was there before will not do.
fn is_not_live(controller: &Controller) -> Error {
    let Controller { device, state, .. } = controller;
    let there = format!("{device} is there, and {state}");
    let mut error = match controller.error.clone() {
        Some(ctrl_error) => Error::from(ctrl_error).context(there),
        None => Error::failed(there),
    };
    if state.known() == Some(CtrlState::Dead) {
        let text = format!("; disconnect it first: rnvmf disconnect -d {device}");
        error.message.push_str(&text);
    }
    error
}

/// Why a controller that should have become live is gone.
fn removed(controller: Option<&Controller>) -> Error {
    match controller.and_then(|controller| controller.error.clone()) {
        Some(ctrl_error) => ctrl_error.into(),
        None => Error::failed("the controller was removed while it connected"),
    }
}

/// Leave nothing half-made behind. A second connect must not find the first in its way, so this
/// waits until the controllers are gone; one that remains is named in its error.
pub(super) fn undo(attempts: &mut [ConnectAttempt], kernel: &mut impl Kernel) {
    let deadline = Instant::now() + KERNEL_MARGIN;
    let mut leaving = Vec::new();
    for attempt in attempts.iter_mut().filter(|each| !each.already) {
        let AttemptState::Failed(error) = &mut attempt.progress else {
            continue;
        };
        match kernel.disconnect(attempt.id) {
            Ok(()) => leaving.push(attempt.id),
            // The kernel removed it first.
            Err(gone) if gone.status == Status::NotFound => (),
            Err(left) => error.remains(&attempt.name, &left.message),
        }
    }
    let left = match wait_removed::wait(kernel, &mut leaving, deadline) {
        Ok(RemoveResult::Gone) => return,
        Ok(RemoveResult::Interrupted | RemoveResult::Deadline) => {
            "the kernel goes on to remove it".into()
        }
        Err(left) => left.message,
    };
    for attempt in attempts
        .iter_mut()
        .filter(|each| leaving.contains(&each.id))
    {
        if let AttemptState::Failed(error) = &mut attempt.progress {
            error.remains(&attempt.name, &left);
        }
    }
}

impl Error {
    /// Add that this is left, and why.
    fn remains(&mut self, name: &str, why: &str) {
        self.message.push_str(&format!("; {name} remains: {why}"));
    }
}

/// The controller that stands in the way of a wish: as the kernel compares them, one from and to the
/// same addresses, of the same subsystem and host.
fn find(connect_args: &ConnectArgs, mut same: Vec<Controller>) -> Option<Controller> {
    let wanted = &connect_args.target;
    let hostid = Uuid::from_bytes(wanted.hostid).to_string();
    let address = |text: &String| text.parse::<Address>().ok();
    let to = address(&wanted.traddr);
    let from = wanted.host_traddr.as_ref().and_then(address);
    let ends = |each: &Controller| {
        let from = each.host_traddr.as_ref().and_then(address);
        (address(&each.traddr), from)
    };
    same.retain(|each| {
        let (its_to, its_from) = ends(each);
        each.subsysnqn == wanted.subsysnqn
            && each.trsvcid == wanted.trsvcid
            && may_be_same(its_to.as_ref(), to.as_ref())
            && may_be_same(its_from.as_ref(), from.as_ref())
            && each
                .hostnqn
                .as_ref()
                .is_none_or(|nqn| *nqn == wanted.hostnqn)
            && each.hostid.as_ref().is_none_or(|id| *id == hostid)
    });
    let wanted = (to, from);
    match same.iter().position(|each| ends(each) == wanted) {
        Some(at) => Some(same.swap_remove(at)),
        None if same.len() == 1 => same.pop(),
        None => None,
    }
}

/// Whether two ends of a connection may be the same one.
fn may_be_same(one: Option<&Address>, other: Option<&Address>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.may_equal(other),
        (one, other) => one == other,
    }
}
