// SPDX-License-Identifier: GPL-2.0

use super::super::*;
use crate::error::Status;
use crate::kernel::mock::MockKernel;
use crate::model::controller::tests::live;
use crate::model::controller::LossTmo;
use crate::uapi::LOSS_TMO_NEVER;
use crate::verb::print::tests::Printed;

fn run_mock(device: &str, kernel: &mut MockKernel) -> Result<String, Error> {
    let (out, err) = run_mock_with(device, Some(LOSS_TMO_NEVER), Format::Json, kernel)?;
    assert_eq!(err, "");
    Ok(out)
}

/// Returns the standard output and the standard error output.
fn run_mock_with(
    device: &str,
    ctrl_loss_tmo: Option<u32>,
    format: Format,
    kernel: &mut MockKernel,
) -> Result<(String, String), Error> {
    let options = Set {
        device: device.into(),
        reconnect: ReconnectOptions {
            reconnect_delay: None,
            ctrl_loss_tmo,
            fast_io_fail_tmo: Some(5),
            cqt: None,
        },
        timeout: Some(2),
    };
    let Printed { out, err, end } = Printed::of(format, |printer| set(&options, kernel, printer));
    end.map(|()| (out, err))
}

#[test]
fn what_has_no_effect_is_told() {
    let now = Controller {
        ctrl_loss_tmo: Some(LossTmo(4)),
        ..live()
    };
    let mut kernel = MockKernel {
        controllers: vec![now],
        ..MockKernel::default()
    };
    let told = run_mock_with("rnvmf0", None, Format::Normal, &mut kernel).unwrap();
    let warning = "rnvmf: warning: a --fast_io_fail_tmo of 5 s has no effect, \
                   as --ctrl-loss-tmo is 4 s\n";
    assert_eq!(told, ("rnvmf0: set\n".into(), warning.into()));
}

#[test]
fn what_is_not_named_stays() {
    let mut kernel = MockKernel {
        controllers: vec![live()],
        ..MockKernel::default()
    };
    assert_eq!(
        run_mock("/dev/rnvmf0", &mut kernel).unwrap(),
        "{\"schema\":1,\"device\":\"rnvmf0\"}\n"
    );
    let reconnect = ReconnectOptions {
        reconnect_delay: None,
        ctrl_loss_tmo: Some(LOSS_TMO_NEVER),
        fast_io_fail_tmo: Some(5),
        cqt: None,
    };
    let settings = Settings {
        reconnect,
        connect_timeout: Some(2000),
    };
    assert_eq!(kernel.settings, [(0, settings)]);
}

#[test]
fn an_unknown_one_is_not_found() {
    let mut kernel = MockKernel::default();
    let error = run_mock("rnvmf9", &mut kernel).unwrap_err();
    assert_eq!(error.status, Status::NotFound);
    assert!(kernel.settings.is_empty());
}
