// SPDX-License-Identifier: GPL-2.0

//! `rnvmf disconnect` and `rnvmf disconnect-all`: the kernel only starts to remove a controller; its
//! last event tells that it is gone.

use super::print;
use super::wait_removed::{self, RemoveResult};
use crate::cli::{Disconnect, DisconnectAll, Format, Selection};
use crate::controller::Controller;
use crate::error::{Error, Status};
use crate::kernel::Kernel;
use crate::namespace::Namespace;
use crate::render::json;
use serde::Serialize;
use std::io::Write;
use std::time::{Duration, Instant};

/// Removing a controller is bounded in the kernel; this is far beyond that bound.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Serialize)]
struct Document<'a> {
    disconnected: Vec<&'a str>,
}

#[derive(Serialize)]
struct InUseDocument<'a> {
    in_use: Vec<&'a str>,
}

/// Disconnect the chosen controllers.
pub(super) fn run(
    options: &Disconnect,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    kernel.subscribe()?;
    let chosen = choose(&options.selection, kernel.controllers()?)?;
    tell(remove(&chosen, kernel), options.output.format, out, err)
}

/// Disconnect every controller, or every one without a disk that `is_used`; that there is none is as
/// good.
pub(super) fn all(
    options: &DisconnectAll,
    kernel: &mut impl Kernel,
    is_used: &dyn Fn(&str) -> bool,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    let format = options.output.format;
    kernel.subscribe()?;
    let mut chosen = kernel.controllers()?;
    if options.unused {
        let mut used = kernel.namespaces()?;
        used.retain(|each| is_used(&each.name));
        chosen.retain(|each| used.iter().all(|disk| disk.controller_id != each.id));
        print(out, &in_use(&used, format))?;
    }
    tell(remove(&chosen, kernel), format, out, err)
}

/// What is printed of disks that keep their controllers; nothing if there are none.
fn in_use(disks: &[Namespace], format: Format) -> String {
    let names = disks.iter().map(|disk| disk.name.as_str());
    match format {
        Format::Json if disks.is_empty() => String::new(),
        Format::Json => {
            let in_use = names.collect();
            json::line(&InUseDocument { in_use }) + "\n"
        }
        Format::Normal => names
            .flat_map(|name| ["/dev/", name, ": in use, stays connected\n"])
            .collect(),
    }
}

fn choose(selection: &Selection, controllers: Vec<Controller>) -> Result<Vec<Controller>, Error> {
    if let Some(nqn) = &selection.nqn {
        let same = |each: &Controller| each.subsysnqn == *nqn;
        let chosen: Vec<_> = controllers.into_iter().filter(same).collect();
        if chosen.is_empty() {
            let text = format!("disconnect: no controller of subsystem {nqn}");
            return Err(Error::new(Status::NotFound, text));
        }
        return Ok(chosen);
    }
    let mut chosen: Vec<Controller> = Vec::new();
    for device in &selection.device {
        let controller =
            by_name(device, &controllers).ok_or_else(|| not_found(device).context("disconnect"))?;
        if chosen.iter().all(|each| each.id != controller.id) {
            chosen.push(controller.clone());
        }
    }
    Ok(chosen)
}

/// The controller of a name, with or without its directory.
pub(super) fn by_name<'a>(name: &str, controllers: &'a [Controller]) -> Option<&'a Controller> {
    let name = name.strip_prefix("/dev/").unwrap_or(name);
    controllers.iter().find(|each| each.device == name)
}

/// There is no controller of a name.
pub(super) fn not_found(name: &str) -> Error {
    Error::new(
        Status::NotFound,
        format!("no controller {name}: see rnvmf show"),
    )
}

/// What came of removing controllers.
struct Removal<'a> {
    gone: Vec<&'a Controller>,
    /// How many are not gone.
    left: usize,
    /// Why: one for each that the kernel refused, and one for those that were not waited for.
    errors: Vec<Error>,
}

/// Start to remove controllers, then wait for all of them. One that is refused keeps no other.
fn remove<'a>(controllers: &'a [Controller], kernel: &mut impl Kernel) -> Removal<'a> {
    let deadline = Instant::now() + REMOVE_TIMEOUT;
    let (mut left, mut refused, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for controller in controllers {
        match kernel.disconnect(controller.id) {
            Ok(()) => left.push(controller.id),
            // Gone since it was listed.
            Err(gone) if gone.status == Status::NotFound => (),
            Err(error) => {
                refused.push(controller.id);
                errors.push(error.context(format_args!("disconnect {}", controller.device)));
            }
        }
    }
    let goes_on = "the kernel goes on to remove";
    let why = match wait_removed::wait(kernel, &mut left, deadline) {
        Ok(RemoveResult::Gone) => None,
        Ok(RemoveResult::Interrupted) => Some(Error::failed(format!("interrupted; {goes_on}"))),
        Ok(RemoveResult::Deadline) => {
            Some(Error::new(Status::Timeout, format!("timed out; {goes_on}")))
        }
        Err(error) => Some(Error {
            message: format!("{}; {goes_on}", error.message),
            ..error
        }),
    };
    if let Some(mut why) = why {
        why.message += if left.len() == 1 { " it" } else { " them" };
        let names = controllers.iter().filter(|each| left.contains(&each.id));
        let names: Vec<&str> = names.map(|each| each.device.as_str()).collect();
        errors.push(why.context(format_args!("disconnect {}", names.join(", "))));
    }
    left.append(&mut refused);
    let is_gone = |each: &&Controller| !left.contains(&each.id);
    Removal {
        gone: controllers.iter().filter(is_gone).collect(),
        left: left.len(),
        errors,
    }
}

