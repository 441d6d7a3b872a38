// SPDX-License-Identifier: GPL-2.0

//! What an entry of a discovery log means to who connects all that it has.

use crate::address::Address;
use crate::discovery::{LogEntry, SubType, TrType};
use crate::kernel::Target;

/// What is to be done about an entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LogEntryClass {
    /// Connect it.
    Subsystem(Target),
    /// Ask this discovery controller.
    Referral(Target),
    /// It is the one that was asked, or its log the same.
    Nothing,
    /// It cannot be connected, for this reason.
    Skipped(&'static str),
}

/// Sort an entry of the log of a discovery controller, by which its address may have to be reached.
pub(super) fn sort(entry: &LogEntry, by: &Target) -> LogEntryClass {
    let make = match entry.subtype {
        SubType::NVM => LogEntryClass::Subsystem,
        SubType::REFERRAL if !entry.eflags.is_duplicate() => LogEntryClass::Referral,
        SubType::REFERRAL | SubType::CURRENT => return LogEntryClass::Nothing,
        _ => return LogEntryClass::Skipped("a type of subsystem that is not known"),
    };
    match target(entry, by) {
        Ok(target) => make(target),
        Err(why) => LogEntryClass::Skipped(why),
    }
}

fn target(entry: &LogEntry, by: &Target) -> Result<Target, &'static str> {
    if entry.trtype != TrType::RDMA {
        return Err("rnvmf connects with RDMA only");
    }
    if !entry.adrfam.is_ip() {
        return Err("an address that is not one of IP");
    }
    let port = entry.trsvcid.parse().ok().filter(|port| *port != 0);
    let traddr = address(&entry.traddr, by)?;
    let from = by.host_traddr.as_ref().and_then(|from| from.parse().ok());
    if from.is_some_and(|from: Address| from.is_ipv4() != traddr.is_ipv4()) {
        return Err("an address of another family than the host's is to be");
    }
    Ok(Target {
        traddr: traddr.to_string(),
        trsvcid: port.ok_or("the service is no port")?,
        subsysnqn: entry.subnqn.clone(),
        ..by.clone()
    })
}

/// An address of a log. The scope of a link-local one is that of the link on which the log came: an
/// interface is of who looks at it, and what the target calls its own means nothing here.
fn address(text: &str, by: &Target) -> Result<Address, &'static str> {
    let address: Address = text.parse().map_err(|_| "the address is none of IP")?;
    if !address.is_link_local() {
        return Ok(address);
    }
    let by: Option<Address> = by.traddr.parse().ok();
    by.and_then(|by| address.with_scope_of(&by))
        .ok_or("a link-local address, whose link only a discovery at such an address can tell")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::tests::subsystem;
    use crate::discovery::{AdrFam, EFlags};

    fn by(traddr: &str) -> Target {
        Target {
            traddr: traddr.into(),
            trsvcid: 8009,
            subsysnqn: "nqn.2014-08.org.nvmexpress.discovery".into(),
            hostnqn: "nqn.h".into(),
            hostid: [1; 16],
            host_traddr: Some("10.0.0.1".into()),
            connect_timeout: 3000,
            tos: Some(9),
        }
    }

    #[test]
    fn a_subsystem_is_reached_as_the_log_was() {
        let entry = subsystem("nqn.x", "10.0.1.9");
        let expected = Target {
            traddr: "10.0.1.9".into(),
            trsvcid: 4420,
            subsysnqn: "nqn.x".into(),
            ..by("10.0.0.9")
        };
        assert_eq!(
            sort(&entry, &by("10.0.0.9")),
            LogEntryClass::Subsystem(expected)
        );
    }

    #[test]
    fn a_referral_is_followed_unless_it_leads_to_the_same() {
        let entry = |subtype, eflags| LogEntry {
            subtype,
            eflags: EFlags(eflags),
            ..subsystem("nqn.x", "10.0.1.9")
        };
        let sorted = |subtype, eflags| sort(&entry(subtype, eflags), &by("10.0.0.9"));
        assert!(matches!(
            sorted(SubType::REFERRAL, 0),
            LogEntryClass::Referral(_)
        ));
        assert_eq!(sorted(SubType::REFERRAL, 1), LogEntryClass::Nothing);
        assert_eq!(sorted(SubType::CURRENT, 0), LogEntryClass::Nothing);
        assert!(matches!(sorted(SubType(9), 0), LogEntryClass::Skipped(_)));
    }

    #[test]
    fn a_link_local_address_is_on_the_link_of_the_log() {
        for (traddr, by_address, found) in [
            ("fe80::9", "fe80::1%eth0", Some("fe80::9%eth0")),
            ("fe80::9%eth7", "fe80::1%eth0", Some("fe80::9%eth0")),
            ("2001:db8::9", "fe80::1%eth0", Some("2001:db8::9")),
            ("fe80::9", "2001:db8::1", None),
            ("fe80::9%eth7", "10.0.0.9", None),
        ] {
            let address = address(traddr, &by(by_address)).ok();
            let address = address.map(|address| address.to_string());
            assert_eq!(address.as_deref(), found, "{traddr}");
        }
    }

    #[test]
    fn what_cannot_be_reached_has_a_reason() {
        let good = || subsystem("nqn.x", "10.0.1.9");
        for entry in [
            LogEntry {
                trtype: TrType(3),
                ..good()
            },
            LogEntry {
                adrfam: AdrFam(3),
                ..good()
            },
            LogEntry {
                trsvcid: "none".into(),
                ..good()
            },
            LogEntry {
                trsvcid: "0".into(),
                ..good()
            },
            subsystem("nqn.x", "nn-0x1:pn-0x2"),
            // The host has an address of the other family.
            subsystem("nqn.x", "2001:db8::9"),
        ] {
            let sorted = sort(&entry, &by("10.0.0.9"));
            assert!(matches!(sorted, LogEntryClass::Skipped(_)), "{entry:?}");
        }
    }
}
