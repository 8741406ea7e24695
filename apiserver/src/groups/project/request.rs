//! `projectrequests`: a user asks for a project of his own, or whether he may.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picoshift_machinery::status::{Cause, Details};
use picoshift_machinery::user_info::SCOPES_EXTRA;
use picoshift_machinery::{Object, Status, UserInfo};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::kube_api::KubeApi;
use super::render::{self, DESCRIPTION, DISPLAY_NAME, REQUESTER};
use super::storage::{shown, shown_dry};
use super::visibility::{Source, Visibility};
use super::{PROJECT_REQUESTS, PROJECTS, validation};
use crate::authz::{Attributes, Authorizer, Decision};
use crate::object_meta;
use crate::resource::Resource;
use crate::rest::options::Propagation;
use crate::rest::{
    DeleteOptions, Item, List, ListOptions, Preconditions, RequestContext, Storage, WriteOptions,
};

const GROUP: &str = "project.openshift.io";
const RESERVED_NAMES: [&str; 3] = ["openshift", "kubernetes", "kube"];
const RESERVED_PREFIXES: [&str; 3] = ["openshift-", "kubernetes-", "kube-"];

/// How long a new project's answer waits for its admin to be one for kube-apiserver too.
const EFFECTIVE_WITHIN: Duration = Duration::from_secs(3);

/// The storage of `projectrequests`.
pub(crate) struct ProjectRequests {
    pub(crate) visibility: Arc<Visibility>,
    pub(crate) api: KubeApi,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    /// Asks kube-apiserver, every time.
    pub(crate) reviewer: Arc<dyn Authorizer>,
    /// What somebody is told who may not request projects; `None` for the usual text.
    pub(crate) message: Option<String>,
}

#[async_trait]
impl Storage for ProjectRequests {
    fn resource(&self) -> &'static Resource {
        &PROJECT_REQUESTS
    }

    fn ready(&self) -> Result<(), Status> {
        self.visibility.ready()
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        vec![object.str_at(&["status"]).into()]
    }

    /// "May I?": a `Success` status for yes, which travels as the error that it is not, since it is no list.
    async fn list(&self, cx: &RequestContext, _options: &ListOptions) -> Result<List, Status> {
        let question = Attributes {
            verb: "create".to_owned(),
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            resource: PROJECT_REQUESTS.plural.to_owned(),
            ..Attributes::default()
        };
        match self.authorizer.authorize(&cx.user, &question).await? {
            Decision::Allow => Err(Status::success(None)),
            Decision::Deny { .. } => Err(denied(self.message.as_deref())),
        }
    }

    async fn create(
        &self,
        cx: &RequestContext,
        request: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        object_meta::check_generated(&request)?;
        check(&request)?;
        let work = Work {
            visibility: self.visibility.clone(),
            api: self.api.clone(),
            namespace: checked(namespace(&request, &cx.user.name))?,
            requester: Arc::clone(&cx.user),
            reviewer: Arc::clone(&self.reviewer),
            dry_run: options.dry_run,
        };
        // In a task of its own: a client that goes away does not leave a project without its admin.
        tokio::spawn(work.run())
            .await
            .map_err(|e| Status::internal(format_args!("project request failed: {e}")))?
    }
}

/// One request, checked.
struct Work {
    visibility: Arc<Visibility>,
    api: KubeApi,
    namespace: Object,
    requester: Arc<UserInfo>,
    reviewer: Arc<dyn Authorizer>,
    dry_run: bool,
}

impl Work {
    async fn run(self) -> Result<Arc<Item>, Status> {
        let name = self.namespace.name();
        let created = self.api.create_namespace(&self.namespace, self.dry_run).await.map_err(|status| {
            if status.is("AlreadyExists") { Status::already_exists(GROUP, "project", name) } else { status }
        })?;
        if self.dry_run {
            return shown_dry(created);
        }
        let uid = created.uid().to_owned();
        let item = shown(created)?;
        let mut wanted = vec![(Source::Namespaces, item.revision)];
        match self.api.create_role_binding(name, &admin_binding(name, &self.requester.name)).await {
            Ok(binding) => {
                wanted.extend(binding.resource_version().parse().ok().map(|r| (Source::RoleBindings, r)));
            }
            Err(status) if status.is("AlreadyExists") => {}
            Err(status) => {
                self.roll_back(name, uid).await;
                return Err(Status::internal(status.message));
            }
        }
        if !self.visibility.wait_seen(&wanted).await {
            tracing::warn!(project = name, "the watches lag behind a project request");
        }
        self.wait_effective(name).await;
        let known = self.visibility.read().project(name).cloned();
        Ok(known.filter(|k| k.revision >= item.revision).unwrap_or(item))
    }

