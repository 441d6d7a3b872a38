// SPDX-License-Identifier: GPL-2.0

//! `rnvmf stats`.

use super::print::print;
use crate::cli::Stats as Options;
use crate::error::{Error, Status};
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::model::event::WaitResult;
use crate::model::options::Switch;
use crate::model::stats::CtrlStats;
use crate::output::Format;
use crate::render::stats::{self, Rows, Values};
use std::io::Write;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Prints the counters of controllers, or with `--watch` their rates.
pub(super) fn run(
    options: &Options,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    if let (Some(switch), Some(device)) = (options.latency, &options.device) {
        return set_latency(options, device, switch, kernel, out);
    }
    let Some(seconds) = options.watch else {
        return print(
            out,
            &render(options, &read(options, kernel)?, Values::Totals),
        );
    };
    kernel.subscribe()?;
    let (mut before, mut began) = (read(options, kernel)?, Instant::now());
    loop {
        let next = began + Duration::from_secs(seconds.into());
        if sleep_until(next, kernel)?.is_break() {
            return Ok(());
        }
        let (now, ended) = (read(options, kernel)?, Instant::now());
        let text = match options.output.format {
            Format::Json => stats::json(&now),
            Format::Normal => {
                let delta: Vec<CtrlStats> = now.iter().map(|each| each.since(&before)).collect();
                render(options, &delta, Values::RatesOver(ended - began))
            }
        };
        print(out, &text)?;
        (before, began) = (now, ended);
    }
}

/// Switches the measurement of latency.
fn set_latency(
    options: &Options,
    device: &str,
    switch: Switch,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let controllers = kernel.controllers()?;
    let controller = Controller::find(device, &controllers)?;
    let name = &controller.device;
    kernel
        .set_latency(controller.id, switch)
        .map_err(|error| error.context(format_args!("stats {name}")))?;
    print(
        out,
        &stats::latency_switched(name, switch, options.output.format),
    )
}

fn render(options: &Options, all: &[CtrlStats], values: Values) -> String {
    match options.output.format {
        Format::Json => stats::json(all),
        Format::Normal if options.histogram => stats::histograms(all),
        Format::Normal if options.queues => stats::normal(all, Rows::Queues, values),
        Format::Normal => stats::normal(all, Rows::Controllers, values),
    }
}

fn read(options: &Options, kernel: &mut impl Kernel) -> Result<Vec<CtrlStats>, Error> {
    let mut controllers = kernel.controllers()?;
    let mut only = None;
    if let Some(device) = &options.device {
        let found = Controller::find(device, &controllers)?;
        only = Some(found.id);
        controllers = vec![found.clone()];
    }
    let queues = match (kernel.stats(only), &options.device) {
        // It was removed after it was listed.
        (Err(gone), Some(device)) if gone.status == Status::NotFound => {
            return Err(Controller::not_found(device));
        }
        (queues, _) => queues?,
    };
    let all = controllers.iter().map(|each| CtrlStats::of(each, &queues));
    Ok(all.collect())
}

/// Sleeps until a moment; breaks if the user asks to stop before.
fn sleep_until(moment: Instant, kernel: &mut impl Kernel) -> Result<ControlFlow<()>, Error> {
    loop {
        match kernel.wait(Some(moment))? {
            WaitResult::Deadline => return Ok(ControlFlow::Continue(())),
            WaitResult::Interrupted => return Ok(ControlFlow::Break(())),
            WaitResult::Event(_) | WaitResult::Discovery(_) | WaitResult::EventsLost => (),
        }
    }
}

#[cfg(test)]
mod tests;
