//! Flags of `picoshift-shim`.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use http::Uri;
use http::uri::Authority;

/// OpenShift's front door for a vanilla kube-apiserver.
#[derive(Clone, Debug, Parser)]
#[command(name = "picoshift-shim", version)]
pub struct Args {
    /// Address to listen on.
    #[arg(long, default_value = "0.0.0.0")]
    pub bind_address: IpAddr,
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 6443)]
    pub secure_port: u16,
    /// PEM file with the serving certificate and its chain; read again when it changes, and on SIGHUP, as all files are.
    #[arg(long)]
    pub tls_cert_file: PathBuf,
    /// PEM file with the key of the serving certificate.
    #[arg(long)]
    pub tls_private_key_file: PathBuf,
    /// PEM file with the authorities of client certificates: what kube-apiserver has as `--client-ca-file`.
    #[arg(long)]
    pub client_ca_file: PathBuf,
    /// kube-apiserver.
    #[arg(long, default_value = "https://127.0.0.1:16443")]
    pub upstream: ServerUrl,
    /// PEM file with the authorities of kube-apiserver's serving certificate.
    #[arg(long)]
    pub upstream_ca_file: PathBuf,
    /// Name to expect in kube-apiserver's certificate; the host of `--upstream` if not given.
    #[arg(long)]
    pub upstream_server_name: Option<String>,
    /// PEM file with the front-proxy client certificate, which kube-apiserver and our API server believe.
    #[arg(long)]
    pub proxy_client_cert_file: PathBuf,
    /// PEM file with its key.
    #[arg(long)]
    pub proxy_client_key_file: PathBuf,
    /// kubeconfig for watching kube-apiserver (ConfigMaps, APIServices, OAuth access tokens). Without it nothing is watched:
    /// no discovery document, nothing goes directly to our API server, and revoked tokens are kube-apiserver's business alone.
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,
    /// Our API server; without it every request goes to kube-apiserver.
    #[arg(long, requires = "apiserver_ca_file")]
    pub apiserver: Option<ServerUrl>,
    /// PEM file with the authorities of our API server's serving certificate.
    #[arg(long)]
    pub apiserver_ca_file: Option<PathBuf>,
    /// Name to expect in our API server's certificate; `NAME.NAMESPACE.svc` of `--apiserver-service` if not given.
    #[arg(long)]
    pub apiserver_server_name: Option<String>,
    /// The Service that APIServices of our API server name.
    #[arg(long, default_value = "openshift-apiserver/openshift-apiserver")]
    pub apiserver_service: ServiceName,
    /// API groups whose requests go to our API server directly: `on` for all that its APIServices name, `off`, or a list.
    #[arg(long, default_value = "on")]
    pub direct_groups: DirectGroups,
    /// Address of probes and counters.
    #[arg(long, default_value = "127.0.0.1")]
    pub status_bind_address: IpAddr,
    /// Port of probes and counters; 0 takes a free one.
    #[arg(long, default_value_t = 6444)]
    pub status_port: u16,
    /// Seconds within which an answer must begin, unless it may take for ever (watch, log, exec, proxy). Longer than
    /// kube-apiserver's `--request-timeout`.
    #[arg(long, default_value_t = 1260, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub answer_timeout_seconds: u64,
    /// Log a line for each request.
    #[arg(long)]
    pub access_log: bool,
    /// Form of the log.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What is logged: a level, or directives such as `info,picoshift_shim=debug`.
    #[arg(short = 'v', long, default_value = "info")]
    pub log_level: String,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// Host and port.
    pub authority: Authority,
}

/// A Service by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Which groups go directly to our API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectGroups {
    /// All that its APIServices name.
    All,
    /// None.
    None,
    /// These.
    Only(BTreeSet<String>),
}

/// A flag's value has another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    /// Of a URL.
    #[error("it must be https://HOST:PORT")]
    Url,
    /// Of a Service.
    #[error("it must be NAMESPACE/NAME")]
    Service,
    /// Of a list of groups.
    #[error("it must be `on`, `off`, or API groups with commas between them")]
    Groups,
}

impl FromStr for ServerUrl {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let uri: Uri = text.parse().map_err(|_| BadValue::Url)?;
        let bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
        match uri.authority() {
            Some(authority)
                if bare && uri.scheme_str() == Some("https") && !authority.as_str().contains('@') =>
            {
                Ok(Self { authority: authority.clone() })
            }
            _ => Err(BadValue::Url),
        }
    }
}

impl FromStr for ServiceName {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(BadValue::Service),
        }
    }
}

impl FromStr for DirectGroups {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "on" => Ok(Self::All),
            "off" => Ok(Self::None),
            list => {
                let groups: BTreeSet<String> = list.split(',').map(|group| group.trim().to_owned()).collect();
                let is_group = |group: &String| {
                    group.contains('.')
                        && group
                            .bytes()
                            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-')
                };
                if groups.iter().all(is_group) { Ok(Self::Only(groups)) } else { Err(BadValue::Groups) }
            }
        }
    }
}

impl Args {
    /// Where to listen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.bind_address, self.secure_port)
    }

    /// Where probes and counters are.
    #[must_use]
    pub fn status_address(&self) -> SocketAddr {
        SocketAddr::new(self.status_bind_address, self.status_port)
    }

    /// Time until an answer must begin.
    #[must_use]
    pub fn answer_timeout(&self) -> Duration {
        Duration::from_secs(self.answer_timeout_seconds)
    }

    /// The name in our API server's certificate.
    #[must_use]
    pub fn apiserver_name(&self) -> String {
        self.apiserver_server_name.clone().unwrap_or_else(|| {
            format!("{}.{}.svc", self.apiserver_service.name, self.apiserver_service.namespace)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_forms() {
        assert!("https://127.0.0.1:16443".parse::<ServerUrl>().is_ok());
        for bad in ["http://a", "a:1", "https://a/path", "https://u:p@a", ""] {
            assert_eq!(bad.parse::<ServerUrl>(), Err(BadValue::Url), "{bad}");
        }
        assert!("a/b".parse::<ServiceName>().is_ok());
        for bad in ["a", "/b", "a/", "a/b/c"] {
            assert_eq!(bad.parse::<ServiceName>(), Err(BadValue::Service), "{bad}");
        }
        assert_eq!("on".parse(), Ok(DirectGroups::All));
        assert_eq!("off".parse(), Ok(DirectGroups::None));
        let two = BTreeSet::from(["route.openshift.io".to_owned(), "user.openshift.io".to_owned()]);
        assert_eq!("user.openshift.io, route.openshift.io".parse(), Ok(DirectGroups::Only(two)));
        for bad in ["", "true", "a.b/c", "a.b,,c.d"] {
            assert_eq!(bad.parse::<DirectGroups>(), Err(BadValue::Groups), "{bad}");
        }
    }
}
