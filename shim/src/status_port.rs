//! Probes and counters of the shim itself, on a port of their own: `/healthz` and its like on the main port are
//! kube-apiserver's.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use picoshift_machinery::body::Body;
use picoshift_machinery::drain::Drain;
use picoshift_machinery::listener::{Limits, Listener, Service};
use picoshift_machinery::peer::Peer;
use picoshift_machinery::readiness::Checks;
use picoshift_machinery::tls::{ServingCertificate, server_config};
use picoshift_machinery::{health, plain};

use crate::metrics::Metrics;

/// Connections at a time.
const CONNECTIONS: usize = 64;

/// What answers.
#[derive(Clone)]
pub struct StatusPort {
    /// The checks behind the probes.
    pub checks: Checks,
    /// The counters.
    pub metrics: Arc<Metrics>,
}

impl StatusPort {
    /// Binds; port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be had, or TLS cannot be set up.
    pub async fn bind(address: SocketAddr, certificate: Arc<ServingCertificate>) -> io::Result<Listener> {
        let tls = server_config(certificate).map_err(io::Error::other)?;
        Listener::bind(address, tls, Limits { connections: CONNECTIONS, ..Limits::default() }).await
    }

    /// Serves until `finished` starts.
    pub async fn serve(self, listener: Listener, finished: Drain) {
        listener.serve(Arc::new(self), finished).await;
    }

    fn metrics(&self) -> Response<Body> {
        match self.metrics.text() {
            Ok(text) => {
                let mut response = plain::text(StatusCode::OK, text);
                let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
                response
            }
            Err(error) => plain::plain_error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }
}

impl Service for StatusPort {
    type Connection = ();

    fn connected(&self, _peer: Peer) {}

    async fn call(self: Arc<Self>, _connection: Arc<()>, request: Request<Incoming>) -> Response<Body> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return plain::plain_error(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed");
        }
        let path = request.uri().path();
        if path == "/metrics" {
            return self.metrics();
        }
        match health::probe(path) {
            Some((probe, name)) => health::answer(&self.checks, probe, name, request.uri().query()),
            None => plain::not_found(),
        }
    }
}
