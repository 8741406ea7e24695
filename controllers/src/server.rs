//! Probes and counters over TLS. They are open to everybody who can connect: they name controllers and numbers only.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use picoshift_machinery::body::Body;
use picoshift_machinery::drain::Drain;
use picoshift_machinery::listener::{Limits, Listener, Service};
use picoshift_machinery::peer::Peer;
use picoshift_machinery::readiness::{Checks, Latch, Shown};
use picoshift_machinery::tls::{ServingCertificate, server_config};
use picoshift_machinery::{health, plain};

use crate::metrics::Metrics;

/// How often the files of the serving certificate are looked at.
const CERTIFICATE_PERIOD: Duration = Duration::from_secs(10);
/// Probes need few connections.
const CONNECTIONS: usize = 200;

/// Why the server did not come up.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// What answers.
struct Answers {
    checks: Checks,
    metrics: Arc<Metrics>,
}

impl Service for Answers {
    type Connection = ();

    fn connected(&self, _peer: Peer) -> Self::Connection {}

    async fn call(self: Arc<Self>, _connection: Arc<()>, request: Request<Incoming>) -> Response<Body> {
        self.answer(request.method(), request.uri().path(), request.uri().query())
    }
}

impl Answers {
    fn answer(&self, method: &Method, path: &str, query: Option<&str>) -> Response<Body> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return plain::plain_error(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
        }
        if let Some((probe, name)) = health::probe(path) {
            return health::answer(&self.checks, probe, name, query);
        }
        if path != "/metrics" {
            return plain::not_found();
        }
        match self.metrics.text() {
            Ok(text) => {
                let mut response = plain::text(StatusCode::OK, text);
                let form = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form));
                response
            }
            Err(error) => plain::plain_error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }
}

/// A server that is bound and not yet serving.
pub struct Server {
    listener: Listener,
    answers: Arc<Answers>,
    certificate: Arc<ServingCertificate>,
    accepting: Latch,
}

impl Server {
    /// Binds; port 0 takes a free one.
    ///
    /// # Errors
    /// [`ServerError`].
    pub async fn bind(
        address: SocketAddr,
        certificate: Arc<ServingCertificate>,
        checks: Checks,
        metrics: Arc<Metrics>,
    ) -> Result<Self, ServerError> {
        let tls = server_config(Arc::clone(&certificate) as _)?;
        let limits = Limits { connections: CONNECTIONS, ..Limits::default() };
        let listener = Listener::bind(address, tls, limits)
            .await
            .map_err(|source| ServerError::Bind { address, source })?;
        let accepting = checks.latch("shutdown", Shown::OnlyReady, "process is shutting down");
        accepting.release();
        Ok(Self { listener, answers: Arc::new(Answers { checks, metrics }), certificate, accepting })
    }

    /// The address that was bound.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until `finished`; from `drain` on it says that it is not ready.
    pub async fn serve(self, drain: Drain, finished: Drain) {
        let Self { listener, answers, certificate, accepting } = self;
        let closing = async {
            drain.wait().await;
            accepting.close();
        };
        let fresh = async {
            tokio::select! {
                () = certificate.keep_fresh(CERTIFICATE_PERIOD) => {}
                () = finished.wait() => {}
            }
        };
        tokio::join!(listener.serve(answers, finished.clone()), fresh, closing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_probes_and_counters_and_nothing_else() {
        let checks = Checks::new();
        checks.add("ping", Shown::Everywhere, || Ok(()));
        checks.add("controller/a", Shown::NotLive, || Err("broken".to_owned()));
        let answers = Answers { checks, metrics: Arc::new(Metrics::new()) };
        let code = |method: Method, path: &str| answers.answer(&method, path, None).status().as_u16();
        assert_eq!(code(Method::GET, "/livez"), 200);
        assert_eq!(code(Method::GET, "/readyz"), 500);
        assert_eq!(code(Method::GET, "/readyz/controller/a"), 500);
        assert_eq!(code(Method::GET, "/metrics"), 200);
        assert_eq!(code(Method::GET, "/"), 404);
        assert_eq!(code(Method::POST, "/livez"), 405);
    }
}
