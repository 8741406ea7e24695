//! `status`: what runs, where, and whether it is healthy.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use futures::future::join_all;
use serde::Serialize;

use super::say;
use crate::args::Output;
use crate::components::Component;
use crate::health::Health;
use crate::paths::Paths;
use crate::settings::Settings;
use crate::supervisor::Started;

/// The exit code when a component does not run or is not healthy.
const NOT_HEALTHY: u8 = 3;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    healthy: bool,
    state_dir: PathBuf,
    cache_dir: PathBuf,
    /// The administrator's, which is always there.
    kubeconfig: PathBuf,
    /// The file that has our context, if one has.
    user_kubeconfig: Option<PathBuf>,
    ingress_domain: Option<String>,
    /// The version of OpenShift that the cluster says it is.
    openshift_version: Option<String>,
    /// The API, OpenShift's and Kubernetes'.
    api_url: Option<String>,
    /// kube-apiserver itself, behind the shim.
    kubernetes_url: Option<String>,
    apiserver_url: Option<String>,
    components: Vec<ComponentStatus>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ComponentStatus {
    name: &'static str,
    running: bool,
    healthy: bool,
    /// Why it is not healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    pid: Option<u32>,
    port: Option<u16>,
    url: Option<String>,
    version: Option<String>,
    started_at: Option<jiff::Timestamp>,
    log: PathBuf,
}

/// Runs `status`.
pub(crate) async fn run(paths: &Paths, output: Output) -> Result<ExitCode> {
    let settings = Settings::load(paths)?;
    let components =
        join_all(Component::ALL.map(|component| component_status(component, paths, &settings))).await;
    let components = components.into_iter().collect::<Result<Vec<_>>>()?;
    let url = |component| settings.port(component).map(url);
    let status = Status {
        healthy: components.iter().all(|component| component.healthy),
        state_dir: paths.state.clone(),
        cache_dir: paths.cache.clone(),
        kubeconfig: paths.kubeconfig("admin"),
        user_kubeconfig: settings.kubeconfig.as_ref().map(|merged| merged.path.clone()),
        ingress_domain: settings.ingress_domain.clone(),
        openshift_version: match &settings.openshift {
            Some(installed) => Some(installed.version()?.to_string()),
            None => None,
        },
        api_url: url(Component::PicoshiftShim),
        kubernetes_url: url(Component::KubeApiserver),
        apiserver_url: url(Component::PicoshiftApiserver),
        components,
    };
    match output {
        Output::Json => say(&format!("{}\n", serde_json::to_string_pretty(&status)?))?,
        Output::Text => say(&text(&status))?,
    }
    Ok(if status.healthy { ExitCode::SUCCESS } else { ExitCode::from(NOT_HEALTHY) })
}

fn url(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

async fn component_status(
    component: Component,
    paths: &Paths,
    settings: &Settings,
) -> Result<ComponentStatus> {
    let started = Started::load(component, paths)?;
    let running = started.as_ref().is_some_and(|started| started.identity.is_alive());
    let reason = match &started {
        None => Some("not started".to_owned()),
        Some(_) if !running => Some("it has ended: see its log, then `picoshift up`".to_owned()),
        Some(started) => match Health::new(component, started.port, paths) {
            Ok(health) => health.check().await.err().map(|err| format!("{err:#}")),
            Err(err) => Some(format!("{err:#}")),
        },
    };
    let port = started.as_ref().map(|started| started.port).or(settings.port(component));
    Ok(ComponentStatus {
        name: component.name(),
        running,
        healthy: reason.is_none(),
        reason,
        pid: started.as_ref().filter(|_| running).map(|started| started.identity.pid),
        port,
        url: port.map(url),
        version: started.as_ref().map(|started| started.version.clone()),
        started_at: started.as_ref().filter(|_| running).map(|started| started.started_at),
        log: paths.log(component.name()),
    })
}

fn text(status: &Status) -> String {
    let mut text = format!("{:24} {:9} {:8} {:6} {:9}\n", "COMPONENT", "STATE", "PID", "PORT", "VERSION");
    for component in &status.components {
        let state = match (component.running, component.healthy) {
            (true, true) => "healthy",
            (true, false) => "unhealthy",
            (false, _) => "stopped",
        };
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        text.push_str(&format!(
            "{:24} {state:9} {:8} {:6} {}\n",
            component.name,
            or_dash(component.pid.map(|pid| pid.to_string())),
            or_dash(component.port.map(|port| port.to_string())),
            or_dash(component.version.clone()),
        ));
        if let Some(reason) = component.reason.as_ref().filter(|_| component.running) {
            text.push_str(&format!("  {reason}\n"));
        }
    }
    let ended = |component: &ComponentStatus| !component.running && component.version.is_some();
    if status.components.iter().any(ended) {
        text.push_str("\nA component ended by itself: see `picoshift logs COMPONENT`; `picoshift up` starts it again.\n");
    }
    text.push_str(&format!("\nstate       {}\n", status.state_dir.display()));
    text.push_str(&format!("kubeconfig  {}\n", status.kubeconfig.display()));
    if let Some(version) = &status.openshift_version {
        text.push_str(&format!("openshift   {version}\n"));
    }
    if let Some(domain) = &status.ingress_domain {
        text.push_str(&format!("routes      *.{domain}\n"));
    }
    text
}
