// SPDX-License-Identifier: GPL-2.0

//! `rnvmf show` and `rnvmf list`.

use super::print::print;
use crate::cli::{List, Show};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::output::Format;
use crate::render::{list, show};
use std::io::Write;

/// Prints the controllers, or one in detail.
pub(super) fn run(
    options: &Show,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut controllers = kernel.controllers()?;
    let mut one: Option<Controller> = None;
    if let Some(device) = &options.device {
        let found = Controller::find(device, &controllers)?;
        one = Some(found.clone());
        controllers = vec![found.clone()];
    }
    let text = match (options.output.format, &one) {
        (Format::Json, _) => show::json(&controllers, &kernel.namespaces()?),
        (Format::Normal, Some(controller)) => show::detail(controller, &kernel.namespaces()?),
        (Format::Normal, None) => show::normal(&controllers),
    };
    print(out, &text)
}

/// Prints the disks.
pub(super) fn run_list(
    options: &List,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let controllers = kernel.controllers()?;
    let namespaces = kernel.namespaces()?;
    let text = match options.output.format {
        Format::Normal => list::normal(&controllers, &namespaces),
        Format::Json => list::json(&controllers, &namespaces),
    };
    print(out, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Output;
    use crate::error::Status;
    use crate::kernel::mock::MockKernel;
    use crate::model::controller::tests::live;
    use crate::model::namespace::tests::disk;

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
            output: Output { format },
        };
        let mut out = Vec::new();
        run(&options, &mut kernel, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
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
