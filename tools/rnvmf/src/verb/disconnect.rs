// SPDX-License-Identifier: GPL-2.0

//! `rnvmf disconnect` and `rnvmf disconnect-all`. The kernel only starts to remove a controller;
//! the last event of the controller reports the end.

use super::print::Printer;
use super::wait::{wait_removal, wait_removed};
use crate::cli;
use crate::cli::DisconnectAll;
use crate::error::{Error, Status};
use crate::kernel::{Disconnect, Kernel};
use crate::model::controller::Controller;
use crate::model::namespace::Namespace;
use crate::output::{json_member, Format};
use std::time::{Duration, Instant};

/// Time limit for the removal of controllers. The kernel needs far less.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(60);

/// How often a disk that is open but not claimed is tried: udev, for example, examines a new disk for
/// a moment.
const TRIES: u32 = 20;

/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Disconnects the selected controllers.
pub(super) fn run(
    options: &cli::Disconnect,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    kernel.subscribe()?;
    let selected = select(options, kernel.controllers()?)?;
    let removal = start(&selected, kernel);
    finish(&selected, removal, kernel, printer)
}

/// Disconnects all controllers, or with `--unused` those whose disks nobody has open. Succeeds if
/// there is none.
pub(super) fn run_all(
    options: &DisconnectAll,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    kernel.subscribe()?;
    let mut selected = kernel.controllers()?;
    if !options.unused {
        let removal = start(&selected, kernel);
        return finish(&selected, removal, kernel, printer);
    }
    let (removal, used) = start_unused(&selected, kernel)?;
    selected.retain(|each| used.iter().all(|disk| disk.controller_id != each.id));
    print_in_use(&used, printer)?;
    finish(&selected, removal, kernel, printer)
}

/// Prints the disks that keep controllers connected.
fn print_in_use(disks: &[Namespace], printer: &mut Printer<'_>) -> Result<(), Error> {
    if disks.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    let line = |name| format!("/dev/{name}: in use, stays connected\n");
    printer.print(&match printer.format {
        Format::Json => json_member("in_use", &names),
        Format::Normal => names.into_iter().map(line).collect(),
    })
}

fn select(
    options: &cli::Disconnect,
    controllers: Vec<Controller>,
) -> Result<Vec<Controller>, Error> {
    if let Some(nqn) = &options.nqn {
        let same = |each: &Controller| each.subsysnqn == *nqn;
        let selected: Vec<_> = controllers.into_iter().filter(same).collect();
        if selected.is_empty() {
            let text = format!("disconnect: no controller of subsystem {nqn}");
            return Err(Error::new(Status::NotFound, text));
        }
        return Ok(selected);
    }
    let mut selected: Vec<Controller> = Vec::new();
    for device in &options.device {
        let controller =
            Controller::find(device, &controllers).map_err(|error| error.context("disconnect"))?;
        if selected.iter().all(|each| each.id != controller.id) {
            selected.push(controller.clone());
        }
    }
    Ok(selected)
}

/// Controllers whose removal was requested.
#[derive(Default)]
struct Removal {
    /// Those being removed.
    remaining: Vec<u32>,
    /// Those that the kernel does not remove, and its errors.
    rejected: Vec<u32>,
    errors: Vec<Error>,
}

impl Removal {
    /// Adds a controller and what the kernel answered.
    fn add(&mut self, controller: &Controller, answer: Result<(), Error>) {
        match answer {
            Ok(()) => self.remaining.push(controller.id),
            // It was removed after it was listed.
            Err(gone) if gone.status == Status::NotFound => (),
            Err(error) => {
                self.rejected.push(controller.id);
                let device = &controller.device;
                self.errors
                    .push(error.context(format_args!("disconnect {device}")));
            }
        }
    }
}

/// Starts to remove controllers. The rejection of one does not stop the others.
fn start(controllers: &[Controller], kernel: &mut impl Kernel) -> Removal {
    let mut removal = Removal::default();
    for controller in controllers {
        let answer = kernel.disconnect(controller.id);
        removal.add(controller, answer);
    }
    removal
}

