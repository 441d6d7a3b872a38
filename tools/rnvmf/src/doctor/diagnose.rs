// SPDX-License-Identifier: GPL-2.0

//! Turns a snapshot into findings. A fault that follows from another one is not reported.

mod firewall;
mod host;
mod link;
mod route;
#[cfg(test)]
pub(crate) mod tests;

use super::finding::Finding;
use super::snapshot::{Module, Snapshot};

const MODULE_CHECK: &str = "module";

/// Runs all checks.
pub(crate) fn diagnose(snapshot: &Snapshot) -> Vec<Finding> {
    let mut findings = modules(&snapshot.modules);
    if let Err(last) = route::diagnose(snapshot, &mut findings) {
        findings.push(last);
    }
    findings.extend(host::diagnose(snapshot));
    findings
}

/// Checks that rrdma and rnvmf are loaded.
fn modules(modules: &[Module]) -> Vec<Finding> {
    let ours = modules.iter().filter(|each| each.name != "rdma_rxe");
    let findings: Vec<_> = ours.filter(|each| !each.loaded).map(not_loaded).collect();
    if findings.is_empty() {
        return vec![Finding::ok(MODULE_CHECK, "rnvmf and rrdma are loaded")];
    }
    findings
}

fn not_loaded(module: &Module) -> Finding {
    let name = module.name;
    match &module.installed {
        Ok(true) => {
            let text = format!("{name} is not loaded; the first connect loads it");
            Finding::warning(MODULE_CHECK, text).fix(format!("modprobe {name}"))
        }
        Ok(false) => {
            let text = "is not installed for this kernel: build it and run make install";
            Finding::fault(MODULE_CHECK, format!("{name} {text}"))
        }
        Err(why) => Finding::unknown(MODULE_CHECK, format!("{name} is not loaded; {why}")),
    }
}
