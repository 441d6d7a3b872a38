// SPDX-License-Identifier: GPL-2.0

//! `rnvmf stats`.

use super::disconnect::{by_name, not_found};
use super::print;
use crate::cli::{Format, Stats as Options, Switch};
use crate::error::{Error, Status};
use crate::event::WaitResult;
use crate::kernel::Kernel;
use crate::render::stats::{self, Period};
use crate::stats::CtrlStats;
use std::io::Write;
use std::time::{Duration, Instant};

/// Print what controllers have done, or go on to print what they do.
pub(super) fn run(
    options: &Options,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    if let (Some(switch), Some(device)) = (options.latency, &options.device) {
        return set(options, device, switch, kernel, out);
    }
    let Some(seconds) = options.watch else {
        return print(
            out,
            &render(options, &read(options, kernel)?, Period::Always),
        );
    };
    kernel.subscribe()?;
    let (mut before, mut began) = (read(options, kernel)?, Instant::now());
    loop {
        if !sleep_until(kernel, began + Duration::from_secs(seconds.into()))? {
            return Ok(());
        }
        let (now, ended) = (read(options, kernel)?, Instant::now());
        let text = match options.output.format {
            Format::Json => stats::json(&now),
            Format::Normal => {
                let came: Vec<CtrlStats> = now.iter().map(|each| each.since(&before)).collect();
                render(options, &came, Period::For(ended - began))
            }
        };
        print(out, &text)?;
        (before, began) = (now, ended);
    }
}

/// Choose whether times are measured.
fn set(
    options: &Options,
    device: &str,
    switch: Switch,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let controllers = kernel.controllers()?;
    let controller = by_name(device, &controllers).ok_or_else(|| not_found(device))?;
    let name = &controller.device;
    kernel
        .measure(controller.id, switch == Switch::On)
        .map_err(|error| error.context(format_args!("stats {name}")))?;
    print(out, &stats::set(name, switch, options.output.format))
}

fn render(options: &Options, all: &[CtrlStats], period: Period) -> String {
    match options.output.format {
        Format::Json => stats::json(all),
        Format::Normal if options.histogram => stats::histograms(all),
        Format::Normal => stats::normal(all, options.queues, period),
    }
}

fn read(options: &Options, kernel: &mut impl Kernel) -> Result<Vec<CtrlStats>, Error> {
    let mut controllers = kernel.controllers()?;
    let mut only = None;
    if let Some(device) = &options.device {
        let found = by_name(device, &controllers).ok_or_else(|| not_found(device))?;
        only = Some(found.id);
        controllers = vec![found.clone()];
    }
    let queues = match (kernel.stats(only), &options.device) {
        // Gone since it was listed.
        (Err(gone), Some(device)) if gone.status == Status::NotFound => {
            return Err(not_found(device));
        }
        (queues, _) => queues?,
    };
    let all = controllers.iter().map(|each| CtrlStats::of(each, &queues));
    Ok(all.collect())
}

/// Whether the user did not ask to stop before.
fn sleep_until(kernel: &mut impl Kernel, moment: Instant) -> Result<bool, Error> {
    loop {
        match kernel.next(Some(moment))? {
            WaitResult::Deadline => return Ok(true),
            WaitResult::Interrupted => return Ok(false),
            WaitResult::Event(_) | WaitResult::Discovery(..) | WaitResult::Lost => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Output;
    use crate::controller::tests::live;
    use crate::controller::Controller;
    use crate::kernel::tests::MockKernel;
    use crate::stats::tests::queue;

    fn options(device: Option<&str>, watch: Option<u32>, format: Format) -> Options {
        Options {
            device: device.map(str::to_owned),
            queues: true,
            watch,
            histogram: false,
            latency: None,
            output: Output { format },
        }
    }

    fn play(options: &Options, wait_results: Vec<WaitResult>) -> Result<String, Error> {
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
        let mut out = Vec::new();
        run(options, &mut kernel, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn all_or_one() {
        let all = play(&options(None, None, Format::Json), vec![]).unwrap();
        assert!(all.contains("\"rnvmf0\"") && all.contains("\"rnvmf1\""));
        let one = play(&options(Some("rnvmf0"), None, Format::Normal), vec![]).unwrap();
        assert_eq!(one.lines().count(), 3, "{one}");
        // Nothing is known yet of one that was never connected.
        let none = play(&options(Some("/dev/rnvmf1"), None, Format::Normal), vec![]).unwrap();
        assert_eq!(none, "");
        let error = play(&options(Some("rnvmf9"), None, Format::Normal), vec![]).unwrap_err();
        assert_eq!(error.status, Status::NotFound);
    }

    #[test]
    fn measures_if_asked_to() {
        let mut kernel = MockKernel {
            controllers: vec![live()],
            ..MockKernel::default()
        };
        let mut out = Vec::new();
        for (switch, format) in [(Switch::On, Format::Normal), (Switch::Off, Format::Json)] {
            let options = Options {
                latency: Some(switch),
                ..options(Some("rnvmf0"), None, format)
            };
            run(&options, &mut kernel, &mut out).unwrap();
        }
        assert_eq!(kernel.measured, [(0, true), (0, false)]);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "rnvmf0: latency on\n{\"schema\":1,\"device\":\"rnvmf0\"}\n"
        );
    }

    #[test]
    fn watches_until_interrupted() {
        let wait_results = || {
            vec![
                WaitResult::Deadline,
                WaitResult::Lost,
                WaitResult::Deadline,
                WaitResult::Interrupted,
            ]
        };
        let text = play(&options(None, Some(1), Format::Normal), wait_results()).unwrap();
        assert_eq!(text.matches("READS/S").count(), 2, "{text}");
        let text = play(&options(None, Some(1), Format::Json), wait_results()).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
