// SPDX-License-Identifier: GPL-2.0

//! The identity of this host, and whether the subsystem is connected already.

use crate::address::Address;
use crate::doctor::finding::{shell_word, Finding};
use crate::doctor::snapshot::{Destination, HostInfo, IdentityFile, Snapshot};
use crate::model::controller::Controller;
use crate::uapi::CtrlState;

const CONTROLLER: &str = "controller";

/// Checks the identity, and the controllers of the subsystem if one is given.
pub(super) fn diagnose(snapshot: &Snapshot) -> Vec<Finding> {
    let host = match &snapshot.host {
        Ok(host) => host,
        Err(why) => return vec![Finding::unknown("host", why)],
    };
    let mut findings = vec![identity(host)];
    let conflicts = conflicts(host, snapshot);
    match &snapshot.nqn {
        Some(nqn) if conflicts.is_empty() => findings.push(connection(nqn, host, snapshot)),
        _ => findings.extend(conflicts),
    }
    findings
}

/// Reports the controllers that have exactly one of this host's NQN and identifier: the kernel
/// rejects a connect beside them.
fn conflicts(host: &HostInfo, snapshot: &Snapshot) -> Vec<Finding> {
    let conflict = |controller: &Controller| {
        let (nqn, id) = controller
            .hostnqn
            .as_ref()
            .zip(controller.hostid.as_ref())?;
        let (common, option, other) = match (*nqn == host.nqn, *id == host.id) {
            (true, false) => ("name and another identifier", "-I", id),
            (false, true) => ("identifier and another name", "-q", nqn),
            _ => return None,
        };
        let device = &controller.device;
        let text = format!(
            "{device} has this host's {common}, and beside it a connect is refused; \
             with {option} {} it is the same host",
            shell_word(other)
        );
        let fix = format!("rnvmf disconnect -d {device}");
        Some(Finding::fault(CONTROLLER, text).fix(fix))
    };
    let controllers = snapshot.controllers.iter().flatten();
    controllers.filter_map(conflict).collect()
}

/// A generated identity changes with the machine's hardware, and a copy of the machine has the
/// same.
fn identity(host: &HostInfo) -> Finding {
    const CHECK: &str = "host";
    if host.generated.is_empty() {
        return Finding::ok(CHECK, format!("this host is {}", host.nqn));
    }
    let file = |each: &IdentityFile| match each {
        IdentityFile::HostNqn => ("/etc/nvme/hostnqn", &host.nqn),
        IdentityFile::HostId => ("/etc/nvme/hostid", &host.id),
    };
    let files: Vec<_> = host.generated.iter().map(file).collect();
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let writes: Vec<String> = files
        .iter()
        .map(|(name, text)| format!("echo '{}' >{name}", text.replace('\'', r"'\''")))
        .collect();
    let text = format!(
        "this host is {}, but not by {}: it may change with the machine",
        host.nqn,
        names.join(" and ")
    );
    let fix = format!("mkdir -p /etc/nvme && {}", writes.join(" && "));
    Finding::warning(CHECK, text).fix(fix)
}

fn connection(nqn: &str, host: &HostInfo, snapshot: &Snapshot) -> Finding {
    let controllers = match &snapshot.controllers {
        Ok(controllers) => controllers,
        Err(why) => return Finding::unknown(CONTROLLER, why),
    };
    let is_connected = |controller: &&Controller| {
        let target = snapshot
            .destination
            .as_ref()
            .and_then(|target| target.as_ref().ok());
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

/// Reports the controller of the subsystem. Only a dead one prevents another connect; one that
/// reconnects needs no help, and its error is reported.
fn connected(nqn: &str, controller: &Controller) -> Finding {
    let Controller { device, state, .. } = controller;
    let known = state.known();
    if known == Some(CtrlState::Live) {
        return Finding::ok(CONTROLLER, format!("{nqn} is connected as {device}"));
    }
    let mut text = format!("{nqn} has {device}, which is {state}");
    if let Some(ctrl_error) = &controller.error {
        text.push_str(&format!(": {}", ctrl_error.message));
    }
    if known != Some(CtrlState::Dead) {
        return Finding::warning(CONTROLLER, text);
    }
    text.push_str("; it is in the way of another connect");
    Finding::fault(CONTROLLER, text).fix(format!("rnvmf disconnect -d {device}"))
}
