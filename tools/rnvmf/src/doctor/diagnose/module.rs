// SPDX-License-Identifier: GPL-2.0

//! Modules of the kernel.

use crate::doctor::snapshot::Module;
use crate::doctor::Finding;

const CHECK: &str = "module";

/// rnvmf, and where it is not there what it needs.
pub(super) fn diagnose(modules: &[Module]) -> Vec<Finding> {
    let ours = modules.iter().filter(|each| each.name != "rdma_rxe");
    if ours.clone().all(|each| each.loaded) {
        return vec![Finding::ok(CHECK, "rnvmf and rrdma are loaded")];
    }
    ours.filter(|each| !each.loaded).map(missing).collect()
}

fn missing(module: &Module) -> Finding {
    let name = module.name;
    match &module.installed {
        Ok(true) => {
            let text = format!("{name} is not loaded; the first connect loads it");
            Finding::warning(CHECK, text).fix(format!("modprobe {name}"))
        }
        Ok(false) => {
            let text = format!(
                "{name} is not installed for this kernel: build it for this kernel, and make install"
            );
            Finding::fault(CHECK, text)
        }
        Err(why) => Finding::unknown(CHECK, format!("{name} is not loaded; {why}")),
    }
}
