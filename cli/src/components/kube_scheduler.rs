//! kube-scheduler, with its default profile.

use anyhow::Result;

use super::{Component, Flags, port};
use crate::paths::Paths;
use crate::settings::Settings;

pub(super) fn flags(flags: &mut Flags, paths: &Paths, settings: &Settings) -> Result<()> {
    flags.set("bind-address", "127.0.0.1");
    flags.set("secure-port", port(settings, Component::KubeScheduler)?);
    flags.set("leader-elect", false);
    flags.set("profiling", false);
    for name in ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"] {
        flags.input(name, paths.kubeconfig("kube-scheduler"));
    }
    flags.input("tls-cert-file", paths.pki("kube-scheduler-serving.crt"));
    flags.input("tls-private-key-file", paths.pki("kube-scheduler-serving.key"));
    flags.input("client-ca-file", paths.pki("cluster-ca.crt"));
    flags.input("requestheader-client-ca-file", paths.pki("front-proxy-ca.crt"));
    Ok(())
}
