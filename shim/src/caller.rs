//! Who is at the other end of a connection, as far as we vouch for it.

use std::sync::{Arc, OnceLock};

use picoshift_machinery::peer::Peer;
use picoshift_machinery::tls::TrustBundle;
use rustls::pki_types::UnixTime;
use sha2::{Digest as _, Sha256};

use crate::claims::{Claims, Unspeakable};

/// A client's connection.
#[derive(Debug)]
pub struct Connection {
    /// The other end.
    pub peer: Peer,
    /// What its certificate says, read once.
    named: OnceLock<Result<Option<Arc<Vouched>>, Unspeakable>>,
}

/// A user whose certificate is good.
#[derive(Debug)]
pub struct Vouched {
    /// The user.
    pub claims: Claims,
    /// Hash of the certificate.
    pub fingerprint: [u8; 32],
}

/// Who calls.
#[derive(Clone, Debug)]
pub enum Caller {
    /// Somebody with a good certificate: kube-apiserver takes our word, and looks at no token.
    Vouched(Arc<Vouched>),
    /// Whoever the request's own credentials say; kube-apiserver judges them.
    Own,
    /// Somebody with a certificate that is not good: without a good token that is 401, never anonymous.
    Doubtful,
}

impl Connection {
    /// A new connection.
    #[must_use]
    pub fn new(peer: Peer) -> Self {
        Self { peer, named: OnceLock::new() }
    }

    /// Who calls, judged by the authorities as they are now.
    #[must_use]
    pub fn caller(&self, authorities: &TrustBundle) -> Caller {
        let Some(certificate) = &self.peer.certificate else { return Caller::Own };
        if let Err(error) = certificate.verify(authorities, UnixTime::now()) {
            tracing::debug!(peer = %self.peer.address, %error, "client certificate refused");
            return Caller::Doubtful;
        }
        let named = self.named.get_or_init(|| {
            let claims = Claims::of_certificate(certificate)?;
            let fingerprint = Sha256::digest(certificate.der()).into();
            Ok(claims.map(|claims| Arc::new(Vouched { claims, fingerprint })))
        });
        match named {
            Ok(Some(vouched)) => Caller::Vouched(Arc::clone(vouched)),
            Ok(None) => Caller::Doubtful,
            Err(error) => {
                tracing::debug!(peer = %self.peer.address, %error, "client certificate refused");
                Caller::Doubtful
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use picoshift_machinery::peer::PeerCertificate;
    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    };
    use rustls::pki_types::CertificateDer;

    use super::*;

    struct Authority(Issuer<'static, KeyPair>, String);

    fn authority() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Authority(Issuer::new(params, key), pem)
    }

    fn connection(authority: &Authority, name: &str, groups: &[&str]) -> Connection {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if !name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let der: CertificateDer<'static> = params.signed_by(&key, &authority.0).unwrap().der().clone();
        let address = "127.0.0.1:1".parse().unwrap();
        Connection::new(Peer { address, certificate: PeerCertificate::new(vec![der]) })
    }

    #[test]
    fn only_a_good_certificate_with_a_name_is_vouched_for() {
        let (ours, other) = (authority(), authority());
        let bundle = TrustBundle::from_pem(ours.1.as_bytes()).unwrap();
        let Caller::Vouched(alice) = connection(&ours, "alice", &["dev"]).caller(&bundle) else {
            panic!("alice is good")
        };
        let mut headers = http::HeaderMap::new();
        alice.claims.add_to(&mut headers);
        assert_eq!(
            (&headers["x-remote-user"], &headers["x-remote-group"]),
            (&"alice".parse().unwrap(), &"dev".parse().unwrap())
        );
        let id = headers["x-remote-extra-authentication.kubernetes.io%2fcredential-id"].to_str().unwrap();
        assert!(id.starts_with("X509SHA256=") && id.len() == 75, "{id}");
        for doubtful in [
            connection(&other, "alice", &["dev"]),
            connection(&ours, "", &["system:masters"]),
            connection(&ours, " alice", &["dev"]),
            connection(&ours, "alice", &["system:masters "]),
        ] {
            assert!(matches!(doubtful.caller(&bundle), Caller::Doubtful));
        }
        let bare = Connection::new(Peer { address: "127.0.0.1:1".parse().unwrap(), certificate: None });
        assert!(matches!(bare.caller(&bundle), Caller::Own));
    }
}
