//! Our own controllers, installed beside this program.

use anyhow::Result;

use super::{Component, Flags, OAUTH, named_port, port};
use crate::paths::Paths;
use crate::settings::Settings;

pub(super) fn flags(flags: &mut Flags, paths: &Paths, settings: &Settings) -> Result<()> {
    flags.set("bind-address", "127.0.0.1");
    flags.set("secure-port", port(settings, Component::PicoshiftControllers)?);
    flags.input("tls-cert-file", paths.pki("openshift-controller-manager-serving.crt"));
    flags.input("tls-private-key-file", paths.pki("openshift-controller-manager-serving.key"));
    flags.input("kubeconfig", paths.kubeconfig("openshift-controller-manager"));
    // There is one such process per state directory: when it is started anew it goes on at once.
    flags.set("leader-elect-identity", "picoshift");
    let oauth = named_port(settings, OAUTH)?;
    flags.set("oauth-bind-address", format!("127.0.0.1:{oauth}"));
    flags.set("oauth-issuer", format!("https://127.0.0.1:{oauth}"));
    flags.input("oauth-tls-cert-file", paths.pki("oauth-serving.crt"));
    flags.input("oauth-tls-private-key-file", paths.pki("oauth-serving.key"));
    flags.input("oauth-ca-file", paths.pki("cluster-ca.crt"));
    flags.set("oauth-api-url", format!("https://127.0.0.1:{}", port(settings, Component::PicoshiftShim)?));
    Ok(())
}
