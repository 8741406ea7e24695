//! The control plane that the tests of one binary share.
//!
//! Tests that only use it hold it together; a test that kills or restarts a part of it holds it alone.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use kube::config::{AuthInfo, Kubeconfig};
use serde_json::Value;
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::actor::{Actor, Stage};
use crate::home::{Home, TemporaryHome, picoshift_program};
use crate::http::Http;
use crate::identity::{ClusterCa, Identity};
use crate::process::OUR_SERVER;
use crate::tls::{Endpoint, Protocol};

static TURN: RwLock<()> = RwLock::const_new(());
static STARTED: OnceCell<Home> = OnceCell::const_new();
/// Never dropped: its watchdog ends it when this process is gone.
static OURS: OnceLock<TemporaryHome> = OnceLock::new();

/// A running control plane.
pub struct ControlPlane {
    /// Its directories and `picoshift` for it.
    pub home: Home,
    /// Its servers, for clients that the harness does not make.
    pub stage: Stage,
    ca: ClusterCa,
    admin: Identity,
}

/// The control plane, in use together with other tests.
pub struct Shared {
    plane: ControlPlane,
    _turn: RwLockReadGuard<'static, ()>,
}

/// The control plane, nobody else using it.
pub struct Exclusive {
    plane: ControlPlane,
    _turn: RwLockWriteGuard<'static, ()>,
}

impl Deref for Shared {
    type Target = ControlPlane;
    fn deref(&self) -> &ControlPlane {
        &self.plane
    }
}

impl Deref for Exclusive {
    type Target = ControlPlane;
    fn deref(&self) -> &ControlPlane {
        &self.plane
    }
}

impl ControlPlane {
    /// Takes the control plane for a test that leaves its processes alone.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn shared() -> anyhow::Result<Shared> {
        let turn = TURN.read().await;
        Ok(Shared { plane: Self::open(started().await?).await?, _turn: turn })
    }

    /// Takes the control plane for a test that kills, restarts or counts.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn exclusive() -> anyhow::Result<Exclusive> {
        let turn = TURN.write().await;
        Ok(Exclusive { plane: Self::open(started().await?).await?, _turn: turn })
    }

    /// Looks at a control plane that runs: where its servers are and how to know them.
    ///
    /// # Errors
    /// When a file of it cannot be read or kube-apiserver does not answer.
    pub async fn open(home: Home) -> anyhow::Result<Self> {
        let kubeconfig = Kubeconfig::read_from(home.admin_kubeconfig()?)?;
        let (kube, admin) = cluster_and_admin(&kubeconfig)?;
        let ours = our_endpoint(&kube, &admin).await?;
        let directory = home.root.join("actors");
        std::fs::create_dir_all(&directory)?;
        let kubectl = home.kubectl()?;
        let ca = home.cluster_ca()?;
        Ok(Self { home, stage: Stage { kube, ours, directory, kubectl }, ca, admin })
    }

    /// The administrator (system:masters).
    ///
    /// # Errors
    /// When no client can be made.
    pub fn admin(&self) -> anyhow::Result<Actor> {
        Actor::by_certificate(&self.stage, "admin", &self.admin)
    }

    /// `name` with a certificate of her own, `group` in it.
    ///
    /// # Errors
    /// When signing fails or no client can be made.
    pub fn by_certificate(&self, name: &str, group: Option<&str>) -> anyhow::Result<Actor> {
        Actor::by_certificate(&self.stage, name, &self.sign(name, group)?)
    }

    /// `name` in `groups`, impersonated by the administrator.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn impersonated(&self, name: &str, groups: &[&str]) -> anyhow::Result<Actor> {
        Actor::impersonated(&self.stage, &self.admin, name, groups)
    }

    /// Nobody.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn anonymous(&self) -> anyhow::Result<Actor> {
        Actor::anonymous(&self.stage)
    }

    /// A client certificate of the cluster CA.
    ///
    /// # Errors
    /// When signing fails.
    pub fn sign(&self, name: &str, group: Option<&str>) -> anyhow::Result<Identity> {
        self.ca.sign(name, group)
    }

    /// Kills our server as a crash would and starts it again; returns when it is ready.
    ///
    /// # Errors
    /// When it does not run, or does not come back.
    pub async fn crash_and_restart_our_server(&self) -> anyhow::Result<()> {
        self.home.component(OUR_SERVER)?.kill_9()?;
        self.up().await
    }

    /// Starts what is missing. Open connections are served meanwhile: they would be closed as dead otherwise.
    ///
    /// # Errors
    /// When something does not come up.
    pub async fn up(&self) -> anyhow::Result<()> {
        let home = self.home.clone();
        tokio::task::spawn_blocking(move || home.run(&["up"]).map(drop)).await?
    }
}

