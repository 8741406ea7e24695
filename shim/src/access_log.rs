//! One line for each request. Neither queries nor headers are in it, so no secret can be.

use std::net::IpAddr;
use std::time::Duration;

use http::Method;

use crate::metrics::Kind;

/// Longest path that is logged.
const LONGEST: usize = 512;

/// What is said of a request.
#[derive(Debug)]
pub struct Line<'a> {
    /// The client.
    pub client: IpAddr,
    /// Method.
    pub method: &'a Method,
    /// Path, without the query.
    pub path: &'a str,
    /// Status code of the answer.
    pub code: u16,
    /// What became of it.
    pub kind: Kind,
    /// Name of the user, where a certificate says it.
    pub user: Option<String>,
    /// Time to the head of the answer.
    pub took: Duration,
}

/// Logs a request.
pub fn log(line: &Line<'_>) {
    let end = line.path.char_indices().map(|(at, _)| at).find(|at| *at >= LONGEST).unwrap_or(line.path.len());
    tracing::info!(
        target: "picoshift_shim::access",
        client = %line.client,
        method = %line.method,
        path = &line.path[..end],
        code = line.code,
        kind = line.kind.name(),
        user = line.user.as_deref(),
        milliseconds = line.took.as_secs_f64() * 1000.0,
        "request"
    );
}
