//! The ways to kube-apiserver: directly, through the shim, through HAProxy, through Envoy.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use picoshift_tests::ControlPlane;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::Http;
use picoshift_tests::process::SHIM;
use picoshift_tests::tls::{Endpoint, Protocol};

/// How many seconds a proxy has to come up.
const PATIENCE: u64 = 20;

/// A way to kube-apiserver.
pub(crate) struct Door {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Where it is.
    pub(crate) endpoint: Endpoint,
    /// Its process; none for kube-apiserver itself.
    pub(crate) pid: Option<i32>,
}

/// All of them; the proxies end with this value.
pub(crate) struct Doors {
    /// kube-apiserver itself, the shim, HAProxy, Envoy.
    pub(crate) all: Vec<Door>,
    _proxies: Vec<Proxy>,
}

struct Proxy {
    child: Child,
    _directory: tempfile::TempDir,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Doors {
    /// Starts the proxies that `PICOSHIFT_BENCH_HAPROXY` and `PICOSHIFT_BENCH_ENVOY` name.
    pub(crate) async fn open(plane: &ControlPlane) -> anyhow::Result<Self> {
        let direct = plane.home.kube_apiserver()?;
        let shim = plane.home.component(SHIM)?;
        let mut all = vec![
            Door { name: "direct", endpoint: direct.clone(), pid: None },
            Door { name: "shim", endpoint: plane.stage.kube.clone(), pid: shim.pid },
        ];
        let mut proxies = Vec::new();
        for (name, variable, start) in [
            ("haproxy", "PICOSHIFT_BENCH_HAPROXY", haproxy as fn(&Path, &Files) -> anyhow::Result<Command>),
            ("envoy", "PICOSHIFT_BENCH_ENVOY", envoy),
        ] {
            let program = std::env::var_os(variable)
                .with_context(|| format!("{variable} names no program: `make bench` sets it"))?;
            let files = Files::new(&plane.home.state(), &direct)?;
            let mut command = start(Path::new(&program), &files)?;
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
            let endpoint =
                Endpoint { url: format!("https://127.0.0.1:{}", files.port), ..plane.stage.kube.clone() };
            let pid = i32::try_from(child.id())?;
            proxies.push(Proxy { child, _directory: files.directory });
            let http = Http::new(&endpoint, None, Protocol::Http2)?;
            let answers = || async {
                let answer = http.get("/version").await.map_err(|err| format!("{err:#}"));
                anyhow::Ok(answer.and_then(|answer| match answer.status.as_u16() {
                    200 => Ok(()),
                    other => Err(format!("answered {other}")),
                }))
            };
            eventually(&format!("{name} listens"), PATIENCE, answers).await?;
            all.push(Door { name, endpoint, pid: Some(pid) });
        }
        Ok(Self { all, _proxies: proxies })
    }
}

/// What a proxy is configured with.
struct Files {
    directory: tempfile::TempDir,
    certificate: PathBuf,
    key: PathBuf,
    authority: PathBuf,
    port: u16,
    upstream: String,
}

impl Files {
    fn new(state: &Path, direct: &Endpoint) -> anyhow::Result<Self> {
        let upstream = direct.url.strip_prefix("https://").context("kube-apiserver has another address")?;
        Ok(Self {
            directory: tempfile::tempdir()?,
            certificate: state.join("pki/api-serving.crt"),
            key: state.join("pki/api-serving.key"),
            authority: state.join("pki/cluster-ca.crt"),
            // Free a moment ago.
            port: TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port(),
            upstream: upstream.to_owned(),
        })
    }

    fn write(&self, name: &str, content: &str) -> anyhow::Result<PathBuf> {
        let path = self.directory.path().join(name);
        std::fs::write(&path, content)?;
        Ok(path)
    }
}

fn haproxy(program: &Path, files: &Files) -> anyhow::Result<Command> {
    let parts = [&files.certificate, &files.key].map(std::fs::read_to_string);
    let pem = parts.into_iter().collect::<std::io::Result<String>>()?;
    let pem = files.write("serving.pem", &pem)?;
    let (port, upstream) = (files.port, &files.upstream);
    let (pem, authority) = (pem.display(), files.authority.display());
    let config = files.write(
        "haproxy.cfg",
        &format!(
            "global\n  maxconn 4096\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n  \
             http-reuse always\nfrontend api\n  bind 127.0.0.1:{port} ssl crt {pem} alpn h2,http/1.1\n  \
             default_backend kube\nbackend kube\n  server kube {upstream} ssl verify required ca-file {authority}\n"
        ),
    )?;
    ensure!(program.is_file(), "{} is missing", program.display());
    let mut command = Command::new(program);
    command.arg("-db").arg("-f").arg(config);
    Ok(command)
}

fn envoy(program: &Path, files: &Files) -> anyhow::Result<Command> {
    let (host, upstream_port) = files.upstream.split_once(':').context("kube-apiserver has no port")?;
    let verified = serde_json::json!({"alpn_protocols": ["http/1.1"], "validation_context": {
        "trusted_ca": {"filename": files.authority},
        "match_typed_subject_alt_names": [{"san_type": "IP_ADDRESS", "matcher": {"exact": host}}],
    }});
    let socket = |address: &str, port: u64| serde_json::json!({"socket_address": {"address": address, "port_value": port}});
    let manager = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    let tls = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3";
    let config = serde_json::json!({"static_resources": {
        "listeners": [{
            "address": socket("127.0.0.1", files.port.into()),
            "filter_chains": [{
                "transport_socket": {"name": "tls", "typed_config": {
                    "@type": format!("{tls}.DownstreamTlsContext"),
                    "common_tls_context": {
                        "alpn_protocols": ["h2", "http/1.1"],
                        "tls_certificates": [{
                            "certificate_chain": {"filename": files.certificate}, "private_key": {"filename": files.key},
                        }],
                    },
                }},
                "filters": [{"name": "http", "typed_config": {
                    "@type": manager, "stat_prefix": "api", "stream_idle_timeout": "0s",
                    "route_config": {"virtual_hosts": [{"name": "api", "domains": ["*"], "routes": [{
                        "match": {"prefix": "/"}, "route": {"cluster": "kube", "timeout": "0s"},
                    }]}]},
                    "http_filters": [{"name": "router", "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
                    }}],
                }}],
            }],
        }],
        "clusters": [{
            "name": "kube", "type": "STATIC", "connect_timeout": "5s",
            "circuit_breakers": {"thresholds": [{
                "max_connections": 4096, "max_requests": 4096, "max_pending_requests": 4096,
            }]},
            "load_assignment": {"cluster_name": "kube", "endpoints": [{"lb_endpoints": [{"endpoint": {
                "address": socket(host, upstream_port.parse()?),
            }}]}]},
            "transport_socket": {"name": "tls", "typed_config": {
                "@type": format!("{tls}.UpstreamTlsContext"), "common_tls_context": verified,
            }},
        }],
    }});
    let config = files.write("envoy.json", &config.to_string())?;
    let mut command = Command::new(program);
    // Base IDs are shared memory names; this process is the only one that needs none.
    command.args(["--use-dynamic-base-id", "--concurrency", "2", "--log-level", "error", "-c"]).arg(config);
    Ok(command)
}

/// Resident memory of a process in MB (of 1,000,000 bytes).
pub(crate) fn resident_mb(pid: i32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024.0 / 1e6)
}

/// Time for memory that is given back late.
pub(crate) const SETTLE: Duration = Duration::from_secs(2);
