//! Paths that the server answers itself, and the words under which requests are counted.

use http::{Method, Response};
use picoshift_machinery::body::Body;
use picoshift_machinery::health;
use picoshift_machinery::readiness::Probe;
use picoshift_machinery::request_info::RequestInfo;

use super::metrics::Target;
use super::{Endpoints, Parts, respond, version, webhooks};

/// Probes: no place needed, they must be answered.
pub(super) const PROBES: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Paths that the server answers itself.
pub(super) fn answer(parts: &Parts, info: &RequestInfo, query: Option<&str>) -> Response<Body> {
    if let Some((probe, name)) = health::probe(&info.path) {
        return health::answer(&parts.checks, probe, name, query);
    }
    match info.path.as_str() {
        "/metrics" => parts.metrics.answer(),
        "/version" | "/version/" => version::kubernetes(),
        "/version/openshift" => version::openshift(),
        "/" | "/index.html" => index(parts),
        _ => respond::not_found(),
    }
}

fn index(parts: &Parts) -> Response<Body> {
    let mut paths: Vec<String> = parts.endpoints.listed().map(ToOwned::to_owned).collect();
    paths.extend(["/metrics", "/version", "/version/openshift"].map(ToOwned::to_owned));
    for probe in [Probe::Health, Probe::Live, Probe::Ready] {
        paths.push(format!("/{}", probe.name()));
        let checks = parts.checks.of(probe);
        paths.extend(checks.iter().map(|check| format!("/{}/{}", probe.name(), check.name)));
    }
    paths.sort();
    paths.dedup();
    respond::pretty_json(&serde_json::json!({ "paths": paths }))
}

/// The labels of a request, in words that we know.
pub(super) fn target(endpoints: &Endpoints, info: &RequestInfo, method: &Method) -> Target {
    let verb = match (info.verb.as_str(), method.as_str()) {
        ("list", _) => "LIST",
        ("watch", _) => "WATCH",
        ("deletecollection", _) => "DELETECOLLECTION",
        (_, "GET") => "GET",
        (_, "HEAD") => "HEAD",
        (_, "POST") => "POST",
        (_, "PUT") => "PUT",
        (_, "PATCH") => "PATCH",
        (_, "DELETE") => "DELETE",
        _ => "other",
    };
    if !info.is_resource {
        let known = PROBES.into_iter().chain(["/metrics", "/version"]).chain(webhooks::PATHS);
        let subresource = known.into_iter().find(|path| *path == info.path).unwrap_or_default();
        return Target { verb, subresource, ..Target::default() };
    }
    let Some((resource, _)) = endpoints.find_resource(info) else {
        return Target { verb, resource: "other", ..Target::default() };
    };
    let subresource = resource.subresource(&info.subresource).map_or("", |sub| sub.name);
    Target {
        verb,
        group: resource.gvk.group,
        version: resource.gvk.version,
        resource: resource.plural,
        subresource,
    }
}
