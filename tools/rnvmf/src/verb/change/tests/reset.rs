// SPDX-License-Identifier: GPL-2.0

use super::super::*;
use crate::error::Status;
use crate::kernel::mock::MockKernel;
use crate::model::controller::tests::{connecting, live, recovering};
use crate::model::controller::State;
use crate::model::event::{Change, WaitResult};
use crate::verb::print::tests::Printed;

fn in_state(state: CtrlState, controller: Controller) -> Controller {
    Controller {
        state: State(state as u32),
        ..controller
    }
}

fn run_mock(format: Format, kernel: &mut MockKernel) -> Result<String, Error> {
    let device = Device {
        device: "rnvmf0".into(),
    };
    Printed::of(format, |printer| reset(&device, kernel, printer)).output()
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
         reconnecting continues"
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
    assert!(
        error.message.contains("the operation continues"),
        "{}",
        error.message
    );
}
