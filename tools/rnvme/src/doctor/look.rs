// SPDX-License-Identifier: GPL-2.0

//! Looks facts up. What cannot be looked up does not stop the rest.

pub(crate) mod firewall;
mod module;
mod table;

use super::facts::{
    Device, Facts, Host, Interface, NoRoute, Route, Seen, Target, Unwritten, MODULES,
};
use crate::address::Address;
use crate::cli;
use crate::error::{describe, Error};
use crate::host::Places;
use crate::kernel::Kernel;
use crate::netlink::{rdma, route, Client};
use std::io::ErrorKind;
use std::path::Path;

/// What there is, for the options of the verb and the target's address.
pub(crate) fn look(options: &cli::Doctor, address: Option<Address>) -> Facts {
    let interfaces = route::interfaces().map_err(why);
    let target = address.map(|address| Target {
        route: way(&address, &interfaces),
        address: address.ip(),
        service: options.trsvcid,
    });
    let modules: Vec<_> = MODULES.map(module::look).into();
    let rnvme = modules
        .iter()
        .any(|each| each.name == "rnvme" && each.loaded);
    Facts {
        target,
        nqn: options.nqn.clone(),
        interfaces,
        devices: devices(),
        chains: firewall::look(),
        legacy: firewall::legacy(),
        host: host(options),
        controllers: match rnvme {
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

fn way(address: &Address, interfaces: &Seen<Vec<Interface>>) -> Seen<Result<Route, NoRoute>> {
    let Some(scope) = address.scope() else {
        return route::route(address.ip(), None).map_err(why);
    };
    let named = |each: &&Interface| each.name == scope || each.index.to_string() == scope;
    match interfaces.as_ref()?.iter().find(named) {
        Some(interface) => route::route(address.ip(), Some(interface.index)).map_err(why),
        None => Ok(Err(NoRoute(format!("there is no interface {scope}")))),
    }
}

fn devices() -> Seen<Vec<Device>> {
    // Where the kernel has no RDMA, it does not know its netlink either.
    if !Path::new("/sys/class/infiniband").exists() {
        return Ok(Vec::new());
    }
    let mut devices = rdma::devices().map_err(why)?;
    devices.iter_mut().for_each(table::read);
    Ok(devices)
}

/// Who this host is to a target.
fn host(options: &cli::Doctor) -> Seen<Host> {
    let places = Places::default();
    let (name, identifier) = (options.hostnqn.as_deref(), options.hostid);
    let given = |given: bool, file: &str| given || Path::new(file).exists();
    let mut unwritten = Vec::new();
    if !given(name.is_some(), "/etc/nvme/hostnqn") {
        unwritten.push(Unwritten::Name);
    }
    if !given(identifier.is_some(), "/etc/nvme/hostid") {
        unwritten.push(Unwritten::Identifier);
    }
    let firmware = std::fs::read("/sys/class/dmi/id/product_uuid");
    if let Err(error) = firmware {
        if !unwritten.is_empty() && error.kind() == ErrorKind::PermissionDenied {
            let text = format!("only root can tell who this host is: {}", describe(&error));
            return Err(text);
        }
    }
    let host = places.identify(name, identifier).map_err(why)?;
    Ok(Host {
        nqn: host.nqn,
        id: host.id.to_string(),
        unwritten,
    })
}