/// Starts to remove the controllers whose disks nobody has open. Also returns the open disks of the
/// others. The kernel decides, so that a mount at the same time either keeps its disk or fails.
fn start_unused(
    controllers: &[Controller],
    kernel: &mut impl Kernel,
) -> Result<(Removal, Vec<Namespace>), Error> {
    let (mut removal, mut used) = (Removal::default(), Vec::new());
    let mut pending: Vec<&Controller> = controllers.iter().collect();
    let mut next_try = Instant::now();
    for number in 1..=TRIES {
        let mut refused = Vec::new();
        for controller in pending {
            match kernel.disconnect_unused(controller.id) {
                Ok(Disconnect::InUse) => refused.push(controller),
                answer => removal.add(controller, answer.map(|_| ())),
            }
        }
        pending = take_used(refused, number == TRIES, kernel, &mut used)?;
        if pending.is_empty() || number == TRIES {
            break;
        }
        next_try += PAUSE;
        let paused = pause(kernel, &mut removal.remaining, next_try);
        paused.map_err(|mut error| {
            error.message += "; the removals that have started continue";
            error.context("disconnect")
        })?;
    }
    for controller in pending {
        removal.add(controller, Err(Error::failed("a disk is in use")));
    }
    Ok((removal, used))
}

/// Adds the disks of controllers that stay to `used`: of those with a claimed disk, and if this is the
/// last try of all. Returns the other controllers: at the last try those without disks.
fn take_used<'a>(
    mut refused: Vec<&'a Controller>,
    is_last: bool,
    kernel: &mut impl Kernel,
    used: &mut Vec<Namespace>,
) -> Result<Vec<&'a Controller>, Error> {
    if refused.is_empty() {
        return Ok(refused);
    }
    let disks = kernel.namespaces()?;
    refused.retain(|controller| {
        let mut ours = disks.clone();
        ours.retain(|disk| disk.controller_id == controller.id);
        let is_next_tried = !is_last && !ours.iter().any(Namespace::is_claimed);
        if is_next_tried || ours.is_empty() {
            return true;
        }
        // If all are closed by now, it is unknown which of them was open.
        if ours.iter().any(Namespace::is_open) {
            ours.retain(Namespace::is_open);
        }
        used.extend(ours);
        false
    });
    Ok(refused)
}

/// Waits until `end`, and takes removed controllers out of `remaining`.
fn pause(kernel: &mut impl Kernel, remaining: &mut Vec<u32>, end: Instant) -> Result<(), Error> {
    loop {
        match wait_removal(kernel, remaining, end) {
            Err(late) if late.status == Status::Timeout => return Ok(()),
            result => result?,
        }
    }
}

/// Waits for the removal of controllers, and prints those that are removed. A single error is
/// returned; several are printed.
fn finish(
    controllers: &[Controller],
    removal: Removal,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    let deadline = Instant::now() + REMOVE_TIMEOUT;
    let Removal {
        mut remaining,
        mut rejected,
        mut errors,
    } = removal;
    // The names of those controllers whose presence in a list is as given.
    let names = |list: &[u32], is_in: bool| -> Vec<&str> {
        let chosen = controllers
            .iter()
            .filter(|each| list.contains(&each.id) == is_in);
        chosen.map(|each| each.device.as_str()).collect()
    };
    if let Err(mut error) = wait_removed(kernel, &mut remaining, deadline) {
        error.message += "; the removal continues";
        let names = names(&remaining, true).join(", ");
        errors.push(error.context(format_args!("disconnect {names}")));
    }
    remaining.append(&mut rejected);
    let removed = names(&remaining, false);
    let line = |name: &&str| format!("{name}: disconnected\n");
    let printed = printer.print(&match printer.format {
        Format::Json => json_member("disconnected", &removed),
        Format::Normal => removed.iter().map(line).collect(),
    });
    let Some(status) = Status::common(errors.iter().map(|error| error.status)) else {
        return printed;
    };
    if let [error] = &errors[..] {
        return Err(error.clone());
    }
    for error in &errors {
        printer.error(error)?;
    }
    let (left, all) = (remaining.len(), controllers.len());
    let text = format!("disconnect: {left} of {all} controllers were not removed");
    Err(Error::new(status, text))
}

#[cfg(test)]
mod tests;
