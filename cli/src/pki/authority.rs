//! The certificate authorities. They are apart because a certificate of one must not open the doors of another: any user's
//! certificate would else open etcd, or let its holder pass for the front proxy.

use std::fs;

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use super::{LEAVES, RENEW_DAYS, days_left, set_validity};
use crate::paths::{Paths, write_atomically};

const VALID_DAYS: i64 = 3650;

/// Who signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Authority {
    /// Users, components and serving certificates.
    Cluster,
    /// The aggregator of kube-apiserver, which may say who a user is.
    FrontProxy,
    /// etcd and its one client.
    Etcd,
}

impl Authority {
    pub(super) const ALL: [Self; 3] = [Self::Cluster, Self::FrontProxy, Self::Etcd];

    /// The stem of its files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cluster => "cluster-ca",
            Self::FrontProxy => "front-proxy-ca",
            Self::Etcd => "etcd-ca",
        }
    }
}

/// An authority with its key.
pub(super) struct Signer {
    /// What signs.
    pub(super) issuer: Issuer<'static, KeyPair>,
}

impl Signer {
    /// Reads an authority, or makes it (and with it, all of its certificates) anew.
    pub(super) fn ensure(authority: Authority, paths: &Paths) -> Result<Self> {
        let certificate_file = paths.pki(&format!("{}.crt", authority.name()));
        let key_file = paths.pki(&format!("{}.key", authority.name()));
        if let (Ok(certificate), Ok(key)) =
            (fs::read_to_string(&certificate_file), fs::read_to_string(&key_file))
            && let Ok(key) = KeyPair::from_pem(&key)
            && is_good(&certificate, &key)
        {
            let issuer = Issuer::from_ca_cert_pem(&certificate, key)?;
            return Ok(Self { issuer });
        }
        for leaf in LEAVES.iter().filter(|leaf| leaf.authority == authority) {
            for file in [leaf.certificate(paths), leaf.key(paths)] {
                match fs::remove_file(&file) {
                    Err(err) if err.kind() != std::io::ErrorKind::NotFound => {
                        return Err(err).with_context(|| format!("cannot remove {}", file.display()));
                    }
                    _ => {}
                }
            }
        }
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("picoshift {}", authority.name()));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        set_validity(&mut params, VALID_DAYS)?;
        let certificate = params.self_signed(&key)?;
        write_atomically(&key_file, key.serialize_pem().as_bytes(), 0o600)?;
        write_atomically(&certificate_file, certificate.pem().as_bytes(), 0o644)?;
        Ok(Self { issuer: Issuer::new(params, key) })
    }
}

fn is_good(certificate: &str, key: &KeyPair) -> bool {
    let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()) else {
        return false;
    };
    let Ok(certificate) = pem.parse_x509() else {
        return false;
    };
    let same_key = certificate.public_key().subject_public_key.data == key.public_key_raw();
    same_key && days_left(&certificate) >= RENEW_DAYS
}
