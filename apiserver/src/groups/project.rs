//! `project.openshift.io`: Projects are Namespaces, shown to whoever may `get` them.
//!
//! In: watches of namespaces and RBAC, and requests. Out: lists and watches filtered per caller from an index, and
//! writes of Namespaces under the server's own identity, after the caller was authorized by the server.

mod feed;
mod kube_api;
mod render;
mod request;
mod storage;
mod validation;
mod visibility;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use picoshift_machinery::{GroupVersionKind, Status};
use tokio::task::JoinSet;

use self::kube_api::KubeApi;
use self::request::ProjectRequests;
use self::storage::Projects;
use self::visibility::Visibility;
use crate::authn::memberships::Memberships;
use crate::authz::rbac::Rbac;
use crate::authz::{Authorizer, KubeAccessReview};
use crate::resource::column::{self, NAME, text};
use crate::resource::{Resource, Verb};
use crate::rest::Storage;

/// `projects`.
pub static PROJECTS: Resource = Resource {
    gvk: GroupVersionKind { group: "project.openshift.io", version: "v1", kind: "Project" },
    plural: "projects",
    singular: "project",
    namespaced: false,
    verbs: &[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch],
    short_names: &[],
    categories: &[],
    subresources: &[],
    columns: &[
        NAME,
        text("Display Name", "The name displayed by a UI when referencing a project."),
        text("Status", "phase is the current lifecycle phase of the project"),
    ],
    field_labels: &["status.phase"],
    garbage_collected: false,
    bare: false,
    schema: "com.github.openshift.api.project.v1.Project",
};

/// `projectrequests`.
pub static PROJECT_REQUESTS: Resource = Resource {
    gvk: GroupVersionKind { group: "project.openshift.io", version: "v1", kind: "ProjectRequest" },
    plural: "projectrequests",
    singular: "projectrequest",
    namespaced: false,
    verbs: &[Verb::Create, Verb::List],
    short_names: &[],
    categories: &[],
    subresources: &[],
    columns: &[column::name("Status", "Describes whether the user is allowed to create projectrequests")],
    field_labels: &[],
    garbage_collected: true,
    bare: false,
    schema: "com.github.openshift.api.project.v1.ProjectRequest",
};

/// What can be set.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many changes are kept for watches that come back.
    pub log_capacity: usize,
    /// How long a request waits for a revision.
    pub patience: Duration,
    /// Time between two bookmarks of a quiet watch.
    pub bookmark_interval: Duration,
    /// What somebody is told who may not request projects; `None` for OpenShift's usual text.
    pub request_message: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            log_capacity: 8192,
            patience: Duration::from_secs(3),
            bookmark_interval: Duration::from_secs(60),
            request_message: None,
        }
    }
}

/// The group, running.
pub struct Group {
    /// Storage of `projects`.
    pub projects: Arc<dyn Storage>,
    /// Storage of `projectrequests`.
    pub project_requests: Arc<dyn Storage>,
    /// For readiness checks.
    pub readiness: Readiness,
    /// The watches on kube-apiserver; they end when this is dropped.
    pub feed: JoinSet<()>,
}

/// Tells whether projects can be served.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<Visibility>);

impl Readiness {
    /// Whether namespaces and RBAC were listed.
    ///
    /// # Errors
    /// The 503 that requests get until then.
    pub fn check(&self) -> Result<(), Status> {
        self.0.ready()
    }

    /// Ends when namespaces and RBAC were listed.
    pub async fn wait(&self) {
        self.0.wait_synced().await;
    }
}

/// Starts the group's watches on kube-apiserver, which fill `rbac` too, and follows who joins and leaves groups. Must be
/// called in a tokio runtime.
#[must_use]
pub fn start(
    client: Client,
    authorizer: Arc<dyn Authorizer>,
    memberships: &Memberships,
    rbac: &Arc<Rbac>,
    config: Config,
) -> Group {
    let visibility = Arc::new(Visibility::new(config.log_capacity, config.patience));
    let told = Arc::clone(&visibility);
    memberships.on_change(move |change| told.change(|index| index.change_members(change)));
    let feed = feed::start(&client, &visibility, rbac);
    let reviewer = Arc::new(KubeAccessReview::new(client.clone()));
    let api = KubeApi::new(client);
    Group {
        projects: Arc::new(Projects {
            visibility: visibility.clone(),
            api: api.clone(),
            bookmark_interval: config.bookmark_interval,
        }),
        project_requests: Arc::new(ProjectRequests {
            visibility: visibility.clone(),
            api,
            authorizer,
            reviewer,
            message: config.request_message,
        }),
        readiness: Readiness(visibility),
        feed,
    }
}
