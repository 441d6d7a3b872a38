// SPDX-License-Identifier: GPL-2.0

use super::*;
use serde_json::json;

fn only(expr: Value) -> Rule {
    rule(&json!({ "expr": expr })).unwrap()
}

fn matched(left: Value, op: &str, right: Value) -> Option<bool> {
    matches_roce(&json!({ "op": op, "left": left, "right": right }))
}

fn dport(op: &str, right: Value) -> Option<bool> {
    let left = json!({ "payload": { "protocol": "udp", "field": "dport" } });
    matched(left, op, right)
}

#[test]
fn ports_are_told() {
    for (right, matches_roce) in [
        (json!(4791), Some(true)),
        (json!(4790), Some(false)),
        (json!({ "set": [22, 4791] }), Some(true)),
        (
            json!({ "set": [22, { "range": [4000, 5000] }] }),
            Some(true),
        ),
        (json!({ "range": [4000, 5000] }), Some(true)),
        (json!({ "range": [4792, 5000] }), Some(false)),
        (
            json!({ "elem": { "val": 4791, "comment": "RoCE" } }),
            Some(true),
        ),
        (
            json!({ "set": [22, { "elem": { "val": 4791 } }] }),
            Some(true),
        ),
        (
            json!({ "set": [{ "elem": { "val": 22, "timeout": 9 } }] }),
            Some(false),
        ),
        // Elements of named sets are not read.
        (json!("@allowed"), None),
        (json!({ "set": ["@allowed", 22] }), None),
        (json!({ "set": ["@allowed", 4791] }), Some(true)),
        (json!({ "elem": { "val": "@allowed" } }), None),
        (json!({ "range": ["@from", 5000] }), None),
        (json!({ "prefix": { "addr": 4791, "len": 3 } }), None),
    ] {
        assert_eq!(dport("==", right.clone()), matches_roce, "{right}");
        let others = matches_roce.map(|matches_roce| !matches_roce);
        assert_eq!(dport("!=", right.clone()), others, "{right}");
    }
}

#[test]
fn named_sets_are_not_looked_up() {
    let l4proto = json!({ "meta": { "key": "l4proto" } });
    assert_eq!(matched(l4proto.clone(), "==", json!("@protos")), None);
    let some = json!({ "set": ["tcp", "@protos"] });
    assert_eq!(matched(l4proto, "==", some), None);
    let state = json!({ "ct": { "key": "state" } });
    assert_eq!(matched(state, "in", json!("@states")), None);
    let iifname = json!({ "match": { "op": "==", "left": { "meta": { "key": "iifname" } },
                                     "right": "@inner" } });
    let found = only(json!([iifname, { "drop": null }]));
    assert_eq!((found.interface, found.effect), (None, Effect::Unknown));
}

#[test]
fn other_packets_are_not_roce() {
    let tcp = json!({ "payload": { "protocol": "tcp", "field": "dport" } });
    assert_eq!(matched(tcp, "==", json!(22)), Some(false));
    let l4proto = json!({ "meta": { "key": "l4proto" } });
    assert_eq!(matched(l4proto.clone(), "==", json!("icmp")), Some(false));
    assert_eq!(
        matched(l4proto, "==", json!({ "set": ["tcp", "udp"] })),
        Some(true)
    );
    let state = || json!({ "ct": { "key": "state" } });
    let answer = json!(["established", "related"]);
    assert_eq!(matched(state(), "in", answer), Some(false));
    assert_eq!(matched(state(), "in", json!(["new"])), None);
    let source = json!({ "payload": { "protocol": "ip", "field": "saddr" } });
    assert_eq!(matched(source, "==", json!("192.0.2.1")), None);
}

#[test]
fn a_rule_may_be_about_an_interface() {
    let name = json!({ "match": { "op": "==", "left": { "meta": { "key": "iifname" } },
                                  "right": "lo" } });
    let found = only(json!([name, { "counter": null }, { "accept": null }]));
    assert_eq!(found.interface.as_deref(), Some("lo"));
    assert_eq!(found.effect, Effect::Accept);
    // Patterns and other interfaces are not compared.
    let left = json!({ "meta": { "key": "iifname" } });
    assert_eq!(matched(left.clone(), "==", json!("eth*")), None);
    assert_eq!(matched(left, "!=", json!("lo")), None);
}

#[test]
fn all_conditions_must_match() {
    let other = json!({ "match": { "op": "==", "right": "tcp",
        "left": { "meta": { "key": "l4proto" } } } });
    let unknown = json!({ "limit": { "rate": 10 } });
    let drop = json!({ "drop": null });
    for (expr, effect) in [
        (json!([drop]), Effect::Drop),
        (json!([other, drop]), Effect::None),
        (json!([unknown, drop]), Effect::Unknown),
        (json!([unknown, other, drop]), Effect::None),
        (json!([other, unknown, drop]), Effect::None),
        (json!([unknown]), Effect::None),
        (json!([{ "reject": {} }]), Effect::Drop),
        (json!([{ "jump": { "target": "x" } }]), Effect::Unknown),
        (json!([other, { "jump": { "target": "x" } }]), Effect::None),
    ] {
        assert_eq!(only(expr.clone()).effect, effect, "{expr}");
    }
}

