// SPDX-License-Identifier: GPL-2.0

//! Whether nftables drops RoCE packets. The result is derived from the rules; no packet is sent.

use crate::doctor::finding::Finding;
use crate::doctor::snapshot::{Chain, Rule, Snapshot, Verdict, ROCE_PORT};
use std::net::IpAddr;

const CHECK: &str = "firewall";

/// What a chain does with RoCE packets.
enum ChainResult {
    Pass,
    DroppedByRule,
    DroppedByPolicy,
    Unknown,
}

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
        .filter(|chain| ["inet", family].contains(&&*chain.family))
    {
        let path = &chain.path;
        let text = match chain_result(chain, interface) {
            ChainResult::Pass => continue,
            ChainResult::Unknown => {
                unclear = unclear.or(Some(path));
                continue;
            }
            ChainResult::DroppedByRule => {
                format!("a rule of {path} seems to drop UDP port {ROCE_PORT}, which RoCE uses")
            }
            ChainResult::DroppedByPolicy => format!(
                "{path} seems to drop UDP port {ROCE_PORT}, which RoCE uses, as no rule accepts it"
            ),
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

fn chain_result(chain: &Chain, interface: &str) -> ChainResult {
    let applies = |rule: &&Rule| {
        rule.interface
            .as_deref()
            .is_none_or(|name| name == interface)
    };
    let mut sure = true;
    for rule in chain.rules.iter().filter(applies) {
        match (rule.matches_roce, rule.verdict) {
            (Some(false), _) | (_, Verdict::None) => (),
            (Some(true), Verdict::Accept) if sure => return ChainResult::Pass,
            (Some(true), Verdict::Drop) if sure => return ChainResult::DroppedByRule,
            (Some(true), Verdict::Accept | Verdict::Drop) => return ChainResult::Unknown,
            (None, _) | (_, Verdict::Other) => sure = false,
        }
    }
    match (sure, chain.drops) {
        (false, _) => ChainResult::Unknown,
        (true, true) => ChainResult::DroppedByPolicy,
        (true, false) => ChainResult::Pass,
    }
}
