//! Gives every namespace the three role bindings that OpenShift's have: its pods pull images, builds push them,
//! deployments roll out.
//!
//! A binding that is missing is made, a binding that is there is left as it is, whatever it says: who removes its
//! subjects has switched it off (openshift-controller-manager, `pkg/authorization/defaultrolebindings`).

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PartialObjectMeta, PostParams};
use kube::{Client, ResourceExt};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::backoff::Backoff;
use crate::manager::{Controller, Failure, Run};
use crate::queue::{Outcome, Queue};
use crate::watch::{Index, follow};

/// Namespaces worked on at a time.
const PARALLEL: usize = 5;
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(300), attempts: u32::MAX };
const RBAC: &str = "rbac.authorization.k8s.io";
const DESCRIPTION: &str = "openshift.io/description";

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    binding: &'static str,
    role: &'static str,
    /// The service account; `None` for all of the namespace's.
    account: Option<&'static str>,
    description: &'static str,
}

const WANTED: [Wanted; 3] = [
    Wanted {
        binding: "system:image-pullers",
        role: "system:image-puller",
        account: None,
        description: "Allows all pods in this namespace to pull images from this namespace.  It is auto-managed by a \
            controller; remove subjects to disable.",
    },
    Wanted {
        binding: "system:image-builders",
        role: "system:image-builder",
        account: Some("builder"),
        description: "Allows builds in this namespace to push images to this namespace.  It is auto-managed by a \
            controller; remove subjects to disable.",
    },
    Wanted {
        binding: "system:deployers",
        role: "system:deployer",
        account: Some("deployer"),
        description: "Allows deploymentconfigs in this namespace to rollout pods in this namespace.  It is auto-managed \
            by a controller; remove subjects to disable.",
    },
];

impl Wanted {
    fn in_namespace(self, namespace: &str) -> RoleBinding {
        let subject = match self.account {
            None => Subject {
                api_group: Some(RBAC.to_owned()),
                kind: "Group".to_owned(),
                name: format!("system:serviceaccounts:{namespace}"),
                ..Subject::default()
            },
            Some(account) => Subject {
                kind: "ServiceAccount".to_owned(),
                name: account.to_owned(),
                namespace: Some(namespace.to_owned()),
                ..Subject::default()
            },
        };
        RoleBinding {
            metadata: ObjectMeta {
                name: Some(self.binding.to_owned()),
                namespace: Some(namespace.to_owned()),
                annotations: Some([(DESCRIPTION.to_owned(), self.description.to_owned())].into()),
                ..ObjectMeta::default()
            },
            role_ref: RoleRef {
                api_group: RBAC.to_owned(),
                kind: "ClusterRole".to_owned(),
                name: self.role.to_owned(),
            },
            subjects: Some(vec![subject]),
        }
    }
}

/// The controller.
pub struct DefaultRoleBindings {
    client: Client,
}

impl DefaultRoleBindings {
    /// A controller that acts as `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

#[async_trait]
impl Controller for DefaultRoleBindings {
    fn name(&self) -> &'static str {
        "default-role-bindings"
    }

    async fn run(&self, run: Run) -> Result<(), Failure> {
        let world = World::new(Queue::new(BACKOFF, run.metrics.clone()));
        let namespaces: Api<PartialObjectMeta<Namespace>> = Api::all(self.client.clone());
        let bindings: Api<PartialObjectMeta<RoleBinding>> = Api::all(self.client.clone());
        let (ready, metrics) = (&run.ready, &run.metrics);
        let work = async {
            // Nothing is missing before everything is known.
            tokio::select! {
                () = run.stop.wait() => return,
                () = world.known() => {}
            }
            let reconcile = |namespace: String| self.reconcile(&world, namespace);
            world.queue.work(PARALLEL, &run.stop, reconcile).await;
        };
        let (known_namespaces, known_bindings) = (Namespaces(&world), Bindings(&world));
        tokio::select! {
            () = work => {}
            () = follow(namespaces, "namespaces", &known_namespaces, ready, metrics) => {}
            () = follow(bindings, "rolebindings", &known_bindings, ready, metrics) => {}
        }
        Ok(())
    }
}

impl DefaultRoleBindings {
    async fn reconcile(&self, world: &World, namespace: String) -> Outcome {
        let api: Api<RoleBinding> = Api::namespaced(self.client.clone(), &namespace);
        let mut outcome = Outcome::Done;
        for wanted in world.missing(&namespace) {
            match api.create(&PostParams::default(), &wanted.in_namespace(&namespace)).await {
                Ok(_) => tracing::debug!(namespace, binding = wanted.binding, "created"),
                Err(error) if is_settled(&error) => {}
                Err(error) => {
                    tracing::warn!(namespace, binding = wanted.binding, %error, "cannot create a role binding");
                    outcome = Outcome::Retry;
                }
            }
        }
        outcome
    }
}

