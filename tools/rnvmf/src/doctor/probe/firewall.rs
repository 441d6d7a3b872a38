// SPDX-License-Identifier: GPL-2.0

//! The rules of nftables, reduced to their effect on RoCE packets.

use super::module;
use super::tool::NFT;
use crate::doctor::snapshot::{Chain, Effect, Probed, Rule, ROCE_PORT};
use crate::error::io_message;
use serde_json::Value;
use std::io::ErrorKind;

/// Hooks that packets to and from this host traverse.
const HOOKS: [&str; 4] = ["prerouting", "input", "output", "postrouting"];

/// Hooks of named interfaces.
const DEVICE_HOOKS: [&str; 2] = ["ingress", "egress"];

/// Protocols that do not carry RoCE.
const OTHER_PROTOCOLS: [&str; 6] = ["tcp", "icmp", "icmpv6", "sctp", "igmp", "dccp"];

/// Returns the base chains that packets to and from this host traverse.
pub(super) fn chains() -> Probed<Vec<Chain>> {
    // nft would load the module.
    if !module::is_present("nf_tables") {
        return Ok(Vec::new());
    }
    let cannot = |why| format!("the rules cannot be listed: {why}");
    let ruleset = NFT.run(&["-j", "list", "ruleset"]).map_err(cannot)?;
    read(&ruleset).ok_or_else(|| cannot("nft: unexpected output".into()))
}

/// Whether iptables-legacy has tables.
pub(super) fn legacy() -> Probed<bool> {
    let has_names = |file: &str| match std::fs::read(file) {
        Ok(names) => Ok(!names.is_empty()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("{file}: {}", io_message(&error))),
    };
    Ok(has_names("/proc/net/ip_tables_names")? || has_names("/proc/net/ip6_tables_names")?)
}

/// Reads the output of `nft -j list ruleset`; `None` if it is malformed. The format is that of
/// libnftables-json(5). Indexing a [`Value`] by the name of a member that is absent gives null.
fn read(ruleset: &Value) -> Option<Vec<Chain>> {
    let list = ruleset["nftables"].as_array()?;
    let dormant: Vec<_> = list
        .iter()
        .map(|each| &each["table"])
        .filter(|table| has_flag(table, "dormant"))
        .filter_map(|table| Some([table["family"].as_str()?, table["name"].as_str()?]))
        .collect();
    let mut chains: Vec<Chain> = list
        .iter()
        .map(|each| &each["chain"])
        .filter(|chain| {
            let table = ["family", "table"].map(|key| chain[key].as_str());
            !dormant.iter().any(|each| each.map(Some) == table)
        })
        .filter_map(chain)
        .collect();
    for from in list
        .iter()
        .map(|each| &each["rule"])
        .filter(|rule| !rule.is_null())
    {
        let (path, rule) = (path(from, "chain")?, rule(from)?);
        // The rules of other chains count only if a rule of these chains jumps there.
        if let Some(chain) = chains.iter_mut().find(|chain| chain.path == path) {
            chain.rules.push(rule);
        }
    }
    Some(chains)
}

/// Whether a table has a flag. One flag is a string, several are a list.
fn has_flag(table: &Value, flag: &str) -> bool {
    strings(&table["flags"]).contains(&flag)
}

/// Returns a string, or the strings of a list.
fn strings(value: &Value) -> Vec<&str> {
    let list = value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice);
    list.iter().filter_map(Value::as_str).collect()
}

/// Reads a chain; `None` if packets to and from this host do not traverse it.
fn chain(from: &Value) -> Option<Chain> {
    let family = from["family"].as_str()?;
    let hook = from["hook"].as_str()?;
    let devices = match family {
        "ip" | "ip6" | "inet" if HOOKS.contains(&hook) => None,
        "inet" | "netdev" if DEVICE_HOOKS.contains(&hook) => {
            let names = strings(&from["dev"]).into_iter();
            Some(names.map(str::to_owned).collect())
        }
        _ => return None,
    };
    Some(Chain {
        path: path(from, "name")?,
        family: family.to_owned(),
        devices,
        drops: from["policy"] == "drop",
        rules: Vec::new(),
    })
}