/// Print what is gone, also if others are not; and if there is more than one reason for that, each.
fn tell(
    outcome: Removal<'_>,
    format: Format,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    let Removal { gone, left, errors } = outcome;
    let printed = print(out, &render(&gone, format));
    let Some(status) = Status::common(errors.iter().map(|error| error.status)) else {
        return printed;
    };
    if let [error] = &errors[..] {
        return Err(error.clone());
    }
    for error in &errors {
        print(err, &(error.render(format) + "\n"))?;
    }
    let all = gone.len() + left;
    let text = format!("disconnect: {left} of {all} controllers are left");
    Err(Error::new(status, text))
}

fn render(controllers: &[&Controller], format: Format) -> String {
    let names = controllers.iter().map(|each| each.device.as_str());
    match format {
        Format::Json => {
            json::line(&Document {
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
    use crate::controller::tests::live;
    use crate::event::{Change, WaitResult};
    use crate::kernel::tests::MockKernel;
    use crate::namespace::tests::disk as namespace;

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

    fn play(
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
    fn play_all(kernel: &mut MockKernel) -> (String, String, Error) {
        let format = Format::Normal;
        let options = DisconnectAll {
            unused: false,
            output: Output { format },
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let end = all(&options, kernel, &|_| true, &mut out, &mut err).unwrap_err();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(out), text(err), end)
    }

    #[test]
    fn a_subsystem_has_several() {
        let mut kernel = kernel();
        kernel.tell(Change::Changed, numbered(0));
        kernel.tell(Change::Removed, numbered(2));
        kernel.tell(Change::Removed, numbered(0));
        assert_eq!(
            play(Some("nqn.0"), &[], Format::Json, &mut kernel).unwrap(),
            "{\"schema\":1,\"disconnected\":[\"rnvmf0\",\"rnvmf2\"]}\n"
        );
        assert_eq!(kernel.disconnected, [0, 2]);
    }

    #[test]
    fn a_name_is_taken_once() {
        let mut kernel = kernel();
        kernel.tell(Change::Removed, numbered(1));
        let names = ["rnvmf1", "/dev/rnvmf1"];
        assert_eq!(
            play(None, &names, Format::Normal, &mut kernel).unwrap(),
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
            let error = play(nqn, device, Format::Normal, &mut kernel).unwrap_err();
            assert_eq!(error.status, Status::NotFound);
            assert!(kernel.disconnected.is_empty());
        }
    }

    #[test]
    fn lost_events_are_made_up_for() {
        let mut kernel = kernel();
        kernel.wait_results.push_back(WaitResult::Lost);
        kernel.tell(Change::Removed, numbered(0));
        // Still there after the loss, so its event is waited for.
        assert!(play(None, &["rnvmf0"], Format::Normal, &mut kernel).is_ok());
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
            let error = play(None, &["rnvmf0"], Format::Normal, &mut kernel).unwrap_err();
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
        kernel.refused.push_back(no);
        kernel.tell(Change::Removed, numbered(2));
        let error = play(Some("nqn.0"), &[], Format::Normal, &mut kernel).unwrap_err();
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
        kernel.refused.push_back(Error::failed("a"));
        kernel.tell(Change::Removed, numbered(2));
        kernel.wait_results.push_back(WaitResult::Interrupted);
        let (out, err, end) = play_all(&mut kernel);
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
            kernel.refused = [first, Error::new(last, "b")].into();
            let is_left = result.is_some();
            match result {
                Some(result) => kernel.wait_results.push_back(result),
                None => kernel.tell(Change::Removed, numbered(2)),
            }
            let (out, err, end) = play_all(&mut kernel);
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
        let out = play_unused(false, Format::Json, &mut MockKernel::default());
        assert_eq!(out, "{\"schema\":1,\"disconnected\":[]}\n");
    }

    fn play_unused(unused: bool, format: Format, kernel: &mut MockKernel) -> String {
        let options = DisconnectAll {
            unused,
            output: Output { format },
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let is_used = |disk: &str| disk == "rnvmf1n2";
        all(&options, kernel, &is_used, &mut out, &mut err).unwrap();
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
                kernel.tell(Change::Removed, numbered(*id));
            }
            assert_eq!(play_unused(unused, format, &mut kernel), line);
            assert_eq!(kernel.disconnected, gone);
        }
    }
}
