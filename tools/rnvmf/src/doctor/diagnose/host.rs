// SPDX-License-Identifier: GPL-2.0

//! The identity of this host, and the controllers that it conflicts with or that the subsystem has.

use crate::address::Address;
use crate::doctor::finding::{shell_word, Finding};
use crate::doctor::snapshot::{Destination, HostInfo, Snapshot};
use crate::host::HOSTID_FILE;
use crate::model::controller::Controller;
use crate::uapi::CtrlState;

const CONTROLLER: &str = "controller";

/// Checks the identity, and the controllers of the subsystem if the user names one.
pub(super) fn diagnose(snapshot: &Snapshot) -> Vec<Finding> {
    let host = match &snapshot.host {
        Ok(host) => host,
        Err(why) => return vec![Finding::unknown("host", why)],
    };
    let mut findings = vec![identity(host)];
    let controllers = snapshot.controllers.iter().flatten();
    findings.extend(controllers.filter_map(|each| conflict(host, each)));
    if let (Some(nqn), 1) = (&snapshot.nqn, findings.len()) {
        findings.push(connection(nqn, host, snapshot));
    }
    findings
}

/// Reports a controller that has exactly one of host NQN and host identifier: the kernel rejects a
/// connect beside it.
fn conflict(host: &HostInfo, controller: &Controller) -> Option<Finding> {
    let (nqn, id) = (controller.hostnqn.as_ref()?, controller.hostid?.to_string());
    let (common, option, other) = match (*nqn == host.nqn, id == host.id) {
        (true, false) => ("NQN with another identifier", "-I", &id),
        (false, true) => ("identifier with another NQN", "-q", nqn),
        _ => return None,
    };
    let device = &controller.device;
    let text = format!(
        "{device} uses this host's {common}, so the kernel refuses a connect; \
         connect with {option} {} to be the same host",
        shell_word(other)
    );
    Some(Finding::fault(CONTROLLER, text).fix(format!("rnvmf disconnect -d {device}")))
}

/// Reports a generated identity: it changes with the hardware, and a copy of the disk has the same.
fn identity(host: &HostInfo) -> Finding {
    const CHECK: &str = "host";
    if host.missing_files.is_empty() {
        return Finding::ok(CHECK, format!("this host is {}", host.nqn));
    }
    let write = |file: &&str| {
        let text = if *file == HOSTID_FILE {
            &host.id
        } else {
            &host.nqn
        };
        format!("echo '{}' >{file}", text.replace('\'', r"'\''"))
    };
    let writes: Vec<String> = host.missing_files.iter().map(write).collect();
    let text = format!(
        "this host is {}, but not by {}: it may change with the hardware",
        host.nqn,
        host.missing_files.join(" and ")
    );
    let fix = format!("mkdir -p /etc/nvme && {}", writes.join(" && "));
    Finding::warning(CHECK, text).fix(fix)
}

fn connection(nqn: &str, host: &HostInfo, snapshot: &Snapshot) -> Finding {
    let controllers = match &snapshot.controllers {
        Ok(controllers) => controllers,
        Err(why) => return Finding::unknown(CONTROLLER, why),
    };
    let target = snapshot.destination.iter().flatten().next();
    let is_connected = |controller: &&Controller| {
        target.is_none_or(|target| has_addresses(controller, target))
            && controller.subsysnqn == nqn
            && controller.hostnqn.as_ref() == Some(&host.nqn)
    };
    match controllers.iter().find(is_connected) {
        Some(controller) => connected(nqn, controller),
        None => Finding::ok(CONTROLLER, format!("{nqn} is not connected yet")),
    }
}

/// Whether a controller has the addresses that a connect would use.
fn has_addresses(controller: &Controller, target: &Destination) -> bool {
    let ip = |text: &String| text.parse::<Address>().ok().map(|address| address.ip());
    let from = controller.host_traddr.as_ref().and_then(ip);
    ip(&controller.traddr) == Some(target.address)
        && controller.trsvcid == target.service
        && (target.from.is_none() || target.from == from)
}

/// Reports the controller of the subsystem. A connect replaces a dead one; one that reconnects
/// needs no action.
fn connected(nqn: &str, controller: &Controller) -> Finding {
    let Controller { device, state, .. } = controller;
    let known = state.known();
    if known == Some(CtrlState::Live) {
        return Finding::ok(CONTROLLER, format!("{nqn} is connected as {device}"));
    }
    let mut text = format!("{nqn} has {device}, which is {state}");
    if let Some(ctrl_error) = &controller.error {
        text += &format!(": {}", ctrl_error.message);
    }
    if known != Some(CtrlState::Dead) {
        return Finding::warning(CONTROLLER, text);
    }
    text += "; connect replaces it, unless its disks are in use";
    Finding::warning(CONTROLLER, text).fix(format!("rnvmf disconnect -d {device}"))
}
