// SPDX-License-Identifier: GPL-2.0

//! `rnvmf doctor`.

use super::print;
use crate::address::resolve;
use crate::cli::{Doctor, Format};
use crate::doctor::diagnose::diagnose;
use crate::doctor::probe::look;
use crate::doctor::{Finding, Level};
use crate::error::{Error, Status};
use crate::render::doctor;
use crate::uapi::CONNECT_TIMEOUT_DEFAULT;
use std::io::Write;

/// Print what is found, and fail if there are faults.
pub(super) fn run(options: &Doctor, out: &mut impl Write) -> Result<(), Error> {
    let from = options.host_traddr.as_ref();
    let found = options.traddr.as_deref();
    let found = found.map(|name| resolve(name, from, CONNECT_TIMEOUT_DEFAULT / 1000));
    let address = match found {
        Some(Err(error)) if error.status == Status::Usage => return Err(error.context("doctor")),
        address => address.map(|address| address.map_err(|error| error.message)),
    };
    let findings = diagnose(&look(options, address));
    report(&findings, options.output.format, out)
}

fn report(findings: &[Finding], format: Format, out: &mut impl Write) -> Result<(), Error> {
    let text = match format {
        Format::Normal => doctor::normal(findings),
        Format::Json => doctor::json(findings),
    };
    print(out, &text)?;
    let faults = findings.iter().filter(|each| each.level == Level::Fault);
    match faults.count() {
        0 => Ok(()),
        1 => Err(Error::failed("doctor: 1 fault")),
        several => Err(Error::failed(format!("doctor: {several} faults"))),
    }
}
