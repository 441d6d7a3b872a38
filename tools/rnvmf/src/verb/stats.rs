// SPDX-License-Identifier: GPL-2.0

//! `rnvmf stats`.

use super::change::on_controller;
use super::print::Printer;
use crate::cli::Stats as Options;
use crate::error::{Error, Status};
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::model::event::WaitResult;
use crate::model::options::Switch;
use crate::model::stats::CtrlStats;
use crate::output::Format;
use crate::render::stats::{self, Rows, Values};
use std::time::{Duration, Instant};

/// Prints the counters of controllers, or with `--watch` their rates.
pub(super) fn run(
    options: &Options,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    if let (Some(switch), Some(device)) = (options.latency, &options.device) {
        return set_latency(device, switch, kernel, printer);
    }
    let Some(seconds) = options.watch else {
        let now = read(options, kernel)?;
        return printer.print(&render(options, &now, Values::Totals, printer.format));
    };
    kernel.subscribe()?;
    let (mut before, mut began) = (read(options, kernel)?, Instant::now());
    while sleep_until(began + Duration::from_secs(seconds.into()), kernel)? {
        let (now, ended) = (read(options, kernel)?, Instant::now());
        // JSON has the counters: its readers compute rates themselves.
        let shown = match printer.format {
            Format::Json => now.clone(),
            Format::Normal => now.iter().map(|each| each.since(&before)).collect(),
        };
        let values = Values::RatesOver(ended - began);
        printer.print(&render(options, &shown, values, printer.format))?;
        (before, began) = (now, ended);
    }
    Ok(())
}

/// Enables or disables the measurement of latencies.
fn set_latency(
    device: &str,
    switch: Switch,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    let (controller, ()) = on_controller("stats", device, kernel, |controller, kernel| {
        kernel.set_latency(controller.id, switch)
    })?;
    let done = match switch {
        Switch::On => "latency on",
        Switch::Off => "latency off",
    };
    printer.done(&controller.device, done)
}

fn render(options: &Options, all: &[CtrlStats], values: Values, format: Format) -> String {
    match format {
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

/// Sleeps until a time. Returns false if SIGINT or SIGTERM ends the sleep before.
fn sleep_until(time: Instant, kernel: &mut impl Kernel) -> Result<bool, Error> {
    loop {
        match kernel.wait(Some(time))? {
            WaitResult::Deadline => return Ok(true),
            WaitResult::Interrupted => return Ok(false),
            WaitResult::Event(_) | WaitResult::Discovery(_) | WaitResult::EventsLost => (),
        }
    }
}

#[cfg(test)]
mod tests;
