//! What was measured, as a table and as JSON.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::load::Round;

/// One case. CPU is per request in milliseconds, `ratio` the peer's over ours; latencies are ours.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Record {
    case: String,
    peer: &'static str,
    ours_rps: f64,
    peer_rps: f64,
    ours_cpu_ms: f64,
    peer_cpu_ms: f64,
    ratio: f64,
    p50_ms: f64,
    p99_ms: f64,
    rss_mb: f64,
}

impl Record {
    /// Our server, whose memory is `rss_mb` afterwards, beside the CRD.
    pub(crate) fn compare(case: String, ours: &Round, crd: &Round, rss_mb: f64) -> Self {
        let (ours_cpu_ms, peer_cpu_ms) = (ours.cpu_ms(), crd.cpu_ms());
        Self {
            case,
            peer: "crd",
            ours_rps: ours.rate(),
            peer_rps: crd.rate(),
            ours_cpu_ms,
            peer_cpu_ms,
            ratio: if ours_cpu_ms > 0.0 { peer_cpu_ms / ours_cpu_ms } else { 0.0 },
            p50_ms: ours.percentile_ms(0.5),
            p99_ms: ours.percentile_ms(0.99),
            rss_mb,
        }
    }

    /// Our server, where there is nothing to compare it with.
    pub(crate) fn alone(case: &str, ours: &Round, rss_mb: f64) -> Self {
        let record = Self::compare(case.to_owned(), ours, &Round::default(), rss_mb);
        Self { peer: "none", ..record }
    }

    /// Memory, which has no peer and no requests.
    pub(crate) fn memory(case: &str, rss_mb: f64) -> Self {
        Self::alone(case, &Round::default(), rss_mb)
    }
}

/// A table for people; `-` where there is no such number.
pub(crate) fn table(records: &[Record]) -> String {
    let mut text = format!(
        "{:<46} {:>9} {:>9} {:>11} {:>11} {:>7} {:>8} {:>8} {:>7}\n",
        "case", "ours/s", "peer/s", "ours cpu ms", "peer cpu ms", "ratio", "p50 ms", "p99 ms", "rss MB"
    );
    for record in records {
        let number = |number: f64, decimals: usize, unit: &str| {
            if number > 0.0 { format!("{number:.decimals$}{unit}") } else { "-".to_owned() }
        };
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "{:<46} {:>9} {:>9} {:>11} {:>11} {:>7} {:>8} {:>8} {:>7.1}",
            record.case,
            number(record.ours_rps, 0, ""),
            number(record.peer_rps, 0, ""),
            number(record.ours_cpu_ms, 4, ""),
            number(record.peer_cpu_ms, 4, ""),
            number(record.ratio, 1, "x"),
            number(record.p50_ms, 2, ""),
            number(record.p99_ms, 2, ""),
            record.rss_mb
        );
    }
    text
}

/// How much more an update costs where there are more objects: a line for each pair of cases `…-among-N-…` that
/// differ in the number only, the first of them being the one among fewer.
pub(crate) fn growth(records: &[Record]) -> String {
    let parts = |record: &Record| {
        let (before, rest) = record.case.split_once("-among-")?;
        let (count, after) = rest.split_once('-')?;
        Some((count.to_owned(), format!("{before}-{after}")))
    };
    let mut text = String::new();
    for (index, few) in records.iter().enumerate() {
        for many in records.iter().skip(index + 1) {
            let (Some((low, case)), Some((high, other))) = (parts(few), parts(many)) else { continue };
            if case != other || few.ours_cpu_ms <= 0.0 || few.peer_cpu_ms <= 0.0 {
                continue;
            }
            let (ours, peer) = (many.ours_cpu_ms / few.ours_cpu_ms, many.peer_cpu_ms / few.peer_cpu_ms);
            let _ = writeln!(
                text,
                "{case}: among {high} it takes {:.4} ms, among {low} {:.4} ms: {ours:.2}x (the peer {peer:.2}x)",
                many.ours_cpu_ms, few.ours_cpu_ms
            );
        }
    }
    text
}

/// Writes `target/bench/latest.json` and says where it is.
pub(crate) fn write(records: &[Record]) -> anyhow::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join("bench");
    fs::create_dir_all(&folder)?;
    let file = folder.join("latest.json");
    fs::write(&file, serde_json::to_vec_pretty(records)?)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(cpu: u64) -> Round {
        let time = std::time::Duration::from_millis;
        Round { latencies: vec![time(1)], elapsed: time(1), cpu: time(cpu) }
    }

    #[test]
    fn a_table_has_dashes_where_there_is_nothing() {
        let records =
            [Record::alone("users-self-direct", &round(2), 12.5), Record::memory("memory-at-rest", 9.0)];
        let table = table(&records);
        let lines: Vec<Vec<&str>> = table.lines().skip(1).map(|l| l.split_whitespace().collect()).collect();
        let alone = ["users-self-direct", "1000", "-", "2.0000", "-", "-", "1.00", "1.00", "12.5"];
        assert_eq!(lines, [alone.as_slice(), &["memory-at-rest", "-", "-", "-", "-", "-", "-", "-", "9.0"]]);
    }

    #[test]
    fn growth_pairs_what_differs_in_the_number_only() {
        let record =
            |case: &str, ours, peer| Record::compare(case.to_owned(), &round(ours), &round(peer), 0.0);
        let records = [
            record("a-among-10-direct", 2, 10),
            record("a-among-10-aggregated", 4, 10),
            record("a-among-10000-direct", 3, 20),
            record("create", 1, 1),
        ];
        let expected =
            "a-direct: among 10000 it takes 3.0000 ms, among 10 2.0000 ms: 1.50x (the peer 2.00x)\n";
        assert_eq!(growth(&records), expected);
    }

    #[test]
    fn json_has_the_agreed_fields() -> anyhow::Result<()> {
        let record = serde_json::to_value(Record::memory("memory-at-rest", 12.5))?;
        let fields: Vec<_> = record.as_object().into_iter().flat_map(|map| map.keys()).cloned().collect();
        let agreed = [
            "case",
            "ours_cpu_ms",
            "ours_rps",
            "p50_ms",
            "p99_ms",
            "peer",
            "peer_cpu_ms",
            "peer_rps",
            "ratio",
            "rss_mb",
        ];
        assert_eq!(fields, agreed);
        Ok(())
    }
}
