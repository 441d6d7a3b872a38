// SPDX-License-Identifier: GPL-2.0

//! Converts arguments of the command line to those of the kernel: resolves host names and adds the
//! identity of this host.

use crate::address::{Address, Endpoint};
use crate::cli::SubsystemArgs;
use crate::error::{CtrlError, Error};
use crate::host::SystemEnv;
use crate::model::options::Target;

/// Returns the target of a subsystem: resolves its address and determines the identity of this
/// host.
pub(super) fn target(subsystem: &SubsystemArgs<'_>, env: &SystemEnv) -> Result<Target, Error> {
    let fabrics = subsystem.fabrics;
    let address = env.resolve(
        subsystem.traddr,
        fabrics.host_traddr.as_ref(),
        fabrics.timeout,
    )?;
    let host = env.identify(fabrics.hostnqn.as_deref(), fabrics.hostid)?;
    Ok(Target {
        traddr: address.to_string(),
        trsvcid: fabrics.trsvcid,
        subsysnqn: subsystem.nqn.to_owned(),
        hostnqn: host.nqn,
        hostid: host.id,
        host_traddr: fabrics.host_traddr.as_ref().map(Address::to_string),
        connect_timeout: fabrics.timeout * 1000,
        tos: fabrics.tos,
    })
}

/// Adds the failed connect to an error.
pub(super) fn connect_error(endpoint: &Endpoint, mut error: Error) -> Error {
    let ctrl_error = error.ctrl_error.as_deref();
    // The commands before are answered by small packets.
    if ctrl_error.is_some_and(CtrlError::is_identify_unanswered) {
        error.message += "; smaller packets arrived: check the MTU of each hop";
    }
    error.context(format_args!("connect to {endpoint}"))
}

/// Adds the failed discovery to an error.
pub(super) fn discover_error(endpoint: &Endpoint, mut error: Error) -> Error {
    let ctrl_error = error.ctrl_error.as_deref();
    if ctrl_error.is_some_and(CtrlError::is_no_discovery) {
        error.message += "; connect -n is for an NVM subsystem";
    }
    error.context(format_args!("discover at {endpoint}"))
}