/// The control plane's directories; starts it when nobody has yet.
async fn started() -> anyhow::Result<Home> {
    let home = STARTED.get_or_try_init(|| async { tokio::task::spawn_blocking(start).await? });
    Ok(home.await?.clone())
}

fn start() -> anyhow::Result<Home> {
    let picoshift = picoshift_program()?;
    if let Some(root) = std::env::var_os("PICOSHIFT_E2E_HOME") {
        return Ok(Home { picoshift, root: PathBuf::from(root) });
    }
    let temporary = TemporaryHome::new(picoshift)?;
    let home = temporary.home.clone();
    let _ = OURS.set(temporary);
    home.run(&["up"])?;
    Ok(home)
}

/// The server and the administrator's certificate of a kubeconfig.
///
/// # Errors
/// When it names none, or a file that cannot be read.
pub fn cluster_and_admin(kubeconfig: &Kubeconfig) -> anyhow::Result<(Endpoint, Identity)> {
    let name = kubeconfig.current_context.as_deref().context("kubeconfig without a current context")?;
    let context = kubeconfig.contexts.iter().find(|context| context.name == name);
    let context = context.and_then(|context| context.context.as_ref()).context("context is missing")?;
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == context.cluster);
    let cluster = cluster.and_then(|cluster| cluster.cluster.as_ref()).context("cluster is missing")?;
    let user = kubeconfig.auth_infos.iter().find(|user| Some(&user.name) == context.user.as_ref());
    let user = user.and_then(|user| user.auth_info.as_ref()).context("user is missing")?;
    let ca = pem(cluster.certificate_authority_data.as_deref(), cluster.certificate_authority.as_deref())?;
    let url = cluster.server.clone().context("cluster without a server")?;
    let endpoint = Endpoint { url: url.trim_end_matches('/').to_owned(), ca, server_name: None };
    Ok((endpoint, admin_identity(user)?))
}

fn admin_identity(user: &AuthInfo) -> anyhow::Result<Identity> {
    // Keys are shown only by serialising them.
    let user = serde_json::to_value(user)?;
    let part = |name: &str| {
        let text = pem(user[format!("{name}-data")].as_str(), user[name].as_str())?;
        anyhow::Ok(String::from_utf8(text)?)
    };
    Ok(Identity { certificate: part("client-certificate")?, key: part("client-key")? })
}

fn pem(data: Option<&str>, file: Option<&str>) -> anyhow::Result<Vec<u8>> {
    match (data, file) {
        (Some(data), _) => Ok(base64::engine::general_purpose::STANDARD.decode(data)?),
        (None, Some(file)) => Ok(std::fs::read(Path::new(file))?),
        (None, None) => bail!("kubeconfig names neither data nor a file"),
    }
}

/// Our server as its APIService names it: exactly what the aggregator would use.
async fn our_endpoint(kube: &Endpoint, admin: &Identity) -> anyhow::Result<Endpoint> {
    let http = Http::new(kube, Some(admin), Protocol::Any)?;
    let path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.route.openshift.io";
    let service: Value = http.get(path).await?.ok()?;
    let spec = &service["spec"];
    let text = |value: &Value| value.as_str().map(str::to_owned).context("APIService without a service");
    let port = spec["service"]["port"].as_u64().context("APIService without a port")?;
    let ca = base64::engine::general_purpose::STANDARD.decode(text(&spec["caBundle"])?)?;
    let name = format!("{}.{}.svc", text(&spec["service"]["name"])?, text(&spec["service"]["namespace"])?);
    Ok(Endpoint { url: format!("https://127.0.0.1:{port}"), ca, server_name: Some(name) })
}
