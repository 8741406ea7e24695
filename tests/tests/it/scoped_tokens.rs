//! A real token with scopes, of somebody who may do everything: on no way, and by no detour, does it do more than they say.

use anyhow::ensure;
use http::Method;
use picoshift_tests::ControlPlane;
use picoshift_tests::http::Http;
use picoshift_tests::objects::unique;
use picoshift_tests::tls::Protocol;
use picoshift_tests::tokens::{OAUTH, Token};
use serde_json::{Value, json};

use crate::support::new_namespace;

const AUTHORIZATION: &str = "/apis/authorization.openshift.io/v1";

/// What the holder tries: method, path, body.
fn attempts(namespace: &str, other: &str) -> Vec<(Method, String, Value)> {
    let binding = json!({
        "apiVersion": "authorization.openshift.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": unique("grab")},
        "roleRef": {"name": "cluster-admin"}, "subjects": [{"kind": "User", "name": "mallory"}],
    });
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x"}});
    let get = |path: String| (Method::GET, path, Value::Null);
    vec![
        get(format!("/api/v1/namespaces/{namespace}/secrets")),
        get(format!("/api/v1/namespaces/{other}/configmaps")),
        get("/api/v1/nodes".to_owned()),
        get("/apis/user.openshift.io/v1/users/~".to_owned()),
        get("/apis/user.openshift.io/v1/users".to_owned()),
        get(format!("{OAUTH}/useroauthaccesstokens")),
        get(format!("{OAUTH}/oauthaccesstokens")),
        get(format!("{AUTHORIZATION}/clusterroles")),
        (Method::POST, format!("{AUTHORIZATION}/clusterrolebindings"), binding),
        (Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews".to_owned(), review.clone()),
        (Method::POST, format!("{OAUTH}/tokenreviews"), review),
    ]
}

async fn tries(http: &Http, method: &Method, path: &str, body: &Value) -> anyhow::Result<(u16, String)> {
    let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
    let answer =
        http.send(http.request(method.clone(), path, Some("application/json"), body.into())?).await?;
    Ok((answer.status.as_u16(), answer.text()))
}

#[tokio::test]
async fn a_scoped_token_of_an_administrator_is_held_to_its_scopes_everywhere() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let (namespace, other) = (new_namespace(&admin, "scoped").await?, new_namespace(&admin, "other").await?);
    let user = unique("root");
    let binding = json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    admin.api.post(bindings, &binding).await?.expect_code(201)?;
    let scope = format!("role:view:{namespace}");
    let token = Token::issue(&admin, &user, &json!({"scopes": [scope]})).await?;
    let (shim, ours) = token.clients(&plane)?;
    let kube = Http::new(&plane.home.kube_apiserver()?, None, Protocol::Any)?
        .with_header("authorization", &format!("Bearer {}", token.raw))?;

    for (way, http) in [("the shim", &shim), ("kube-apiserver", &kube)] {
        let pods = http.get(&format!("/api/v1/namespaces/{namespace}/pods")).await?;
        ensure!(pods.status == 200, "{way}: what the scope has is refused: {}", pods.text());
        let disguised = http.clone().with_header("Impersonate-User", "system:admin")?;
        let disguised = disguised.get(&format!("/api/v1/namespaces/{namespace}/pods")).await?;
        ensure!(disguised.status == 403, "{way}: impersonation: {}", disguised.text());
    }
    let reason = format!("scopes [{scope}] prevent this action");
    for (way, http) in [("the shim", &shim), ("kube-apiserver", &kube), ("our server", &ours)] {
        for (method, path, body) in attempts(&namespace, &other) {
            // What is Kubernetes' own, our server has not.
            if way == "our server" && !path.contains("openshift.io") {
                continue;
            }
            let (code, text) = tries(http, &method, &path, &body).await?;
            ensure!(code == 403 && text.contains(&reason), "{way}: {method} {path}: {code}: {text}");
        }
    }
    Ok(())
}
