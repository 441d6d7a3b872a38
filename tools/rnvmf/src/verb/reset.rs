// SPDX-License-Identifier: GPL-2.0

//! `rnvmf reset`: the kernel only starts it; its state and its events tell how it went.

use super::print::print;
use super::wait::{op_error, removed_error, wait_op};
use crate::cli::Reset;
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
}

/// Reset a controller, and wait until it is live again.
pub(super) fn run(
    options: &Reset,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let name = &options.device;
    let controllers = kernel.controllers()?;
    let controller =
        Controller::find(name, &controllers).map_err(|error| error.context("reset"))?;
    let device = controller.device.as_str();
    reset(controller.id, kernel).map_err(|error| error.context(format_args!("reset {device}")))?;
    let text = match options.output.format {
        Format::Json => json_line(&Document { device }) + "\n",
        Format::Normal => format!("{device}: reset\n"),
    };
    print(out, &text)
}

/// The kernel bounds how long this takes by the time that it has to connect.
fn reset(id: u32, kernel: &mut impl Kernel) -> Result<(), Error> {
    kernel.reset(id)?;
    // Only now, so that all that is heard and read is of what came of the reset.
    kernel.subscribe()?;
    wait_op(id, kernel, is_done).map(|_| ())
}

/// Whether the reset is over, and went well.
fn is_done(controller: &Controller) -> Result<bool, Error> {
    match controller.state.known() {
        Some(CtrlState::Live) => Ok(true),
        Some(CtrlState::Deleting) => Err(removed_error()),
        Some(CtrlState::Dead) => Err(op_error(controller, "")),
        // A state that is not known here is on the way to one that is.
        Some(CtrlState::New | CtrlState::Connecting | CtrlState::Resetting) | None => {
            match controller.error {
                Some(_) => Err(op_error(controller, "; the kernel goes on to connect")),
                None => Ok(false),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Output;
    use crate::error::Status;
    use crate::kernel::tests::MockKernel;
    use crate::model::controller::tests::{connecting, live, recovering};
    use crate::model::controller::State;
    use crate::model::event::{Change, WaitResult};

    fn in_state(state: CtrlState, controller: Controller) -> Controller {
        Controller {
            state: State(state as u32),
            ..controller
        }
    }

    fn run_mock(format: Format, kernel: &mut MockKernel) -> Result<String, Error> {
        let options = Reset {
            device: "rnvmf0".into(),
            output: Output { format },
        };
        let mut out = Vec::new();
        run(&options, kernel, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn kernel() -> MockKernel {
        MockKernel {
            controllers: vec![in_state(CtrlState::Resetting, live())],
            ..MockKernel::default()
        }
    }

    #[test]
    fn live_is_the_end() {
        let mut kernel = kernel();
        kernel.push_event(Change::Changed, connecting());
        kernel.push_event(Change::Changed, Controller { id: 7, ..live() });
        kernel.push_event(Change::Changed, in_state(CtrlState::Connecting, live()));
        kernel.push_event(Change::Changed, live());
        let text = run_mock(Format::Normal, &mut kernel).unwrap();
        assert_eq!(text, "rnvmf0: reset\n");
        assert_eq!(kernel.resets, [0]);
        assert!(kernel.wait_results.is_empty());
    }

    #[test]
    fn lost_events_are_made_up_for() {
        let mut kernel = MockKernel {
            controllers: vec![in_state(CtrlState::Resetting, live())],
            ..MockKernel::default()
        };
        kernel.wait_results.push_back(WaitResult::EventsLost);
        kernel.push_event(Change::Changed, live());
        assert_eq!(
            run_mock(Format::Json, &mut kernel).unwrap(),
            "{\"schema\":1,\"device\":\"rnvmf0\"}\n"
        );
    }

    #[test]
    fn a_failure_is_told_though_the_kernel_goes_on() {
        let mut kernel = kernel();
        kernel.push_event(Change::Changed, recovering());
        let error = run_mock(Format::Normal, &mut kernel).unwrap_err();
        assert_eq!(error.status, Status::Failed);
        assert_eq!(
            error.message,
            "reset rnvmf0: rejected by target: no such subsystem nqn.x; \
             the kernel goes on to connect"
        );
        assert!(error.ctrl_error.is_some());
    }

    #[test]
    fn a_dead_one_and_a_removed_one_are_failures() {
        for (change, state, message) in [
            (
                Change::Changed,
                CtrlState::Dead,
                "reset rnvmf0: rejected by target: no such subsystem nqn.x",
            ),
            (
                Change::Changed,
                CtrlState::Deleting,
                "reset rnvmf0: the controller was removed meanwhile",
            ),
            (
                Change::Removed,
                CtrlState::Deleting,
                "reset rnvmf0: the controller was removed meanwhile",
            ),
        ] {
            let mut kernel = kernel();
            kernel.push_event(change, in_state(state, recovering()));
            let error = run_mock(Format::Normal, &mut kernel).unwrap_err();
            assert_eq!(error.message, message);
        }
    }

    #[test]
    fn an_unknown_one_is_not_found() {
        let mut kernel = MockKernel::default();
        let error = run_mock(Format::Normal, &mut kernel).unwrap_err();
        assert_eq!(error.status, Status::NotFound);
        assert!(kernel.resets.is_empty());
    }

    #[test]
    fn it_can_be_left_alone() {
        let mut kernel = kernel();
        kernel.wait_results.push_back(WaitResult::Interrupted);
        let error = run_mock(Format::Normal, &mut kernel).unwrap_err();
        assert!(error.message.contains("goes on"), "{}", error.message);
    }
}
