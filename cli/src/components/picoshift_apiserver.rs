//! Our own API server, installed beside this program.

use anyhow::Result;

use super::{Component, Flags, kube_apiserver, port};
use crate::paths::Paths;
use crate::settings::{INGRESS_DOMAIN, Settings};

pub(super) fn flags(flags: &mut Flags, paths: &Paths, settings: &Settings) -> Result<()> {
    flags.set("bind-address", "127.0.0.1");
    flags.set("secure-port", port(settings, Component::PicoshiftApiserver)?);
    flags.input("tls-cert-file", paths.pki("openshift-apiserver-serving.crt"));
    flags.input("tls-private-key-file", paths.pki("openshift-apiserver-serving.key"));
    flags.input("kubeconfig", paths.kubeconfig("openshift-apiserver"));
    flags.set("data-file", paths.data("apiserver/store.redb").display());
    flags.set("api-audiences", kube_apiserver::ISSUER);
    flags.set("ingress-domain", settings.ingress_domain.as_deref().unwrap_or(INGRESS_DOMAIN));
    Ok(())
}
