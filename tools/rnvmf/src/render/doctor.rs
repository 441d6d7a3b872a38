// SPDX-License-Identifier: GPL-2.0

//! `rnvmf doctor`: findings.

use crate::doctor::finding::Finding;
use crate::output::json_line;
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    findings: &'a [Finding],
}

/// Returns a line for each finding.
pub(crate) fn normal(findings: &[Finding]) -> String {
    findings.iter().map(line).collect()
}

fn line(finding: &Finding) -> String {
    let (level, check, text) = (finding.level.name(), finding.check, &finding.message);
    match &finding.fix {
        Some(fix) => format!("{level:8} {check:10} {text}; fix: {fix}\n"),
        None => format!("{level:8} {check:10} {text}\n"),
    }
}

/// Returns one document.
pub(crate) fn json(findings: &[Finding]) -> String {
    json_line(&Document { findings }) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnose::tests::several;

    #[test]
    fn a_line_for_each_finding() {
        assert_eq!(normal(&several()), include_str!("golden/doctor.txt"));
    }

    #[test]
    fn json_is_stable() {
        assert_eq!(json(&several()), include_str!("golden/doctor.json"));
    }
}
