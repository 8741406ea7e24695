//! A real container registry (`hack/registry`), and small images in it.
//!
//! A [`Storage`] is filled over the HTTP API of a registry of its own; any number of registries then serve it, each with
//! another protocol and another way to know who asks.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::token_server::TokenServer;

/// The user that registries know.
pub const USER: &str = "ci";
/// Her password.
pub const PASSWORD: &str = "passw0rd";
/// The same, as bcrypt has it.
const HTPASSWD: &str = "ci:$2a$04$78IvF4ZfiXCio0aj0zPGEeIkf00UI6zLMllsj04LED3SS9dK4yEUa\n";
/// Media type of an image's manifest.
pub const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Media type of a list of images.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The program, built once per test binary.
fn program() -> anyhow::Result<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = PROGRAM.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    built.as_deref().map_err(|error| anyhow::anyhow!("{error}"))
}

fn build() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no workspace")?;
    let program = root.join("target/registry/registry");
    let output = Command::new("go")
        .args(["build", "-trimpath", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(root.join("hack/registry"))
        .output()
        .context("go")?;
    ensure!(output.status.success(), "hack/registry: {}", String::from_utf8_lossy(&output.stderr));
    Ok(program)
}

/// Who may read.
#[derive(Clone, Copy, Debug)]
pub enum Access<'a> {
    /// Everybody.
    Open,
    /// [`USER`], by password.
    Basic,
    /// Who has a token of this server.
    Token(&'a TokenServer),
}

/// How a registry speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP.
    Plain,
    /// TLS, with a certificate that nobody trusts.
    Tls,
}

/// A directory of images.
pub struct Storage {
    directory: TempDir,
    pusher: Registry,
}

/// A running registry; it ends when this is dropped.
pub struct Registry {
    /// Its host and port.
    pub address: String,
    child: Child,
    _files: TempDir,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Registry {
    fn start(storage: &Path, speaks: Speaks, access: Access<'_>) -> anyhow::Result<Self> {
        let files = TempDir::new()?;
        let at = |name: &str| files.path().join(name);
        let mut http = json!({"addr": "127.0.0.1:0"});
        if speaks == Speaks::Tls {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
            std::fs::write(at("tls.crt"), made.cert.pem())?;
            std::fs::write(at("tls.key"), made.signing_key.serialize_pem())?;
            http["tls"] = json!({"certificate": at("tls.crt"), "key": at("tls.key")});
        }
        let mut config = json!({
            "version": "0.1",
            "log": {"level": "info", "accesslog": {"disabled": true}},
            "storage": {"filesystem": {"rootdirectory": storage}},
            "http": http,
        });
        match access {
            Access::Open => {}
            Access::Basic => {
                std::fs::write(at("htpasswd"), HTPASSWD)?;
                config["auth"] = json!({"htpasswd": {"realm": "tests", "path": at("htpasswd")}});
            }
            Access::Token(server) => {
                std::fs::write(at("jwks"), server.keys().to_string())?;
                config["auth"] = json!({"token": {"realm": server.realm(), "service": "tests", "issuer": "tests",
                    "jwks": at("jwks"), "signingalgorithms": ["EdDSA"]}});
            }
        }
        // JSON is YAML.
        std::fs::write(at("config.yml"), config.to_string())?;
        let mut child = Command::new(program()?)
            .arg("serve")
            .arg(at("config.yml"))
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let log = child.stderr.take().context("no log")?;
        let mut registry = Self { address: String::new(), child, _files: files };
        let mut lines = BufReader::new(log).lines();
        let mut seen = String::new();
        for line in lines.by_ref() {
            let line = line?;
            if let Some((_, rest)) = line.split_once("listening on ") {
                let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
                rest[..end.unwrap_or(rest.len())].clone_into(&mut registry.address);
                break;
            }
            seen.push_str(&line);
            seen.push('\n');
        }
        ensure!(!registry.address.is_empty(), "the registry did not start:\n{seen}");
        // Somebody has to read on, or the registry waits for it.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(registry)
    }
}

impl Storage {
    /// An empty one.
    ///
    /// # Errors
    /// When the registry cannot be built or started.
    pub fn new() -> anyhow::Result<Self> {
        let directory = TempDir::new()?;
        let pusher = Registry::start(directory.path(), Speaks::Plain, Access::Open)?;
        Ok(Self { directory, pusher })
    }

