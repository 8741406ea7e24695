//! `picoshift-controllers`: reads flags, connects to kube-apiserver, works while it leads, until SIGTERM.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use picoshift_controllers::args::{Args, LogFormat};
use picoshift_controllers::default_role_bindings::DefaultRoleBindings;
use picoshift_controllers::image_import::{self, ImageImport};
use picoshift_controllers::leader::Elector;
use picoshift_controllers::leader::lease::KubeLease;
use picoshift_controllers::manager::{Controller, Manager};
use picoshift_controllers::metrics::Metrics;
use picoshift_controllers::oauth::directory::Directory;
use picoshift_controllers::oauth::endpoints::{Endpoints, Settings};
use picoshift_controllers::oauth::logins::Logins;
use picoshift_controllers::oauth::provider::Hashing;
use picoshift_controllers::oauth::service::{self, OAuthService};
use picoshift_controllers::oauth::throttle::Throttle;
use picoshift_controllers::oauth::upkeep::Upkeep;
use picoshift_controllers::server::Server;
use picoshift_machinery::drain::Drain;
use picoshift_machinery::readiness::{Checks, Shown};
use picoshift_machinery::tls::ServingCertificate;
use picoshift_machinery::{log, signals};
use uuid::Uuid;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let timing = args.timing()?;
    let issuer = args.issuer()?;
    log::start(&args.log_level, args.log_format == LogFormat::Json).context("--log-level")?;
    // kube's client takes the process's provider.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();

    let certificate = ServingCertificate::load(&args.tls_cert_file, &args.tls_private_key_file)?;
    let oauth_certificate = match (&args.oauth_tls_cert_file, &args.oauth_tls_private_key_file) {
        (Some(certificate), Some(key)) => Some(ServingCertificate::load(certificate, key)?),
        _ => None,
    };
    let drain = Drain::new();
    let hung_up: Vec<_> = oauth_certificate.iter().chain([&certificate]).map(Arc::clone).collect();
    signals::follow(drain.clone(), move || hung_up.iter().for_each(|certificate| certificate.look()))?;
    let client = kube::Client::try_from(kube_config(&args).await?).context("cannot make a client")?;

    let checks = Checks::new();
    checks.add("ping", Shown::Everywhere, || Ok(()));
    let metrics = Arc::new(Metrics::new());
    let settings = image_import::Settings {
        interval: Duration::from_secs(args.scheduled_image_import_minimum_interval_seconds),
        per_minute: args.max_image_imports_per_minute,
        parallel: usize::from(args.concurrent_image_imports),
    };
    let mut controllers: Vec<Arc<dyn Controller>> = vec![
        Arc::new(DefaultRoleBindings::new(client.clone())),
        Arc::new(ImageImport::new(client.clone(), settings, metrics.imports())),
    ];
    let oauth = match (issuer, oauth_certificate) {
        (Some(issuer), Some(certificate)) => {
            controllers.push(Arc::new(Upkeep::new(client.clone(), &issuer, args.oauth_ca_file.clone())));
            Some(oauth_service(&args, issuer, certificate, &client, &checks, &metrics).await?)
        }
        _ => None,
    };
    let manager = Manager::new(controllers, &checks, &metrics);
    let server = Server::bind(args.address(), certificate, checks, Arc::clone(&metrics)).await?;
    tracing::info!(address = %server.address(), "serving");

    // Probes are answered until the controllers have ended.
    let finished = Drain::new();
    let work = async {
        if args.leader_elect {
            let identity = args.leader_elect_identity.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
            let (namespace, name) = (&args.leader_elect_resource_namespace, &args.leader_elect_resource_name);
            let lease = KubeLease::new(client, namespace, name);
            let elector = Elector::new(lease, identity, timing, Timestamp::now);
            manager.run(&elector, &metrics, &drain).await;
        } else {
            metrics.leading.set(1);
            manager.work(&drain).await;
        }
        finished.start();
    };
    let log_in = async {
        match oauth {
            Some(oauth) => oauth.serve(drain.clone()).await,
            None => drain.wait().await,
        }
    };
    tokio::join!(server.serve(drain.clone(), finished.clone()), work, log_in);
    tracing::info!("drained");
    Ok(())
}

/// The OAuth server, bound.
async fn oauth_service(
    args: &Args,
    issuer: String,
    certificate: Arc<ServingCertificate>,
    client: &kube::Client,
    checks: &Checks,
    metrics: &Metrics,
) -> anyhow::Result<OAuthService> {
    let directory = Arc::new(Directory::default());
    let settings =
        Settings { issuer, api_url: args.oauth_api_url.clone(), console_url: args.oauth_console_url.clone() };
    let logins = Logins {
        api: Arc::new(client.clone()),
        throttle: Throttle::default(),
        hashing: Hashing::default(),
        metrics: metrics.oauth(),
    };
    let endpoints = Endpoints::new(settings, Arc::clone(&directory), logins, Timestamp::now);
    let counted = metrics.of(service::NAME);
    let parts = (endpoints, directory);
    let service =
        OAuthService::bind(args.oauth_bind_address, certificate, parts, client.clone(), checks, counted)
            .await?;
    tracing::info!(address = %service.address(), "serving logins");
    Ok(service)
}

async fn kube_config(args: &Args) -> anyhow::Result<kube::Config> {
    let mut config = match &args.kubeconfig {
        Some(path) => {
            let file =
                Kubeconfig::read_from(path).with_context(|| format!("kubeconfig {}", path.display()))?;
            kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?
        }
        None => kube::Config::infer().await.context("no kube-apiserver is known")?,
    };
    // What is asked for again, and when, is the queues' and watches' business: an import that was cut must not be sent
    // three times more within a second.
    config.default_retry = false;
    Ok(config)
}