/// Errors after which nothing is left to do: the binding is there, or the namespace is gone or going.
fn is_settled(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let terminating = || {
        let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
        causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
    };
    status.reason == "AlreadyExists" || status.code == 404 || (status.code == 403 && terminating())
}

/// What is known of the cluster.
struct World {
    state: Mutex<State>,
    changed: Notify,
    queue: Queue<String>,
}

#[derive(Default)]
struct State {
    /// Name → whether it is being deleted; `None` until they have been read.
    namespaces: Option<HashMap<String, bool>>,
    /// Namespace and name of those of the bindings that are there; `None` until they have been read.
    bindings: Option<HashSet<(String, &'static str)>>,
}

impl World {
    fn new(queue: Queue<String>) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), queue }
    }

    /// Returns when everything has been read.
    async fn known(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.state.lock();
                if state.namespaces.is_some() && state.bindings.is_some() {
                    return;
                }
            }
            changed.await;
        }
    }

    /// What a namespace lacks; nothing while it is going.
    fn missing(&self, namespace: &str) -> Vec<Wanted> {
        self.state.lock().missing(namespace)
    }

    /// Changes what is known of one namespace.
    fn change(&self, namespace: &str, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        if !state.missing(namespace).is_empty() {
            self.queue.add(namespace.to_owned());
        }
    }

    /// Changes what is known of all.
    fn replace(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        for name in state.namespaces.iter().flatten().map(|(name, _)| name) {
            if !state.missing(name).is_empty() {
                self.queue.add(name.clone());
            }
        }
        drop(state);
        self.changed.notify_one();
    }
}

impl State {
    fn missing(&self, namespace: &str) -> Vec<Wanted> {
        let (Some(namespaces), Some(bindings)) = (&self.namespaces, &self.bindings) else {
            return Vec::new();
        };
        if namespaces.get(namespace) != Some(&false) {
            return Vec::new();
        }
        let absent = |wanted: &Wanted| !bindings.contains(&(namespace.to_owned(), wanted.binding));
        WANTED.into_iter().filter(absent).collect()
    }
}

struct Namespaces<'a>(&'a World);

impl Index<PartialObjectMeta<Namespace>> for Namespaces<'_> {
    fn replace(&self, objects: Vec<PartialObjectMeta<Namespace>>) {
        let all = objects.iter().map(|namespace| (namespace.name_any(), is_going(namespace))).collect();
        self.0.replace(|state| state.namespaces = Some(all));
    }

    fn apply(&self, namespace: PartialObjectMeta<Namespace>) {
        let name = namespace.name_any();
        self.0.change(&name, |state| {
            if let Some(namespaces) = &mut state.namespaces {
                namespaces.insert(name.clone(), is_going(&namespace));
            }
        });
    }

    fn delete(&self, namespace: PartialObjectMeta<Namespace>) {
        let name = namespace.name_any();
        self.0.change(&name, |state| {
            if let Some(namespaces) = &mut state.namespaces {
                namespaces.remove(&name);
            }
        });
        self.0.queue.remove(&name);
    }
}

fn is_going(namespace: &PartialObjectMeta<Namespace>) -> bool {
    namespace.metadata.deletion_timestamp.is_some()
}

struct Bindings<'a>(&'a World);

impl Index<PartialObjectMeta<RoleBinding>> for Bindings<'_> {
    fn replace(&self, objects: Vec<PartialObjectMeta<RoleBinding>>) {
        let all = objects.iter().filter_map(place).collect();
        self.0.replace(|state| state.bindings = Some(all));
    }

    fn apply(&self, binding: PartialObjectMeta<RoleBinding>) {
        let Some(place) = place(&binding) else { return };
        // One that came lets nothing go missing: the namespace is not looked at for it.
        if let Some(bindings) = &mut self.0.state.lock().bindings {
            bindings.insert(place);
        }
    }

    fn delete(&self, binding: PartialObjectMeta<RoleBinding>) {
        let Some(place) = place(&binding) else { return };
        self.0.change(&place.0, |state| {
            if let Some(bindings) = &mut state.bindings {
                bindings.remove(&place);
            }
        });
    }
}

/// Namespace and name, if it is one of the three.
fn place(binding: &PartialObjectMeta<RoleBinding>) -> Option<(String, &'static str)> {
    let name = binding.metadata.name.as_deref()?;
    let wanted = WANTED.iter().find(|wanted| wanted.binding == name)?;
    Some((binding.metadata.namespace.clone()?, wanted.binding))
}

#[cfg(test)]
mod tests;
