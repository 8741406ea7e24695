//! `picoshift-apiserver`: reads flags, connects to kube-apiserver, serves until SIGTERM.

use std::sync::Arc;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use clap::Parser;
use kube::config::{KubeConfigOptions, Kubeconfig};
use picoshift_apiserver::args::{Args, LogFormat};
use picoshift_apiserver::assembly::{Ingredients, assemble};
use picoshift_apiserver::audit::{self, Audit};
use picoshift_apiserver::authn::Authenticator;
use picoshift_apiserver::authn::extension_config::{self, ExtensionConfig};
use picoshift_apiserver::authn::memberships::Memberships;
use picoshift_apiserver::authn::token_review::{KubeTokenReview, TokenAuthenticator};
use picoshift_apiserver::authz::rbac::Rbac;
use picoshift_apiserver::authz::{Authorizer, CachedAuthorizer, KubeAccessReview, Scopes};
use picoshift_apiserver::groups::image::Hostnames;
use picoshift_apiserver::groups::oauth;
use picoshift_apiserver::oci::{self, Trust};
use picoshift_apiserver::server::metrics::Metrics;
use picoshift_apiserver::server::{self, Parts, ServerConfig};
use picoshift_machinery::drain::Drain;
use picoshift_machinery::listener::Limits;
use picoshift_machinery::readiness::{Checks, Shown};
use picoshift_machinery::tls::ServingCertificate;
use picoshift_machinery::{log, open_files, signals};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let verbosity = log::start(&args.log_level, args.log_format == LogFormat::Json).context("--log-level")?;
    // kube's client takes the process's provider.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();

    let certificate = ServingCertificate::load(&args.tls_cert_file, &args.tls_private_key_file)?;
    let drain = Drain::new();
    let mut metrics = Metrics::new();
    let audit_log = args.audit_log_path.as_deref().map(audit::log::Log::open).transpose();
    let audit_log = audit_log.context("--audit-log-path")?;
    let audit = audit(&args, audit_log.clone(), &mut metrics)?;
    let (hung_up, log) = (Arc::clone(&certificate), audit_log.clone());
    signals::follow(drain.clone(), move || {
        hung_up.look();
        if let Some(log) = &log {
            log.reopen();
        }
    })?;

    let client = kube::Client::try_from(kube_config(&args).await?).context("cannot make a client")?;
    let checks = Checks::new();
    checks.add("ping", Shown::Everywhere, || Ok(()));
    let synced = checks.latch("informer-sync", Shown::OnlyReady, "authentication configuration not read yet");
    let extension = Arc::new(ArcSwap::from_pointee(ExtensionConfig::default()));
    tokio::spawn(extension_config::follow(client.clone(), Arc::clone(&extension), synced));

    let metrics = Arc::new(metrics);
    let tokens = TokenAuthenticator::new(Arc::new(KubeTokenReview::new(client.clone())));
    let rbac = Arc::new(Rbac::new());
    let authorizer = Arc::new(CachedAuthorizer::new(
        Arc::new(KubeAccessReview::new(client.clone())),
        Scopes::new(Arc::clone(&rbac)),
        Arc::clone(&metrics),
    ));
    let memberships = Arc::new(Memberships::new());
    let assembly = assemble(Ingredients {
        client,
        memberships: Arc::clone(&memberships),
        authorizer: Arc::clone(&authorizer) as Arc<dyn Authorizer>,
        rbac,
        data_file: &args.data_file,
        ingress_domain: &args.ingress_domain,
        hostnames: Hostnames {
            internal: args.internal_registry_hostname.clone(),
            external: args.external_registry_hostname.clone(),
        },
        registries: registry_client(&args)?,
        max_imported_tags: usize::try_from(args.max_images_bulk_imported_per_repository).ok(),
        oauth: oauth::Config {
            audiences: args.api_audiences.clone(),
            inactivity_seconds: args.accesstoken_inactivity_timeout,
        },
        checks: &checks,
    })
    .await?;
    let parts = Parts {
        authenticator: Authenticator::new(extension, tokens).with_own_tokens(assembly.tokens),
        memberships,
        authorizer,
        endpoints: server::debug::add(assembly.endpoints, verbosity),
        checks,
        metrics,
        audit,
    };
    let limits = Limits::default();
    let config = ServerConfig {
        limits: Limits { connections: open_files::connections(limits.connections), ..limits },
        max_in_flight: args.max_requests_inflight,
        max_mutating_in_flight: args.max_mutating_requests_inflight,
        ..ServerConfig::new(args.address(), certificate)
    };
    server::run(config, parts, drain).await?;
    drop(assembly.feeds);
    if let Some(log) = audit_log {
        // A disk that hangs must not keep the runtime from ending the rest.
        tokio::task::spawn_blocking(move || log.close()).await?;
    }
    assembly.engine.shutdown().context("the store did not close")
}

/// What is recorded of requests, if the flags say so.
fn audit(
    args: &Args,
    log: Option<Arc<audit::log::Log>>,
    metrics: &mut Metrics,
) -> anyhow::Result<Option<Arc<Audit>>> {
    let (Some(path), Some(log)) = (&args.audit_policy_file, log) else { return Ok(None) };
    let policy = audit::policy::Policy::load(path).context("--audit-policy-file")?;
    Ok(Some(Arc::new(Audit::new(policy, log, metrics.registry_mut()))))
}

/// The client that images are imported with.
fn registry_client(args: &Args) -> anyhow::Result<Arc<oci::Client>> {
    let mut trust = Trust { system: true, extra: Vec::new() };
    if let Some(path) = &args.registry_ca_file {
        let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
        trust.extra = read.with_context(|| format!("--registry-ca-file {}", path.display()))?;
    }
    oci::Client::new(&trust, oci::Limits::default()).context("--registry-ca-file")
}

async fn kube_config(args: &Args) -> anyhow::Result<kube::Config> {
    match &args.kubeconfig {
        Some(path) => {
            let file =
                Kubeconfig::read_from(path).with_context(|| format!("kubeconfig {}", path.display()))?;
            Ok(kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
        }
        None => kube::Config::infer().await.context("no kube-apiserver is known"),
    }
}
