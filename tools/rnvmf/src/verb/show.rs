// SPDX-License-Identifier: GPL-2.0

//! `rnvmf show`.

use super::disconnect::{by_name, not_found};
use super::print;
use crate::cli::{Format, Show};
use crate::controller::Controller;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::render::show;
use std::io::Write;

/// Print the controllers, or all about one.
pub(super) fn run(
    options: &Show,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut controllers = kernel.controllers()?;
    let mut one: Option<Controller> = None;
    if let Some(device) = &options.device {
        let found = by_name(device, &controllers).ok_or_else(|| not_found(device))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Output;
    use crate::controller::tests::live;
    use crate::error::Status;
    use crate::kernel::tests::MockKernel;
    use crate::namespace::tests::disk;

    fn play(device: Option<&str>, format: Format) -> Result<String, Error> {
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
        let text = play(Some("rnvmf0"), Format::Normal).unwrap();
        assert!(text.contains("disk"), "{text}");
        assert!(!text.contains("rnvmf1"), "{text}");
    }

    #[test]
    fn json_has_one_form_for_one_and_all() {
        let one = play(Some("/dev/rnvmf1"), Format::Json).unwrap();
        assert!(one.starts_with("{\"schema\":1,\"controllers\":[{\"device\":\"rnvmf1\""));
        assert!(!one.contains("\"rnvmf0\""), "{one}");
        let all = play(None, Format::Json).unwrap();
        assert!(all.contains("\"rnvmf0\"") && all.contains("\"rnvmf1\""));
    }

    #[test]
    fn an_unknown_one_is_not_found() {
        let error = play(Some("rnvmf9"), Format::Normal).unwrap_err();
        assert_eq!(error.status, Status::NotFound);
        assert_eq!(error.message, "no controller rnvmf9: see rnvmf show");
    }
}
