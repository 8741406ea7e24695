//! Asks the engine what SCCs say about a pod template.
//!
//! Who may use which SCC by RBAC is asked of kube-apiserver, all at once, before the engine runs, which cannot wait.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Namespace as KubeNamespace, ServiceAccount};
use kube::{Api, Client};
use picoshift_machinery::{Status, UserInfo};
use picoshift_scc_engine::provider::aggregate;
use picoshift_scc_engine::{Cluster, GROUP, Namespace, Provider, RESOURCE, Scc, Subject};
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use super::strategies::{StoredScc, StoredSccs};
use crate::authz::{Attributes, Authorizer, Decision};
use crate::rest::query::without_reason;

/// Time of a question to kube-apiserver.
const WITHIN: Duration = Duration::from_secs(10);
/// How often a namespace is looked at that lacks annotations, which a controller sets soon after it is made; and the pause.
const LOOKS: usize = 11;
const PAUSE: Duration = Duration::from_secs(1);

/// What reviews ask of the cluster.
#[async_trait]
pub trait Facts: Send + Sync {
    /// A namespace; `None` when there is none.
    ///
    /// # Errors
    /// 500 when it could not be read.
    async fn namespace(&self, name: &str) -> Result<Option<Namespace>, Status>;

    /// Whether there is a service account.
    ///
    /// # Errors
    /// 500 when it could not be read.
    async fn has_service_account(&self, namespace: &str, name: &str) -> Result<bool, Status>;
}

/// The cluster's, from kube-apiserver.
pub struct KubeFacts(Client);

impl KubeFacts {
    /// Asks with `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self(client)
    }
}

#[async_trait]
impl Facts for KubeFacts {
    async fn namespace(&self, name: &str) -> Result<Option<Namespace>, Status> {
        let api: Api<KubeNamespace> = Api::all(self.0.clone());
        let answer = timeout(WITHIN, api.get_metadata_opt(name)).await;
        let found = answer.map_err(|_| Status::internal("no answer about a namespace in time"))?;
        let found =
            found.map_err(|error| Status::internal(format_args!("namespaces cannot be read: {error}")))?;
        Ok(found.map(|found| Namespace {
            name: name.to_owned(),
            annotations: found.metadata.annotations.unwrap_or_default(),
        }))
    }

    async fn has_service_account(&self, namespace: &str, name: &str) -> Result<bool, Status> {
        let api: Api<ServiceAccount> = Api::namespaced(self.0.clone(), namespace);
        let answer = timeout(WITHIN, api.get_opt(name)).await;
        let found = answer.map_err(|_| Status::internal("no answer about a service account in time"))?;
        let failed = |error| Status::internal(format_args!("service accounts cannot be read: {error}"));
        Ok(found.map_err(failed)?.is_some())
    }
}

/// Answers reviews.
pub(super) struct Reviewer {
    pub(super) sccs: Arc<StoredSccs>,
    pub(super) authorizer: Arc<dyn Authorizer>,
    pub(super) facts: Arc<dyn Facts>,
}

impl Reviewer {
    /// The SCCs that any of the users may use, in the order in which they are tried.
    pub(super) async fn applicable(&self, namespace: &str, users: &[UserInfo]) -> Vec<Arc<StoredScc>> {
        let stored = self.sccs.all();
        let sccs: Vec<Scc> = stored.iter().map(|stored| stored.scc.clone()).collect();
        let subjects: Vec<Subject> = users.iter().map(subject).collect();
        let named = Cluster { sccs: &sccs, may_use: &|_, _| false };
        let open = sccs.iter().flat_map(|scc| users.iter().zip(&subjects).map(move |user| (scc, user)));
        let questions = open.filter(|(scc, (_, subject))| !named.usable(scc, subject)).map(
            |(scc, (user, subject))| async move {
                let may = self.may_use(namespace, user, scc.name()).await;
                may.then(|| (subject.clone(), scc.name().to_owned()))
            },
        );
        let allowed: HashSet<(Subject, String)> = join_all(questions).await.into_iter().flatten().collect();
        let may_use = |subject: &Subject, scc: &str| allowed.contains(&(subject.clone(), scc.to_owned()));
        let cluster = Cluster { sccs: &sccs, may_use: &may_use };
        let entry = |scc: &Scc| stored.iter().find(|stored| stored.scc.name() == scc.name()).cloned();
        cluster.applicable(&subjects).into_iter().filter_map(entry).collect()
    }

