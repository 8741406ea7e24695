//! The processes of the control plane: how each is called, started and asked for its health.

mod etcd;
mod kube_apiserver;
mod kube_controller_manager;
mod kube_scheduler;
mod picoshift_apiserver;
mod picoshift_controllers;
mod picoshift_shim;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::binaries::{Binaries, Program};
use crate::failure::Failure;
use crate::paths::Paths;
use crate::settings::Settings;

pub(crate) use kube_apiserver::write_authorization_config;

/// A process of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Component {
    /// Kubernetes' store
    Etcd,
    /// The Kubernetes API
    KubeApiserver,
    /// The API's front door
    PicoshiftShim,
    /// The OpenShift API groups
    PicoshiftApiserver,
    /// OpenShift's controllers
    PicoshiftControllers,
    /// Kubernetes' controllers
    KubeControllerManager,
    /// Kubernetes' scheduler
    KubeScheduler,
}

/// The settings' name of the port by which etcd would reach its peers.
pub(crate) const ETCD_PEER: &str = "etcd-peer";
/// The settings' name of the port at which the shim tells of itself: its own belongs to kube-apiserver's paths.
pub(crate) const SHIM_STATUS: &str = "picoshift-shim-status";
/// The settings' name of the OAuth server's port.
pub(crate) const OAUTH: &str = "oauth-server";

impl Component {
    /// All of them, in the order of their start.
    pub(crate) const ALL: [Self; 7] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::PicoshiftShim,
        Self::PicoshiftApiserver,
        Self::PicoshiftControllers,
        Self::KubeControllerManager,
        Self::KubeScheduler,
    ];

    /// The order of their end: each group ends before the next, since it uses the next.
    pub(crate) const STOP_ORDER: [&[Self]; 5] = [
        &[Self::KubeScheduler, Self::KubeControllerManager, Self::PicoshiftControllers],
        &[Self::PicoshiftShim],
        &[Self::PicoshiftApiserver],
        &[Self::KubeApiserver],
        &[Self::Etcd],
    ];

    /// Its name, which is its program's too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::PicoshiftShim => "picoshift-shim",
            Self::PicoshiftApiserver => "picoshift-apiserver",
            Self::PicoshiftControllers => "picoshift-controllers",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
        }
    }

    /// The port that people expect it at.
    pub(crate) fn usual_port(self) -> u16 {
        match self {
            Self::Etcd => 2379,
            Self::KubeApiserver => 16443,
            Self::PicoshiftShim => 6443,
            Self::PicoshiftApiserver => 8443,
            Self::PicoshiftControllers => 8444,
            Self::KubeControllerManager => 10257,
            Self::KubeScheduler => 10259,
        }
    }

    /// The other ports that it listens on: their names in the settings, and the usual ones.
    pub(crate) fn other_ports(self) -> &'static [(&'static str, u16)] {
        match self {
            Self::Etcd => &[(ETCD_PEER, 2380)],
            Self::PicoshiftShim => &[(SHIM_STATUS, 6444)],
            Self::PicoshiftControllers => &[(OAUTH, 9443)],
            _ => &[],
        }
    }

    /// Where it says that it is healthy.
    pub(crate) fn health_path(self) -> &'static str {
        match self {
            Self::KubeControllerManager | Self::KubeScheduler => "/healthz",
            _ => "/readyz",
        }
    }

    /// The authority of its serving certificate, and the client certificate that its health needs.
    pub(crate) fn health_certificates(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Etcd => ("etcd-ca", Some("etcd-client")),
            _ => ("cluster-ca", None),
        }
    }

    /// Which program it is, unless it is ours.
    fn program(self) -> Option<Program> {
        match self {
            Self::Etcd => Some(Program::Etcd),
            Self::KubeApiserver => Some(Program::KubeApiserver),
            Self::PicoshiftShim | Self::PicoshiftApiserver | Self::PicoshiftControllers => None,
            Self::KubeControllerManager => Some(Program::KubeControllerManager),
            Self::KubeScheduler => Some(Program::KubeScheduler),
        }
    }
}

