// SPDX-License-Identifier: GPL-2.0

//! Converts arguments of the command line to those of the kernel: resolves host names and adds the
//! identity of this host.

use crate::address::{Address, Endpoint};
use crate::cli::{CtrlArgs, ReconnectArgs, SubsystemArgs};
use crate::error::Error;
use crate::host::SystemEnv;
use crate::model::options::{ConnectArgs, ReconnectOptions, Target};
use crate::uapi::LOSS_TMO_NEVER;

/// Returns the arguments of a connect to `target` with the controller options `ctrl`.
pub(super) fn connect_args_for(target: Target, ctrl: &CtrlArgs) -> ConnectArgs {
    ConnectArgs {
        target,
        nr_io_queues: ctrl.queues.nr_io_queues,
        nr_write_queues: ctrl.queues.nr_write_queues,
        nr_poll_queues: ctrl.queues.nr_poll_queues,
        queue_size: ctrl.queues.queue_size,
        keep_alive_tmo: ctrl.keep_alive_tmo,
        disable_sqflow: ctrl.queues.disable_sqflow,
        reconnect: reconnect_options(&ctrl.reconnect),
        duplicate_connect: false,
    }
}

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

/// Returns the reconnect options as the kernel takes them. A timeout of -1 is `LOSS_TMO_NEVER`.
pub(super) fn reconnect_options(args: &ReconnectArgs) -> ReconnectOptions {
    let tmo = |seconds: i64| u32::try_from(seconds).unwrap_or(LOSS_TMO_NEVER);
    ReconnectOptions {
        reconnect_delay: args.reconnect_delay,
        ctrl_loss_tmo: args.ctrl_loss_tmo.map(tmo),
        fast_io_fail_tmo: args.fast_io_fail_tmo.map(tmo),
    }
}

/// Adds the failed connect to an error.
pub(super) fn connect_error(endpoint: &Endpoint, error: Error) -> Error {
    error.context(format_args!("connect to {endpoint}"))
}

/// Adds the failed discovery to an error.
pub(super) fn discover_error(endpoint: &Endpoint, error: Error) -> Error {
    error.context(format_args!("discover at {endpoint}"))
}
