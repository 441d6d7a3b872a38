// SPDX-License-Identifier: GPL-2.0

//! `rnvmf rescan`: the kernel numbers what it is asked for, and tells when that is over.

use super::disconnect::{by_name, not_found};
use super::print;
use super::wait_op::{ctrl_error, finish, gone};
use crate::cli::{Format, Rescan};
use crate::controller::Controller;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::render::json;
use crate::uapi::CtrlState;
use serde::Serialize;
use std::io::Write;

#[derive(Serialize)]
struct Document<'a> {
    device: &'a str,
    nr_namespaces: u32,
}

/// Look at the namespaces of a controller, and wait until its disks are in line with them.
pub(super) fn run(
    options: &Rescan,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let name = &options.device;
    let controllers = kernel.controllers()?;
    let controller =
        by_name(name, &controllers).ok_or_else(|| not_found(name).context("rescan"))?;
    let device = controller.device.as_str();
    let now = rescan(controller.id, kernel)
        .map_err(|error| error.context(format_args!("rescan {device}")))?;
    let nr_namespaces = now.nr_namespaces.unwrap_or(0);
    let report = Document {
        device,
        nr_namespaces,
    };
    let text = match (options.output.format, nr_namespaces) {
        (Format::Json, _) => json::line(&report) + "\n",
        (Format::Normal, 1) => format!("{device}: 1 disk\n"),
        (Format::Normal, count) => format!("{device}: {count} disks\n"),
    };
    print(out, &text)
}

/// The controller when it is over.
fn rescan(id: u32, kernel: &mut impl Kernel) -> Result<Controller, Error> {
    kernel.subscribe()?;
    let number = kernel.rescan(id)?;
    // What is heard from before the request has a lower number.
    finish(id, kernel, |now| is_over(now, number))
}

/// Whether the look of this number is over, and went well.
fn is_over(controller: &Controller, number: u32) -> Result<bool, Error> {
    match controller.state.known() {
        Some(CtrlState::Deleting) => return Err(gone()),
        Some(CtrlState::Dead) => return Err(ctrl_error(controller, "")),
        Some(CtrlState::Connecting | CtrlState::Resetting) if controller.error.is_some() => {
            return Err(ctrl_error(
                controller,
                "; the kernel looks when it has connected again",
            ))
        }
        _ => (),
    }
    match controller.scan {
        Some(done) if done >= number => match controller.error {
            Some(_) => Err(ctrl_error(controller, "")),
            None => Ok(true),
        },
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Output;
    use crate::controller::tests::{live, recovering};
    use crate::controller::State;
    use crate::ctrl_error::tests::rejected;
    use crate::error::Status;
    use crate::event::{Change, WaitResult};
    use crate::kernel::tests::MockKernel;

    fn play(format: Format, kernel: &mut MockKernel) -> Result<String, Error> {
        let options = Rescan {
            device: "rnvmf0".into(),
            output: Output { format },
        };
        let mut out = Vec::new();
        run(&options, kernel, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    /// One of which three looks are over, and the fourth is asked for.
    fn kernel() -> MockKernel {
        MockKernel {
            controllers: vec![live()],
            rescans: [Ok(4)].into(),
            ..MockKernel::default()
        }
    }

    fn looked(times: u32) -> Controller {
        Controller {
            scan: Some(times),
            nr_namespaces: Some(2),
            ..live()
        }
    }

    #[test]
    fn its_number_is_the_end() {
        let mut kernel = kernel();
        kernel.tell(Change::Changed, looked(3));
        kernel.tell(Change::Changed, Controller { id: 7, ..looked(9) });
        kernel.tell(Change::Changed, looked(4));
        assert_eq!(
            play(Format::Normal, &mut kernel).unwrap(),
            "rnvmf0: 2 disks\n"
        );
        assert!(kernel.wait_results.is_empty());
    }

    #[test]
    fn lost_events_are_made_up_for() {
        let mut kernel = MockKernel {
            controllers: vec![Controller {
                nr_namespaces: Some(1),
                ..looked(5)
            }],
            ..kernel()
        };
        assert_eq!(
            play(Format::Json, &mut kernel).unwrap(),
            "{\"schema\":1,\"device\":\"rnvmf0\",\"nr_namespaces\":1}\n"
        );
    }

    #[test]
    fn a_failure_is_told() {
        for (now, message) in [
            (
                Controller {
                    error: Some(rejected()),
                    ..looked(4)
                },
                "rescan rnvmf0: rejected by target: no such subsystem nqn.x",
            ),
            (
                recovering(),
                "rescan rnvmf0: rejected by target: no such subsystem nqn.x; \
                 the kernel looks when it has connected again",
            ),
            (
                Controller {
                    state: State(CtrlState::Deleting as u32),
                    ..live()
                },
                "rescan rnvmf0: the controller was removed meanwhile",
            ),
        ] {
            let mut kernel = kernel();
            kernel.tell(Change::Changed, now);
            let error = play(Format::Normal, &mut kernel).unwrap_err();
            assert_eq!(error.message, message);
        }
    }

    #[test]
    fn an_unknown_one_is_not_found() {
        let mut kernel = MockKernel::default();
        let error = play(Format::Normal, &mut kernel).unwrap_err();
        assert_eq!(error.status, Status::NotFound);
    }

    #[test]
    fn it_can_be_left_alone() {
        let mut kernel = kernel();
        kernel.wait_results.push_back(WaitResult::Interrupted);
        let error = play(Format::Normal, &mut kernel).unwrap_err();
        assert!(error.message.contains("goes on"), "{}", error.message);
    }
}
