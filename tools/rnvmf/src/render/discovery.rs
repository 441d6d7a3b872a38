// SPDX-License-Identifier: GPL-2.0

//! `rnvmf discover`: the entries of a log.

use super::text::columns;
use crate::model::discovery::{DiscoveryLog, EFlags, LogEntry, TrType};
use crate::output::json_line;

/// Returns a block of lines for each entry.
pub(crate) fn normal(log: &DiscoveryLog) -> String {
    let (found, all) = (log.entries.len(), log.numrec);
    let records = if all == 1 { "record" } else { "records" };
    let mut text = format!("{all} {records}, generation {}\n", log.genctr);
    for (number, entry) in log.entries.iter().enumerate() {
        text += &format!("\nrecord {number}\n{}", block(entry));
    }
    if found as u64 != all {
        text += &format!("\nonly the first {found} of {all} were read\n");
    }
    text
}

fn block(entry: &LogEntry) -> String {
    let transport = match (entry.rdma_prtype, entry.trtype) {
        (Some(provider), _) => format!("rdma, {provider}"),
        (None, TrType::RDMA) => "rdma".into(),
        (None, other) => format!("{other}, which rnvmf cannot connect"),
    };
    let mut rows = vec![
        ("subsystem", entry.subnqn.clone()),
        ("type", entry.subtype.to_string()),
        ("address", entry.endpoint().to_string()),
        ("transport", transport),
    ];
    if entry.treq.0 & 3 != 0 {
        rows.push(("requirement", format!("secure channel {}", entry.treq)));
    }
    if entry.eflags != EFlags(0) {
        rows.push(("flags", entry.eflags.to_string()));
    }
    let rows = rows
        .into_iter()
        .map(|(name, value)| vec![format!("  {name}"), value]);
    columns(&rows.collect::<Vec<_>>())
}

/// Returns the JSON document.
pub(crate) fn json(log: &DiscoveryLog) -> String {
    json_line(log) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::discovery::tests::{log, subsystem};
    use crate::model::discovery::{SubType, Treq};

    fn three() -> DiscoveryLog {
        let tcp = LogEntry {
            trtype: TrType(3),
            treq: Treq(1),
            rdma_prtype: None,
            rdma_qptype: None,
            rdma_cms: None,
            rdma_pkey: None,
            ..subsystem("nqn.y", "10.0.0.8")
        };
        let referral = LogEntry {
            subtype: SubType::REFERRAL,
            eflags: EFlags(1),
            ..subsystem("nqn.2014-08.org.nvmexpress.discovery", "2001:db8::9")
        };
        log(vec![subsystem("nqn.x", "10.0.0.9"), tcp, referral])
    }

    #[test]
    fn a_block_for_each_entry() {
        assert_eq!(normal(&three()), include_str!("golden/discover.txt"));
    }

    #[test]
    fn json_is_stable() {
        assert_eq!(json(&three()), include_str!("golden/discover.json"));
    }

    #[test]
    fn what_was_not_read_is_told() {
        let cut = DiscoveryLog {
            numrec: u64::MAX,
            ..three()
        };
        let end = "\nonly the first 3 of 18446744073709551615 were read\n";
        assert!(normal(&cut).ends_with(end));
        assert_eq!(normal(&log(vec![])), "0 records, generation 5\n");
    }
}
