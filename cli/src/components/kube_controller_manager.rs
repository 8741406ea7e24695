//! kube-controller-manager: all of its default controllers.

use anyhow::Result;

use super::{Component, Flags, port};
use crate::paths::Paths;
use crate::settings::Settings;

pub(super) fn flags(flags: &mut Flags, paths: &Paths, settings: &Settings) -> Result<()> {
    flags.set("bind-address", "127.0.0.1");
    flags.set("secure-port", port(settings, Component::KubeControllerManager)?);
    flags.set("leader-elect", false);
    flags.set("profiling", false);
    // Its own limit is for clusters of many. Here a hundred new namespaces would wait for their service accounts.
    flags.set("kube-api-qps", 100);
    flags.set("kube-api-burst", 200);
    flags.set("use-service-account-credentials", true);
    for name in ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"] {
        flags.input(name, paths.kubeconfig("kube-controller-manager"));
    }
    flags.input("tls-cert-file", paths.pki("kube-controller-manager-serving.crt"));
    flags.input("tls-private-key-file", paths.pki("kube-controller-manager-serving.key"));
    flags.input("client-ca-file", paths.pki("cluster-ca.crt"));
    flags.input("requestheader-client-ca-file", paths.pki("front-proxy-ca.crt"));
    flags.input("root-ca-file", paths.pki("cluster-ca.crt"));
    flags.input("service-account-private-key-file", paths.pki("service-account.key"));
    flags.input("cluster-signing-cert-file", paths.pki("cluster-ca.crt"));
    flags.input("cluster-signing-key-file", paths.pki("cluster-ca.key"));
    Ok(())
}
