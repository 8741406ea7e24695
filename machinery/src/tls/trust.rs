//! A set of certificate authorities that client certificates are checked against.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Why a bundle of authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The text is no PEM.
    #[error("the bundle of certificate authorities is no PEM: {0}")]
    Pem(String),
    /// There is no usable certificate in it.
    #[error("the bundle of certificate authorities holds no usable certificate")]
    Empty,
}

/// Why a certificate is not from this bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ChainError(Arc<str>);

/// Authorities, each with the time in which it counts.
#[derive(Debug)]
pub struct TrustBundle {
    authorities: Vec<Authority>,
    generation: u64,
}

#[derive(Debug)]
struct Authority {
    verifier: Arc<dyn ClientCertVerifier>,
    lifetime: (i64, i64),
}

static GENERATION: AtomicU64 = AtomicU64::new(1);

impl TrustBundle {
    /// Reads a PEM bundle. Certificates that cannot be an authority are left out with a warning.
    ///
    /// # Errors
    /// [`TrustError`].
    pub fn from_pem(pem: &[u8]) -> Result<Self, TrustError> {
        let mut authorities = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|e| TrustError::Pem(e.to_string()))?;
            match authority(&certificate) {
                Some(authority) => authorities.push(authority),
                None => tracing::warn!("a certificate of a bundle of authorities is not usable"),
            }
        }
        if authorities.is_empty() {
            return Err(TrustError::Empty);
        }
        Ok(Self { authorities, generation: GENERATION.fetch_add(1, Ordering::Relaxed) })
    }

    /// A number that no other bundle of this process has.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Checks that `chain` (the client's certificate first) leads to one of the authorities and is meant for clients.
    /// Answers until when (Unix seconds) that stays true.
    ///
    /// # Errors
    /// Why not, for the log.
    pub fn verify(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<i64, ChainError> {
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Err(ChainError("no certificate".into()));
        };
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let mut why = ChainError("no authority of the bundle is valid now".into());
        for authority in &self.authorities {
            let (from, until) = authority.lifetime;
            if !(from..=until).contains(&seconds) {
                continue;
            }
            match authority.verifier.verify_client_cert(leaf, intermediates, now) {
                Ok(_) => {
                    let ends = chain.iter().filter_map(lifetime).map(|(_, until)| until);
                    return Ok(ends.fold(until, i64::min));
                }
                Err(error) => why = ChainError(error.to_string().into()),
            }
        }
        Err(why)
    }
}

fn authority(certificate: &CertificateDer<'static>) -> Option<Authority> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).ok()?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), super::provider()).build().ok()?;
    Some(Authority { verifier, lifetime: lifetime(certificate)? })
}

fn lifetime(certificate: &CertificateDer<'_>) -> Option<(i64, i64)> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let validity = parsed.validity();
    Some((validity.not_before.timestamp(), validity.not_after.timestamp()))
}
