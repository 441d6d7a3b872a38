// SPDX-License-Identifier: GPL-2.0

//! `rnvmf show` and `rnvmf list`.

use super::print::Printer;
use crate::cli::Show;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::output::Format;
use crate::render;

/// Prints all controllers, or one in detail.
pub(super) fn show(
    options: &Show,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    let mut controllers = kernel.controllers()?;
    if let Some(device) = &options.device {
        controllers = vec![Controller::find(device, &controllers)?.clone()];
    }
    let text = match (printer.format, &controllers[..], &options.device) {
        (Format::Json, ..) => render::show::json(&controllers, &kernel.namespaces()?),
        (_, [one], Some(_)) => render::show::detail(one, &kernel.namespaces()?),
        _ => render::show::normal(&controllers),
    };
    printer.print(&text)
}

/// Prints the disks.
pub(super) fn list(kernel: &mut impl Kernel, printer: &mut Printer<'_>) -> Result<(), Error> {
    let (controllers, namespaces) = (kernel.controllers()?, kernel.namespaces()?);
    printer.print(&match printer.format {
        Format::Normal => render::list::normal(&controllers, &namespaces),
        Format::Json => render::list::json(&controllers, &namespaces),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;
    use crate::kernel::mock::MockKernel;
    use crate::model::controller::tests::live;
    use crate::model::namespace::tests::disk;
    use crate::verb::print::tests::Printed;

    fn run_mock(device: Option<&str>, format: Format) -> Result<String, Error> {
        let other = Controller {
            id: 1,
            device: "rnvmf1".into(),
            ..live()
        };
        let mut kernel = MockKernel {
            controllers: vec![live(), other],
            namespaces: vec![disk()],
            ..MockKernel::default()
        };
        let options = Show {
            device: device.map(str::to_owned),
        };
        Printed::of(format, |printer| show(&options, &mut kernel, printer)).output()
    }

    #[test]
    fn one_is_told_in_detail() {
        let text = run_mock(Some("rnvmf0"), Format::Normal).unwrap();
        assert!(text.contains("disk"), "{text}");
        assert!(!text.contains("rnvmf1"), "{text}");
    }

    #[test]
    fn json_has_one_form_for_one_and_all() {
        let one = run_mock(Some("/dev/rnvmf1"), Format::Json).unwrap();
        assert!(one.starts_with("{\"schema\":1,\"controllers\":[{\"device\":\"rnvmf1\""));
        assert!(!one.contains("\"rnvmf0\""), "{one}");
        let all = run_mock(None, Format::Json).unwrap();
        assert!(all.contains("\"rnvmf0\"") && all.contains("\"rnvmf1\""));
    }

    #[test]
    fn an_unknown_one_is_not_found() {
        let error = run_mock(Some("rnvmf9"), Format::Normal).unwrap_err();
        assert_eq!(error.status, Status::NotFound);
        assert_eq!(error.message, "no controller rnvmf9: see rnvmf show");
    }
}