    /// Waits until kube-apiserver judges by the new binding, so that its owner's next request is not refused. Nothing
    /// tells when that is, so it is asked.
    async fn wait_effective(&self, name: &str) {
        let question = Attributes {
            verb: "get".to_owned(),
            version: "v1".to_owned(),
            resource: "namespaces".to_owned(),
            namespace: name.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        // Of the binding, not of the token: its scopes may well not let it see the project.
        let mut requester = (*self.requester).clone();
        requester.extra.remove(SCOPES_EXTRA);
        let deadline = Instant::now() + EFFECTIVE_WITHIN;
        let mut pause = Duration::from_millis(5);
        while !matches!(self.reviewer.authorize(&requester, &question).await, Ok(Decision::Allow)) {
            if Instant::now() + pause > deadline {
                tracing::warn!(project = name, "kube-apiserver does not know the admin of a new project yet");
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }

    async fn roll_back(&self, name: &str, uid: String) {
        let options = DeleteOptions {
            preconditions: Preconditions { uid: Some(uid), resource_version: None },
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        if let Err(status) = self.api.delete_namespace(name, &options).await {
            tracing::error!(project = name, error = %status, "a half-made project is left behind");
        }
    }
}

/// The answer to somebody who may not request projects.
fn denied(message: Option<&str>) -> Status {
    let mut status = Status::forbidden(GROUP, "projectrequest", "", "");
    match message.filter(|m| !m.is_empty()) {
        None => "You may not request a new project via this API.".clone_into(&mut status.message),
        Some(text) => {
            text.clone_into(&mut status.message);
            status.details = Some(Box::new(Details {
                kind: "ProjectRequest".to_owned(),
                causes: vec![Cause { message: text.to_owned(), ..Cause::default() }],
                ..Details::default()
            }));
        }
    }
    status
}

/// Whether a project of this name may be requested.
///
/// # Errors
/// 422 for a name that no project may have, 403 for one that is kept for the system.
fn check(request: &Object) -> Result<(), Status> {
    let name = request.name();
    let errors = validation::create(&render::without_namespace(request.clone()));
    if !errors.is_empty() {
        return Err(Status::invalid(GROUP, PROJECT_REQUESTS.gvk.kind, name, &errors));
    }
    let why = if RESERVED_NAMES.contains(&name) {
        format!("cannot request a project with the name \"{name}\"")
    } else if let Some(prefix) = RESERVED_PREFIXES.iter().find(|p| name.starts_with(**p)) {
        format!("cannot request a project starting with \"{prefix}\"")
    } else {
        return Ok(());
    };
    Err(Status::forbidden(GROUP, "project", name, &why))
}

/// What the template made, if it can be a Project.
fn checked(namespace: Object) -> Result<Object, Status> {
    let errors = validation::create(&namespace);
    if errors.is_empty() {
        return Ok(namespace);
    }
    Err(Status::invalid(GROUP, PROJECTS.gvk.kind, namespace.name(), &errors))
}

/// The Namespace that the built-in project template makes. Labels and annotations of the request are not taken over.
fn namespace(request: &Object, requester: &str) -> Object {
    let mut namespace = Object::new("v1", "Namespace");
    namespace.set_metadata("name", request.name());
    namespace.set_annotation(DESCRIPTION, request.str_at(&["description"]));
    namespace.set_annotation(DISPLAY_NAME, request.str_at(&["displayName"]));
    namespace.set_annotation(REQUESTER, requester);
    namespace
}

/// The RoleBinding that the built-in project template makes.
fn admin_binding(namespace: &str, requester: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "admin", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": requester}],
    })
}

#[cfg(test)]
mod tests;
