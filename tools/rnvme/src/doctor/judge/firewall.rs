// SPDX-License-Identifier: GPL-2.0

//! Whether the packet filter drops RoCE packets: a guess, for its rules are read and not tried.

use crate::doctor::facts::{Chain, Rule, Seen, Verdict};
use crate::doctor::look::firewall::PORT;
use crate::doctor::Finding;
use std::net::IpAddr;

const CHECK: &str = "firewall";

/// What becomes of RoCE packets in a chain.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    DroppedBy(u64),
    DroppedAtEnd,
    Unclear,
}

/// Judge the chains, for an interface and the family of an address.
pub(super) fn judge(interface: &str, address: IpAddr, chains: &Seen<Vec<Chain>>) -> Finding {
    let chains = match chains {
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
        match fate(chain, interface) {
            Fate::Pass => (),
            Fate::Unclear => unclear = unclear.or(Some(path)),
            Fate::DroppedBy(handle) => {
                let text =
                    format!("a rule of {path} seems to drop UDP port {PORT}, which RoCE uses");
                let fix = format!("nft delete rule {path} handle {handle}");
                return Finding::fault(CHECK, text).fix(fix);
            }
            Fate::DroppedAtEnd => {
                let text = format!(
                    "{path} seems to drop UDP port {PORT}, which RoCE uses, as no rule accepts it"
                );
                let fix = format!("nft insert rule {path} udp dport {PORT} accept");
                return Finding::fault(CHECK, text).fix(fix);
            }
        }
    }
    match unclear {
        Some(path) => Finding::unknown(
            CHECK,
            format!("the rules of {path} are too involved to tell whether UDP port {PORT} passes"),
        ),
        None => Finding::ok(CHECK, format!("no rule is seen to drop UDP port {PORT}")),
    }
}

fn fate(chain: &Chain, interface: &str) -> Fate {
    let about = |rule: &&Rule| {
        rule.interface
            .as_deref()
            .is_none_or(|name| name == interface)
    };
    let mut sure = true;
    for rule in chain.rules.iter().filter(about) {
        match (rule.takes, rule.verdict) {
            (Some(false), _) | (_, Verdict::None) => (),
            (Some(true), Verdict::Accept) if sure => return Fate::Pass,
            (Some(true), Verdict::Drop) if sure => return Fate::DroppedBy(rule.handle),
            (Some(true), Verdict::Accept | Verdict::Drop) => return Fate::Unclear,
            (None, _) | (_, Verdict::Other) => sure = false,
        }
    }
    match (sure, chain.drops) {
        (true, true) => Fate::DroppedAtEnd,
        (true, false) => Fate::Pass,
        (false, _) => Fate::Unclear,
    }
}
