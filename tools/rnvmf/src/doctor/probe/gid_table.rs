// SPDX-License-Identifier: GPL-2.0

//! What only sysfs and configfs tell of an RDMA device: its table of addresses.

use crate::doctor::snapshot::{Device, Gid};
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

/// Add it to a device. What is not there any more is left out.
pub(super) fn read(device: &mut Device) {
    let top = Path::new("/sys/class/infiniband").join(&device.name);
    // Soft-RoCE names the interface that it is on, and no other driver does so.
    device.soft = top.join("parent").exists();
    let configured = Path::new("/sys/kernel/config/rdma_cm").join(&device.name);
    for port in &mut device.ports {
        let number = Path::new("ports").join(port.number.to_string());
        port.gids = gids(&top.join(&number));
        port.default_type = text(&configured.join(&number).join("default_roce_mode"));
    }
}

fn gids(port: &Path) -> Vec<Gid> {
    let Ok(entries) = std::fs::read_dir(port.join("gids")) else {
        return Vec::new();
    };
    let mut names: Vec<PathBuf> = entries
        .filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name())))
        .collect();
    names.sort();
    let read = |index: &PathBuf| {
        let address: Ipv6Addr = text(&port.join("gids").join(index))?.parse().ok()?;
        // An empty place has no address.
        if address.is_unspecified() {
            return None;
        }
        let attributes = port.join("gid_attrs");
        Some(Gid {
            address,
            kind: text(&attributes.join("types").join(index)).unwrap_or_default(),
            interface: text(&attributes.join("ndevs").join(index)).unwrap_or_default(),
        })
    };
    names.iter().filter_map(read).collect()
}

fn text(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}
