//! TLS: one cryptography provider, the server's configuration, its certificate, and whom it trusts.
//!
//! Client certificates are optional. At the handshake only the possession of the key is proved; whether the chain leads
//! to an authority is asked afterwards, per [`TrustBundle`], so that one listener can hold several trust domains and
//! change each of them without a restart.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub mod server;
pub mod serving;
pub mod trust;

pub use server::server_config;
pub use serving::{ServingCertificate, ServingError, read_pair};
pub use trust::{ChainError, TrustBundle, TrustError};

/// The cryptography that all our TLS uses.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}
