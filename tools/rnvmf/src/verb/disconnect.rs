// SPDX-License-Identifier: GPL-2.0

//! `rnvmf disconnect` and `rnvmf disconnect-all`: the kernel only starts to remove a controller, and
//! its last event reports that it is gone.

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

/// Disconnects every controller, or with `--unused` every one without a disk that `is_used`. It is no
/// error if there is none.
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

/// Whether something holds a disk or a partition of it exclusively: a file system, the device mapper,
/// swap. A process that only opened it is not seen.
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
mod tests {
    use super::*;
    use crate::cli::Output;
    use crate::kernel::tests::MockKernel;
    use crate::model::controller::tests::live;
    use crate::model::event::{Change, WaitResult};
    use crate::model::namespace::tests::disk as namespace;

    fn numbered(id: u32) -> Controller {
        Controller {
            id,
            device: format!("rnvmf{id}"),
            subsysnqn: format!("nqn.{}", id % 2),
            ..live()
        }
    }

    /// A kernel with three controllers, two of nqn.0.
    fn kernel() -> MockKernel {
        MockKernel {
            controllers: (0..3).map(numbered).collect(),
            ..MockKernel::default()
        }
    }

    fn run_mock(
        nqn: Option<&str>,
        device: &[&str],
        format: Format,
        kernel: &mut MockKernel,
    ) -> Result<String, Error> {
        let options = Disconnect {
            selection: Selection {
                nqn: nqn.map(str::to_owned),
                device: device.iter().map(|&name| name.into()).collect(),
            },
            output: Output { format },
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let end = run(&options, kernel, &mut out, &mut err);
        assert_eq!(String::from_utf8(err).unwrap(), "");
        end.map(|()| String::from_utf8(out).unwrap())
    }

    /// What is printed, to either output, and how it ends, where all three are to go.
    fn run_mock_all(kernel: &mut MockKernel) -> (String, String, Error) {
        let format = Format::Normal;
        let options = DisconnectAll {
            unused: false,
            output: Output { format },
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let end = run_all(&options, kernel, &|_| true, &mut out, &mut err).unwrap_err();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(out), text(err), end)
    }

    #[test]
    fn a_subsystem_has_several() {
        let mut kernel = kernel();
        kernel.push_event(Change::Changed, numbered(0));
        kernel.push_event(Change::Removed, numbered(2));
        kernel.push_event(Change::Removed, numbered(0));
        assert_eq!(
            run_mock(Some("nqn.0"), &[], Format::Json, &mut kernel).unwrap(),
            "{\"schema\":1,\"disconnected\":[\"rnvmf0\",\"rnvmf2\"]}\n"
        );
        assert_eq!(kernel.disconnected, [0, 2]);
    }

    #[test]
    fn a_name_is_taken_once() {
        let mut kernel = kernel();
        kernel.push_event(Change::Removed, numbered(1));
        let names = ["rnvmf1", "/dev/rnvmf1"];
        assert_eq!(
            run_mock(None, &names, Format::Normal, &mut kernel).unwrap(),
            "rnvmf1: disconnected\n"
        );
        assert_eq!(kernel.disconnected, [1]);
    }

    #[test]
    fn an_unknown_one_changes_nothing() {
        for (nqn, device) in [
            (Some("nqn.9"), &[] as &[&str]),
            (None, &["rnvmf0", "rnvmf9"]),
        ] {
            let mut kernel = kernel();
            let error = run_mock(nqn, device, Format::Normal, &mut kernel).unwrap_err();
            assert_eq!(error.status, Status::NotFound);
            assert!(kernel.disconnected.is_empty());
        }
    }

    #[test]
    fn lost_events_are_made_up_for() {
        let mut kernel = kernel();
        kernel.wait_results.push_back(WaitResult::EventsLost);
        kernel.push_event(Change::Removed, numbered(0));
        // Still there after the loss, so its event is waited for.
        assert!(run_mock(None, &["rnvmf0"], Format::Normal, &mut kernel).is_ok());
        assert!(kernel.wait_results.is_empty());
    }

    #[test]
    fn giving_up_tells_what_is_left() {
        for (result, status, why) in [
            (WaitResult::Interrupted, Status::Failed, "interrupted"),
            (WaitResult::Deadline, Status::Timeout, "timed out"),
        ] {
            let mut kernel = kernel();
            kernel.wait_results.push_back(result);
            let error = run_mock(None, &["rnvmf0"], Format::Normal, &mut kernel).unwrap_err();
            assert_eq!(error.status, status);
            assert_eq!(
                error.message,
                format!("disconnect rnvmf0: {why}; the kernel goes on to remove it")
            );
        }
    }

    #[test]
    fn one_that_is_refused_keeps_no_other() {
        let mut kernel = kernel();
        let no = Error::failed("not permitted");
        kernel.rejections.push_back(no);
        kernel.push_event(Change::Removed, numbered(2));
        let error = run_mock(Some("nqn.0"), &[], Format::Normal, &mut kernel).unwrap_err();
        assert_eq!(error.message, "disconnect rnvmf0: not permitted");
        assert_eq!(kernel.disconnected, [0, 2]);
        assert!(
            kernel.wait_results.is_empty(),
            "it did not wait for the other"
        );
    }

    #[test]
    fn what_is_gone_is_told_though_another_is_not() {
        let mut kernel = kernel();
        kernel.rejections.push_back(Error::failed("a"));
        kernel.push_event(Change::Removed, numbered(2));
        kernel.wait_results.push_back(WaitResult::Interrupted);
        let (out, err, end) = run_mock_all(&mut kernel);
        assert_eq!(out, "rnvmf2: disconnected\n");
        assert_eq!(
            err,
            "rnvmf: disconnect rnvmf0: a\n\
             rnvmf: disconnect rnvmf1: interrupted; the kernel goes on to remove it\n"
        );
        assert_eq!(end.message, "disconnect: 2 of 3 controllers are left");
        assert_eq!(end.status, Status::Failed);
    }

    #[test]
    fn each_refusal_is_told() {
        for (last, result, more, status) in [
            (Status::Permission, None, "", Status::Permission),
            (Status::Failed, None, "", Status::Failed),
            (
                Status::Permission,
                Some(WaitResult::Deadline),
                "rnvmf: disconnect rnvmf2: timed out; the kernel goes on to remove it\n",
                Status::Failed,
            ),
        ] {
            let mut kernel = kernel();
            let first = Error::new(Status::Permission, "a");
            kernel.rejections = [first, Error::new(last, "b")].into();
            let is_left = result.is_some();
            match result {
                Some(result) => kernel.wait_results.push_back(result),
                None => kernel.push_event(Change::Removed, numbered(2)),
            }
            let (out, err, end) = run_mock_all(&mut kernel);
            assert_eq!(
                out,
                if is_left {
                    ""
                } else {
                    "rnvmf2: disconnected\n"
                }
            );
            let refused = "rnvmf: disconnect rnvmf0: a\nrnvmf: disconnect rnvmf1: b\n";
            assert_eq!(err, format!("{refused}{more}"));
            let left = if is_left { 3 } else { 2 };
            let text = format!("disconnect: {left} of 3 controllers are left");
            assert_eq!((end.status, end.message), (status, text));
        }
    }

    #[test]
    fn all_may_be_none() {
        let out = run_mock_unused(false, Format::Json, &mut MockKernel::default());
        assert_eq!(out, "{\"schema\":1,\"disconnected\":[]}\n");
    }

    fn run_mock_unused(unused: bool, format: Format, kernel: &mut MockKernel) -> String {
        let options = DisconnectAll {
            unused,
            output: Output { format },
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let is_used = |disk: &str| disk == "rnvmf1n2";
        run_all(&options, kernel, &is_used, &mut out, &mut err).unwrap();
        assert_eq!(String::from_utf8(err).unwrap(), "");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_that_is_in_use_may_be_left() {
        let disk = |controller_id, nsid| Namespace {
            controller_id,
            name: format!("rnvmf{controller_id}n{nsid}"),
            ..namespace()
        };
        for (unused, format, line, gone) in [
            (
                true,
                Format::Normal,
                "/dev/rnvmf1n2: in use, stays connected\n\
                 rnvmf0: disconnected\nrnvmf2: disconnected\n",
                &[0, 2][..],
            ),
            (
                true,
                Format::Json,
                "{\"schema\":1,\"in_use\":[\"rnvmf1n2\"]}\n\
                 {\"schema\":1,\"disconnected\":[\"rnvmf0\",\"rnvmf2\"]}\n",
                &[0, 2],
            ),
            (
                false,
                Format::Json,
                "{\"schema\":1,\"disconnected\":[\"rnvmf0\",\"rnvmf1\",\"rnvmf2\"]}\n",
                &[0, 1, 2],
            ),
        ] {
            let mut kernel = MockKernel {
                namespaces: vec![disk(0, 1), disk(1, 1), disk(1, 2)],
                ..kernel()
            };
            for id in gone {
                kernel.push_event(Change::Removed, numbered(*id));
            }
            assert_eq!(run_mock_unused(unused, format, &mut kernel), line);
            assert_eq!(kernel.disconnected, gone);
        }
    }
}
