//! The front door: what everybody but our API server reaches kube-apiserver by.

use anyhow::Result;

use super::{Component, Flags, SHIM_STATUS, named_port, port};
use crate::args::Switch;
use crate::paths::Paths;
use crate::settings::Settings;

pub(super) fn flags(flags: &mut Flags, paths: &Paths, settings: &Settings) -> Result<()> {
    flags.set("bind-address", "127.0.0.1");
    flags.set("secure-port", port(settings, Component::PicoshiftShim)?);
    flags.set("status-port", named_port(settings, SHIM_STATUS)?);
    flags.input("tls-cert-file", paths.pki("api-serving.crt"));
    flags.input("tls-private-key-file", paths.pki("api-serving.key"));
    flags.input("client-ca-file", paths.pki("cluster-ca.crt"));
    flags.set("upstream", format!("https://127.0.0.1:{}", port(settings, Component::KubeApiserver)?));
    flags.input("upstream-ca-file", paths.pki("cluster-ca.crt"));
    flags.input("proxy-client-cert-file", paths.pki("front-proxy-client.crt"));
    flags.input("proxy-client-key-file", paths.pki("front-proxy-client.key"));
    flags.set("apiserver", format!("https://127.0.0.1:{}", port(settings, Component::PicoshiftApiserver)?));
    flags.input("apiserver-ca-file", paths.pki("cluster-ca.crt"));
    let direct = settings.direct_groups.unwrap_or_default();
    flags.set("direct-groups", if direct == Switch::On { "on" } else { "off" });
    flags.input("kubeconfig", paths.kubeconfig("shim"));
    Ok(())
}
