// SPDX-License-Identifier: GPL-2.0

//! Whether the packet filter drops RoCE packets: a guess, for its rules are read and not tried.

use crate::doctor::probe::firewall::PORT;
use crate::doctor::snapshot::{Chain, Rule, Snapshot, Verdict};
use crate::doctor::Finding;
use std::net::IpAddr;

const CHECK: &str = "firewall";

/// What becomes of RoCE packets in a chain.
#[derive(Debug, PartialEq, Eq)]
enum ChainResult {
    Pass,
    DroppedByRule,
    DroppedAtEnd,
    Unclear,
}

/// Judge the rules, for an interface and the family of an address.
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
                    format!("a rule of {path} seems to drop UDP port {PORT}, which RoCE uses");
                return Finding::fault(CHECK, text).fix(let_pass(path));
            }
            ChainResult::DroppedAtEnd => {
                let text = format!(
                    "{path} seems to drop UDP port {PORT}, which RoCE uses, as no rule accepts it"
                );
                return Finding::fault(CHECK, text).fix(let_pass(path));
            }
        }
    }
    let text = match (unclear, &snapshot.legacy) {
        (Some(path), _) => {
            format!("the rules of {path} are too involved to tell whether UDP port {PORT} passes")
        }
        (None, Ok(false)) => {
            let text = format!("no rule is seen to drop UDP port {PORT}");
            return Finding::ok(CHECK, text);
        }
        (None, Ok(true)) => format!(
            "there are rules that only iptables-legacy can list, and they may drop UDP port {PORT}"
        ),
        (None, Err(why)) => why.clone(),
    };
    Finding::unknown(CHECK, text)
}

/// A rule before all others. To take one away instead might open all that it is there for.
fn let_pass(path: &str) -> String {
    format!("nft insert rule {path} udp dport {PORT} accept")
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
    match (sure, chain.drops) {
        (true, true) => ChainResult::DroppedAtEnd,
        (true, false) => ChainResult::Pass,
        (false, _) => ChainResult::Unclear,
    }
}
