//! The certificates: who holds them, for which names, signed by whom.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Result;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

use super::authority::{Authority, Signer};
use super::{RENEW_DAYS, days_left, set_validity};
use crate::paths::{Paths, write_atomically};

const VALID_DAYS: i64 = 365;

/// What a certificate is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usage {
    Client,
    Server,
    /// etcd's: it is its own peer.
    Both,
}

/// A certificate to be had.
#[derive(Debug)]
pub(crate) struct Leaf {
    /// The stem of its files.
    pub(crate) name: &'static str,
    pub(super) authority: Authority,
    common_name: &'static str,
    organization: Option<&'static str>,
    usage: Usage,
    /// Host names and addresses besides those of [`LOOPBACK`], for servers.
    names: &'static [&'static str],
}

const LOOPBACK: [&str; 2] = ["localhost", "127.0.0.1"];

const fn client(name: &'static str, common_name: &'static str, organization: Option<&'static str>) -> Leaf {
    Leaf { name, authority: Authority::Cluster, common_name, organization, usage: Usage::Client, names: &[] }
}

const fn server(name: &'static str, names: &'static [&'static str]) -> Leaf {
    Leaf {
        name,
        authority: Authority::Cluster,
        common_name: name,
        organization: None,
        usage: Usage::Server,
        names,
    }
}

/// The names by which clients and pods call the API.
const API: &[&str] = &[
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "openshift",
    "openshift.default",
    "openshift.default.svc",
    "openshift.default.svc.cluster.local",
    "10.96.0.1",
];

/// All certificates. Names and groups of clients are what Kubernetes' and our bootstrap RBAC bind.
pub(crate) const LEAVES: &[Leaf] = &[
    client("admin", "picoshift-admin", Some("system:masters")),
    client("kube-controller-manager", "system:kube-controller-manager", None),
    client("kube-scheduler", "system:kube-scheduler", None),
    client("kubelet-client", "kube-apiserver-kubelet-client", None),
    client("openshift-apiserver", "system:openshift-apiserver", None),
    client("openshift-controller-manager", "system:openshift-controller-manager", None),
    client("authorization-webhook", "system:picoshift:authorization-webhook", None),
    client("shim", "system:picoshift:shim", None),
    server("api-serving", API),
    // The shim calls it by its address.
    server("kube-apiserver-serving", &[]),
    server("oauth-serving", &["oauth-openshift.openshift-authentication.svc"]),
    client(
        "authentication-webhook",
        "system:serviceaccount:openshift-oauth-apiserver:openshift-authenticator",
        None,
    ),
    server("kube-controller-manager-serving", &[]),
    server("kube-scheduler-serving", &[]),
    server("openshift-apiserver-serving", &["openshift-apiserver.openshift-apiserver.svc"]),
    server("openshift-controller-manager-serving", &[]),
    Leaf { authority: Authority::FrontProxy, ..client("front-proxy-client", "front-proxy-client", None) },
    Leaf { authority: Authority::Etcd, usage: Usage::Both, ..server("etcd-server", &[]) },
    Leaf { authority: Authority::Etcd, ..client("etcd-client", "kube-apiserver-etcd-client", None) },
];

impl Leaf {
    /// Its certificate's file.
    pub(super) fn certificate(&self, paths: &Paths) -> PathBuf {
        paths.pki(&format!("{}.crt", self.name))
    }

    /// Its key's file.
    pub(super) fn key(&self, paths: &Paths) -> PathBuf {
        paths.pki(&format!("{}.key", self.name))
    }

    /// Makes it, unless there is one that says the same and is good for a while.
    pub(super) fn ensure(&self, signer: &Signer, paths: &Paths) -> Result<()> {
        if self.is_good(paths) {
            return Ok(());
        }
        let key = KeyPair::generate()?;
        let certificate = self.params()?.signed_by(&key, &signer.issuer)?;
        // A crash in between leaves a pair that does not match: `is_good` sees that.
        write_atomically(&self.key(paths), key.serialize_pem().as_bytes(), 0o600)?;
        write_atomically(&self.certificate(paths), certificate.pem().as_bytes(), 0o644)
    }

    fn params(&self) -> Result<CertificateParams> {
        let mut params =
            CertificateParams::new(self.names().into_iter().map(str::to_owned).collect::<Vec<_>>())?;
        params.distinguished_name.remove(DnType::CommonName);
        params.distinguished_name.push(DnType::CommonName, self.common_name);
        if let Some(organization) = self.organization {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match self.usage {
            Usage::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
            Usage::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Usage::Both => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
        };
        set_validity(&mut params, VALID_DAYS)?;
        Ok(params)
    }

    fn names(&self) -> BTreeSet<&'static str> {
        match self.usage {
            Usage::Client => BTreeSet::new(),
            Usage::Server | Usage::Both => LOOPBACK.into_iter().chain(self.names.iter().copied()).collect(),
        }
    }

    fn is_good(&self, paths: &Paths) -> bool {
        let Ok(pem) = fs::read(self.certificate(paths)) else {
            return false;
        };
        let Ok(key) = fs::read_to_string(self.key(paths)) else {
            return false;
        };
        let (Ok((_, pem)), Ok(key)) = (x509_parser::pem::parse_x509_pem(&pem), KeyPair::from_pem(&key))
        else {
            return false;
        };
        let Ok(certificate) = pem.parse_x509() else {
            return false;
        };
        let subject = certificate.subject();
        certificate.public_key().subject_public_key.data == key.public_key_raw()
            && days_left(&certificate) >= RENEW_DAYS
            && subject.iter_common_name().filter_map(|name| name.as_str().ok()).eq([self.common_name])
            && subject.iter_organization().filter_map(|name| name.as_str().ok()).eq(self.organization)
            && subject_names(&certificate) == self.names().into_iter().map(str::to_owned).collect()
    }
}

/// The host names and addresses that a certificate is for.
pub(super) fn subject_names(certificate: &X509Certificate<'_>) -> BTreeSet<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return BTreeSet::new();
    };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match <[u8; 4]>::try_from(*bytes) {
            Ok(bytes) => Some(IpAddr::from(bytes).to_string()),
            Err(_) => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
        },
        _ => None,
    };
    extension.value.general_names.iter().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed<T>(name: &str, read: impl FnOnce(&X509Certificate<'_>) -> T) -> T {
        let leaf = LEAVES.iter().find(|leaf| leaf.name == name).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { state: dir.path().to_path_buf(), cache: dir.path().join("cache") };
        paths.create_state().unwrap();
        let signer = Signer::ensure(leaf.authority, &paths).unwrap();
        leaf.ensure(&signer, &paths).unwrap();
        assert!(leaf.is_good(&paths));
        let pem = fs::read(leaf.certificate(&paths)).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).unwrap();
        read(&pem.parse_x509().unwrap())
    }

    #[test]
    fn the_api_answers_to_all_its_names() {
        let names = parsed("api-serving", subject_names);
        for name in API.iter().chain(&LOOPBACK) {
            assert!(names.contains(*name), "{name}");
        }
    }

    #[test]
    fn our_server_answers_to_its_service() {
        let names = parsed("openshift-apiserver-serving", subject_names);
        assert!(names.contains("openshift-apiserver.openshift-apiserver.svc"));
        assert!(names.contains("127.0.0.1"));
    }

    #[test]
    fn only_the_administrator_is_in_system_masters() {
        for leaf in LEAVES {
            assert_eq!(leaf.organization.is_some(), leaf.name == "admin", "{}", leaf.name);
        }
        let (subject, usages) = parsed("admin", |certificate| {
            let usage = certificate.extended_key_usage().unwrap().unwrap().value.clone();
            (certificate.subject().to_string(), (usage.client_auth, usage.server_auth))
        });
        assert_eq!(subject, "CN=picoshift-admin, O=system:masters");
        assert_eq!(usages, (true, false));
    }
}