    /// By RBAC, and by the scopes of the user's token; what cannot be found out is no.
    async fn may_use(&self, namespace: &str, user: &UserInfo, scc: &str) -> bool {
        let asked = Attributes {
            verb: "use".to_owned(),
            group: GROUP.to_owned(),
            resource: RESOURCE.to_owned(),
            namespace: namespace.to_owned(),
            name: scc.to_owned(),
            ..Attributes::default()
        };
        match self.authorizer.authorize(user, &asked).await {
            Ok(decision) => decision == Decision::Allow,
            Err(error) => {
                tracing::warn!(scc, error = error.message, "it is not known who may use an SCC");
                false
            }
        }
    }

    /// A namespace with what SCCs need of it; what its controller is about to set is waited for.
    ///
    /// # Errors
    /// 500 without a reason when it is not there in time, as upstream's.
    pub(super) async fn namespace(&self, name: &str) -> Result<Namespace, Status> {
        let mut lacks = String::new();
        for look in 0..LOOKS {
            if look > 0 {
                sleep(PAUSE).await;
            }
            match self.facts.namespace(name).await? {
                None => lacks = format!("namespace \"{name}\" not found"),
                Some(namespace) => match namespace.missing_annotation() {
                    None => return Ok(namespace),
                    Some(missing) => lacks = format!("unable to find annotation {missing}"),
                },
            }
        }
        Err(without_reason(format!("error fetching namespace \"{name}\": {lacks}")))
    }
}

fn subject(user: &UserInfo) -> Subject {
    Subject { name: user.name.clone(), groups: user.groups.clone() }
}

/// A service account as it is asked about.
pub(super) fn service_account(namespace: &str, name: &str) -> UserInfo {
    let Subject { name, groups } = Subject::service_account(namespace, name);
    UserInfo { name, groups, ..UserInfo::default() }
}

/// SCCs, ready to judge pods of a namespace, beside what a reference says.
///
/// # Errors
/// 500 without a reason for each that cannot be made ready, as upstream's.
pub(super) fn providers<'a>(
    sccs: &'a [Arc<StoredScc>],
    namespace: &Namespace,
) -> Result<Vec<(Provider<'a>, &'a StoredScc)>, Status> {
    let mut errors = Vec::new();
    let mut ready = Vec::new();
    for stored in sccs {
        match Provider::new(&stored.scc, namespace) {
            Ok(provider) => ready.push((provider, &**stored)),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(ready) } else { Err(without_reason(aggregate(&errors))) }
}

/// Says in a review's status what an SCC makes of a pod template; returns whether it admits it. As upstream, the reason of one
/// that does not stays when another does.
pub(super) fn judge(
    status: &mut Map<String, Value>,
    (provider, stored): &(Provider<'_>, &StoredScc),
    spec: &Value,
) -> bool {
    let Ok(pod) = provider.assign(&json!({"spec": spec})) else {
        status.insert("reason".to_owned(), "CantAssignSecurityContextConstraintProvider".into());
        return false;
    };
    let reference = json!({
        "kind": "SecurityContextConstraints",
        "name": stored.scc.name(),
        "uid": stored.uid,
        "apiVersion": format!("{GROUP}/v1"),
        "resourceVersion": stored.revision.to_string(),
    });
    status.insert("allowedBy".to_owned(), reference);
    if spec["serviceAccountName"].as_str().is_some_and(|name| !name.is_empty()) {
        status.insert("template".to_owned(), json!({"metadata": {}, "spec": pod["spec"]}));
    }
    true
}

/// A status that says nothing yet.
pub(super) fn undecided() -> Map<String, Value> {
    let mut status = Map::new();
    status.insert("template".to_owned(), json!({"metadata": {}, "spec": {"containers": null}}));
    status
}
