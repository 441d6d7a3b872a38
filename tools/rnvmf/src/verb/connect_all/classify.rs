// SPDX-License-Identifier: GPL-2.0

//! Classifies the entries of discovery logs.

use crate::address::Address;
use crate::model::discovery::{LogEntry, SubType, TrType};
use crate::model::options::Target;

/// The meaning of a log entry for the run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LogEntryClass {
    /// A subsystem to connect.
    Subsystem(Target),
    /// Another discovery controller, whose log is to be read.
    Referral(Target),
    /// The discovery controller that has the log, or another one with the same log.
    Known,
    /// It cannot be connected, for this reason.
    Unsupported(String),
}

impl LogEntryClass {
    /// Returns the subsystem or the discovery controller.
    pub(super) fn target(self) -> Option<Target> {
        match self {
            Self::Subsystem(target) | Self::Referral(target) => Some(target),
            Self::Known | Self::Unsupported(_) => None,
        }
    }
}

/// Classifies an entry in the log of `discovery`.
pub(super) fn classify(entry: &LogEntry, discovery: &Target) -> LogEntryClass {
    let class = match entry.subtype {
        SubType::NVM => LogEntryClass::Subsystem,
        SubType::REFERRAL if !entry.eflags.is_duplicate() => LogEntryClass::Referral,
        SubType::REFERRAL | SubType::CURRENT => return LogEntryClass::Known,
        _ => return LogEntryClass::Unsupported("unknown subsystem type".into()),
    };
    let unsupported = |why: &str| LogEntryClass::Unsupported(why.into());
    target(entry, discovery).map_or_else(unsupported, class)
}

fn target<'a>(entry: &'a LogEntry, discovery: &Target) -> Result<Target, &'a str> {
    if let Some(why) = &entry.invalid {
        return Err(why);
    }
    if entry.trtype != TrType::RDMA {
        return Err("rnvmf supports RDMA only");
    }
    if !entry.adrfam.is_ip() {
        return Err("not an IP address");
    }
    let port = entry.trsvcid.parse().ok().filter(|port| *port != 0);
    let traddr = address(&entry.traddr, discovery)?;
    let from = discovery.host_traddr.as_ref();
    let from: Option<Address> = from.and_then(|from| from.parse().ok());
    if from.is_some_and(|from| from.is_ipv4() != traddr.is_ipv4()) {
        return Err("not of the address family of --host-traddr");
    }
    Ok(Target {
        traddr: traddr.to_string(),
        trsvcid: port.ok_or("invalid port")?,
        subsysnqn: entry.subnqn.clone(),
        ..discovery.clone()
    })
}

/// Parses an address of a log. A link-local address gets the scope of the discovery controller's
/// address, because the names of interfaces in the log are those of the target.
fn address(text: &str, discovery: &Target) -> Result<Address, &'static str> {
    let address: Address = text.parse().map_err(|_| "invalid IP address")?;
    if !address.is_link_local() {
        return Ok(address);
    }
    let discovery: Option<Address> = discovery.traddr.parse().ok();
    discovery
        .and_then(|discovery| address.with_scope_of(&discovery))
        .ok_or("link-local address, but the discovery controller's is not")
}

#[cfg(test)]
mod tests;
