//! The certificate for all hosts below the ingress domain: what Routes without a certificate of their own are served with.

use std::fs;

use anyhow::Result;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};

use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;

use super::authority::{Authority, Signer};
use super::leaf::subject_names;
use super::{RENEW_DAYS, days_left, set_validity};
use crate::paths::{Paths, write_atomically};

const VALID_DAYS: i64 = 730;

/// A certificate with its key and its authority, as PEM.
#[derive(Clone)]
pub(crate) struct IngressCertificate {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) authority: String,
}

/// The certificate for a domain: the one that is there, if it is good for a while, or a new one.
pub(crate) fn ingress_certificate(paths: &Paths, domain: &str) -> Result<IngressCertificate> {
    let [certificate_file, key_file] = ["ingress.crt", "ingress.key"].map(|name| paths.pki(name));
    let name = format!("*.{domain}");
    let signer = Signer::ensure(Authority::Cluster, paths)?;
    let authority = fs::read_to_string(paths.pki("cluster-ca.crt"))?;
    if let (Ok(certificate), Ok(key)) = (fs::read_to_string(&certificate_file), fs::read_to_string(&key_file))
        && is_good(&certificate, &key, &authority, &name)
    {
        return Ok(IngressCertificate { certificate, key, authority });
    }
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec![name.clone()])?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    set_validity(&mut params, VALID_DAYS)?;
    let certificate = params.signed_by(&key, &signer.issuer)?.pem();
    let key = key.serialize_pem();
    write_atomically(&key_file, key.as_bytes(), 0o600)?;
    write_atomically(&certificate_file, certificate.as_bytes(), 0o644)?;
    Ok(IngressCertificate { certificate, key, authority })
}

/// Whether a certificate belongs to a key, an authority and a name, and is good for a while.
fn is_good(certificate: &str, key: &str, authority: &str, name: &str) -> bool {
    let parse = |pem: &str| x509_parser::pem::parse_x509_pem(pem.as_bytes()).ok().map(|(_, pem)| pem);
    let (Some(certificate), Some(authority), Ok(key)) =
        (parse(certificate), parse(authority), KeyPair::from_pem(key))
    else {
        return false;
    };
    let (Ok(certificate), Ok(authority)) = (certificate.parse_x509(), authority.parse_x509()) else {
        return false;
    };
    certificate.public_key().subject_public_key.data == key.public_key_raw()
        && key_ids(&certificate).1.is_some_and(|signed_by| Some(signed_by) == key_ids(&authority).0)
        && days_left(&certificate) >= RENEW_DAYS
        && subject_names(&certificate) == [name.to_owned()].into()
}

/// The identifiers of a certificate's own key and of the key that signed it.
fn key_ids<'a>(certificate: &'a X509Certificate<'a>) -> (Option<&'a [u8]>, Option<&'a [u8]>) {
    let (mut own, mut signer) = (None, None);
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => own = Some(id.0),
            ParsedExtension::AuthorityKeyIdentifier(id) => signer = id.key_identifier.as_ref().map(|id| id.0),
            _ => {}
        }
    }
    (own, signer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_kept_until_the_domain_or_the_authority_changes() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { state: dir.path().join("state"), cache: dir.path().join("cache") };
        paths.create_state().unwrap();
        let certificate = |domain: &str| ingress_certificate(&paths, domain).unwrap().certificate;
        let first = certificate("apps.example.org");
        assert_eq!(certificate("apps.example.org"), first);
        let second = certificate("apps.example.com");
        assert_ne!(second, first);
        fs::remove_file(paths.pki("cluster-ca.key")).unwrap();
        assert_ne!(certificate("apps.example.com"), second);
    }
}
