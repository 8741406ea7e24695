//! `make bench`: our Routes beside the same objects as a CRD, in one run on the same kube-apiserver.
//!
//! The client is an ordinary user with a certificate of her own, HTTP/2 over TLS, resourceVersion unset. CPU is
//! that of all server processes (ours, kube-apiserver, etcd). Out: a table, and `target/bench/latest.json`.
//! `BENCH_SECONDS` sets how long one measurement lasts (2), `BENCH_CASES` which cases run (a part of their names).

mod cpu;
mod crd;
mod fixtures;
mod load;
mod measure;
mod memory;
mod peer;
mod report;
mod watch;

use std::time::Duration;

use anyhow::Context as _;
use picoshift_tests::ControlPlane;

use crate::measure::{Bench, Encoding, Operation, Way};
use crate::report::Record;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let seconds: f64 = match std::env::var("BENCH_SECONDS") {
        Ok(text) => text.parse().context("BENCH_SECONDS is no number")?,
        Err(_) => 2.0,
    };
    let wanted = std::env::var("BENCH_CASES").unwrap_or_default();
    eprintln!("starting a control plane");
    let plane = ControlPlane::exclusive().await?;
    let mut records = Vec::new();
    if "memory-at-rest".contains(&wanted) {
        records.push(memory::at_rest(&plane).await?);
    }
    eprintln!("making the same Routes twice");
    let bench = Bench::prepare(&plane, Duration::from_secs_f64(seconds)).await?;
    run(&bench, &wanted, &mut records).await?;
    if "memory-10000-routes-100-watchers".contains(&wanted) {
        eprintln!("10,000 Routes and 100 watchers");
        records.push(memory::loaded(&plane, &bench).await?);
    }
    print!("{}", report::table(&records));
    let file = report::write(&records)?;
    println!("{}", file.display());
    Ok(())
}

async fn run(bench: &Bench, wanted: &str, records: &mut Vec<Record>) -> anyhow::Result<()> {
    let operations = [
        (Operation::Get, "get-1000"),
        (Operation::List { count: 100 }, "list-100"),
        (Operation::List { count: 1000 }, "list-1000"),
        (Operation::Create, "create"),
    ];
    for (operation, name) in operations {
        for way in [Way::Direct, Way::Aggregated] {
            for encoding in [Encoding::Identity, Encoding::Gzip] {
                if operation == Operation::Create && encoding == Encoding::Gzip {
                    continue;
                }
                let case = format!("{name}-{way}-{encoding}");
                if case.contains(wanted) {
                    eprintln!("{case}");
                    records.push(bench.compare(case, operation, way, encoding).await?);
                }
            }
        }
    }
    for way in [Way::Direct, Way::Aggregated] {
        let case = format!("watch-{}-{way}", watch::WATCHERS);
        if case.contains(wanted) {
            eprintln!("{case}");
            records.push(watch::compare(bench, case, way).await?);
        }
    }
    Ok(())
}
