//! One case: both peers in turns, several rounds each.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue};
use http::{Method, Request};
use http_body_util::Full;
use picoshift_tests::actor::Stage;
use picoshift_tests::home::Home;
use picoshift_tests::http::{Http, patch};
use picoshift_tests::identity::Identity;
use picoshift_tests::tls::Protocol;
use picoshift_tests::{Actor, ControlPlane};
use serde_json::json;

use crate::cases::{Case, Encoding, Operation, Way};
use crate::cpu::{Servers, our_memory};
use crate::fixtures::{self, Fixtures};
use crate::load::{Round, closed_loop, measured};
use crate::report::Record;
use crate::subject::{Peer, Subject};

/// All that a case needs.
pub(crate) struct Bench {
    /// The administrator, for what is not measured.
    pub(crate) admin: Actor,
    /// The server processes.
    pub(crate) servers: Servers,
    /// What is measured with.
    pub(crate) fixtures: Fixtures,
    /// Where the servers are.
    pub(crate) stage: Stage,
    /// The user's certificate.
    pub(crate) identity: Identity,
    /// How long a round lasts.
    pub(crate) length: Duration,
    home: Home,
    /// Creates and changes so far: no two are the same.
    writes: AtomicUsize,
}

impl Bench {
    /// Finds the servers and makes the user.
    pub(crate) fn prepare(plane: &ControlPlane, length: Duration) -> anyhow::Result<Self> {
        let admin = plane.admin()?;
        Ok(Self {
            servers: Servers::of(&plane.home)?,
            fixtures: Fixtures::new(admin.clone()),
            admin,
            // Not the shim, which knows a shorter way to our server than the aggregator's.
            stage: Stage { kube: plane.home.kube_apiserver()?, ..plane.stage.clone() },
            identity: plane.sign(fixtures::USER, None)?,
            length,
            home: plane.home.clone(),
            writes: AtomicUsize::new(0),
        })
    }

    /// Starts our server again, so that nothing of what was measured before is in its memory.
    pub(crate) async fn restart_ours(&mut self, plane: &ControlPlane) -> anyhow::Result<()> {
        plane.crash_and_restart_our_server().await?;
        self.servers = Servers::of(&self.home)?;
        Ok(())
    }

    /// Resident memory of our server in MB.
    pub(crate) fn memory(&self) -> anyhow::Result<f64> {
        our_memory(&self.home)
    }

    /// Clients with a connection each.
    pub(crate) fn clients(&self, peer: Peer, way: Way, count: usize) -> anyhow::Result<Vec<Http>> {
        let endpoint = match (peer, way) {
            (Peer::Ours, Way::Direct) => &self.stage.ours,
            _ => &self.stage.kube,
        };
        (0..count).map(|_| Http::new(endpoint, Some(&self.identity), Protocol::Http2)).collect()
    }

    /// Where our server's data are.
    pub(crate) fn data_folder(&self) -> std::path::PathBuf {
        self.home.state()
    }

    /// A number that no other write has.
    pub(crate) fn next_write(&self) -> usize {
        self.writes.fetch_add(1, Ordering::Relaxed)
    }

    /// Measures both peers in turns.
    pub(crate) async fn compare(&mut self, case: Case) -> anyhow::Result<Record> {
        match case.operation {
            Operation::Create => self.fixtures.namespace(case.subject, &case.subject.scratch()).await?,
            Operation::Get { count }
            | Operation::List { count }
            | Operation::Update { among: count }
            | Operation::Apply { among: count }
            | Operation::Strategic { among: count } => self.fixtures.both(case.subject, count).await?,
        }
        let workers = case.operation.workers();
        let mut rounds = [Round::default(), Round::default()];
        let peers = [Peer::Ours, Peer::Crd];
        let clients =
            [self.clients(peers[0], case.way, workers)?, self.clients(peers[1], case.way, workers)?];
        let count = if case.has_peer() { peers.len() } else { 1 };
        // The first requests open connections and fill caches of both; they do not count.
        for (peer, clients) in peers.iter().zip(&clients).take(count) {
            self.round(case, *peer, clients, self.length / 10).await?;
        }
        for _ in 0..case.rounds {
            for index in 0..count {
                rounds[index].add(self.round(case, peers[index], &clients[index], self.length).await?);
            }
        }
        let [ours, crd] = rounds;
        if !case.has_peer() {
            return Ok(Record::alone(&case.to_string(), &ours, self.memory()?));
        }
        Ok(Record::compare(case.to_string(), &ours, &crd, self.memory()?))
    }

    async fn round(
        &self,
        case: Case,
        peer: Peer,
        clients: &[Http],
        length: Duration,
    ) -> anyhow::Result<Round> {
        let make = |http: &Http, number: usize| self.request(case, peer, http, number);
        let round = measured(&self.servers, closed_loop(clients, length, make)).await?;
        if case.operation == Operation::Create {
            let scratch = case.subject.path(peer, &case.subject.scratch());
            self.admin.api.delete(&scratch, &json!({})).await?.ok()?;
        }
        Ok(round)
    }

    fn request(
        &self,
        case: Case,
        peer: Peer,
        http: &Http,
        number: usize,
    ) -> anyhow::Result<Request<Full<Bytes>>> {
        let subject: &Subject = case.subject;
        let mut request = match case.operation {
            Operation::Get { count } => {
                let path = subject.object_path(peer, count, number);
                http.request(Method::GET, &path, None, Bytes::new())?
            }
            Operation::List { count } => {
                let path = subject.path(peer, &subject.filled(count));
                http.request(Method::GET, &path, None, Bytes::new())?
            }
            Operation::Create => {
                let (scratch, name) = (subject.scratch(), format!("new-{}", self.next_write()));
                let body = serde_json::to_vec(&subject.object(peer, &name, &scratch))?;
                let path = subject.path(peer, &scratch);
                http.request(Method::POST, &path, Some("application/json"), body.into())?
            }
            Operation::Update { among } => {
                // Each worker has an object of its own, or they would wait for each other.
                let path = subject.object_path(peer, among, number % case.operation.workers());
                let (format, change) = (subject.change)(self.next_write());
                http.request(Method::PATCH, &path, Some(format), serde_json::to_vec(&change)?.into())?
            }
            Operation::Apply { among } | Operation::Strategic { among } => {
                let number = number % case.operation.workers();
                let path = subject.object_path(peer, among, number);
                let (_, mut change) = (subject.change)(self.next_write());
                if case.operation == (Operation::Strategic { among }) {
                    let body = serde_json::to_vec(&change)?;
                    http.request(Method::PATCH, &path, Some(patch::STRATEGIC), body.into())?
                } else {
                    change["apiVersion"] = subject.api_version(peer).into();
                    change["kind"] = subject.kind.into();
                    change["metadata"] = json!({"name": subject.name(number)});
                    let path = format!("{path}?fieldManager=bench&force=true");
                    let body = serde_json::to_vec(&change)?;
                    http.request(Method::PATCH, &path, Some("application/apply-patch+yaml"), body.into())?
                }
            }
        };
        if case.encoding == Encoding::Protobuf {
            let protobuf = HeaderValue::from_static("application/vnd.kubernetes.protobuf");
            request.headers_mut().insert(ACCEPT, protobuf);
        }
        request.headers_mut().insert(ACCEPT_ENCODING, accepted(case.encoding));
        Ok(request)
    }
}

/// The header for an encoding.
pub(crate) fn accepted(encoding: Encoding) -> HeaderValue {
    HeaderValue::from_static(match encoding {
        Encoding::Identity | Encoding::Protobuf => "identity",
        Encoding::Gzip => "gzip",
    })
}
