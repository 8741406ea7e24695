//! Routes: the CRD is the one that OpenShift's API module ships.

use picoshift_tests::http::patch;
use serde_json::{Value, json};

use crate::subject::{Manifest, Subject};

/// Routes of about 1.4 KB as they are served.
pub(crate) static ROUTES: Subject = Subject {
    // They were first.
    prefix: "",
    group: "route.openshift.io",
    crd_group: "route.bench.picoshift.io",
    kind: "Route",
    plural: "routes",
    manifest: Manifest::Shipped("route/v1/zz_generated.crd-manifests/routes.crd.yaml"),
    body,
    change: |number| (patch::MERGE, json!({"spec": {"path": format!("/change-{number}")}})),
};

/// Host and labels are derived from the name.
fn body(name: &str, namespace: &str) -> Value {
    let note = "An edge-terminated route to the storefront; owned by the shop team, see its runbook. ";
    json!({
        "metadata": {
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
