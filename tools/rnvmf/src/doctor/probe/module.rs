// SPDX-License-Identifier: GPL-2.0

//! Which kernel modules are loaded and installed.

use crate::doctor::snapshot::{Module, Probed};
use crate::error::io_message;
use std::path::Path;

/// Probes a module.
pub(super) fn probe(name: &'static str) -> Module {
    let loaded = Path::new("/sys/module").join(name).exists();
    Module {
        name,
        loaded,
        installed: installed(name),
    }
}

/// Whether a module is loaded or may be built in. A built-in module without parameters has no
/// directory in sysfs.
pub(super) fn is_present(name: &str) -> bool {
    Path::new("/sys/module").join(name).exists() || is_listed("builtin", name) != Ok(false)
}

fn installed(name: &str) -> Probed<bool> {
    Ok(is_listed("dep", name)? || is_listed("builtin", name)?)
}

/// Whether the file `modules.LIST` of the running kernel lists a module.
fn is_listed(list: &str, name: &str) -> Probed<bool> {
    let read = |path: &str| {
        std::fs::read_to_string(path).map_err(|error| format!("{path}: {}", io_message(&error)))
    };
    let release = read("/proc/sys/kernel/osrelease")?;
    let path = format!("/lib/modules/{}/modules.{list}", release.trim());
    Ok(contains(&read(&path)?, name))
}

/// Whether a list of files has a module. Files may be compressed and have hyphens in their names.
fn contains(text: &str, name: &str) -> bool {
    let is_of = |line: &str| {
        let path = line.split_once(':').map_or(line, |(path, _)| path);
        let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
        let Some((stem, _)) = file.split_once(".ko") else {
            return false;
        };
        let hyphens_as_underscores = stem.bytes().map(|b| if b == b'-' { b'_' } else { b });
        hyphens_as_underscores.eq(name.bytes())
    };
    text.lines().any(is_of)
}

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn a_module_is_found_in_a_list() {
        let text = "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz: kernel/a/ib_core.ko.xz\n\
                    updates/rnvmf.ko: updates/rrdma.ko\nkernel/x/nvme-rdma.ko\n";
        for name in ["rdma_rxe", "rnvmf", "nvme_rdma"] {
            assert!(contains(text, name), "{name}");
        }
        // Dependencies do not count.
        for name in ["ib_core", "rrdma", "rdma", "xnvme"] {
            assert!(!contains(text, name), "{name}");
        }
    }
}
