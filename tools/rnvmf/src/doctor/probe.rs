// SPDX-License-Identifier: GPL-2.0

//! Takes a snapshot of the system. If one probe fails, the others still run.

mod firewall;
mod module;
mod rdma;
mod route;
mod tool;

use super::snapshot::{Destination, HostInfo, Probed, Snapshot, MODULES};
use crate::address::Address;
use crate::cli;
use crate::error::{io_message, Error};
use crate::host::{SystemEnv, HOSTID_FILE, HOSTNQN_FILE, PRODUCT_UUID_FILE};
use crate::kernel::Kernel;
use crate::netlink::Client;
use std::io::ErrorKind;
use std::path::Path;

/// Takes a snapshot for the options of the verb. `address` is the resolved address of the target.
pub(crate) fn probe(options: &cli::Doctor, address: Option<Probed<Address>>) -> Snapshot {
    let interfaces = route::interfaces();
    let from = options.host_traddr.as_ref();
    let destination = |address: Address| Destination {
        route: route::to(&address, from, &interfaces),
        address: address.ip(),
        service: options.trsvcid,
        from: from.map(Address::ip),
    };
    let destination = address.map(|address| address.map(destination));
    let modules = MODULES.map(module::probe);
    // A netlink request would load the module.
    let is_loaded = modules
        .iter()
        .any(|each| each.name == "rnvmf" && each.loaded);
    let controllers = || Client::open()?.controllers();
    Snapshot {
        destination,
        nqn: options.nqn.clone(),
        interfaces,
        ports: rdma::ports(),
        creates_elsewhere: rdma::creates_elsewhere(),
        chains: firewall::chains(),
        legacy: firewall::legacy(),
        host: host(options),
        controllers: if is_loaded {
            controllers().map_err(message)
        } else {
            Ok(Vec::new())
        },
        modules: modules.into(),
    }
}

fn message(error: Error) -> String {
    error.message
}

/// Determines the identity of this host.
fn host(options: &cli::Doctor) -> Probed<HostInfo> {
    let (nqn, id) = (options.hostnqn.as_deref(), options.hostid);
    let mut missing_files = Vec::new();
    if nqn.is_none() {
        missing_files.push(HOSTNQN_FILE);
    }
    // The file has the identifier of the host's own NQN only.
    if nqn.is_none() && id.is_none() {
        missing_files.push(HOSTID_FILE);
    }
    missing_files.retain(|file| !Path::new(file).exists());
    if let (Err(error), false) = (std::fs::read(PRODUCT_UUID_FILE), missing_files.is_empty()) {
        if error.kind() == ErrorKind::PermissionDenied {
            let error = io_message(&error);
            return Err(format!(
                "only root can read the identity of this host: {error}"
            ));
        }
    }
    let host = SystemEnv::default().identify(nqn, id).map_err(message)?;
    Ok(HostInfo {
        nqn: host.nqn,
        id: host.id.to_string(),
        missing_files,
    })
}