    /// A registry that serves it.
    ///
    /// # Errors
    /// When it does not start.
    pub fn serve(&self, speaks: Speaks, access: Access<'_>) -> anyhow::Result<Registry> {
        Registry::start(self.directory.path(), speaks, access)
    }

    /// Puts an image for an architecture into a repository, under a tag; answers the digest of its manifest.
    ///
    /// # Errors
    /// What the registry says.
    pub async fn push_image(
        &self,
        repository: &str,
        tag: &str,
        architecture: &str,
    ) -> anyhow::Result<String> {
        let layer = Bytes::from_static(b"no real layer");
        let layer_digest = self.push_blob(repository, &layer).await?;
        let config = json!({
            "architecture": architecture, "os": "linux", "created": "2026-01-02T03:04:05.6Z", "author": tag,
            "config": {"Env": ["A=b"], "Cmd": ["/bin/sh"], "ExposedPorts": {"8080/tcp": {}}, "User": "1001"},
            "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
        });
        let config = Bytes::from(config.to_string());
        let config_digest = self.push_blob(repository, &config).await?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": config_digest,
                "size": config.len()},
            "layers": [{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "digest": layer_digest,
                "size": layer.len()}],
        });
        self.push_manifest(repository, tag, MANIFEST, &manifest).await
    }

    /// Puts a list of images that are there into a repository: pairs of digest and architecture.
    ///
    /// # Errors
    /// What the registry says.
    pub async fn push_list(
        &self,
        repository: &str,
        tag: &str,
        images: &[(&str, &str)],
    ) -> anyhow::Result<String> {
        let mut entries = Vec::new();
        for (digest, architecture) in images {
            let (_, size) =
                self.call(Method::GET, &format!("{repository}/manifests/{digest}"), MANIFEST, None).await?;
            entries.push(json!({"mediaType": MANIFEST, "digest": digest, "size": size,
                "platform": {"architecture": architecture, "os": "linux"}}));
        }
        let list = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
        self.push_manifest(repository, tag, INDEX, &list).await
    }

    /// Gives a manifest another tag.
    ///
    /// # Errors
    /// What the registry says.
    pub async fn push_manifest(
        &self,
        repository: &str,
        tag: &str,
        media_type: &str,
        manifest: &Value,
    ) -> anyhow::Result<String> {
        let body = Bytes::from(manifest.to_string());
        let path = format!("{repository}/manifests/{tag}");
        let (digest, _) = self.call(Method::PUT, &path, media_type, Some(body)).await?;
        Ok(digest)
    }

    async fn push_blob(&self, repository: &str, blob: &Bytes) -> anyhow::Result<String> {
        let digest = crate::token_server::sha256(blob);
        let (location, _) =
            self.call(Method::POST, &format!("{repository}/blobs/uploads/"), "", Some(Bytes::new())).await?;
        let joint = if location.contains('?') { '&' } else { '?' };
        let path = format!("{location}{joint}digest={digest}");
        self.call(Method::PUT, &path, "application/octet-stream", Some(blob.clone())).await?;
        Ok(digest)
    }

    /// Calls the registry's API. Answers where an upload goes on, else the content's digest; and the body's length.
    async fn call(
        &self,
        method: Method,
        path: &str,
        media_type: &str,
        body: Option<Bytes>,
    ) -> anyhow::Result<(String, usize)> {
        let url = if path.contains("://") {
            path.to_owned()
        } else {
            format!("http://{}/v2/{path}", self.pusher.address)
        };
        let kind = if body.is_some() { "content-type" } else { "accept" };
        let mut request = Request::builder().method(&method).uri(&url);
        if !media_type.is_empty() {
            request = request.header(kind, media_type);
        }
        let request = request.body(Full::new(body.unwrap_or_default()))?;
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let response = client.request(request).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        if !parts.status.is_success() {
            bail!("{method} {url}: {} {}", parts.status, String::from_utf8_lossy(&body));
        }
        let wanted = if method == Method::POST { "location" } else { "docker-content-digest" };
        let header = parts.headers.get(wanted).context("no header")?.to_str()?;
        Ok((header.to_owned(), body.len()))
    }
}
