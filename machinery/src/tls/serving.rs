//! The server's own certificate, read from two files and read again when they change.
//!
//! [`ServingCertificate::keep_fresh`] looks at size and modification time of both files every few seconds (two `stat`
//! calls) and a caller may ask at once, on SIGHUP. A pair that does not fit together, as seen in the middle of a
//! replacement, is not taken: the old one serves on and the next look tries again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Why a certificate cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServingError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file holds no PEM of the kind that it should.
    #[error("{}: {message}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Certificate and key do not fit together, or the key is of an unknown kind.
    #[error("the certificate and the key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
}

/// What a file looked like when it was read.
type Stamp = (u64, SystemTime);

/// A serving certificate that follows its files.
#[derive(Debug)]
pub struct ServingCertificate {
    certificate_file: PathBuf,
    key_file: PathBuf,
    current: ArcSwap<CertifiedKey>,
    stamps: Mutex<Option<[Stamp; 2]>>,
}

impl ServingCertificate {
    /// Reads a certificate chain and its key.
    ///
    /// # Errors
    /// [`ServingError`].
    pub fn load(
        certificate_file: impl Into<PathBuf>,
        key_file: impl Into<PathBuf>,
    ) -> Result<Arc<Self>, ServingError> {
        let (certificate_file, key_file) = (certificate_file.into(), key_file.into());
        let stamps = stamps(&certificate_file, &key_file);
        let current = ArcSwap::from_pointee(read(&certificate_file, &key_file)?);
        Ok(Arc::new(Self { certificate_file, key_file, current, stamps: Mutex::new(stamps) }))
    }

    /// Reads the files again if they changed; says whether another certificate is served now.
    ///
    /// # Errors
    /// [`ServingError`]; the old certificate stays.
    pub fn reload_if_changed(&self) -> Result<bool, ServingError> {
        let seen = stamps(&self.certificate_file, &self.key_file);
        if seen.is_some() && *self.stamps.lock() == seen {
            return Ok(false);
        }
        self.current.store(Arc::new(read(&self.certificate_file, &self.key_file)?));
        *self.stamps.lock() = seen;
        Ok(true)
    }

    /// Looks at the files now, and says in the log what came of it: for SIGHUP.
    pub fn look(&self) {
        match self.reload_if_changed() {
            Ok(new) => tracing::info!(new, "serving certificate looked at"),
            Err(error) => tracing::warn!(%error, "the serving certificate stays as it was"),
        }
    }

    /// Looks at the files every `period`, for ever.
    pub async fn keep_fresh(&self, period: Duration) {
        loop {
            tokio::time::sleep(period).await;
            match self.reload_if_changed() {
                Ok(true) => {
                    tracing::info!(file = %self.certificate_file.display(), "new serving certificate");
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "the serving certificate stays as it was"),
            }
        }
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

fn stamps(certificate: &Path, key: &Path) -> Option<[Stamp; 2]> {
    let stamp = |path: &Path| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    };
    Some([stamp(certificate)?, stamp(key)?])
}

fn read(certificate_file: &Path, key_file: &Path) -> Result<CertifiedKey, ServingError> {
    let bytes =
        |path: &Path| fs::read(path).map_err(|source| ServingError::Read { path: path.to_owned(), source });
    let bad = |path: &Path, message: String| ServingError::Pem { path: path.to_owned(), message };
    let chain = CertificateDer::pem_slice_iter(&bytes(certificate_file)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| bad(certificate_file, e.to_string()))?;
    if chain.is_empty() {
        return Err(bad(certificate_file, "no certificate in it".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&bytes(key_file)?).map_err(|e| bad(key_file, e.to_string()))?;
    Ok(CertifiedKey::from_der(chain, key, &super::provider())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_pair(folder: &Path) -> CertificateDer<'static> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
        fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        made.cert.der().clone()
    }

    #[test]
    fn serves_what_the_files_hold_and_keeps_the_old_pair_when_they_are_broken() {
        let folder = tempfile::tempdir().unwrap();
        let first = write_pair(folder.path());
        let serving =
            ServingCertificate::load(folder.path().join("tls.crt"), folder.path().join("tls.key")).unwrap();
        assert_eq!(serving.current.load().cert[0], first);
        assert!(!serving.reload_if_changed().unwrap());

        fs::write(folder.path().join("tls.key"), "half a key").unwrap();
        assert!(matches!(serving.reload_if_changed(), Err(ServingError::Pem { .. })));
        assert_eq!(serving.current.load().cert[0], first);

        let second = write_pair(folder.path());
        assert!(serving.reload_if_changed().unwrap());
        assert_eq!(serving.current.load().cert[0], second);
    }

    #[test]
    fn refuses_a_key_of_another_certificate() {
        let folder = tempfile::tempdir().unwrap();
        write_pair(folder.path());
        let key = fs::read(folder.path().join("tls.key")).unwrap();
        write_pair(folder.path());
        fs::write(folder.path().join("tls.key"), key).unwrap();
        let error = ServingCertificate::load(folder.path().join("tls.crt"), folder.path().join("tls.key"))
            .unwrap_err();
        assert!(matches!(error, ServingError::Pair(_)), "{error}");
    }
}
