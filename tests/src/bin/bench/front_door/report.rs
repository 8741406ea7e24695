//! What was measured of the doors, as tables and as JSON.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::measure::{Row, Watches};

/// A table for people.
pub(crate) fn requests(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<22} {:<8} {:>8} {:>8} {:>10} {:>10} {:>9} {:>7}\n",
        "case", "door", "p50 ms", "p99 ms", "added p50", "added p99", "/s", "share"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:<22} {:<8} {:>8.3} {:>8.3} {:>10.3} {:>10.3} {:>9.0} {:>6.0}%",
            row.case,
            row.door,
            row.p50_ms,
            row.p99_ms,
            row.added_p50_ms,
            row.added_p99_ms,
            row.per_second,
            row.share * 100.0
        );
    }
    text
}

/// The same of the watches.
pub(crate) fn watches(watches: &[Watches]) -> String {
    let mut text = format!("{:<22} {:<8} {:>8} {:>8}\n", "case", "door", "rest MB", "with MB");
    for row in watches {
        let _ = writeln!(
            text,
            "{:<22} {:<8} {:>8.1} {:>8.1}",
            "1000-watches", row.door, row.rest_mb, row.watched_mb
        );
    }
    text
}

/// Writes `target/bench/front-door.json` and says where it is.
pub(crate) fn write(rows: &[Row], watches: &[Watches]) -> anyhow::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join("bench");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("front-door.json");
    std::fs::write(&file, serde_json::to_vec_pretty(&json!({"requests": rows, "watches": watches}))?)?;
    Ok(file)
}
