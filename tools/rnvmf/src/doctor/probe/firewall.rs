// SPDX-License-Identifier: GPL-2.0

//! The packet filter, as the program `nft` lists it: reading the rules from the kernel would take
//! most of that program.

use super::module;
use crate::doctor::snapshot::{Chain, Probed, Rule, Verdict, ROCE_PORT};
use crate::error::io_message;
use serde_json::Value;
use std::io::ErrorKind;
use std::process::Command;

/// The hooks that packets of this host pass.
const HOOKS: [&str; 4] = ["prerouting", "input", "output", "postrouting"];

/// Protocols that do not carry RoCE.
const OTHER_PROTOCOLS: [&str; 6] = ["tcp", "icmp", "icmpv6", "sctp", "igmp", "dccp"];

/// Returns the chains that packets of this host pass.
pub(super) fn chains() -> Probed<Vec<Chain>> {
    // nft would load the module.
    if !module::is_present("nf_tables") {
        return Ok(Vec::new());
    }
    let listed = Command::new("nft")
        .args(["--json", "list", "ruleset"])
        .output()
        .map_err(|error| format!("the rules cannot be listed: nft: {}", io_message(&error)))?;
    if !listed.status.success() {
        let text = String::from_utf8_lossy(&listed.stderr);
        let first = text.lines().next().unwrap_or("nft failed");
        return Err(format!("the rules cannot be listed: {first}"));
    }
    read(&listed.stdout).ok_or_else(|| "the rules cannot be listed: nft made no sense".to_owned())
}

/// Whether the packet filter before nftables has tables; `nft` does not list their rules.
pub(super) fn legacy() -> Probed<bool> {
    let mut some = false;
    for file in ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"] {
        match std::fs::read(file) {
            Ok(names) => some |= !names.is_empty(),
            Err(error) if error.kind() == ErrorKind::NotFound => (),
            Err(error) => return Err(format!("{file}: {}", io_message(&error))),
        }
    }
    Ok(some)
}

/// Read what `nft` lists.
fn read(listed: &[u8]) -> Option<Vec<Chain>> {
    let document: Value = serde_json::from_slice(listed).ok()?;
    let list = document.get("nftables")?.as_array()?;
    let mut chains: Vec<Chain> = list
        .iter()
        .filter_map(|each| chain(each.get("chain")?))
        .collect();
    for each in list.iter().filter_map(|each| each.get("rule")) {
        let path = path(each, "chain")?;
        let own = rule(each)?;
        // A rule of another chain counts only if a rule of these jumps to it.
        if let Some(chain) = chains.iter_mut().find(|chain| chain.path == path) {
            chain.rules.push(own);
        }
    }
    Some(chains)
}

/// Reads a chain; `None` if packets of this host do not pass it.
fn chain(from: &Value) -> Option<Chain> {
    let family = from.get("family")?.as_str()?;
    let hook = from.get("hook")?.as_str()?;
    let ours = HOOKS.contains(&hook) && ["ip", "ip6", "inet"].contains(&family);
    ours.then_some(Chain {
        path: path(from, "name")?,
        family: family.to_owned(),
        drops: from.get("policy").and_then(Value::as_str) == Some("drop"),
        rules: Vec::new(),
    })
}

fn path(from: &Value, name: &str) -> Option<String> {
    let word = |key: &str| from.get(key)?.as_str();
    Some(format!(
        "{} {} {}",
        word("family")?,
        word("table")?,
        word(name)?
    ))
}

fn rule(from: &Value) -> Option<Rule> {
    let mut rule = Rule {
        matches_roce: Some(true),
        interface: None,
        verdict: Verdict::None,
    };
    for statement in from.get("expr")?.as_array()? {
        let (key, value) = statement.as_object()?.iter().next()?;
        match key.as_str() {
            "match" => apply_match(&mut rule, value),
            "counter" | "log" | "comment" => (),
            "accept" => rule.verdict = Verdict::Accept,
            "drop" | "reject" => rule.verdict = Verdict::Drop,
            "jump" | "goto" | "queue" | "return" | "vmap" => rule.verdict = Verdict::Other,
            // A limit, or an expression that this program does not know.
            _ => restrict(&mut rule, None),
        }
    }
    Some(rule)
}

