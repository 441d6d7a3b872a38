// SPDX-License-Identifier: GPL-2.0

//! `rnvme set`.

use super::connect::loss;
use super::disconnect::{by_name, not_found};
use super::print;
use crate::cli::{Format, Set};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::render::json;
use serde::Serialize;
use std::io::Write;

#[derive(Serialize)]
struct Report<'a> {
    device: &'a str,
}

/// Change settings of a controller.
pub(super) fn run(
    options: &Set,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let name = &options.device;
    let controllers = kernel.controllers()?;
    let controller = by_name(name, &controllers).ok_or_else(|| not_found(name).during("set"))?;
    let device = controller.device.as_str();
    kernel
        .set(controller.id, &loss(&options.loss))
        .map_err(|error| error.during(format_args!("set {device}")))?;
    let text = match options.output.format {
        Format::Json => json::line(&Report { device }) + "\n",
        Format::Normal => format!("{device}: set\n"),
    };
    print(out, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{self, Output};
    use crate::controller::tests::live;
    use crate::error::Status;
    use crate::kernel::tests::Script;
    use crate::kernel::Loss;
    use crate::uapi::LOSS_TMO_NEVER;

    fn play(device: &str, kernel: &mut Script) -> Result<String, Error> {
        let options = Set {
            device: device.into(),
            loss: cli::Loss {
                reconnect_delay: None,
                ctrl_loss_tmo: Some(-1),
                fast_io_fail_tmo: Some(5),
            },
            output: Output {
                format: Format::Json,
            },
        };
        let mut out = Vec::new();
        run(&options, kernel, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn what_is_not_named_stays() {
        let mut kernel = Script {
            controllers: vec![live()],
            ..Script::default()
        };
        assert_eq!(
            play("/dev/rnvme0", &mut kernel).unwrap(),
            "{\"schema\":1,\"device\":\"rnvme0\"}\n"
        );
        let loss = Loss {
            reconnect_delay: None,
            ctrl_loss_tmo: Some(LOSS_TMO_NEVER),
            fast_io_fail_tmo: Some(5),
        };
        assert_eq!(kernel.settings, [(0, loss)]);
    }

    #[test]
    fn an_unknown_one_is_not_found() {
        let mut kernel = Script::default();
        let error = play("rnvme9", &mut kernel).unwrap_err();
        assert_eq!(error.status, Status::NotFound);
        assert!(kernel.settings.is_empty());
    }
}
