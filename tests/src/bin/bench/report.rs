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

    /// Memory, which has no peer.
    pub(crate) fn memory(case: &str, rss_mb: f64) -> Self {
        Self {
            case: case.to_owned(),
            peer: "none",
            ours_rps: 0.0,
            peer_rps: 0.0,
            ours_cpu_ms: 0.0,
            peer_cpu_ms: 0.0,
            ratio: 0.0,
            p50_ms: 0.0,
            p99_ms: 0.0,
            rss_mb,
        }
    }
}

/// A table for people.
pub(crate) fn table(records: &[Record]) -> String {
    let mut text = format!(
        "{:<34} {:>9} {:>9} {:>11} {:>11} {:>7} {:>8} {:>8} {:>7}\n",
        "case", "ours/s", "peer/s", "ours cpu ms", "peer cpu ms", "ratio", "p50 ms", "p99 ms", "rss MB"
    );
    for record in records {
        let line = if record.peer == "none" {
            format!("{:<34} {:>76.1}", record.case, record.rss_mb)
        } else {
            format!(
                "{:<34} {:>9.0} {:>9.0} {:>11.4} {:>11.4} {:>6.1}x {:>8.2} {:>8.2} {:>7.1}",
                record.case,
                record.ours_rps,
                record.peer_rps,
                record.ours_cpu_ms,
                record.peer_cpu_ms,
                record.ratio,
                record.p50_ms,
                record.p99_ms,
                record.rss_mb
            )
        };
        // Writing to a String does not fail.
        let _ = writeln!(text, "{line}");
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
