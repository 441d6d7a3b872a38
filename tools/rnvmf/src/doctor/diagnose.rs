// SPDX-License-Identifier: GPL-2.0

//! What facts mean. A fault that follows from another is not told.

mod firewall;
mod host;
mod link;
mod module;
mod route;
#[cfg(test)]
mod tests;

use super::snapshot::Snapshot;
use super::Finding;

/// What is found.
pub(crate) fn diagnose(snapshot: &Snapshot) -> Vec<Finding> {
    let mut findings = module::diagnose(&snapshot.modules);
    findings.extend(route::diagnose(snapshot));
    findings.extend(host::diagnose(snapshot));
    findings
}
