//! Who is at the other end of a connection: its address and the certificate it showed.

use std::net::SocketAddr;
use std::sync::OnceLock;

use parking_lot::Mutex;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::der_parser::asn1_rs::Tag;
use x509_parser::prelude::{AttributeTypeAndValue, FromDer, X509Certificate};

use crate::tls::{ChainError, TrustBundle};

/// Longest certificate whose subject is read.
const MAX_CERTIFICATE: usize = 64 * 1024;
/// Most groups that a certificate may name.
const MAX_ORGANIZATIONS: usize = 1000;
/// Seconds after which a certificate that failed is checked again: it may become valid, or the clock may be set.
const RETRY_AFTER: i64 = 5;
/// Results that a connection remembers, one per bundle.
const REMEMBERED: usize = 4;
/// Attribute that kube-apiserver reads as the user's uid.
const UID_OID: &str = "1.3.6.1.4.1.57683.2";

/// The other end of a connection.
#[derive(Debug)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// Its certificate, if it showed one: possession of the key is proved, nothing else.
    pub certificate: Option<PeerCertificate>,
}

/// What a certificate says about its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The last common name; empty for none.
    pub common_name: String,
    /// All organisations, in order.
    pub organizations: Vec<String>,
    /// Kubernetes' uid attributes.
    pub uids: Vec<String>,
}

/// A subject cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the certificate's subject cannot be read")]
pub struct BadSubject;

impl Subject {
    /// Reads the subject of a DER certificate.
    ///
    /// # Errors
    /// [`BadSubject`] when it is no certificate, too long, or has a name that is no text.
    pub fn of(certificate: &[u8]) -> Result<Self, BadSubject> {
        if certificate.len() > MAX_CERTIFICATE {
            return Err(BadSubject);
        }
        let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| BadSubject)?;
        let mut subject = Self::default();
        for attribute in parsed.subject().iter_attributes() {
            match attribute.attr_type().to_id_string().as_str() {
                "2.5.4.3" => subject.common_name = text(attribute)?,
                "2.5.4.10" => subject.organizations.push(text(attribute)?),
                UID_OID => subject.uids.push(text(attribute)?),
                _ => {}
            }
        }
        if subject.organizations.len() > MAX_ORGANIZATIONS {
            return Err(BadSubject);
        }
        Ok(subject)
    }
}

fn text(attribute: &AttributeTypeAndValue<'_>) -> Result<String, BadSubject> {
    let value = attribute.attr_value();
    match value.header.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String | Tag::NumericString => {
            std::str::from_utf8(value.data).map(ToOwned::to_owned).map_err(|_| BadSubject)
        }
        Tag::T61String => Ok(value.data.iter().copied().map(char::from).collect()),
        Tag::BmpString => {
            let units: Vec<u16> = value
                .data
                .chunks(2)
                .map(|pair| pair.iter().fold(0, |unit, byte| unit << 8 | u16::from(*byte)))
                .collect();
            String::from_utf16(&units).map_err(|_| BadSubject)
        }
        _ => Err(BadSubject),
    }
}

/// A client's certificate chain, with what has been found out about it so far.
#[derive(Debug)]
pub struct PeerCertificate {
    chain: Vec<CertificateDer<'static>>,
    subject: OnceLock<Result<Subject, BadSubject>>,
    verified: Mutex<Vec<Verified>>,
}

#[derive(Clone, Debug)]
struct Verified {
    generation: u64,
    until: i64,
    result: Result<(), ChainError>,
}

impl PeerCertificate {
    /// Takes the chain of a handshake, the client's own certificate first. `None` for an empty chain.
    #[must_use]
    pub fn new(chain: Vec<CertificateDer<'static>>) -> Option<Self> {
        (!chain.is_empty()).then(|| Self { chain, subject: OnceLock::new(), verified: Mutex::default() })
    }

    /// The client's own certificate.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        self.chain.first().map_or(&[], |certificate| certificate.as_ref())
    }

    /// The subject, read once.
    ///
    /// # Errors
    /// [`BadSubject`].
    pub fn subject(&self) -> Result<&Subject, BadSubject> {
        self.subject.get_or_init(|| Subject::of(self.der())).as_ref().map_err(|e| *e)
    }

    /// Whether the chain leads to an authority of `bundle` at `now`. Costs signature checks once per bundle and
    /// connection, then a comparison until the first certificate of the chain runs out.
    ///
    /// # Errors
    /// Why not, for the log.
    pub fn verify(&self, bundle: &TrustBundle, now: UnixTime) -> Result<(), ChainError> {
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let known = {
            let verified = self.verified.lock();
            verified.iter().find(|v| v.generation == bundle.generation() && seconds <= v.until).cloned()
        };
        if let Some(known) = known {
            return known.result;
        }
        let (until, result) = match bundle.verify(&self.chain, now) {
            Ok(until) => (until, Ok(())),
            Err(error) => (seconds.saturating_add(RETRY_AFTER), Err(error)),
        };
        let mut verified = self.verified.lock();
        verified.retain(|v| v.generation != bundle.generation());
        if verified.len() >= REMEMBERED {
            verified.remove(0);
        }
        verified.push(Verified { generation: bundle.generation(), until, result: result.clone() });
        result
    }
}

#[cfg(test)]
mod tests;
