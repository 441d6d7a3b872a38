// SPDX-License-Identifier: GPL-2.0

//! `rnvmf doctor`.

use super::print::Printer;
use crate::cli::Doctor;
use crate::doctor::diagnose::diagnose;
use crate::doctor::finding::{Finding, Level};
use crate::doctor::probe::probe;
use crate::error::{Error, Status};
use crate::host::SystemEnv;
use crate::output::{json_member, Format};
use crate::uapi::CONNECT_TIMEOUT_DEFAULT;

/// Prints the findings. Fails if one of them is a fault.
pub(super) fn run(options: &Doctor, printer: &mut Printer<'_>) -> Result<(), Error> {
    let from = options.host_traddr.as_ref();
    let env = SystemEnv::default();
    let resolve = |name: &String| env.resolve(name, from, CONNECT_TIMEOUT_DEFAULT / 1000);
    let address = match options.traddr.as_ref().map(resolve) {
        Some(Err(error)) if error.status == Status::Usage => return Err(error.context("doctor")),
        address => address.map(|address| address.map_err(|error| error.message)),
    };
    report(&diagnose(&probe(options, address)), printer)
}

fn report(findings: &[Finding], printer: &mut Printer<'_>) -> Result<(), Error> {
    printer.print(&render(findings, printer.format))?;
    let faults = findings.iter().filter(|each| each.level == Level::Fault);
    match faults.count() {
        0 => Ok(()),
        1 => Err(Error::failed("doctor: 1 fault")),
        several => Err(Error::failed(format!("doctor: {several} faults"))),
    }
}

/// Returns a line for each finding, or the JSON document.
fn render(findings: &[Finding], format: Format) -> String {
    let line = |finding: &Finding| {
        let (level, check, text) = (finding.level.name(), finding.check, &finding.message);
        match &finding.fix {
            Some(fix) => format!("{level:8} {check:10} {text}; fix: {fix}\n"),
            None => format!("{level:8} {check:10} {text}\n"),
        }
    };
    match format {
        Format::Normal => findings.iter().map(line).collect(),
        Format::Json => json_member("findings", &findings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnose::tests::several;
    use crate::verb::print::tests::Printed;

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
            let printed = Printed::of(Format::Normal, |printer| report(&findings, printer));
            let error = printed.end.err().map(|error| error.message);
            assert_eq!(error.as_deref(), message);
            assert_eq!(printed.out.lines().count(), levels.len());
        }
    }

    #[test]
    fn a_line_for_each_finding() {
        let expected = include_str!("../render/golden/doctor.txt");
        assert_eq!(render(&several(), Format::Normal), expected);
    }

    #[test]
    fn json_is_stable() {
        let expected = include_str!("../render/golden/doctor.json");
        assert_eq!(render(&several(), Format::Json), expected);
    }
}
