//! kube-apiserver: unchanged, with our webhooks before its own authorizers and behind its own authenticators.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Component, Flags, port};
use crate::kubeconfig::{PROJECTS_WEBHOOK, SCOPES_WEBHOOK, TOKENS_WEBHOOK};
use crate::paths::{Paths, write_if_changed};
use crate::settings::Settings;
use crate::yaml;

const AUTHORIZATION: &str = "authorization.yaml";
/// Where an identity carries the scopes of its token.
const SCOPES: &str = "scopes.authorization.openshift.io";
/// Who issues service-account tokens. As long as no other audiences are given, tokens are for it too.
pub(super) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

pub(super) fn flags(flags: &mut Flags, paths: &Paths, settings: &Settings) -> Result<()> {
    flags.set("bind-address", "127.0.0.1");
    flags.set("secure-port", port(settings, Component::KubeApiserver)?);
    flags.set("advertise-address", "127.0.0.1");
    // EndpointSlices refuse loopback addresses, and nothing in the cluster could use one.
    flags.set("endpoint-reconciler-type", "none");
    flags.set("service-cluster-ip-range", "10.96.0.0/16");
    flags.set("allow-privileged", true);
    flags.set("profiling", false);
    // An image import may take minutes. OpenShift's kube-apiserver knows it as a long request; here all get the time.
    flags.set("request-timeout", "20m");

    flags.set("etcd-servers", format!("https://127.0.0.1:{}", port(settings, Component::Etcd)?));
    flags.input("etcd-cafile", paths.pki("etcd-ca.crt"));
    flags.input("etcd-certfile", paths.pki("etcd-client.crt"));
    flags.input("etcd-keyfile", paths.pki("etcd-client.key"));

    flags.input("tls-cert-file", paths.pki("kube-apiserver-serving.crt"));
    flags.input("tls-private-key-file", paths.pki("kube-apiserver-serving.key"));
    flags.input("client-ca-file", paths.pki("cluster-ca.crt"));
    flags.input("kubelet-certificate-authority", paths.pki("cluster-ca.crt"));
    flags.input("kubelet-client-certificate", paths.pki("kubelet-client.crt"));
    flags.input("kubelet-client-key", paths.pki("kubelet-client.key"));

    flags.set("service-account-issuer", ISSUER);
    flags.input("service-account-key-file", paths.pki("service-account.pub"));
    flags.input("service-account-signing-key-file", paths.pki("service-account.key"));

    // The aggregator says by these who a user is; extension servers read them from a ConfigMap.
    flags.input("requestheader-client-ca-file", paths.pki("front-proxy-ca.crt"));
    flags.set("requestheader-allowed-names", "front-proxy-client");
    flags.set("requestheader-username-headers", "X-Remote-User");
    flags.set("requestheader-uid-headers", "X-Remote-Uid");
    flags.set("requestheader-group-headers", "X-Remote-Group");
    flags.set("requestheader-extra-headers-prefix", "X-Remote-Extra-");
    flags.input("proxy-client-cert-file", paths.pki("front-proxy-client.crt"));
    flags.input("proxy-client-key-file", paths.pki("front-proxy-client.key"));

    // Our server says whose OAuth tokens are. What it said counts for the ten seconds that kube-apiserver remembers any
    // token; more would let tokens live on that were ended.
    flags.input("authentication-token-webhook-config-file", paths.kubeconfig(TOKENS_WEBHOOK.0));
    flags.set("authentication-token-webhook-version", "v1");
    flags.set("authentication-token-webhook-cache-ttl", "1s");

    flags.input("authorization-config", paths.config(AUTHORIZATION));
    flags
        .inputs
        .extend([PROJECTS_WEBHOOK, SCOPES_WEBHOOK].map(|(kubeconfig, _)| paths.kubeconfig(kubeconfig)));
    Ok(())
}

/// Writes who authorizes what.
///
/// First, for callers with token scopes only, our webhook that denies what the scopes prevent; without an answer they may
/// nothing. Then, for what OpenShift's servers authorize as something else than kube-apiserver can, the other:
/// - A request for a Project by its name has no namespace in vanilla Kubernetes, so RBAC could allow it only for all
///   Projects at once; it is decided in the namespace of that name.
/// - A review of access that may be about oneself, which everybody may ask for. Our server decides what it is.
pub(crate) fn write_authorization_config(paths: &Paths) -> Result<()> {
    let scoped =
        format!("has(request.extra) && '{SCOPES}' in request.extra && size(request.extra['{SCOPES}']) > 0");
    let resource = "has(request.resourceAttributes)";
    let is = |field: &str, value: &str| {
        format!("has(request.resourceAttributes.{field}) && request.resourceAttributes.{field} == '{value}'")
    };
    let is_set = |field: &str| {
        format!("has(request.resourceAttributes.{field}) && request.resourceAttributes.{field} != ''")
    };
    let project = all(&[
        is("group", "project.openshift.io"),
        is("resource", "projects"),
        is_set("name"),
        format!("!({})", is_set("namespace")),
    ]);
    let review = all(&[
        is("group", "authorization.openshift.io"),
        is("version", "v1"),
        format!(
            "({}) || ({})",
            is("resource", "subjectaccessreviews"),
            is("resource", "localsubjectaccessreviews")
        ),
        is("verb", "create"),
    ]);
    // Every condition is evaluated on its own, also for a request without resource attributes: one expression, then.
    let stand_in = format!("{resource} && (({project}) || ({review}))");
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": [
            webhook("scopes", &paths.kubeconfig(SCOPES_WEBHOOK.0), "Deny", &scoped),
            webhook("projects", &paths.kubeconfig(PROJECTS_WEBHOOK.0), "NoOpinion", &stand_in),
            {"type": "Node", "name": "node"},
            {"type": "RBAC", "name": "rbac"},
        ],
    });
    write_if_changed(&paths.config(AUTHORIZATION), yaml::emit(&config).as_bytes(), 0o600)
}

fn all(conditions: &[String]) -> String {
    conditions.iter().map(|condition| format!("({condition})")).collect::<Vec<_>>().join(" && ")
}

fn webhook(name: &str, kubeconfig: &Path, failure_policy: &str, expression: &str) -> Value {
    json!({
        "type": "Webhook",
        "name": name,
        "webhook": {
            "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": kubeconfig.to_string_lossy()},
            "subjectAccessReviewVersion": "v1",
            "matchConditionSubjectAccessReviewVersion": "v1",
            "timeout": "3s",
            "failurePolicy": failure_policy,
            "authorizedTTL": "1s",
            "unauthorizedTTL": "1s",
            "matchConditions": [{"expression": expression}],
        },
    })
}
