//! etcd: one member, reached by kube-apiserver alone.

use anyhow::Result;

use super::{Component, ETCD_PEER, Flags, named_port, port};
use crate::paths::Paths;
use crate::settings::Settings;

pub(super) fn flags(flags: &mut Flags, paths: &Paths, settings: &Settings) -> Result<()> {
    let client = format!("https://127.0.0.1:{}", port(settings, Component::Etcd)?);
    let peer = format!("https://127.0.0.1:{}", named_port(settings, ETCD_PEER)?);
    flags.set("name", "picoshift");
    flags.set("data-dir", paths.data("etcd").display());
    flags.set("listen-client-urls", &client);
    flags.set("advertise-client-urls", &client);
    flags.set("listen-peer-urls", &peer);
    flags.set("initial-advertise-peer-urls", &peer);
    flags.set("initial-cluster", format!("picoshift={peer}"));
    for prefix in ["", "peer-"] {
        flags.input(&format!("{prefix}cert-file"), paths.pki("etcd-server.crt"));
        flags.input(&format!("{prefix}key-file"), paths.pki("etcd-server.key"));
        flags.input(&format!("{prefix}trusted-ca-file"), paths.pki("etcd-ca.crt"));
        flags.set(&format!("{prefix}client-cert-auth"), true);
    }
    // Alone, it can only elect itself: no reason to wait a second for others to speak.
    flags.set("heartbeat-interval", 20);
    flags.set("election-timeout", 100);
    flags.set("log-level", "warn");
    Ok(())
}
