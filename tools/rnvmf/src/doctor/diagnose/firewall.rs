// SPDX-License-Identifier: GPL-2.0

//! Whether the packet filter drops RoCE packets. A guess: its rules are read, and no packet is
//! sent.

use crate::doctor::finding::Finding;
use crate::doctor::snapshot::{Chain, Rule, Snapshot, Verdict, ROCE_PORT};
use std::net::IpAddr;

const CHECK: &str = "firewall";

/// What a chain does with RoCE packets.
#[derive(Debug, PartialEq, Eq)]
enum ChainResult {
    Pass,
    DroppedByRule,
    DroppedAtEnd,
    Unclear,
}

/// Checks the rules for an interface and the family of an address.
pub(super) fn diagnose(interface: &str, address: IpAddr, snapshot: &Snapshot) -> Finding {
    let chains = match &snapshot.chains {
        Ok(chains) => chains,
        Err(why) => return Finding::unknown(CHECK, why),
    };
    let family = if address.is_ipv4() { "ip" } else { "ip6" };
    let mut unclear = None;
    for chain in chains {
        let path = &chain.path;
        if chain.family != "inet" && chain.family != family {
            continue;
        }
        match chain_result(chain, interface) {
            ChainResult::Pass => (),
            ChainResult::Unclear => unclear = unclear.or(Some(path)),
            ChainResult::DroppedByRule => {
                let text =
                    format!("a rule of {path} seems to drop UDP port {ROCE_PORT}, which RoCE uses");
                return Finding::fault(CHECK, text).fix(accept_rule(path));
            }
            ChainResult::DroppedAtEnd => {
                let text = format!(
                    "{path} seems to drop UDP port {ROCE_PORT}, which RoCE uses, as no rule accepts it"
                );
                return Finding::fault(CHECK, text).fix(accept_rule(path));
            }
        }
    }
    let text = match (unclear, &snapshot.legacy) {
        (Some(path), _) => {
            format!("the rules of {path} are too involved to tell whether UDP port {ROCE_PORT} passes")
        }
        (None, Ok(false)) => {
            let text = format!("no rule is seen to drop UDP port {ROCE_PORT}");
            return Finding::ok(CHECK, text);
        }
        (None, Ok(true)) => format!(
            "there are rules that only iptables-legacy can list, and they may drop UDP port {ROCE_PORT}"
        ),
        (None, Err(why)) => why.clone(),
    };
    Finding::unknown(CHECK, text)
}

/// Returns the command that inserts a rule before all others. Deleting a rule might open more.
fn accept_rule(path: &str) -> String {
    format!("nft insert rule {path} udp dport {ROCE_PORT} accept")
}

fn chain_result(chain: &Chain, interface: &str) -> ChainResult {
    let about = |rule: &&Rule| {
        rule.interface
            .as_deref()
            .is_none_or(|name| name == interface)
    };
    let mut sure = true;
    for rule in chain.rules.iter().filter(about) {
        match (rule.matches_roce, rule.verdict) {
            (Some(false), _) | (_, Verdict::None) => (),
            (Some(true), Verdict::Accept) if sure => return ChainResult::Pass,
            (Some(true), Verdict::Drop) if sure => return ChainResult::DroppedByRule,
            (Some(true), Verdict::Accept | Verdict::Drop) => return ChainResult::Unclear,
            (None, _) | (_, Verdict::Other) => sure = false,
        }
    }
    if !sure {
        ChainResult::Unclear
    } else if chain.drops {
        ChainResult::DroppedAtEnd
    } else {
        ChainResult::Pass
    }
}
