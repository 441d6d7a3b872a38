// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::kernel::mock::MockKernel;
use crate::model::controller::tests::live;
use crate::model::stats::tests::queue;
use crate::verb::print::tests::Printed;

fn options(device: Option<&str>, watch: Option<u32>) -> Options {
    Options {
        device: device.map(str::to_owned),
        queues: true,
        watch,
        histogram: false,
        latency: None,
    }
}

fn run_mock(
    options: &Options,
    format: Format,
    wait_results: Vec<WaitResult>,
) -> Result<String, Error> {
    let other = Controller {
        id: 1,
        device: "rnvmf1".into(),
        ..live()
    };
    let mut kernel = MockKernel {
        controllers: vec![live(), other],
        queues: vec![queue(0), queue(1)],
        wait_results: wait_results.into(),
        ..MockKernel::default()
    };
    Printed::of(format, |printer| run(options, &mut kernel, printer)).output()
}

#[test]
fn all_or_one() {
    let all = run_mock(&options(None, None), Format::Json, vec![]).unwrap();
    assert!(all.contains("\"rnvmf0\"") && all.contains("\"rnvmf1\""));
    let one = run_mock(&options(Some("rnvmf0"), None), Format::Normal, vec![]).unwrap();
    assert_eq!(one.lines().count(), 3, "{one}");
    // A controller that was never connected has no counters.
    let none = run_mock(&options(Some("/dev/rnvmf1"), None), Format::Normal, vec![]).unwrap();
    assert_eq!(none, "");
    let error = run_mock(&options(Some("rnvmf9"), None), Format::Normal, vec![]).unwrap_err();
    assert_eq!(error.status, Status::NotFound);
}

#[test]
fn measures_if_asked_to() {
    let mut kernel = MockKernel {
        controllers: vec![live()],
        ..MockKernel::default()
    };
    let mut out = String::new();
    for (switch, format) in [(Switch::On, Format::Normal), (Switch::Off, Format::Json)] {
        let options = Options {
            latency: Some(switch),
            ..options(Some("rnvmf0"), None)
        };
        let printed = Printed::of(format, |printer| run(&options, &mut kernel, printer));
        out += &printed.output().unwrap();
    }
    assert_eq!(kernel.latency, [(0, Switch::On), (0, Switch::Off)]);
    assert_eq!(
        out,
        "rnvmf0: latency on\n{\"schema\":1,\"device\":\"rnvmf0\"}\n"
    );
}

#[test]
fn watches_until_interrupted() {
    let wait_results = || {
        vec![
            WaitResult::Deadline,
            WaitResult::EventsLost,
            WaitResult::Deadline,
            WaitResult::Interrupted,
        ]
    };
    let text = run_mock(&options(None, Some(1)), Format::Normal, wait_results()).unwrap();
    assert_eq!(text.matches("READS/S").count(), 2, "{text}");
    let text = run_mock(&options(None, Some(1)), Format::Json, wait_results()).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
}
