//! Client certificates of the tests' own, signed by the control plane's cluster CA.

use std::path::Path;

use anyhow::Context as _;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose,
};

/// The cluster CA: whoever holds its key can be anybody.
pub struct ClusterCa {
    issuer: Issuer<'static, KeyPair>,
}

/// A client certificate and its key, PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl ClusterCa {
    /// Reads the CA from its two files.
    ///
    /// # Errors
    /// When a file is missing or is not what it should be.
    pub fn read(certificate: &Path, key: &Path) -> anyhow::Result<Self> {
        let read = |path: &Path| {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let key = KeyPair::from_pem(&read(key)?).context("key of the cluster CA")?;
        let issuer =
            Issuer::from_ca_cert_pem(&read(certificate)?, key).context("certificate of the cluster CA")?;
        Ok(Self { issuer })
    }

    /// Signs a certificate for the user `name`, in `group` (the organisation of the subject) where there is one.
    ///
    /// # Errors
    /// When signing fails.
    pub fn sign(&self, name: &str, group: Option<&str>) -> anyhow::Result<Identity> {
        let mut params = CertificateParams::default();
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, name);
        if let Some(group) = group {
            subject.push(DnType::OrganizationName, group);
        }
        params.distinguished_name = subject;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
