// SPDX-License-Identifier: GPL-2.0

//! `rnvmf rescan`: the kernel numbers what it is asked for, and tells when that is over.

use super::print::print;
use super::wait::{op_error, removed_error, wait_op};
use crate::cli::Rescan;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::output::{json_line, Format};
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
        Controller::find(name, &controllers).map_err(|error| error.context("rescan"))?;
    let device = controller.device.as_str();
    let now = rescan(controller.id, kernel)
        .map_err(|error| error.context(format_args!("rescan {device}")))?;
    let nr_namespaces = now.nr_namespaces.unwrap_or(0);
    let report = Document {
        device,
        nr_namespaces,
    };
    let text = match (options.output.format, nr_namespaces) {
        (Format::Json, _) => json_line(&report) + "\n",
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
    wait_op(id, kernel, |now| is_done(now, number))
}

/// Whether the look of this number is over, and went well.
fn is_done(controller: &Controller, number: u32) -> Result<bool, Error> {
    match controller.state.known() {
        Some(CtrlState::Deleting) => return Err(removed_error()),
        Some(CtrlState::Dead) => return Err(op_error(controller, "")),
        Some(CtrlState::Connecting | CtrlState::Resetting) if controller.error.is_some() => {
            return Err(op_error(
                controller,
                "; the kernel looks when it has connected again",
            ))
        }
        _ => (),
    }
    match controller.scan {
        Some(done) if done >= number => match controller.error {
            Some(_) => Err(op_error(controller, "")),
            None => Ok(true),
        },
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Output;
    use crate::error::tests::rejected;
    use crate::error::Status;
    use crate::kernel::tests::MockKernel;
    use crate::model::controller::tests::{live, recovering};
    use crate::model::controller::State;
    use crate::model::event::{Change, WaitResult};

    fn run_mock(format: Format, kernel: &mut MockKernel) -> Result<String, Error> {
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
        kernel.push_event(Change::Changed, looked(3));
        kernel.push_event(Change::Changed, Controller { id: 7, ..looked(9) });
        kernel.push_event(Change::Changed, looked(4));
        assert_eq!(
            run_mock(Format::Normal, &mut kernel).unwrap(),
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
            run_mock(Format::Json, &mut kernel).unwrap(),
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
            kernel.push_event(Change::Changed, now);
            let error = run_mock(Format::Normal, &mut kernel).unwrap_err();
            assert_eq!(error.message, message);
        }
    }

    #[test]
    fn an_unknown_one_is_not_found() {
        let mut kernel = MockKernel::default();
        let error = run_mock(Format::Normal, &mut kernel).unwrap_err();
        assert_eq!(error.status, Status::NotFound);
    }

    #[test]
    fn it_can_be_left_alone() {
        let mut kernel = kernel();
        kernel.wait_results.push_back(WaitResult::Interrupted);
        let error = run_mock(Format::Normal, &mut kernel).unwrap_err();
        assert!(error.message.contains("goes on"), "{}", error.message);
    }
}
