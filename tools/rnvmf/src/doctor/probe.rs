// SPDX-License-Identifier: GPL-2.0

//! Takes a snapshot of the system. A probe that fails does not stop the others.

mod firewall;
mod module;
mod rdma;
mod route;

use super::snapshot::{Destination, HostInfo, IdentityFile, Probed, Snapshot, MODULES};
use crate::address::Address;
use crate::cli;
use crate::error::{io_message, Error};
use crate::host::SystemEnv;
use crate::kernel::Kernel;
use crate::netlink::Client;
use std::io::ErrorKind;
use std::path::Path;

/// Takes a snapshot for the options of the verb and the resolved address of the target.
pub(crate) fn probe(options: &cli::Doctor, address: Option<Probed<Address>>) -> Snapshot {
    let interfaces = route::interfaces().map_err(message);
    let from = options.host_traddr.as_ref();
    let destination = |address: Address| Destination {
        route: route::to(&address, from, &interfaces),
        address: address.ip(),
        service: options.trsvcid,
        from: from.map(Address::ip),
    };
    let destination = address.map(|address| address.map(destination));
    let modules: Vec<_> = MODULES.map(module::probe).into();
    let is_rnvmf_loaded = modules
        .iter()
        .any(|each| each.name == "rnvmf" && each.loaded);
    Snapshot {
        destination,
        nqn: options.nqn.clone(),
        interfaces,
        devices: rdma::devices().map_err(message),
        chains: firewall::chains(),
        legacy: firewall::legacy(),
        host: host(options),
        controllers: if is_rnvmf_loaded {
            Client::open()
                .and_then(|mut client| client.controllers())
                .map_err(message)
        } else {
            // A request would load the module.
            Ok(Vec::new())
        },
        modules,
    }
}

fn message(error: Error) -> String {
    error.message
}

/// Works out the identity of this host to a target.
fn host(options: &cli::Doctor) -> Probed<HostInfo> {
    let env = SystemEnv::default();
    let (nqn, id) = (options.hostnqn.as_deref(), options.hostid);
    let exists = |file: &str| Path::new(file).exists();
    let mut generated = Vec::new();
    if nqn.is_none() && !exists("/etc/nvme/hostnqn") {
        generated.push(IdentityFile::HostNqn);
    }
    // The identifier of another name is not in the file.
    if id.is_none() && nqn.is_none() && !exists("/etc/nvme/hostid") {
        generated.push(IdentityFile::HostId);
    }
    let firmware = std::fs::read("/sys/class/dmi/id/product_uuid");
    if let Err(error) = firmware {
        if !generated.is_empty() && error.kind() == ErrorKind::PermissionDenied {
            let error = io_message(&error);
            return Err(format!("only root can tell who this host is: {error}"));
        }
    }
    let host = env.identify(nqn, id).map_err(message)?;
    Ok(HostInfo {
        nqn: host.nqn,
        id: host.id.to_string(),
        generated,
    })
}
