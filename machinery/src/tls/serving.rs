//! The server's own certificate, read from two files and read again when they change. A pair that does not fit together, as
//! seen in the middle of a replacement, is not taken: the old one serves on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::followed::Followed;

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

/// A serving certificate that follows its files.
#[derive(Debug)]
pub struct ServingCertificate(Followed<CertifiedKey, ServingError>);

impl ServingCertificate {
    /// Reads a certificate chain and its key.
    ///
    /// # Errors
    /// [`ServingError`].
    pub fn load(
        certificate_file: impl Into<PathBuf>,
        key_file: impl Into<PathBuf>,
    ) -> Result<Arc<Self>, ServingError> {
        let (certificate, key) = (certificate_file.into(), key_file.into());
        let files = vec![certificate.clone(), key.clone()];
        Ok(Arc::new(Self(Followed::new("serving certificate", files, move || read(&certificate, &key))?)))
    }

    /// Reads the files again if they changed; says whether another certificate is served now.
    ///
    /// # Errors
    /// [`ServingError`]; the old certificate stays.
    pub fn reload_if_changed(&self) -> Result<bool, ServingError> {
        self.0.reload_if_changed()
    }

    /// Looks at the files now, and says in the log what came of it: for SIGHUP.
    pub fn look(&self) {
        self.0.look();
    }

    /// Looks at the files every `period`, for ever.
    pub async fn keep_fresh(&self, period: Duration) {
        self.0.keep_fresh(period).await;
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current())
    }
}

/// Reads a chain and its key from PEM files.
///
/// # Errors
/// [`ServingError`].
pub fn read_pair(
    certificate_file: &Path,
    key_file: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ServingError> {
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
    Ok((chain, key))
}

fn read(certificate_file: &Path, key_file: &Path) -> Result<CertifiedKey, ServingError> {
    let (chain, key) = read_pair(certificate_file, key_file)?;
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
        assert_eq!(serving.0.current().cert[0], first);
        assert!(!serving.reload_if_changed().unwrap());

        fs::write(folder.path().join("tls.key"), "half a key").unwrap();
        assert!(matches!(serving.reload_if_changed(), Err(ServingError::Pem { .. })));
        assert_eq!(serving.0.current().cert[0], first);

        let second = write_pair(folder.path());
        assert!(serving.reload_if_changed().unwrap());
        assert_eq!(serving.0.current().cert[0], second);
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
