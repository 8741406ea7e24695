//! The shim beside HAProxy and Envoy, each doing no more than TLS before the same kube-apiserver, and beside kube-apiserver
//! itself: what each adds to a request, how many requests it lets through, and what a thousand watches cost it.
//!
//! Only the shim can pass on who a client certificate says that its holder is: the other two see none.

mod doors;
mod measure;
mod report;

use std::time::Duration;

use anyhow::Context as _;
use picoshift_tests::ControlPlane;
use serde_json::{Value, json};

use self::doors::Doors;

/// The case's name, for `BENCH_CASES`.
pub(crate) const CASE: &str = "front-door";

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    /// A client certificate.
    Certificate,
    /// A service account's token.
    ServiceAccount,
    /// A token of the OAuth server's.
    OAuth,
}

impl Credential {
    const ALL: [Self; 3] = [Self::Certificate, Self::ServiceAccount, Self::OAuth];

    fn name(self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::ServiceAccount => "service-account",
            Self::OAuth => "oauth",
        }
    }
}

/// Measures all of it and prints a table.
pub(crate) async fn run(plane: &ControlPlane, length: Duration) -> anyhow::Result<()> {
    let callers = Callers::make(plane).await?;
    let doors = Doors::open(plane).await?;
    let mut rows = Vec::new();
    for credential in Credential::ALL {
        rows.extend(measure::requests(&doors, &callers, credential, length).await?);
    }
    rows.extend(measure::openshift_group(&doors, &callers, length).await?);
    let watches = measure::watches(&doors, &callers).await?;
    print!("{}{}", report::requests(&rows), report::watches(&watches));
    println!("{}", report::write(&rows, &watches)?.display());
    Ok(())
}

/// One user with three credentials, who may read the namespace `default`.
pub(crate) struct Callers {
    pub(crate) identity: picoshift_tests::identity::Identity,
    service_account: String,
    oauth: String,
}

impl Callers {
    async fn make(plane: &ControlPlane) -> anyhow::Result<Self> {
        let admin = plane.admin()?;
        let account = json!({"metadata": {"name": "front-door"}});
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        admin.api.post(accounts, &account).await?.expect_code(201)?;
        let path = format!("{accounts}/front-door/token");
        let token = admin.api.post(&path, &json!({"spec": {}})).await?.expect_code(201)?;
        let binding = json!({
            "metadata": {"name": "front-door"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "front-door"},
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "user1"},
                {"kind": "ServiceAccount", "namespace": "default", "name": "front-door"},
            ],
        });
        let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
        admin.api.post(bindings, &binding).await?.expect_code(201)?;
        let route = json!({
            "apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": "front-door"},
            "spec": {"to": {"kind": "Service", "name": "front-door"}},
        });
        admin
            .api
            .post("/apis/route.openshift.io/v1/namespaces/default/routes", &route)
            .await?
            .expect_code(201)?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no token");
        Ok(Self {
            identity: plane.sign("front-door", None)?,
            service_account: text(&token["status"]["token"])?,
            oauth: picoshift_tests::login::token(plane, "user1", "user1").await?,
        })
    }

    /// The token of a credential; `None` for the certificate.
    pub(crate) fn token(&self, credential: Credential) -> Option<&str> {
        match credential {
            Credential::Certificate => None,
            Credential::ServiceAccount => Some(&self.service_account),
            Credential::OAuth => Some(&self.oauth),
        }
    }
}
