// SPDX-License-Identifier: GPL-2.0

//! `rnvmf disconnect` and `rnvmf disconnect-all`. The kernel only starts to remove a controller;
//! the last event of the controller reports the end.

use super::print::Printer;
use super::wait::wait_removed;
use crate::cli::{Disconnect, DisconnectAll};
use crate::error::{Error, Status};
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::model::namespace::Namespace;
use crate::output::{json_member, Format};
use std::time::{Duration, Instant};

/// Time limit for the removal of controllers. The kernel needs far less.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(60);

/// Disconnects the selected controllers.
pub(super) fn run(
    options: &Disconnect,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    kernel.subscribe()?;
    let selected = select(options, kernel.controllers()?)?;
    disconnect(&selected, kernel, printer)
}

/// Disconnects all controllers, or with `--unused` those without a disk in use. Succeeds if there
/// is none.
pub(super) fn run_all(
    options: &DisconnectAll,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    kernel.subscribe()?;
    let mut selected = kernel.controllers()?;
    if options.unused {
        let mut used = kernel.namespaces()?;
        used.retain(|each| kernel.in_use(&each.name));
        selected.retain(|each| used.iter().all(|disk| disk.controller_id != each.id));
        print_in_use(&used, printer)?;
    }
    disconnect(&selected, kernel, printer)
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

fn select(options: &Disconnect, controllers: Vec<Controller>) -> Result<Vec<Controller>, Error> {
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

/// Starts to remove controllers, waits for all of them, and prints those that are removed. The
/// rejection of one does not stop the others. A single error is returned; several are printed.
fn disconnect(
    controllers: &[Controller],
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    let deadline = Instant::now() + REMOVE_TIMEOUT;
    let (mut remaining, mut rejected, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for controller in controllers {
        match kernel.disconnect(controller.id) {
            Ok(()) => remaining.push(controller.id),
            // It was removed after it was listed.
            Err(gone) if gone.status == Status::NotFound => (),
            Err(error) => {
                rejected.push(controller.id);
                errors.push(error.context(format_args!("disconnect {}", controller.device)));
            }
        }
    }
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
