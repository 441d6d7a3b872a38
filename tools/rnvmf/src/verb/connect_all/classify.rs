// SPDX-License-Identifier: GPL-2.0

//! Classifies the entries of discovery logs.

use crate::address::Address;
use crate::model::discovery::{LogEntry, SubType, TrType};
use crate::model::options::Target;

/// What a log entry means for the run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LogEntryClass {
    /// A subsystem to connect.
    Subsystem(Target),
    /// Another discovery controller, to be asked for its log.
    Referral(Target),
    /// The discovery controller that was asked, or one with the same log.
    Known,
    /// It cannot be connected, for this reason.
    Unsupported(&'static str),
}

/// Classifies an entry of the log of `discovery`.
pub(super) fn classify(entry: &LogEntry, discovery: &Target) -> LogEntryClass {
    let make = match entry.subtype {
        SubType::NVM => LogEntryClass::Subsystem,
        SubType::REFERRAL if !entry.eflags.is_duplicate() => LogEntryClass::Referral,
        SubType::REFERRAL | SubType::CURRENT => return LogEntryClass::Known,
        _ => return LogEntryClass::Unsupported("a type of subsystem that is not known"),
    };
    match target(entry, discovery) {
        Ok(target) => make(target),
        Err(why) => LogEntryClass::Unsupported(why),
    }
}

fn target(entry: &LogEntry, discovery: &Target) -> Result<Target, &'static str> {
    if entry.trtype != TrType::RDMA {
        return Err("rnvmf connects with RDMA only");
    }
    if !entry.adrfam.is_ip() {
        return Err("an address that is not one of IP");
    }
    let port = entry.trsvcid.parse().ok().filter(|port| *port != 0);
    let traddr = address(&entry.traddr, discovery)?;
    let from = discovery
        .host_traddr
        .as_ref()
        .and_then(|from| from.parse().ok());
    if from.is_some_and(|from: Address| from.is_ipv4() != traddr.is_ipv4()) {
        return Err("an address of another family than the host's is to be");
    }
    Ok(Target {
        traddr: traddr.to_string(),
        trsvcid: port.ok_or("the service is no port")?,
        subsysnqn: entry.subnqn.clone(),
        ..discovery.clone()
    })
}

/// Parses an address of a log. A link-local one gets the scope of the discovery controller's
/// address: the target's own interface names mean nothing here.
fn address(text: &str, discovery: &Target) -> Result<Address, &'static str> {
    let address: Address = text.parse().map_err(|_| "the address is none of IP")?;
    if !address.is_link_local() {
        return Ok(address);
    }
    let discovery: Option<Address> = discovery.traddr.parse().ok();
    discovery
        .and_then(|discovery| address.with_scope_of(&discovery))
        .ok_or("a link-local address, whose link only a discovery at such an address can tell")
}

#[cfg(test)]
mod tests;
