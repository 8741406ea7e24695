//! What is measured: a kind of ours, and the same kind as a CRD.

use serde_json::{Value, json};

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// picoshift-apiserver.
    Ours,
    /// kube-apiserver with a CRD.
    Crd,
}

/// Where the CRD of a kind comes from.
#[derive(Debug)]
pub(crate) enum Manifest {
    /// A file of the Go module github.com/openshift/api.
    Shipped(&'static str),
    /// Nobody ships one; this is the schema.
    Schema(fn() -> Value),
}

/// A kind that both sides serve, and objects of it. Namespaced, of version v1.
#[derive(Debug)]
pub(crate) struct Subject {
    /// Begins the names of its cases and namespaces.
    pub(crate) prefix: &'static str,
    /// Our API group.
    pub(crate) group: &'static str,
    /// The CRD's.
    pub(crate) crd_group: &'static str,
    /// The kind.
    pub(crate) kind: &'static str,
    /// Its plural, as in paths.
    pub(crate) plural: &'static str,
    /// The CRD.
    pub(crate) manifest: Manifest,
    /// `metadata` and `spec` of the object of a name and namespace.
    pub(crate) body: fn(&str, &str) -> Value,
    /// Format and body of the patch number N of an object; each changes the spec.
    pub(crate) change: fn(usize) -> (&'static str, Value),
}

impl Subject {
    /// The namespace that holds `count` objects.
    pub(crate) fn filled(&self, count: usize) -> String {
        format!("bench-{}{count}", self.prefix)
    }

    /// The namespace where creates go; emptied after each round.
    pub(crate) fn scratch(&self) -> String {
        format!("bench-{}create", self.prefix)
    }

    /// Path of the objects of a namespace.
    pub(crate) fn path(&self, peer: Peer, namespace: &str) -> String {
        format!("/apis/{}/v1/namespaces/{namespace}/{}", self.group(peer), self.plural)
    }

    /// Path of the object number `number` of the namespace that holds `count`.
    pub(crate) fn object_path(&self, peer: Peer, count: usize, number: usize) -> String {
        format!("{}/{}", self.path(peer, &self.filled(count)), self.name(number % count))
    }

    /// Name of the object number `number`.
    pub(crate) fn name(&self, number: usize) -> String {
        format!("{}-{number:05}", self.kind.to_lowercase())
    }

    /// An object to create.
    pub(crate) fn object(&self, peer: Peer, name: &str, namespace: &str) -> Value {
        let mut object = (self.body)(name, namespace);
        object["apiVersion"] = json!(self.api_version(peer));
        object["kind"] = json!(self.kind);
        object["metadata"]["name"] = json!(name);
        object
    }

    /// Its group and version.
    pub(crate) fn api_version(&self, peer: Peer) -> String {
        format!("{}/v1", self.group(peer))
    }

    fn group(&self, peer: Peer) -> &'static str {
        match peer {
            Peer::Ours => self.group,
            Peer::Crd => self.crd_group,
        }
    }
}
