//! `make bench`: our Routes and ImageStreams beside the same objects as CRDs, in one run on the same kube-apiserver.
//!
//! The client is an ordinary user with a certificate of her own, HTTP/2 over TLS, resourceVersion unset. CPU is
//! that of all server processes (ours, kube-apiserver, etcd). Out: a table, and `target/bench/latest.json`.
//! `BENCH_SECONDS` sets how long one measurement lasts (2), `BENCH_CASES` which cases run (a part of their names).

mod cases;
mod cpu;
mod crd;
mod durable;
mod fixtures;
mod front_door;
mod image_streams;
mod load;
mod measure;
mod memory;
mod report;
mod routes;
mod subject;
mod users;
mod watch;

use std::time::Duration;

use anyhow::Context as _;
use picoshift_tests::ControlPlane;

use crate::cases::{Case, Way};
use crate::measure::Bench;
use crate::report::Record;
use crate::routes::ROUTES;
use crate::users::Credential;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let seconds: f64 = match std::env::var("BENCH_SECONDS") {
        Ok(text) => text.parse().context("BENCH_SECONDS is no number")?,
        Err(_) => 2.0,
    };
    let wanted = std::env::var("BENCH_CASES").unwrap_or_default();
    eprintln!("starting a control plane");
    let plane = ControlPlane::exclusive().await?;
    if is_wanted(front_door::CASE, &wanted) {
        front_door::run(&plane, Duration::from_secs_f64(seconds)).await?;
    }
    let mut records = Vec::new();
    if memory::AT_REST.contains(&wanted) {
        records.push(memory::at_rest(&plane).await?);
    }
    let mut bench = Bench::prepare(&plane, Duration::from_secs_f64(seconds))?;
    let of_routes = routes(&mut bench, &wanted).await?;
    if !of_routes.is_empty() {
        bench.fixtures.clear(&ROUTES).await?;
        bench.restart_ours(&plane).await?;
    }
    records.extend(of_routes);
    records.extend(image_streams_and_users(&mut bench, &plane, &wanted).await?);
    print!("{}{}", report::table(&records), report::growth(&records));
    let file = report::write(&records)?;
    println!("{}", file.display());
    Ok(())
}

async fn routes(bench: &mut Bench, wanted: &str) -> anyhow::Result<Vec<Record>> {
    let mut records = compared(bench, cases::of_routes(), wanted).await?;
    for way in Way::ALL {
        let case = format!("watch-{}-{way}", watch::WATCHERS);
        if is_wanted(&case, wanted) {
            records.push(watch::compare(bench, &ROUTES, case, way).await?);
        }
    }
    let many = format!("watch-{}-direct", watch::MANY);
    if is_wanted(&many, wanted) {
        records.push(watch::many(bench, &ROUTES, &many).await?);
    }
    if is_wanted(memory::OF_ROUTES, wanted) {
        records.push(memory::of_routes(bench).await?);
    }
    if is_wanted(durable::CREATES, wanted) {
        records.extend(durable::measure(bench, &ROUTES).await?);
    }
    Ok(records)
}

async fn image_streams_and_users(
    bench: &mut Bench,
    plane: &ControlPlane,
    wanted: &str,
) -> anyhow::Result<Vec<Record>> {
    let mut records = compared(bench, cases::of_image_streams(), wanted).await?;
    for credential in [Credential::Token, Credential::Certificate] {
        if is_wanted(credential.case(), wanted) {
            records.push(users::measure(bench, credential).await?);
        }
    }
    if is_wanted(memory::OF_STREAMS, wanted) {
        records.push(memory::of_image_streams(bench, plane).await?);
    }
    Ok(records)
}

async fn compared(bench: &mut Bench, cases: Vec<Case>, wanted: &str) -> anyhow::Result<Vec<Record>> {
    let mut records = Vec::new();
    for case in cases {
        if is_wanted(&case.to_string(), wanted) {
            records.push(bench.compare(case).await?);
        }
    }
    Ok(records)
}

fn is_wanted(case: &str, wanted: &str) -> bool {
    let is = case.contains(wanted);
    if is {
        eprintln!("{case}");
    }
    is
}
