// SPDX-License-Identifier: GPL-2.0

//! What facts mean. A fault that follows from another is not told.

mod firewall;
mod host;
mod link;
mod module;
#[cfg(test)]
mod tests;
mod way;

use super::facts::Facts;
use super::Finding;

/// What is found.
pub(crate) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = module::judge(&facts.modules);
    findings.extend(way::judge(facts));
    findings.extend(host::judge(facts));
    findings
}
