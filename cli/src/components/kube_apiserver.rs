//! kube-apiserver: unchanged, with our webhooks before its own authorizers and behind its own authenticators.

use anyhow::Result;
use serde_json::json;

use super::{Component, Flags, port};
use crate::paths::{Paths, write_if_changed};
use crate::settings::Settings;
use crate::yaml;

const AUTHORIZATION: &str = "authorization.yaml";
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
    flags.input("authentication-token-webhook-config-file", paths.kubeconfig("authentication-webhook"));
    flags.set("authentication-token-webhook-version", "v1");
    flags.set("authentication-token-webhook-cache-ttl", "1s");

    flags.input("authorization-config", paths.config(AUTHORIZATION));
    flags.inputs.push(paths.kubeconfig("authorization-webhook"));
    Ok(())
}

/// Writes who authorizes what. A request for a Project by its name has no namespace in vanilla Kubernetes, so RBAC could allow
/// it only for all Projects at once; our webhook decides it as OpenShift does, in the namespace of that name.
pub(crate) fn write_authorization_config(paths: &Paths) -> Result<()> {
    let conditions = [
        "has(request.resourceAttributes)",
        "has(request.resourceAttributes.group) && request.resourceAttributes.group == 'project.openshift.io'",
        "has(request.resourceAttributes.resource) && request.resourceAttributes.resource == 'projects'",
        "has(request.resourceAttributes.name) && request.resourceAttributes.name != ''",
        "!has(request.resourceAttributes.namespace) || request.resourceAttributes.namespace == ''",
    ];
    // Every condition is evaluated on its own, also for a request without resource attributes: one expression, then.
    let expression = conditions.map(|condition| format!("({condition})")).join(" && ");
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": [
            {
                "type": "Webhook",
                "name": "projects",
                "webhook": {
                    "connectionInfo": {
                        "type": "KubeConfigFile",
                        "kubeConfigFile": paths.kubeconfig("authorization-webhook").to_string_lossy(),
                    },
                    "subjectAccessReviewVersion": "v1",
                    "matchConditionSubjectAccessReviewVersion": "v1",
                    "timeout": "3s",
                    "failurePolicy": "NoOpinion",
                    "authorizedTTL": "1s",
                    "unauthorizedTTL": "1s",
                    "matchConditions": [{"expression": expression}],
                },
            },
            {"type": "Node", "name": "node"},
            {"type": "RBAC", "name": "rbac"},
        ],
    });
    write_if_changed(&paths.config(AUTHORIZATION), yaml::emit(&config).as_bytes(), 0o600)
}
