// SPDX-License-Identifier: GPL-2.0

//! `rnvmf doctor`: findings.

use super::json;
use crate::doctor::Finding;
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    findings: &'a [Finding],
}

/// A line for each finding.
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

/// One document.
pub(crate) fn json(findings: &[Finding]) -> String {
    json::line(&Document { findings }) + "\n"
}
