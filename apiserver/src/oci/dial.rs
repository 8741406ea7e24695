//! Connections to registries, and what is said when there is none: the texts of Go's `net` and `crypto/tls`.

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, InvalidMessage, RootCertStore, SignatureScheme,
};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::error::Error;

/// Opens TCP connections.
#[derive(Clone)]
pub(super) struct Dialer {
    pub(super) time: Duration,
}

/// Why a connection was not opened, in Go's words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct DialError(String);

type Dialing = Pin<Box<dyn Future<Output = Result<TokioIo<TcpStream>, DialError>> + Send>>;

impl tower_service::Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = DialError;
    type Future = Dialing;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Dialing {
        let time = self.time;
        Box::pin(async move { dial(&uri, time).await.map(TokioIo::new) })
    }
}

async fn dial(uri: &Uri, time: Duration) -> Result<TcpStream, DialError> {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
    let lookup = |why: &str| DialError(format!("dial tcp: lookup {host}: {why}"));
    let found = timeout(time, tokio::net::lookup_host((host, port))).await;
    let found: Vec<SocketAddr> = match found {
        Ok(Ok(found)) => found.collect(),
        Ok(Err(_)) => return Err(lookup("no such host")),
        Err(_) => return Err(lookup("i/o timeout")),
    };
    let mut first = None;
    for address in found {
        if is_metadata_service(address.ip()) {
            first.get_or_insert(DialError(format!(
                "dial tcp {address}: no registry is on a link-local address or a metadata service's"
            )));
            continue;
        }
        let why = match timeout(time, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => format!("connect: {}", io_text(&error)),
            Err(_) => "i/o timeout".to_owned(),
        };
        first.get_or_insert(DialError(format!("dial tcp {address}: {why}")));
    }
    Err(first.unwrap_or_else(|| lookup("no such host")))
}

/// Where clouds keep the credentials of machines, and no registry is: link-local addresses, and those of Alibaba,
/// Azure and Oracle, of Amazon and Google.
fn is_metadata_service(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_link_local()
                || matches!(address.octets(), [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192])
        }
        IpAddr::V6(address) => {
            address.is_unicast_link_local()
                || matches!(
                    address.segments(),
                    [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254]
                )
        }
    }
}

fn io_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "connection timed out".to_owned(),
        io::ErrorKind::BrokenPipe => "broken pipe".to_owned(),
        // Without Rust's "(os error 13)".
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_lowercase(),
    }
}

/// What a failed request comes from.
pub(super) fn cause(error: &(dyn StdError + 'static)) -> Error {
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(dial) = current.downcast_ref::<DialError>() {
            return Error::Failed(dial.to_string());
        }
        if let Some(tls) = current.downcast_ref::<rustls::Error>() {
            return tls_error(tls);
        }
        if let Some(error) = current.downcast_ref::<hyper::Error>() {
            if error.is_incomplete_message() {
                return Error::Broken("EOF".to_owned());
            }
            if error.is_parse() {
                return Error::Failed("malformed HTTP response".to_owned());
            }
        }
        if let Some(io) = current.downcast_ref::<io::Error>() {
            if let Some(inner) = io.get_ref() {
                next = Some(inner);
                continue;
            }
            return match io.kind() {
                io::ErrorKind::UnexpectedEof => Error::Broken("EOF".to_owned()),
                _ => Error::Broken(format!("read: {}", io_text(io))),
            };
        }
        next = current.source();
    }
    Error::Failed(error.to_string())
}

fn tls_error(error: &rustls::Error) -> Error {
    let text = match error {
        rustls::Error::InvalidCertificate(why) => {
            format!("tls: failed to verify certificate: x509: {}", certificate_text(why))
        }
        // What a plain HTTP server answers to a TLS greeting.
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        rustls::Error::InvalidMessage(InvalidMessage::MessageTooLarge) => {
            "tls: oversized record received".to_owned()
        }
        rustls::Error::AlertReceived(alert) => format!("remote error: tls: {alert:?}"),
        other => format!("tls: {other}"),
    };
    Error::Failed(text)
}

fn certificate_text(error: &CertificateError) -> String {
    let time = |time: UnixTime| {
        i64::try_from(time.as_secs())
            .ok()
            .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
            .map_or_else(String::new, |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    };
    let dated = "certificate has expired or is not yet valid";
    match error {
        CertificateError::UnknownIssuer => "certificate signed by unknown authority".to_owned(),
        CertificateError::ExpiredContext { time: now, not_after } => {
            format!("{dated}: current time {} is after {}", time(*now), time(*not_after))
        }
        CertificateError::NotValidYetContext { time: now, not_before } => {
            format!("{dated}: current time {} is before {}", time(*now), time(*not_before))
        }
        CertificateError::Expired | CertificateError::NotValidYet => dated.to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            if expected.parse::<IpAddr>().is_ok() {
                let why = "because it doesn't contain any IP SANs";
                return format!("cannot validate certificate for {expected} {why}");
            }
            let names: Vec<String> = presented.iter().filter_map(|name| dns_name(name)).collect();
            if names.is_empty() {
                return format!("certificate is not valid for any names, but wanted to match {expected}");
            }
            format!("certificate is valid for {}, not {expected}", names.join(", "))
        }
        other => other.to_string(),
    }
}

/// `DnsName("a.example")`, as rustls shows the names of a certificate.
fn dns_name(shown: &str) -> Option<String> {
    let name = shown.strip_prefix("DnsName(\"")?.strip_suffix("\")")?;
    Some(name.to_owned())
}

/// The TLS side of a client that trusts `roots`.
pub(super) fn verified(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The TLS side of a client that takes any certificate: for imports that say `insecure`.
pub(super) fn unverified() -> Result<ClientConfig, rustls::Error> {
    let provider = provider();
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let any = Arc::new(AnyCertificate(provider));
    Ok(builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
