// SPDX-License-Identifier: GPL-2.0

use super::super::*;
use crate::error::tests::rejected;
use crate::error::Status;
use crate::kernel::mock::MockKernel;
use crate::model::controller::tests::{live, recovering};
use crate::model::controller::State;
use crate::model::event::{Change, WaitResult};
use crate::verb::print::tests::Printed;

fn run_mock(format: Format, kernel: &mut MockKernel) -> Result<String, Error> {
    let device = Device {
        device: "rnvmf0".into(),
    };
    Printed::of(format, |printer| rescan(&device, kernel, printer)).output()
}

/// Returns a kernel that has ended three scans and starts the fourth.
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
             the namespaces are scanned after the reconnect",
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
    assert!(
        error.message.contains("the operation continues"),
        "{}",
        error.message
    );
}
