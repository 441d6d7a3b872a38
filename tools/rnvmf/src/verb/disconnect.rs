// SPDX-License-Identifier: GPL-2.0

//! `rnvmf disconnect` and `rnvmf disconnect-all`: the kernel only starts to remove a controller,
//! and its last event reports that it is gone.

use super::print::print;
use super::wait::{wait_removed, RemoveResult};
use crate::cli::{Disconnect, DisconnectAll, Selection};
use crate::error::{Error, Status};
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::model::namespace::Namespace;
use crate::output::{json_line, Format};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to wait for the removal of controllers, which the kernel bounds far below this.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Serialize)]
struct Document<'a> {
    disconnected: Vec<&'a str>,
}

#[derive(Serialize)]
struct InUseDocument<'a> {
    in_use: Vec<&'a str>,
}

/// Disconnects the selected controllers.
pub(super) fn run(
    options: &Disconnect,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    kernel.subscribe()?;
    let selected = select(&options.selection, kernel.controllers()?)?;
    print_removal(remove(&selected, kernel), options.output.format, out, err)
}

/// Disconnects every controller, or with `--unused` every one without a disk that `is_used`. It is
/// no error if there is none.
pub(super) fn run_all(
    options: &DisconnectAll,
    kernel: &mut impl Kernel,
    is_used: &dyn Fn(&str) -> bool,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    let format = options.output.format;
    kernel.subscribe()?;
    let mut selected = kernel.controllers()?;
    if options.unused {
        let mut used = kernel.namespaces()?;
        used.retain(|each| is_used(&each.name));
        selected.retain(|each| used.iter().all(|disk| disk.controller_id != each.id));
        print(out, &render_in_use(&used, format))?;
    }
    print_removal(remove(&selected, kernel), format, out, err)
}

/// Whether something holds a disk or a partition of it exclusively: a file system, the device
/// mapper, swap. A process that only opened it is not seen.
pub(super) fn in_use(disk: &str) -> bool {
    let mut open = OpenOptions::new();
    open.read(true).custom_flags(libc::O_EXCL);
    let opened = open.open(Path::new("/dev").join(disk));
    opened.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}

/// Returns the lines for disks that keep their controllers connected; nothing without such disks.
fn render_in_use(disks: &[Namespace], format: Format) -> String {
    let names = disks.iter().map(|disk| disk.name.as_str());
    match format {
        Format::Json if disks.is_empty() => String::new(),
        Format::Json => {
            let in_use = names.collect();
            json_line(&InUseDocument { in_use }) + "\n"
        }
        Format::Normal => names
            .flat_map(|name| ["/dev/", name, ": in use, stays connected\n"])
            .collect(),
    }
}

fn select(selection: &Selection, controllers: Vec<Controller>) -> Result<Vec<Controller>, Error> {
    if let Some(nqn) = &selection.nqn {
        let same = |each: &Controller| each.subsysnqn == *nqn;
        let selected: Vec<_> = controllers.into_iter().filter(same).collect();
        if selected.is_empty() {
            let text = format!("disconnect: no controller of subsystem {nqn}");
            return Err(Error::new(Status::NotFound, text));
        }
        return Ok(selected);
    }
    let mut selected: Vec<Controller> = Vec::new();
    for device in &selection.device {
        let controller =
            Controller::find(device, &controllers).map_err(|error| error.context("disconnect"))?;
        if selected.iter().all(|each| each.id != controller.id) {
            selected.push(controller.clone());
        }
    }
    Ok(selected)
}

/// The result of removing controllers.
struct Removal<'a> {
    removed: Vec<&'a Controller>,
    /// How many are not removed.
    nr_remaining: usize,
    /// An error for each that the kernel rejected, and one for all that were not waited for.
    errors: Vec<Error>,
}

/// Starts to remove controllers, then waits for all of them. The rejection of one does not stop the
/// others.
fn remove<'a>(controllers: &'a [Controller], kernel: &mut impl Kernel) -> Removal<'a> {
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
    if let Err(mut why) = wait_for(&mut remaining, deadline, kernel) {
        why.message += if remaining.len() == 1 { " it" } else { " them" };
        let names = controllers
            .iter()
            .filter(|each| remaining.contains(&each.id));
        let names: Vec<&str> = names.map(|each| each.device.as_str()).collect();
        errors.push(why.context(format_args!("disconnect {}", names.join(", "))));
    }
    remaining.append(&mut rejected);
    let is_removed = |each: &&Controller| !remaining.contains(&each.id);
    Removal {
        removed: controllers.iter().filter(is_removed).collect(),
        nr_remaining: remaining.len(),
        errors,
    }
}

/// Waits until controllers are removed. The error's message lacks its object.
fn wait_for(
    remaining: &mut Vec<u32>,
    deadline: Instant,
    kernel: &mut impl Kernel,
) -> Result<(), Error> {
    let goes_on = "the kernel goes on to remove";
    match wait_removed(kernel, remaining, deadline) {
        Ok(RemoveResult::Removed) => Ok(()),
        Ok(RemoveResult::Interrupted) => Err(Error::failed(format!("interrupted; {goes_on}"))),
        Ok(RemoveResult::Deadline) => {
            Err(Error::new(Status::Timeout, format!("timed out; {goes_on}")))
        }
        Err(error) => Err(Error {
            message: format!("{}; {goes_on}", error.message),
            ..error
        }),
    }
}

/// Prints the removed controllers, also if others remain, and each error if there are several.
fn print_removal(
    removal: Removal<'_>,
    format: Format,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    let Removal {
        removed,
        nr_remaining,
        errors,
    } = removal;
    let printed = print(out, &render(&removed, format));
    let Some(status) = Status::common(errors.iter().map(|error| error.status)) else {
        return printed;
    };
    if let [error] = &errors[..] {
        return Err(error.clone());
    }
    for error in &errors {
        print(err, &(error.render(format) + "\n"))?;
    }
    let all = removed.len() + nr_remaining;
    let text = format!("disconnect: {nr_remaining} of {all} controllers are left");
    Err(Error::new(status, text))
}

fn render(controllers: &[&Controller], format: Format) -> String {
    let names = controllers.iter().map(|each| each.device.as_str());
    match format {
        Format::Json => {
            json_line(&Document {
                disconnected: names.collect(),
            }) + "\n"
        }
        Format::Normal => names.flat_map(|name| [name, ": disconnected\n"]).collect(),
    }
}

#[cfg(test)]
mod tests;
