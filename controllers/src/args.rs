//! Flags of `picoshift-controllers`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, ValueEnum};

use crate::leader::Timing;
use crate::oauth::url;

/// The controllers that OpenShift's groups assume.
#[derive(Clone, Debug, Parser)]
#[command(name = "picoshift-controllers", version)]
pub struct Args {
    /// Address to listen on for probes and counters.
    #[arg(long, default_value = "0.0.0.0")]
    pub bind_address: IpAddr,
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 8444)]
    pub secure_port: u16,
    /// PEM file with the serving certificate and its chain; read again when it changes, and on SIGHUP.
    #[arg(long)]
    pub tls_cert_file: PathBuf,
    /// PEM file with the key of the serving certificate.
    #[arg(long)]
    pub tls_private_key_file: PathBuf,
    /// kubeconfig for kube-apiserver; without it the environment, or the pod's service account, says where it is.
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,
    /// Work only while holding a Lease, so that of several processes one works.
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL")]
    pub leader_elect: bool,
    /// Namespace of the Lease.
    #[arg(long, default_value = "openshift-controller-manager")]
    pub leader_elect_resource_namespace: String,
    /// Name of the Lease.
    #[arg(long, default_value = "picoshift-controllers")]
    pub leader_elect_resource_name: String,
    /// Who this process is in the Lease. A name that stays lets a process that was restarted go on at once; no two
    /// processes may have it at the same time. A new name for each process if not given.
    #[arg(long)]
    pub leader_elect_identity: Option<String>,
    /// Seconds after which a leader that does not renew the Lease has lost it.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub leader_elect_lease_duration_seconds: u64,
    /// Seconds after which a leader that cannot renew the Lease stops; fewer than the Lease's.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub leader_elect_renew_deadline_seconds: u64,
    /// Seconds between two renewals of the Lease; fewer than the deadline's.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub leader_elect_retry_period_seconds: u64,
    /// Seconds between two imports of a tag with `importPolicy.scheduled`.
    #[arg(long, default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub scheduled_image_import_minimum_interval_seconds: u64,
    /// ImageStreams imported per minute; twice as many may come at once.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub max_image_imports_per_minute: u32,
    /// ImageStreams imported at a time.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub concurrent_image_imports: u16,
    /// URL of the OAuth server as clients call it; without it, there is none.
    #[arg(long, requires_all = ["oauth_tls_cert_file", "oauth_tls_private_key_file"])]
    pub oauth_issuer: Option<String>,
    /// Address and port that the OAuth server listens on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:9443")]
    pub oauth_bind_address: SocketAddr,
    /// PEM file with the OAuth server's certificate and its chain; read again when it changes, and on SIGHUP.
    #[arg(long)]
    pub oauth_tls_cert_file: Option<PathBuf>,
    /// PEM file with the key of the OAuth server's certificate.
    #[arg(long)]
    pub oauth_tls_private_key_file: Option<PathBuf>,
    /// PEM file with the authorities that vouch for the OAuth server's certificate, for others to find in the ConfigMap
    /// openshift-config-managed/oauth-serving-cert.
    #[arg(long)]
    pub oauth_ca_file: Option<PathBuf>,
    /// URL of the API that people are shown beside their tokens.
    #[arg(long, default_value = "https://127.0.0.1:6443")]
    pub oauth_api_url: String,
    /// URL of the console: who logs out may be sent there.
    #[arg(long)]
    pub oauth_console_url: Option<String>,
    /// Form of the log.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What is logged: a level, or directives such as `info,picoshift_controllers=debug`.
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

/// Flags that do not go together.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgsError {
    /// Two leaders would be possible.
    #[error("--leader-elect-renew-deadline-seconds must be less than --leader-elect-lease-duration-seconds")]
    Deadline,
    /// No renewal would be tried in time.
    #[error("--leader-elect-retry-period-seconds must be less than --leader-elect-renew-deadline-seconds")]
    Retry,
    /// No client could call it.
    #[error("--oauth-issuer must be an https URL without a path, query or fragment: {0:?}")]
    Issuer(String),
}

impl Args {
    /// Where to listen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.bind_address, self.secure_port)
    }

    /// The OAuth server's URL without a slash at its end; `None` if there is to be no such server.
    ///
    /// # Errors
    /// [`ArgsError::Issuer`].
    pub fn issuer(&self) -> Result<Option<String>, ArgsError> {
        let Some(text) = &self.oauth_issuer else { return Ok(None) };
        let trimmed = text.trim_end_matches('/');
        match url::read(trimmed) {
            Ok(url)
                if url.scheme == "https"
                    && !url.host.is_empty()
                    && trimmed == format!("https://{}", url.host) =>
            {
                Ok(Some(trimmed.to_owned()))
            }
            _ => Err(ArgsError::Issuer(text.clone())),
        }
    }

    /// The times of the leader election.
    ///
    /// # Errors
    /// [`ArgsError`].
    pub fn timing(&self) -> Result<Timing, ArgsError> {
        let timing = Timing {
            lease: Duration::from_secs(self.leader_elect_lease_duration_seconds),
            renew_deadline: Duration::from_secs(self.leader_elect_renew_deadline_seconds),
            retry: Duration::from_secs(self.leader_elect_retry_period_seconds),
        };
        if timing.renew_deadline >= timing.lease {
            return Err(ArgsError::Deadline);
        }
        if timing.retry >= timing.renew_deadline {
            return Err(ArgsError::Retry);
        }
        Ok(timing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(more: &[&str]) -> Args {
        let needed = ["picoshift-controllers", "--tls-cert-file=c", "--tls-private-key-file=k"];
        Args::try_parse_from(needed.iter().chain(more)).unwrap()
    }

    #[test]
    fn the_usual_times_go_together() {
        let timing = args(&[]).timing().unwrap();
        assert_eq!((timing.lease.as_secs(), timing.renew_deadline.as_secs()), (15, 10));
        assert!(args(&[]).leader_elect);
        assert!(!args(&["--leader-elect=false"]).leader_elect);
    }

    #[test]
    fn an_oauth_server_needs_a_url_and_a_certificate() {
        assert_eq!(args(&[]).issuer(), Ok(None));
        let files = ["--oauth-tls-cert-file=c", "--oauth-tls-private-key-file=k"];
        let issuer = |url: &str| args(&[files[0], files[1], &format!("--oauth-issuer={url}")]).issuer();
        assert_eq!(issuer("https://oauth.example:9443/"), Ok(Some("https://oauth.example:9443".to_owned())));
        for bad in ["http://oauth.example", "https://a/b", "https://a?x", "https://u@a", "oauth"] {
            assert_eq!(issuer(bad), Err(ArgsError::Issuer(bad.to_owned())));
        }
        let needed = [
            "picoshift-controllers",
            "--tls-cert-file=c",
            "--tls-private-key-file=k",
            "--oauth-issuer=https://a",
        ];
        assert!(Args::try_parse_from(needed).is_err());
    }

    #[test]
    fn times_that_allow_two_leaders_are_refused() {
        let deadline = args(&["--leader-elect-lease-duration-seconds=10"]).timing();
        assert_eq!(deadline.unwrap_err(), ArgsError::Deadline);
        let retry = args(&["--leader-elect-retry-period-seconds=10"]).timing();
        assert_eq!(retry.unwrap_err(), ArgsError::Retry);
    }
}
