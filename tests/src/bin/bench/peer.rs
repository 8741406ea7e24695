//! Who serves: our server, or kube-apiserver with a CRD of the same schema.

use serde_json::{Value, json};

/// The group of the CRD.
pub(crate) const CRD_GROUP: &str = "route.bench.picoshift.io";

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// picoshift-apiserver.
    Ours,
    /// kube-apiserver with a CRD.
    Crd,
}

impl Peer {
    /// The API group of its Routes.
    pub(crate) fn group(self) -> &'static str {
        match self {
            Self::Ours => "route.openshift.io",
            Self::Crd => CRD_GROUP,
        }
    }

    /// Path of the Routes of a namespace.
    pub(crate) fn routes(self, namespace: &str) -> String {
        format!("/apis/{}/v1/namespaces/{namespace}/routes", self.group())
    }

    /// A Route of about 1.7 KB as it is served, host and labels derived from its name.
    pub(crate) fn route(self, name: &str, namespace: &str) -> Value {
        let note = "An edge-terminated route to the storefront; owned by the shop team, see its runbook. ";
        json!({
            "apiVersion": format!("{}/v1", self.group()), "kind": "Route",
            "metadata": {
                "name": name,
                "labels": {
                    "app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop",
                    "app.kubernetes.io/managed-by": "bench", "team": "storefront",
                },
                "annotations": {"description": note.repeat(4), "haproxy.router.openshift.io/timeout": "30s"},
            },
            "spec": {
                "host": format!("{name}-{namespace}.bench.example.org"), "path": "/shop",
                "to": {"kind": "Service", "name": "storefront", "weight": 90},
                "alternateBackends": [{"kind": "Service", "name": "storefront-next", "weight": 10}],
                "port": {"targetPort": "https"},
                "tls": {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"},
                "wildcardPolicy": "None",
            },
        })
    }
}