#[test]
fn a_ruleset_is_read() {
    let port = json!({ "match": { "op": "==", "right": ROCE_PORT,
        "left": { "payload": { "protocol": "udp", "field": "dport" } } } });
    let rule_in = |chain: &str| {
        json!({ "rule": { "family": "inet", "table": "filter",
        "chain": chain, "expr": [port, { "drop": null }] } })
    };
    let chain = |name: &str, hook: &str| {
        json!({ "chain": { "family": "inet",
        "table": "filter", "name": name, "hook": hook, "policy": "drop" } })
    };
    let list = json!({ "nftables": [
        { "metainfo": { "json_schema_version": 1 } },
        { "table": { "family": "inet", "name": "filter", "handle": 1 } },
        chain("input", "input"), chain("forward", "forward"),
        rule_in("input"), rule_in("forward"),
    ] });
    let chains = read(&list).unwrap();
    assert_eq!(chains.len(), 1, "{chains:?}");
    assert_eq!(chains[0].path, "inet filter input");
    assert!(chains[0].drops);
    assert_eq!(chains[0].rules.len(), 1);
    assert_eq!(chains[0].rules[0].effect, Effect::Drop);
}

#[test]
fn chains_of_interfaces_are_read() {
    let chain = |family: &str, name: &str, hook: &str, dev: Value| {
        json!({ "chain": { "family": family, "table": "t", "name": name, "type": "filter",
        "hook": hook, "prio": 0, "policy": "accept", "dev": dev } })
    };
    let list = json!({ "nftables": [
        { "table": { "family": "netdev", "name": "t", "handle": 1 } },
        chain("netdev", "in", "ingress", json!("eth0")),
        chain("netdev", "out", "egress", json!(["eth0", "eth1*"])),
        chain("inet", "in", "ingress", json!("lo")),
        chain("netdev", "none", "ingress", Value::Null),
        chain("bridge", "in", "input", Value::Null),
        { "rule": { "family": "netdev", "table": "t", "chain": "in", "expr": [{ "drop": null }] } },
    ] });
    let chains = read(&list).unwrap();
    let found: Vec<_> = chains
        .iter()
        .map(|each| (&*each.path, each.devices.clone().unwrap(), each.rules.len()))
        .collect();
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(
        found,
        [
            ("netdev t in", names(&["eth0"]), 1),
            ("netdev t out", names(&["eth0", "eth1*"]), 0),
            ("inet t in", names(&["lo"]), 0),
            ("netdev t none", names(&[]), 0),
        ]
    );
}

#[test]
fn dormant_tables_do_not_count() {
    for (flags, count) in [
        (json!("dormant"), 1),
        (json!(["owner", "dormant"]), 1),
        (json!("owner"), 2),
        (Value::Null, 2),
    ] {
        let chain = |family: &str| {
            json!({ "chain": { "family": family, "table": "t", "name": "in", "hook": "input",
            "policy": "drop" } })
        };
        let list = json!({ "nftables": [
            { "table": { "family": "inet", "name": "t", "flags": flags } },
            { "table": { "family": "ip", "name": "t" } },
            chain("inet"), chain("ip"),
        ] });
        assert_eq!(read(&list).unwrap().len(), count, "{flags}");
    }
}

#[test]
fn a_recorded_ruleset_is_read() {
    let ruleset = serde_json::from_str(include_str!("../recorded/nft-ruleset.json")).unwrap();
    let chains = read(&ruleset).unwrap();
    let paths: Vec<&str> = chains.iter().map(|chain| chain.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "inet filter input",
            "inet filter output",
            "ip nat postrouting"
        ]
    );
    let effects = |chain: &Chain| -> Vec<Effect> {
        let rules = chain.rules.iter();
        rules.map(|rule| rule.effect).collect()
    };
    assert!(chains[0].drops && !chains[1].drops);
    assert_eq!(
        effects(&chains[0]),
        [
            // Conntrack state, interface, two rules about other protocols.
            Effect::None,
            Effect::Accept,
            Effect::None,
            Effect::None,
            // A source address, a named set, a range, a limit without a verdict.
            Effect::Unknown,
            Effect::Unknown,
            Effect::Accept,
            Effect::None,
        ]
    );
    assert_eq!(chains[0].rules[1].interface.as_deref(), Some("lo"));
    assert_eq!(effects(&chains[1]), [Effect::Unknown]);
}

#[test]
fn what_is_no_list_is_refused() {
    for ruleset in [
        json!(null),
        json!({}),
        json!([]),
        json!({ "nftables": 1 }),
        json!({ "nftables": [{ "rule": {} }] }),
        json!({ "nftables": [{ "rule": { "family": "ip", "table": "a", "chain": "b" } }] }),
        json!({ "nftables": [{ "rule": { "family": 1, "table": {}, "chain": [], "expr": [] } }] }),
    ] {
        assert_eq!(read(&ruleset), None, "{ruleset}");
    }
    // Items other than chains and rules are skipped.
    let others = json!({ "nftables": [1, null, { "chain": 7 }, { "chain": { "family": "ip" } }] });
    assert_eq!(read(&others), Some(Vec::new()));
}
