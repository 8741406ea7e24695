//! The front door: what everybody but our API server reaches kube-apiserver by.

use anyhow::Result;

use super::{Component, Flags, SHIM_METRICS, named_port, port};
use crate::paths::Paths;
use crate::settings::Settings;

pub(super) fn flags(flags: &mut Flags, paths: &Paths, settings: &Settings) -> Result<()> {
    flags.set("bind-address", "127.0.0.1");
    flags.set("secure-port", port(settings, Component::PicoshiftShim)?);
    flags.set("metrics-port", named_port(settings, SHIM_METRICS)?);
    flags.input("tls-cert-file", paths.pki("api-serving.crt"));
    flags.input("tls-private-key-file", paths.pki("api-serving.key"));
    flags.input("client-ca-file", paths.pki("cluster-ca.crt"));
    flags.input("kubeconfig", paths.kubeconfig("shim"));
    Ok(())
}
