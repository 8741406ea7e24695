//! `picoshift-shim`: reads flags, serves in front of kube-apiserver until SIGTERM.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use kube::config::{KubeConfigOptions, Kubeconfig};
use picoshift_machinery::drain::Drain;
use picoshift_machinery::followed::Followed;
use picoshift_machinery::listener::{Limits, Listener};
use picoshift_machinery::readiness::{Checks, Shown};
use picoshift_machinery::tls::{ServingCertificate, TrustBundle, TrustError, server_config};
use picoshift_machinery::{log, open_files, signals};
use picoshift_shim::args::{Args, LogFormat};
use picoshift_shim::direct::Direct;
use picoshift_shim::documents::Documents;
use picoshift_shim::effective::Identities;
use picoshift_shim::front::Front;
use picoshift_shim::metrics::Metrics;
use picoshift_shim::revocation::Revocations;
use picoshift_shim::status_port::StatusPort;
use picoshift_shim::tunnel::Tunnels;
use picoshift_shim::upstream::{Identity, Pool, Pools, Server};
use picoshift_shim::watches::{self, Listeners};
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(5);

// One thread: a request and what it waits for upstream never wait for another processor to wake up, and the others are left to
// kube-apiserver, which needs far more. It lets through nearly ten thousand small requests a second.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    log::start(&args.log_level, args.log_format == LogFormat::Json).context("--log-level")?;
    // kube's client takes the process's provider.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();

    let certificate = ServingCertificate::load(&args.tls_cert_file, &args.tls_private_key_file)?;
    let metrics = Arc::new(Metrics::new());
    let authorities = Arc::new(authorities(args.client_ca_file.clone()).context("--client-ca-file")?);
    let pools = pools(&args, &metrics)?;
    let drain = Drain::new();
    let (hung_up, bundle, looked) = (Arc::clone(&certificate), Arc::clone(&authorities), pools.clone());
    signals::follow(drain.clone(), move || {
        hung_up.look();
        bundle.look();
        looked.iter().for_each(|pool| pool.look());
    })?;

    let checks = Checks::new();
    checks.add("ping", Shown::Everywhere, || Ok(()));
    let draining = drain.clone();
    checks.add("shutdown", Shown::OnlyReady, move || {
        if draining.started() { Err("process is shutting down".to_owned()) } else { Ok(()) }
    });
    let listeners = Listeners {
        documents: Arc::new(Documents::new(args.kubeconfig.is_some())),
        direct: Arc::new(Direct::new(args.direct_groups.clone(), args.apiserver_service.clone())),
        revocations: Revocations::default(),
    };
    let watches = match &args.kubeconfig {
        None => None,
        Some(path) => Some(watches::start(&client(path).await?, &listeners, &checks)),
    };

    // A client that does not read for a while is a pager, a stopped terminal: kube-apiserver waits for it.
    let limits = Limits { write: Duration::from_secs(600), ..Limits::default() };
    let limits = Limits { connections: open_files::connections(limits.connections) / 2, ..limits };
    let listener =
        Listener::bind(args.address(), server_config(Arc::clone(&certificate) as _)?, limits).await?;
    let status = StatusPort::bind(args.status_address(), Arc::clone(&certificate)).await?;
    tracing::info!(address = %listener.address(), status = %status.address(), "serving");

    let fresh = (Arc::clone(&certificate), Arc::clone(&authorities));
    tokio::spawn(async move { fresh.0.keep_fresh(LOOK).await });
    tokio::spawn(async move { fresh.1.keep_fresh(LOOK).await });
    for pool in pools.iter().map(Arc::clone) {
        tokio::spawn(async move { pool.keep_fresh(LOOK).await });
    }

    let tunnels = Tunnels::new();
    let front = Arc::new(Front {
        pools,
        authorities,
        direct: listeners.direct,
        identities: Identities::new(Arc::clone(&metrics)),
        revocations: listeners.revocations,
        documents: listeners.documents,
        tunnels: tunnels.clone(),
        metrics: Arc::clone(&metrics),
        answer_timeout: args.answer_timeout(),
        access_log: args.access_log,
        streams_end: CancellationToken::new(),
    });
    let finished = Drain::new();
    let work = async {
        let ending = Arc::clone(&front);
        let began = drain.clone();
        tokio::spawn(async move { ending.end_streams(began).await });
        let all = async {
            drain.wait().await;
            tunnels.drained(limits.drain).await;
        };
        tokio::join!(listener.serve(front, drain.clone()), all);
        finished.start();
    };
    tokio::join!(StatusPort { checks, metrics }.serve(status, finished.clone()), work);
    drop(watches);
    tracing::info!("drained");
    Ok(())
}

fn authorities(path: PathBuf) -> Result<Followed<TrustBundle, TrustError>, TrustError> {
    Followed::new("authorities of clients", vec![path.clone()], move || {
        let pem = std::fs::read(&path).map_err(|error| TrustError::Pem(error.to_string()))?;
        TrustBundle::from_pem(&pem)
    })
}

fn pools(args: &Args, metrics: &Metrics) -> anyhow::Result<Pools> {
    let host = args.upstream.authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let kube = Server {
        authority: args.upstream.authority.clone(),
        name: args.upstream_server_name.clone().unwrap_or(host),
        ca_file: args.upstream_ca_file.clone(),
    };
    let own = || {
        Some(Identity {
            certificate_file: args.proxy_client_cert_file.clone(),
            key_file: args.proxy_client_key_file.clone(),
        })
    };
    let plain = Pool::new(kube.clone(), None, metrics.pool("kubernetes")).context("--upstream")?;
    let fronted = Pool::new(kube, own(), metrics.pool("kubernetes-fronted"));
    let ours = match (&args.apiserver, &args.apiserver_ca_file) {
        (Some(url), Some(ca_file)) => {
            let name = args.apiserver_name();
            let server = Server { authority: url.authority.clone(), name, ca_file: ca_file.clone() };
            let pool = Pool::new(server, own(), metrics.pool("apiserver")).context("--apiserver")?;
            Some(Arc::new(pool))
        }
        _ => None,
    };
    let fronted = fronted.context("--proxy-client-cert-file")?;
    Ok(Pools { plain: Arc::new(plain), fronted: Arc::new(fronted), ours })
}

async fn client(path: &PathBuf) -> anyhow::Result<kube::Client> {
    let file = Kubeconfig::read_from(path).with_context(|| format!("kubeconfig {}", path.display()))?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    kube::Client::try_from(config).context("cannot make a client")
}
