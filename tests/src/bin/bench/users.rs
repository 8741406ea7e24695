//! `users/~`, by which a client finds out who it is: nothing that a CRD could answer.

use anyhow::Context as _;
use bytes::Bytes;
use http::Method;
use picoshift_tests::http::Http;
use picoshift_tests::tls::Protocol;
use serde_json::json;

use crate::fixtures;
use crate::load::{Round, closed_loop, measured};
use crate::measure::Bench;
use crate::report::Record;

/// Path of the users.
pub(crate) const PATH: &str = "/apis/user.openshift.io/v1/users";

const WORKERS: usize = 8;
const ROUNDS: usize = 3;

/// How the caller proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    /// A service account's token.
    Token,
    /// A client certificate.
    Certificate,
}

impl Credential {
    /// The case's name.
    pub(crate) fn case(self) -> &'static str {
        match self {
            Self::Token => "users-self-direct",
            Self::Certificate => "users-self-certificate-direct",
        }
    }
}

/// Measures our server alone.
pub(crate) async fn measure(bench: &Bench, credential: Credential) -> anyhow::Result<Record> {
    let clients = clients(bench, credential).await?;
    let path = format!("{PATH}/~");
    let make = |http: &Http, _| http.request(Method::GET, &path, None, Bytes::new());
    // The first requests open connections and have the token reviewed; they do not count.
    closed_loop(&clients, bench.length / 10, make).await?;
    let mut rounds = Round::default();
    for _ in 0..ROUNDS {
        rounds.add(measured(&bench.servers, closed_loop(&clients, bench.length, make)).await?);
    }
    Ok(Record::alone(credential.case(), &rounds, bench.memory()?))
}

async fn clients(bench: &Bench, credential: Credential) -> anyhow::Result<Vec<Http>> {
    let token = match credential {
        Credential::Certificate => None,
        Credential::Token => Some(token(bench).await?),
    };
    let client = |_| {
        let ours = &bench.stage.ours;
        match &token {
            None => Http::new(ours, Some(&bench.identity), Protocol::Http2),
            Some(token) => Http::new(ours, None, Protocol::Http2)?
                .with_header("authorization", &format!("Bearer {token}")),
        }
    };
    (0..WORKERS).map(client).collect()
}

/// A token of a service account, made where there is none yet.
async fn token(bench: &Bench) -> anyhow::Result<String> {
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": fixtures::USER}});
    bench.admin.api.post(accounts, &account).await?.expect_code(201)?;
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
    let path = format!("{accounts}/{}/token", fixtures::USER);
    let answer = bench.admin.api.post(&path, &request).await?.expect_code(201)?;
    answer["status"]["token"].as_str().map(str::to_owned).context("no token")
}

/// Makes `count` users of about 0.6 KB.
pub(crate) async fn fill(bench: &Bench, count: usize) -> anyhow::Result<()> {
    eprintln!("making {count} users");
    let body = |number| {
        let name = format!("user-{number:05}");
        json!({
            "apiVersion": "user.openshift.io/v1", "kind": "User", "fullName": format!("User Number {number}"),
            "identities": [format!("htpasswd:{name}")],
            "metadata": {
                "name": name, "labels": {"team": "storefront", "site": "bench.example.org"},
                "annotations": {"description": "Works in the shop team; away on Fridays. ".repeat(3)},
            },
        })
    };
    fixtures::create(bench.admin.direct()?, PATH, count, body).await
}
