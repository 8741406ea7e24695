//! `/version` and `/version/openshift`.

use http::Response;
use picoshift_machinery::body::Body;
use serde::Serialize;

use super::respond;

/// The Kubernetes version whose API behaviour the server has.
const KUBERNETES: &str = "v1.34.1";
/// The OpenShift version whose API behaviour the server has.
const OPENSHIFT: &str = "v4.21.0";

/// `version.Info` of the generic API server.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    major: &'static str,
    minor: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    emulation_major: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    emulation_minor: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    min_compatibility_major: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    min_compatibility_minor: &'static str,
    git_version: String,
    git_commit: &'static str,
    git_tree_state: &'static str,
    build_date: &'static str,
    go_version: &'static str,
    compiler: &'static str,
    platform: String,
}

impl Info {
    fn new(git_version: String) -> Self {
        Self {
            major: "4",
            minor: "21",
            emulation_major: "",
            emulation_minor: "",
            min_compatibility_major: "",
            min_compatibility_minor: "",
            git_version,
            git_commit: "",
            git_tree_state: "",
            build_date: "",
            go_version: "",
            compiler: "rustc",
            platform: platform(),
        }
    }
}

/// Operating system and architecture in Go's words.
fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{architecture}", std::env::consts::OS)
}

/// `/version`.
#[must_use]
pub fn kubernetes() -> Response<Body> {
    respond::pretty_json(&Info {
        emulation_major: "4",
        emulation_minor: "21",
        min_compatibility_major: "4",
        min_compatibility_minor: "20",
        build_date: "1970-01-01T00:00:00Z",
        ..Info::new(KUBERNETES.to_owned())
    })
}

/// `/version/openshift`.
#[must_use]
pub fn openshift() -> Response<Body> {
    respond::pretty_json(&Info::new(format!("{OPENSHIFT}-picoshift-{}", env!("CARGO_PKG_VERSION"))))
}
