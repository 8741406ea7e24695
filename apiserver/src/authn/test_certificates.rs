//! Certificate authorities and client certificates for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use picoshift_machinery::peer::{Peer, PeerCertificate};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Connection;
use super::extension_config::ExtensionConfig;

/// An authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

/// A client's certificate and key.
pub(crate) struct Client {
    pub(crate) certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    pub(crate) fn client(&self, name: &str, groups: &[&str]) -> Client {
        self.client_until(name, groups, 2050)
    }

    pub(crate) fn client_until(&self, name: &str, groups: &[&str], year: i32) -> Client {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        // rcgen keeps one value per type; a type of its own with the same number gives a second one.
        let types = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
        assert!(groups.len() <= types.len());
        for (group, r#type) in groups.iter().zip(types) {
            params.distinguished_name.push(r#type, *group);
        }
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        Client { certificate, key }
    }
}

impl Client {
    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.serialize_der()).unwrap()
    }
}

/// A connection with or without a certificate.
pub(crate) fn connection(client: Option<&Client>) -> Connection {
    let certificate = client.and_then(|client| PeerCertificate::new(vec![client.certificate.clone()]));
    Connection::new(Peer { address: "127.0.0.1:1".parse().unwrap(), certificate })
}

/// The ConfigMap as kube-apiserver writes it, with the two authorities and one allowed name.
pub(crate) fn config_map(clients: &Authority, proxy: &Authority) -> BTreeMap<String, String> {
    [
        ("client-ca-file", clients.pem.as_str()),
        ("requestheader-client-ca-file", proxy.pem.as_str()),
        ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
        ("requestheader-username-headers", r#"["X-Remote-User"]"#),
        ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
        ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

/// The configuration of a ConfigMap.
pub(crate) fn config(map: &BTreeMap<String, String>) -> Arc<ArcSwap<ExtensionConfig>> {
    let config = ExtensionConfig::parse(map, &ExtensionConfig::default()).unwrap();
    Arc::new(ArcSwap::from_pointee(config))
}
