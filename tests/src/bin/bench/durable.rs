//! Creates a second of 64 clients, beside what the disk can do: how often a second it makes a small append durable.

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use http::Method;
use picoshift_tests::http::Http;
use serde_json::json;

use crate::cases::Way;
use crate::load::{Round, closed_loop, measured};
use crate::measure::Bench;
use crate::report::Record;
use crate::subject::{Peer, Subject};

/// Names of the cases.
pub(crate) const CREATES: &str = "durable-creates-64";
pub(crate) const DISK: &str = "durable-creates-64-disk-syncs";

const CLIENTS: usize = 64;
const ROUNDS: usize = 3;
/// Bytes of an append, about those of one object.
const APPEND: usize = 2048;

/// Measures creates, and in turns the disk.
pub(crate) async fn measure(bench: &mut Bench, subject: &Subject) -> anyhow::Result<Vec<Record>> {
    bench.fixtures.namespace(subject, &subject.scratch()).await?;
    let clients = bench.clients(Peer::Ours, Way::Direct, CLIENTS)?;
    let path = subject.path(Peer::Ours, &subject.scratch());
    let make = |http: &Http, _| {
        let name = format!("new-{}", bench.next_write());
        let body = serde_json::to_vec(&subject.object(Peer::Ours, &name, &subject.scratch()))?;
        http.request(Method::POST, &path, Some("application/json"), body.into())
    };
    // The first requests open connections; they do not count.
    closed_loop(&clients, bench.length / 10, make).await?;
    let (mut creates, mut disk) = (Round::default(), Round::default());
    for _ in 0..ROUNDS {
        creates.add(measured(&bench.servers, closed_loop(&clients, bench.length, make)).await?);
        disk.add(syncs(&bench.data_folder(), bench.length)?);
        bench.admin.api.delete(&path, &json!({})).await?.ok()?;
    }
    let memory = bench.memory()?;
    Ok(vec![Record::alone(CREATES, &creates, memory), Record::alone(DISK, &disk, memory)])
}

/// Appends and syncs, one after the other, where our server's data are.
fn syncs(folder: &std::path::Path, length: Duration) -> anyhow::Result<Round> {
    let mut file: File = tempfile::tempfile_in(folder)?;
    let (start, bytes) = (Instant::now(), [7; APPEND]);
    let mut latencies = Vec::new();
    while start.elapsed() < length {
        let began = Instant::now();
        file.write_all(&bytes)?;
        file.sync_data()?;
        latencies.push(began.elapsed());
    }
    Ok(Round { latencies, elapsed: start.elapsed(), cpu: Duration::ZERO })
}
