// SPDX-License-Identifier: GPL-2.0

//! Who this host is, and whether it is connected already.

use crate::address::Address;
use crate::controller::Controller;
use crate::doctor::facts::{Facts, Host, Unwritten};
use crate::doctor::Finding;

/// Judge the identity, and with a subsystem whether it is in use.
pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let host = match &facts.host {
        Ok(host) => host,
        Err(why) => return vec![Finding::unknown("host", why)],
    };
    let mut findings = vec![identity(host)];
    if let Some(nqn) = &facts.nqn {
        findings.push(connection(nqn, host, facts));
    }
    findings
}

/// A name that is made of the machine changes with it, and a copy of the machine has the same.
fn identity(host: &Host) -> Finding {
    const CHECK: &str = "host";
    if host.unwritten.is_empty() {
        return Finding::ok(CHECK, format!("this host is {}", host.nqn));
    }
    let file = |each: &Unwritten| match each {
        Unwritten::Name => ("/etc/nvme/hostnqn", &host.nqn),
        Unwritten::Identifier => ("/etc/nvme/hostid", &host.id),
    };
    let files: Vec<_> = host.unwritten.iter().map(file).collect();
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

fn connection(nqn: &str, host: &Host, facts: &Facts) -> Finding {
    const CHECK: &str = "controller";
    let controllers = match &facts.controllers {
        Ok(controllers) => controllers,
        Err(why) => return Finding::unknown(CHECK, why),
    };
    let there = |controller: &&Controller| {
        let at = facts.target.as_ref().is_none_or(|target| {
            let traddr = controller.traddr.parse::<Address>();
            traddr.is_ok_and(|traddr| traddr.ip() == target.address)
                && controller.trsvcid == target.service
        });
        at && controller.subsysnqn == nqn && controller.hostnqn.as_ref() == Some(&host.nqn)
    };
    match controllers.iter().find(there) {
        Some(controller) => {
            let name = &controller.device;
            let state = controller.state;
            let text = format!("{nqn} is connected already as {name}, which is {state}");
            Finding::warning(CHECK, text).fix(format!("rnvme disconnect -d {name}"))
        }
        None => Finding::ok(CHECK, format!("{nqn} is not connected yet")),
    }
}
