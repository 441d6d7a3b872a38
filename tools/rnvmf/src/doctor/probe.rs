// SPDX-License-Identifier: GPL-2.0

//! Looks facts up. What cannot be looked up does not stop the rest.

pub(crate) mod firewall;
mod gid_table;
mod module;

use super::snapshot::{
    Destination, Device, HostInfo, IdentityFile, Interface, NoRoute, Probed, Route, Snapshot,
    MODULES,
};
use crate::address::Address;
use crate::cli;
use crate::error::{io_message, Error};
use crate::host::SystemEnv;
use crate::kernel::Kernel;
use crate::netlink::{rdma, route, Client};
use std::io::ErrorKind;
use std::path::Path;

/// What there is, for the options of the verb and the target's address.
pub(crate) fn look(options: &cli::Doctor, address: Option<Result<Address, String>>) -> Snapshot {
    let interfaces = route::interfaces().map_err(why);
    let from = options.host_traddr.as_ref();
    let target = |address: Address| Destination {
        route: way(&address, from, &interfaces),
        address: address.ip(),
        service: options.trsvcid,
        from: from.map(Address::ip),
    };
    let target = address.map(|address| address.map(target));
    let modules: Vec<_> = MODULES.map(module::look).into();
    let rnvmf = modules
        .iter()
        .any(|each| each.name == "rnvmf" && each.loaded);
    Snapshot {
        target,
        nqn: options.nqn.clone(),
        interfaces,
        devices: devices(),
        chains: firewall::look(),
        legacy: firewall::legacy(),
        host: host(options),
        controllers: match rnvmf {
            true => Client::open()
                .and_then(|mut client| client.controllers())
                .map_err(why),
            // To ask would load it.
            false => Ok(Vec::new()),
        },
        modules,
    }
}

fn why(error: Error) -> String {
    error.message
}

/// The route that a connection takes: from a chosen address it is by the interface that has it.
fn way(
    to: &Address,
    from: Option<&Address>,
    interfaces: &Probed<Vec<Interface>>,
) -> Probed<Result<Route, NoRoute>> {
    let interfaces = interfaces.as_ref()?;
    let mut by = None;
    if let Some(scope) = to.scope().or(from.and_then(Address::scope)) {
        let named = |each: &&Interface| each.name == scope || each.index.to_string() == scope;
        by = interfaces.iter().find(named);
        if by.is_none() {
            return Ok(Err(NoRoute(format!("there is no interface {scope}"))));
        }
    } else if let Some(from) = from {
        by = interfaces.iter().find(|each| each.has(from.ip()));
    }
    let by = by.map(|interface| interface.index);
    route::route(to.ip(), from.map(Address::ip), by).map_err(why)
}

fn devices() -> Probed<Vec<Device>> {
    // Where the kernel has no RDMA, it does not know its netlink either.
    if !Path::new("/sys/class/infiniband").exists() {
        return Ok(Vec::new());
    }
    let mut devices = rdma::devices().map_err(why)?;
    devices.iter_mut().for_each(gid_table::read);
    Ok(devices)
}

/// Who this host is to a target.
fn host(options: &cli::Doctor) -> Probed<HostInfo> {
    let env = SystemEnv::default();
    let (name, identifier) = (options.hostnqn.as_deref(), options.hostid);
    let given = |given: bool, file: &str| given || Path::new(file).exists();
    let mut generated = Vec::new();
    if !given(name.is_some(), "/etc/nvme/hostnqn") {
        generated.push(IdentityFile::HostNqn);
    }
    // Another name has an identifier of its own.
    if !given(identifier.is_some() || name.is_some(), "/etc/nvme/hostid") {
        generated.push(IdentityFile::HostId);
    }
    let firmware = std::fs::read("/sys/class/dmi/id/product_uuid");
    if let Err(error) = firmware {
        if !generated.is_empty() && error.kind() == ErrorKind::PermissionDenied {
            let text = format!(
                "only root can tell who this host is: {}",
                io_message(&error)
            );
            return Err(text);
        }
    }
    let host = env.identify(name, identifier).map_err(why)?;
    Ok(HostInfo {
        nqn: host.nqn,
        id: host.id.to_string(),
        generated,
    })
}