/// A rule matches what all of its expressions match.
fn restrict(rule: &mut Rule, matches_roce: Option<bool>) {
    rule.matches_roce = match (rule.matches_roce, matches_roce) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    };
}

fn apply_match(rule: &mut Rule, from: &Value) {
    let (Some(left), Some(right)) = (from.get("left"), from.get("right")) else {
        return restrict(rule, None);
    };
    let op = from.get("op").and_then(Value::as_str);
    let name = literal(right).filter(|name| !name.ends_with('*'));
    match (meta(left), op, name) {
        (Some("iif" | "oif" | "iifname" | "oifname"), Some("=="), Some(name)) => {
            rule.interface = Some(name.to_owned());
        }
        (_, Some("==" | "in"), _) => restrict(rule, value_matches(left, right)),
        (_, Some("!="), _) if !is_ct_state(left) => {
            restrict(
                rule,
                value_matches(left, right).map(|matches_roce| !matches_roce),
            );
        }
        _ => restrict(rule, None),
    }
}

fn meta(left: &Value) -> Option<&str> {
    left.get("meta")?.get("key")?.as_str()
}

fn is_ct_state(left: &Value) -> bool {
    let key = left.get("ct").and_then(|ct| ct.get("key"));
    key.and_then(Value::as_str) == Some("state")
}

/// Whether a RoCE packet has a value; `None` if that is not known.
fn value_matches(left: &Value, right: &Value) -> Option<bool> {
    if is_ct_state(left) {
        return any_matches(right, &is_request_state);
    }
    if meta(left) == Some("l4proto") {
        return any_matches(right, &is_udp);
    }
    let payload = left.get("payload")?;
    let word = |key: &str| payload.get(key).and_then(Value::as_str);
    match (word("protocol"), word("field")) {
        (Some("udp" | "th"), Some("dport")) => any_matches(right, &covers_port),
        (Some(other), _) if OTHER_PROTOCOLS.contains(&other) => Some(false),
        (Some("ip" | "ip6"), Some("protocol" | "nexthdr")) => any_matches(right, &is_udp),
        _ => None,
    }
}

/// Whether a value, or one of a set, matches.
fn any_matches(value: &Value, right: &dyn Fn(&Value) -> Option<bool>) -> Option<bool> {
    let list = value.get("set").or(Some(value)).and_then(Value::as_array);
    let Some(list) = list else {
        return right(strip_elem(value));
    };
    let mut sure = true;
    for each in list {
        match right(strip_elem(each)) {
            Some(true) => return Some(true),
            Some(false) => (),
            None => sure = false,
        }
    }
    sure.then_some(false)
}

/// Removes the counter, comment or timeout that an element of a set may have.
fn strip_elem(value: &Value) -> &Value {
    let inner = value.get("elem").and_then(|elem| elem.get("val"));
    inner.unwrap_or(value)
}

/// Returns a name that is not the name of a set.
fn literal(value: &Value) -> Option<&str> {
    value.as_str().filter(|name| !name.starts_with('@'))
}

/// RoCE packets go to the port of RoCE v2 from ports of their own, so conntrack never sees a reply.
/// Whether one is new or untracked is not known.
fn is_request_state(state: &Value) -> Option<bool> {
    match literal(state)? {
        "new" | "untracked" => None,
        _ => Some(false),
    }
}

fn is_udp(protocol: &Value) -> Option<bool> {
    literal(protocol).map(|name| name == "udp")
}

fn covers_port(value: &Value) -> Option<bool> {
    if let Some(port) = value.as_u64() {
        return Some(port == ROCE_PORT);
    }
    match value.get("range")?.as_array()?.as_slice() {
        [from, to] => Some((from.as_u64()?..=to.as_u64()?).contains(&ROCE_PORT)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
