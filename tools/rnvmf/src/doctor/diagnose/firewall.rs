// SPDX-License-Identifier: GPL-2.0

//! Whether nftables drops RoCE packets. The result is derived from the rules; no packet is sent.

use crate::doctor::finding::Finding;
use crate::doctor::snapshot::{Chain, Effect, Rule, Snapshot, ROCE_PORT};
use std::net::IpAddr;

const CHECK: &str = "firewall";

/// Checks the rules for an interface and the address family of the target.
pub(super) fn diagnose(interface: &str, address: IpAddr, snapshot: &Snapshot) -> Finding {
    let chains = match &snapshot.chains {
        Ok(chains) => chains,
        Err(why) => return Finding::unknown(CHECK, why),
    };
    let family = if address.is_ipv4() { "ip" } else { "ip6" };
    let mut unclear = None;
    for chain in chains
        .iter()
        .filter(|chain| ["inet", "netdev", family].contains(&&*chain.family))
        .filter(|chain| has_device(chain, interface))
    {
        let path = &chain.path;
        let text = match first_effect(chain, interface) {
            Some(Effect::Unknown) => {
                unclear = unclear.or(Some(path));
                continue;
            }
            Some(Effect::Drop) => {
                format!("a rule of {path} seems to drop UDP port {ROCE_PORT}, which RoCE uses")
            }
            None if chain.drops => format!(
                "{path} seems to drop UDP port {ROCE_PORT}, which RoCE uses, as no rule accepts it"
            ),
            Some(Effect::Accept | Effect::None) | None => continue,
        };
        // A rule before all others; deleting the one that drops could admit other packets.
        let fix = format!("nft insert rule {path} udp dport {ROCE_PORT} accept");
        return Finding::fault(CHECK, text).fix(fix);
    }
    let text = match (unclear, &snapshot.legacy) {
        (Some(path), _) => {
            format!(
                "the rules of {path} are too complex to tell whether UDP port {ROCE_PORT} passes"
            )
        }
        (None, Ok(false)) => {
            return Finding::ok(CHECK, format!("no rule seems to drop UDP port {ROCE_PORT}"));
        }
        (None, Ok(true)) => format!(
            "only iptables-legacy can list some of the rules, which may drop UDP port {ROCE_PORT}"
        ),
        (None, Err(why)) => why.clone(),
    };
    Finding::unknown(CHECK, text)
}

/// Whether the packets of an interface traverse a chain.
fn has_device(chain: &Chain, interface: &str) -> bool {
    let matches = |name: &String| match name.strip_suffix('*') {
        Some(start) => interface.starts_with(start),
        None => name == interface,
    };
    chain
        .devices
        .as_ref()
        .is_none_or(|names| names.iter().any(matches))
}

/// Returns the effect of the first rule for packets on an interface that has one.
fn first_effect(chain: &Chain, interface: &str) -> Option<Effect> {
    let applies = |rule: &&Rule| {
        rule.interface
            .as_deref()
            .is_none_or(|name| name == interface)
    };
    let mut effects = chain.rules.iter().filter(applies).map(|rule| rule.effect);
    effects.find(|effect| *effect != Effect::None)
}
