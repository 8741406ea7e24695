//! One case: both peers in turns, several rounds each.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT_ENCODING, HeaderValue};
use picoshift_tests::home::Home;
use picoshift_tests::http::Http;
use picoshift_tests::identity::Identity;
use picoshift_tests::tls::Protocol;
use picoshift_tests::{Actor, ControlPlane};
use serde_json::json;

use crate::cpu::{Servers, our_memory};
use crate::crd;
use crate::fixtures::{self, filled, route_name};
use crate::load::{Round, closed_loop, measured};
use crate::peer::Peer;
use crate::report::Record;

/// Rounds per peer.
pub(crate) const ROUNDS: usize = 3;
/// Where creates go; emptied after each round.
const SCRATCH: &str = "bench-create";
/// Routes to get one by one.
const NAMES: usize = 1000;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// One of [`NAMES`] Routes, another one each time.
    Get,
    /// All Routes of a namespace with so many.
    List {
        /// How many.
        count: usize,
    },
    /// A new Route.
    Create,
}

/// How our server is reached; the peer is kube-apiserver itself either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// At its own port.
    Direct,
    /// Through kube-apiserver.
    Aggregated,
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Direct => "direct",
            Self::Aggregated => "aggregated",
        })
    }
}

/// The encoding that the client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Plain bytes.
    Identity,
    /// gzip.
    Gzip,
}

impl fmt::Display for Encoding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
        })
    }
}

/// All that a case needs.
pub(crate) struct Bench {
    /// The administrator, for what is not measured.
    pub(crate) admin: Actor,
    /// The server processes.
    pub(crate) servers: Servers,
    /// Where the control plane is.
    pub(crate) home: Home,
    /// How long a round lasts.
    pub(crate) length: Duration,
    stage: picoshift_tests::actor::Stage,
    identity: Identity,
    created: AtomicUsize,
}

impl Bench {
    /// Makes CRD, user, namespaces and Routes.
    pub(crate) async fn prepare(plane: &ControlPlane, length: Duration) -> anyhow::Result<Self> {
        let admin = plane.admin()?;
        crd::install(&admin).await?;
        fixtures::new_role(&admin).await?;
        fixtures::new_namespace(&admin, SCRATCH).await?;
        for count in [100, NAMES] {
            fixtures::fill(&admin, count).await?;
        }
        Ok(Self {
            servers: Servers::of(&plane.home)?,
            admin,
            home: plane.home.clone(),
            length,
            stage: plane.stage.clone(),
            identity: plane.sign(fixtures::USER, None)?,
            created: AtomicUsize::new(0),
        })
    }

    /// Clients with a connection each.
    pub(crate) fn clients(&self, peer: Peer, way: Way, count: usize) -> anyhow::Result<Vec<Http>> {
        let endpoint = match (peer, way) {
            (Peer::Ours, Way::Direct) => &self.stage.ours,
            _ => &self.stage.kube,
        };
        (0..count).map(|_| Http::new(endpoint, Some(&self.identity), Protocol::Http2)).collect()
    }

    /// Measures both peers in turns.
    pub(crate) async fn compare(
        &self,
        case: String,
        operation: Operation,
        way: Way,
        encoding: Encoding,
    ) -> anyhow::Result<Record> {
        let workers = match operation {
            Operation::Get | Operation::Create => 8,
            Operation::List { .. } => 2,
        };
        let mut rounds = [Round::default(), Round::default()];
        let peers = [Peer::Ours, Peer::Crd];
        let clients = [self.clients(peers[0], way, workers)?, self.clients(peers[1], way, workers)?];
        // The first requests open connections and fill caches of both; they do not count.
        for (peer, clients) in peers.iter().zip(&clients) {
            self.round(*peer, clients, operation, encoding, self.length / 10).await?;
        }
        for _ in 0..ROUNDS {
            for index in 0..peers.len() {
                let (peer, clients) = (peers[index], &clients[index]);
                rounds[index].add(self.round(peer, clients, operation, encoding, self.length).await?);
            }
        }
        let [ours, crd] = rounds;
        Ok(Record::compare(case, &ours, &crd, our_memory(&self.home)?))
    }

    async fn round(
        &self,
        peer: Peer,
        clients: &[Http],
        operation: Operation,
        encoding: Encoding,
        length: Duration,
    ) -> anyhow::Result<Round> {
        let scratch = peer.routes(SCRATCH);
        let names = peer.routes(&filled(NAMES));
        let make = |http: &Http, number: usize| {
            let mut request = match operation {
                Operation::Get => {
                    let path = format!("{names}/{}", route_name(number % NAMES));
                    http.request(Method::GET, &path, None, Bytes::new())?
                }
                Operation::List { count } => {
                    http.request(Method::GET, &peer.routes(&filled(count)), None, Bytes::new())?
                }
                Operation::Create => {
                    let name = format!("new-{}", self.created.fetch_add(1, Ordering::Relaxed));
                    let body = serde_json::to_vec(&peer.route(&name, SCRATCH))?;
                    http.request(Method::POST, &scratch, Some("application/json"), body.into())?
                }
            };
            let encoding = match encoding {
                Encoding::Identity => HeaderValue::from_static("identity"),
                Encoding::Gzip => HeaderValue::from_static("gzip"),
            };
            request.headers_mut().insert(ACCEPT_ENCODING, encoding);
            Ok(request)
        };
        let round = measured(&self.servers, closed_loop(clients, length, make)).await?;
        if operation == Operation::Create {
            self.admin.api.delete(&scratch, &json!({})).await?.ok()?;
        }
        Ok(round)
    }
}
