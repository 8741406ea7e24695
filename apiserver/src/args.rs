//! Flags of `picoshift-apiserver`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// The aggregated API server of OpenShift's groups.
#[derive(Clone, Debug, Parser)]
#[command(name = "picoshift-apiserver", version)]
pub struct Args {
    /// Address to listen on.
    #[arg(long, default_value = "0.0.0.0")]
    pub bind_address: IpAddr,
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 8443)]
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
    /// File in which objects are stored.
    #[arg(long)]
    pub data_file: PathBuf,
    /// Domain under which Routes without a host get one.
    #[arg(long, default_value = "apps.picoshift.localhost")]
    pub ingress_domain: String,
    /// Host (and port) of the cluster's image registry as pods reach it; without one, image streams have no repository.
    #[arg(long, env = "PICOSHIFT_INTERNAL_REGISTRY_HOSTNAME", default_value = "")]
    pub internal_registry_hostname: String,
    /// Host (and port) of the cluster's image registry as everybody else reaches it.
    #[arg(long, env = "PICOSHIFT_EXTERNAL_REGISTRY_HOSTNAME", default_value = "")]
    pub external_registry_hostname: String,
    /// PEM file with certificates of authorities that registries are believed by, beside the system's.
    #[arg(long, env = "PICOSHIFT_REGISTRY_CA_FILE")]
    pub registry_ca_file: Option<PathBuf>,
    /// Tags of one repository that an import takes at once; -1 for all.
    #[arg(long, default_value_t = 50, allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1..))]
    pub max_images_bulk_imported_per_repository: i64,
    /// Audiences that OAuth tokens are for: those of kube-apiserver.
    #[arg(long, value_delimiter = ',', default_value = "https://kubernetes.default.svc")]
    pub api_audiences: Vec<String>,
    /// Seconds after which an OAuth token times out that nobody uses, for clients that say none: 0 for never, or 300 or more.
    #[arg(long, default_value_t = 0, value_parser = inactivity_timeout)]
    pub accesstoken_inactivity_timeout: i64,
    /// Form of the log.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What is logged: a level, or directives such as `info,picoshift_apiserver=debug`.
    #[arg(short = 'v', long, default_value = "info")]
    pub log_level: String,
    /// File with the audit policy (audit.k8s.io/v1): what is recorded of which requests.
    #[arg(long, env = "PICOSHIFT_AUDIT_POLICY_FILE", requires = "audit_log_path")]
    pub audit_policy_file: Option<PathBuf>,
    /// File that audit events are appended to, one JSON line each; `-` for standard output. Opened anew on SIGHUP.
    #[arg(long, env = "PICOSHIFT_AUDIT_LOG_PATH", requires = "audit_policy_file")]
    pub audit_log_path: Option<PathBuf>,
    /// Reading requests that run at a time; more wait for their turn, and are answered with 429 when that is long.
    #[arg(long, default_value_t = 3000)]
    pub max_requests_inflight: usize,
    /// Changing requests that run at a time; more wait for their turn, and are answered with 429 when that is long.
    #[arg(long, default_value_t = 1500)]
    pub max_mutating_requests_inflight: usize,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

impl Args {
    /// Where to listen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.bind_address, self.secure_port)
    }
}

fn inactivity_timeout(text: &str) -> Result<i64, String> {
    match text.parse::<i32>().map_err(|error| error.to_string())? {
        seconds @ (0 | 300..) => Ok(seconds.into()),
        _ => Err("it is 0, or 300 or more".to_owned()),
    }
}
