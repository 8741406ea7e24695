//! Our own API server, installed beside this program.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Component, Flags, port};
use crate::failure::Failure;
use crate::paths::Paths;
use crate::settings::{INGRESS_DOMAIN, Settings};

pub(super) fn flags(flags: &mut Flags, paths: &Paths, settings: &Settings) -> Result<()> {
    flags.set("bind-address", "127.0.0.1");
    flags.set("secure-port", port(settings, Component::PicoshiftApiserver)?);
    flags.input("tls-cert-file", paths.pki("openshift-apiserver-serving.crt"));
    flags.input("tls-private-key-file", paths.pki("openshift-apiserver-serving.key"));
    flags.input("kubeconfig", paths.kubeconfig("openshift-apiserver"));
    flags.set("data-file", paths.data("apiserver/store.redb").display());
    flags.set("ingress-domain", settings.ingress_domain.as_deref().unwrap_or(INGRESS_DOMAIN));
    Ok(())
}

/// The program and its version: both of ours are built and installed together.
pub(super) fn program() -> Result<(PathBuf, String)> {
    let this = std::env::current_exe().context("cannot tell where this program is")?;
    let program = this.with_file_name(Component::PicoshiftApiserver.name());
    if program.is_file() {
        return Ok((program, format!("v{}", env!("CARGO_PKG_VERSION"))));
    }
    Err(Failure::new(
        format!("{} is missing", program.display()),
        "`make all` in picoshift's source builds and installs both; or put it beside the command `picoshift`",
    )
    .into())
}
