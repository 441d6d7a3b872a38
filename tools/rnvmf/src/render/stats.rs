// SPDX-License-Identifier: GPL-2.0

//! `rnvmf stats`: counters, rates and latencies.

use super::text::{columns, size, table};
use crate::model::stats::{Bucket, Counters, CtrlStats, Histogram};
use crate::output::json_member;
use std::time::Duration;

/// Title of a column, whether it has bytes, and its counter.
type Column = (&'static str, bool, fn(&Counters) -> u64);

/// The columns with counters.
const COLUMNS: [Column; 15] = [
    ("READS", false, |of| of.reads),
    ("WRITES", false, |of| of.writes),
    ("FLUSHES", false, |of| of.flushes),
    ("OTHERS", false, |of| of.others),
    ("READ", true, |of| of.read_bytes),
    ("WRITTEN", true, |of| of.written_bytes),
    ("ERRORS", false, |of| of.errors),
    ("RETRIES", false, |of| of.retries),
    ("IN-CAPSULE", false, |of| of.in_capsule),
    ("REGISTERED", false, |of| of.registrations),
    ("REMOTE-INV", false, |of| of.remote_invalidations),
    ("LOCAL-INV", false, |of| of.local_invalidations),
    ("DOORBELLS", false, |of| of.doorbells),
    ("REQUESTS", false, |of| of.work_requests),
    ("COMPLETIONS", false, |of| of.completions),
];

/// Length of a histogram's bar for all commands.
const BAR: f64 = 40.0;

/// What has a row in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Each controller.
    Controllers,
    /// Each queue.
    Queues,
}

/// What the numbers of the table are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values {
    /// Counters.
    Totals,
    /// Rates per second; the counters are differences over this time.
    RatesOver(Duration),
}

/// Returns the table, or nothing without rows.
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
    let mut head = String::from(if by == Rows::Queues {
        "DEVICE QUEUE"
    } else {
        "DEVICE"
    });
    for (title, ..) in COLUMNS {
        head += &match values {
            Values::Totals => format!(" {title}"),
            Values::RatesOver(_) => format!(" {title}/S"),
        };
    }
    table(&(head + " PER-POLL"), rows.into_iter())
}

fn cells(device: &str, qid: Option<u16>, counters: &Counters, values: Values) -> Vec<String> {
    let mut cells = vec![device.to_owned()];
    cells.extend(qid.map(|qid| qid.to_string()));
    for (_, is_bytes, counter) in COLUMNS {
        let number = match values {
            Values::Totals => counter(counters),
            Values::RatesOver(time) => {
                (counter(counters) as f64 / time.as_secs_f64()).round() as u64
            }
        };
        cells.push(if is_bytes {
            size(number)
        } else {
            number.to_string()
        });
    }
    cells.push(match counters.polls {
        0 => "-".to_owned(),
        polls => format!("{:.1}", counters.completions as f64 / polls as f64),
    });
    cells
}

/// Returns the histograms of the latencies of each controller; nothing if none was measured.
pub(crate) fn histograms(stats: &[CtrlStats]) -> String {
    let mut text = String::new();
    for CtrlStats {
        device, latency, ..
    } in stats
    {
        for (what, times) in [
            ("reads", &latency.read_latency),
            ("writes", &latency.write_latency),
        ] {
            if times.total() != 0 {
                text += &histogram(device, what, times);
            }
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
    let row = |each: &Bucket| {
        let share = each.count as f64 / times.total() as f64;
        let bar = "#".repeat((share * BAR).round() as usize);
        vec![format!("  {}", below(*each)), each.count.to_string(), bar]
    };
    head + &columns(&times.0.iter().map(row).collect::<Vec<_>>())
}

fn below(bucket: Bucket) -> String {
    match bucket.below {
        Some(ns) => format!("< {}", time(ns)),
        None => "longer".to_owned(),
    }
}

/// Returns a time, rounded to four digits.
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

/// Returns the JSON document, which has the counters also of each queue.
pub(crate) fn json(controllers: &[CtrlStats]) -> String {
    json_member("controllers", &controllers)
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