/// Returns the path of the chain that the member `chain` names.
fn path(from: &Value, chain: &str) -> Option<String> {
    let names = ["family", "table", chain].map(|key| from[key].as_str());
    Some(names.into_iter().collect::<Option<Vec<_>>>()?.join(" "))
}

fn rule(from: &Value) -> Option<Rule> {
    let (mut interface, mut effect) = (None, Effect::None);
    // Whether the statements match RoCE packets; `None` if that is unknown.
    let mut conditions = Vec::new();
    for statement in from["expr"].as_array()? {
        let (key, value) = statement.as_object()?.iter().next()?;
        match key.as_str() {
            "match" => match interface_name(value) {
                Some(name) => interface = Some(name.to_owned()),
                None => conditions.push(matches_roce(value)),
            },
            "counter" | "log" | "comment" => (),
            "accept" => effect = Effect::Accept,
            "drop" | "reject" => effect = Effect::Drop,
            "jump" | "goto" | "queue" | "return" | "vmap" => effect = Effect::Unknown,
            // A limit, or a statement that this program does not know.
            _ => conditions.push(None),
        }
    }
    if conditions.contains(&Some(false)) {
        effect = Effect::None;
    } else if conditions.contains(&None) && effect != Effect::None {
        effect = Effect::Unknown;
    }
    Some(Rule { interface, effect })
}

/// Returns the interface that a match names.
fn interface_name(from: &Value) -> Option<&str> {
    let key = from["left"]["meta"]["key"].as_str()?;
    let is_name = ["iif", "oif", "iifname", "oifname"].contains(&key) && from["op"] == "==";
    literal(&from["right"]).filter(|name| is_name && !name.ends_with('*'))
}

/// Whether a match is true of RoCE packets; `None` if that is unknown.
fn matches_roce(from: &Value) -> Option<bool> {
    let (left, right) = (&from["left"], &from["right"]);
    match from["op"].as_str()? {
        "==" | "in" => value_matches(left, right),
        "!=" if left["ct"]["key"] != "state" => value_matches(left, right).map(|equal| !equal),
        _ => None,
    }
}

/// Whether `left` of a RoCE packet equals `right`; `None` if that is unknown.
fn value_matches(left: &Value, right: &Value) -> Option<bool> {
    let payload = &left["payload"];
    match (payload["protocol"].as_str(), payload["field"].as_str()) {
        _ if left["ct"]["key"] == "state" => any_matches(right, is_request_state),
        _ if left["meta"]["key"] == "l4proto" => any_matches(right, is_udp),
        (Some("udp" | "th"), Some("dport")) => any_matches(right, covers_port),
        (Some(other), _) if OTHER_PROTOCOLS.contains(&other) => Some(false),
        (Some("ip" | "ip6"), Some("protocol" | "nexthdr")) => any_matches(right, is_udp),
        _ => None,
    }
}

/// Whether a value, or an element of a set or list, matches.
fn any_matches(value: &Value, matches: fn(&Value) -> Option<bool>) -> Option<bool> {
    let list = value["set"].as_array().or(value.as_array());
    let elements = list.map_or(std::slice::from_ref(value), Vec::as_slice);
    // An element may have a counter, a comment or a timeout beside its value.
    let values = elements
        .iter()
        .map(|each| each["elem"].get("val").unwrap_or(each));
    let results: Vec<_> = values.map(matches).collect();
    if results.contains(&Some(true)) {
        Some(true)
    } else if results.contains(&None) {
        None
    } else {
        Some(false)
    }
}

/// Returns a string that is not the name of a set.
fn literal(value: &Value) -> Option<&str> {
    value.as_str().filter(|name| !name.starts_with('@'))
}

/// Whether RoCE packets have a conntrack state. Packets of both directions have the destination
/// port 4791 and another source port, so none is a reply. Whether they are new or untracked is
/// unknown.
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
    let [from, to] = value["range"].as_array()?.as_slice() else {
        return None;
    };
    Some((from.as_u64()?..=to.as_u64()?).contains(&ROCE_PORT))
}

#[cfg(test)]
mod tests;
