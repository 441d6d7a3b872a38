// SPDX-License-Identifier: GPL-2.0

//! `rnvmf stats`: what controllers have done.

use super::text::{size, table};
use crate::model::options::Switch;
use crate::model::stats::{Bucket, Counters, CtrlStats, Histogram};
use crate::output::{json_line, Format};
use serde::Serialize;
use std::time::Duration;

/// The columns that are numbers, but for those of bytes.
const COLUMNS: [&str; 16] = [
    "READS",
    "WRITES",
    "FLUSHES",
    "OTHERS",
    "READ",
    "WRITTEN",
    "ERRORS",
    "RETRIES",
    "IN-CAPSULE",
    "REGISTERED",
    "REMOTE-INV",
    "LOCAL-INV",
    "DOORBELLS",
    "REQUESTS",
    "COMPLETIONS",
    "PER-POLL",
];

/// The length of the bar of all commands.
const BAR: f64 = 40.0;

/// What the rows of the table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// A controller each.
    Controllers,
    /// A queue each.
    Queues,
}

/// What the numbers of the table are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values {
    /// The counters.
    Totals,
    /// Rates per second, of counters that grew over this time.
    RatesOver(Duration),
}

/// Returns the table; nothing if it has no rows.
pub(crate) fn normal(stats: &[CtrlStats], by: Rows, values: Values) -> String {
    let mut rows = Vec::new();
    for each in stats {
        let row = |qid, counters| cells(&each.device, qid, counters, values);
        match by {
            Rows::Controllers => rows.push(row(None, &each.counters)),
            Rows::Queues => {
                let queues = each.queues.iter();
                rows.extend(queues.map(|queue| row(Some(queue.qid), &queue.counters)));
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    rows.insert(0, head(by, values));
    table(&rows)
}

fn head(by: Rows, values: Values) -> Vec<String> {
    let mut cells = vec!["DEVICE".to_owned()];
    cells.extend((by == Rows::Queues).then(|| "QUEUE".to_owned()));
    let title = |name: &&str| match (values, *name) {
        (Values::RatesOver(_), name) if name != "PER-POLL" => format!("{name}/S"),
        (_, name) => name.to_owned(),
    };
    cells.extend(COLUMNS.iter().map(title));
    cells
}

fn cells(device: &str, qid: Option<u16>, counters: &Counters, values: Values) -> Vec<String> {
    let number = |count| value(count, values).to_string();
    let bytes = |count| size(value(count, values));
    let mut cells = vec![device.to_owned()];
    cells.extend(qid.map(|qid| qid.to_string()));
    cells.extend([
        number(counters.reads),
        number(counters.writes),
        number(counters.flushes),
        number(counters.others),
        bytes(counters.read_bytes),
        bytes(counters.written_bytes),
        number(counters.errors),
        number(counters.retries),
        number(counters.in_capsule),
        number(counters.registrations),
        number(counters.remote_invalidations),
        number(counters.local_invalidations),
        number(counters.doorbells),
        number(counters.work_requests),
        number(counters.completions),
        match counters.polls {
            0 => "-".to_owned(),
            polls => format!("{:.1}", counters.completions as f64 / polls as f64),
        },
    ]);
    cells
}

fn value(count: u64, values: Values) -> u64 {
    match values {
        Values::Totals => count,
        Values::RatesOver(time) => (count as f64 / time.as_secs_f64()).round() as u64,
    }
}

/// How long commands took, of all queues of each controller; nothing where nothing was measured.
pub(crate) fn histograms(stats: &[CtrlStats]) -> String {
    let mut text = String::new();
    for each in stats {
        let times = [
            ("reads", &each.latency.read_latency),
            ("writes", &each.latency.write_latency),
        ];
        for (what, times) in times.iter().filter(|(_, times)| times.total() != 0) {
            text.push_str(&histogram(&each.device, what, times));
        }
    }
    text
}

fn histogram(device: &str, what: &str, times: &Histogram) -> String {
    let limit = |thousandths| times.percentile(thousandths).map_or("-".into(), below);
    let head = format!(
        "{device} {what}: {}, p50 {}, p99 {}, p99.9 {}, max {}\n",
        times.total(),
        limit(500),
        limit(990),
        limit(999),
        limit(1000)
    );
    let rows: Vec<Vec<String>> = (times.0.iter())
        .map(|each| {
            let share = each.count as f64 / times.total() as f64;
            let bar = "#".repeat((share * BAR).round() as usize);
            vec![format!("  {}", below(*each)), each.count.to_string(), bar]
        })
        .collect();
    head + &table(&rows)
}

fn below(bucket: Bucket) -> String {
    match bucket.below {
        Some(ns) => format!("< {}", time(ns)),
        None => "longer".to_owned(),
    }
}

/// A time, rounded to four digits.
fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    match value {
        v if v < 10.0 => format!("{v:.3} {unit}"),
        v if v < 100.0 => format!("{v:.2} {unit}"),
        v => format!("{v:.1} {unit}"),
    }
}

#[derive(Serialize)]
struct SetDocument<'a> {
    device: &'a str,
}

/// Returns the line that reports the new setting.
pub(crate) fn latency_switched(device: &str, switch: Switch, format: Format) -> String {
    match (format, switch) {
        (Format::Json, _) => json_line(&SetDocument { device }) + "\n",
        (Format::Normal, Switch::On) => format!("{device}: latency on\n"),
        (Format::Normal, Switch::Off) => format!("{device}: latency off\n"),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    controllers: &'a [CtrlStats],
}

/// One line, with each queue.
pub(crate) fn json(controllers: &[CtrlStats]) -> String {
    json_line(&Document { controllers }) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::controller::tests::live;
    use crate::model::stats::tests::queue;

    fn stats() -> Vec<CtrlStats> {
        vec![CtrlStats::of(&live(), &[queue(0), queue(1)])]
    }

    #[test]
    fn a_row_a_controller_or_queue() {
        assert_eq!(
            normal(&stats(), Rows::Controllers, Values::Totals),
            include_str!("golden/stats.txt")
        );
        assert_eq!(
            normal(&stats(), Rows::Queues, Values::Totals),
            include_str!("golden/stats-queues.txt")
        );
        assert_eq!(normal(&[], Rows::Queues, Values::Totals), "");
    }

    #[test]
    fn rates_are_of_a_second() {
        assert_eq!(
            normal(
                &stats(),
                Rows::Queues,
                Values::RatesOver(Duration::from_millis(500))
            ),
            include_str!("golden/stats-rates.txt")
        );
    }

    #[test]
    fn times_are_lines() {
        assert_eq!(
            histograms(&stats()),
            include_str!("golden/stats-histogram.txt")
        );
        assert_eq!(histograms(&[]), "");
    }

    #[test]
    fn times_have_four_digits() {
        assert_eq!(time(1024), "1.024 us");
        assert_eq!(time(98_304), "98.30 us");
        assert_eq!(time(786_432), "786.4 us");
        assert_eq!(time(1 << 20), "1.049 ms");
        assert_eq!(time(1 << 35), "34.36 s");
    }

    #[test]
    fn json_is_stable() {
        assert_eq!(json(&stats()), include_str!("golden/stats.json"));
    }

    #[test]
    fn every_member_is_documented() {
        let guide = include_str!("../../../../Documentation/reference.rst");
        let text = json(&stats());
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let controller = document["controllers"][0].as_object().unwrap();
        let queue = controller["queues"][0].as_object().unwrap();
        for name in controller.keys().chain(queue.keys()) {
            assert!(guide.contains(&format!("``{name}``")), "{name}");
        }
    }
}
