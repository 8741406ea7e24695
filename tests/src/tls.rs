//! Client side of TLS for tests: whom to trust, what to present, HTTP/1.1 or HTTP/2.

use std::sync::Arc;

use anyhow::Context as _;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::identity::Identity;

/// Which versions of HTTP a client offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only.
    Http2,
    /// Both, the server chooses.
    Any,
}

/// Where a server is and how to know it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// `https://ADDRESS:PORT`, without a slash at the end.
    pub url: String,
    /// PEM bundle to verify the server with.
    pub ca: Vec<u8>,
    /// The name to expect in its certificate, where that is not the host of `url`.
    pub server_name: Option<String>,
}

/// TLS settings towards `endpoint`, presenting `identity` if there is one.
///
/// # Errors
/// When a certificate or key cannot be read.
pub fn client_config(endpoint: &Endpoint, identity: Option<&Identity>) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&endpoint.ca) {
        roots.add(certificate.context("CA bundle")?)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let Some(identity) = identity else { return Ok(builder.with_no_client_auth()) };
    let chain =
        CertificateDer::pem_slice_iter(identity.certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())?;
    Ok(builder.with_client_auth_cert(chain, key)?)
}

/// A connector to `endpoint`.
///
/// # Errors
/// When a certificate, a key or the server's name cannot be read.
pub fn connector(
    endpoint: &Endpoint,
    identity: Option<&Identity>,
    protocol: Protocol,
) -> anyhow::Result<HttpsConnector<HttpConnector>> {
    let config = client_config(endpoint, identity)?;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(config).https_only();
    if let Some(name) = &endpoint.server_name {
        let name = ServerName::try_from(name.clone())?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(match protocol {
        Protocol::Http1 => builder.enable_http1().wrap_connector(tcp),
        Protocol::Http2 => builder.enable_http2().wrap_connector(tcp),
        Protocol::Any => builder.enable_all_versions().wrap_connector(tcp),
    })
}
