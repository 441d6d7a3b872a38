// SPDX-License-Identifier: GPL-2.0

//! `rnvmf doctor`.

use super::print::print;
use crate::cli::Doctor;
use crate::doctor::diagnose::diagnose;
use crate::doctor::finding::{Finding, Level};
use crate::doctor::probe::probe;
use crate::error::{Error, Status};
use crate::host::SystemEnv;
use crate::output::Format;
use crate::render::doctor;
use crate::uapi::CONNECT_TIMEOUT_DEFAULT;
use std::io::Write;

/// Prints the findings, and fails if there are faults.
pub(super) fn run(options: &Doctor, out: &mut impl Write) -> Result<(), Error> {
    let from = options.host_traddr.as_ref();
    let resolved = options.traddr.as_deref();
    let env = SystemEnv::default();
    let resolved = resolved.map(|name| env.resolve(name, from, CONNECT_TIMEOUT_DEFAULT / 1000));
    let address = match resolved {
        Some(Err(error)) if error.status == Status::Usage => return Err(error.context("doctor")),
        address => address.map(|address| address.map_err(|error| error.message)),
    };
    let findings = diagnose(&probe(options, address));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(level: Level) -> Finding {
        Finding {
            check: "link",
            level,
            message: "x".into(),
            fix: None,
        }
    }

    #[test]
    fn only_faults_are_failures() {
        use Level::{Fault, Ok as Good, Unknown, Warning};
        for (levels, message) in [
            (&[][..], None),
            (&[Good, Warning, Unknown], None),
            (&[Fault, Good], Some("doctor: 1 fault")),
            (&[Fault, Fault], Some("doctor: 2 faults")),
        ] {
            let findings: Vec<_> = levels.iter().copied().map(finding).collect();
            let mut out = Vec::new();
            let end = report(&findings, Format::Normal, &mut out);
            let told = end.err().map(|error| error.message);
            assert_eq!(told.as_deref(), message);
            let lines = out.iter().filter(|&&byte| byte == b'\n');
            assert_eq!(lines.count(), levels.len());
        }
    }
}