/// Our own programs.
const OURS: [Component; 3] =
    [Component::PicoshiftShim, Component::PicoshiftApiserver, Component::PicoshiftControllers];

/// Fails unless our own programs are installed.
pub(crate) fn installed() -> Result<()> {
    OURS.into_iter().try_for_each(|component| beside_us(component).map(drop))
}

/// A program of ours and its version: they are built and installed together.
fn beside_us(component: Component) -> Result<(PathBuf, String)> {
    let this = std::env::current_exe().context("cannot tell where this program is")?;
    let program = this.with_file_name(component.name());
    if program.is_file() {
        return Ok((program, format!("v{}", env!("CARGO_PKG_VERSION"))));
    }
    Err(Failure::new(
        format!("{} is missing", program.display()),
        "`make all` in picoshift's source builds and installs all of them; or put it beside the command `picoshift`",
    )
    .into())
}

/// How a component is to run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Which.
    pub(crate) component: Component,
    /// The program.
    pub(crate) program: PathBuf,
    /// Its version.
    pub(crate) version: String,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// Files that it reads at its start: it must start again when they change.
    pub(crate) inputs: Vec<PathBuf>,
    /// The port it listens on.
    pub(crate) port: u16,
}

impl Plan {
    /// How a component is to run with these settings.
    pub(crate) fn new(
        component: Component,
        paths: &Paths,
        settings: &Settings,
        binaries: &Binaries,
    ) -> Result<Self> {
        let mut flags = Flags::default();
        match component {
            Component::Etcd => etcd::flags(&mut flags, paths, settings)?,
            Component::KubeApiserver => kube_apiserver::flags(&mut flags, paths, settings)?,
            Component::PicoshiftShim => picoshift_shim::flags(&mut flags, paths, settings)?,
            Component::PicoshiftApiserver => picoshift_apiserver::flags(&mut flags, paths, settings)?,
            Component::PicoshiftControllers => picoshift_controllers::flags(&mut flags, paths, settings)?,
            Component::KubeControllerManager => kube_controller_manager::flags(&mut flags, paths, settings)?,
            Component::KubeScheduler => kube_scheduler::flags(&mut flags, paths, settings)?,
        }
        let (program, version) = match component.program() {
            Some(program) => {
                let binary = binaries.get(program)?;
                (binary.path.clone(), binary.version.clone())
            }
            None => beside_us(component)?,
        };
        Ok(Self {
            component,
            program,
            version,
            arguments: flags.arguments,
            inputs: flags.inputs,
            port: port(settings, component)?,
        })
    }
}

/// Arguments under construction.
#[derive(Debug, Default)]
struct Flags {
    arguments: Vec<String>,
    inputs: Vec<PathBuf>,
}

impl Flags {
    /// `--name=value`
    fn set(&mut self, name: &str, value: impl std::fmt::Display) {
        self.arguments.push(format!("--{name}={value}"));
    }

    /// `--name=path`, for a file that is read at the start.
    fn input(&mut self, name: &str, path: PathBuf) {
        self.set(name, path.display());
        self.inputs.push(path);
    }
}

fn port(settings: &Settings, component: Component) -> Result<u16> {
    named_port(settings, component.name())
}

fn named_port(settings: &Settings, name: &str) -> Result<u16> {
    settings.ports.get(name).copied().with_context(|| format!("no port was chosen for {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_is_stopped_once() {
        let mut stopped: Vec<Component> = Component::STOP_ORDER.concat();
        stopped.sort();
        assert_eq!(stopped, Component::ALL);
    }

    #[test]
    fn the_command_line_calls_them_by_their_names() {
        for component in Component::ALL {
            assert_eq!(component.to_possible_value().unwrap().get_name(), component.name());
        }
    }
}
