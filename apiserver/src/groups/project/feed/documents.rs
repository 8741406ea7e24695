//! What is read of namespaces and RBAC objects, and what it means for the index.

use std::sync::Arc;

use picoshift_machinery::Object;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::groups::project::render;
use crate::groups::project::visibility::index::{Binding, Index, Key, Source};
use crate::groups::project::visibility::rules::{Access, RuleDoc};
use crate::groups::project::visibility::subjects::SubjectDoc;
use crate::rest::Item;
use crate::store::Revision;

/// What a collection's objects mean for the index.
pub(super) trait Document: DeserializeOwned + Clone + Send + 'static {
    /// What is kept of an object, made outside the index' lock; `None` for an object that cannot be.
    type Part: Send;
    /// Takes that part, with the object's revision.
    fn part(self) -> Option<(Self::Part, Revision)>;
    /// The object is there.
    fn set(index: &mut Index, source: Source, part: Self::Part, revision: Revision);
    /// The object is gone.
    fn remove(index: &mut Index, source: Source, part: Self::Part, revision: Revision);
    /// These are all objects of the collection.
    fn reset(index: &mut Index, source: Source, parts: Vec<Self::Part>, revision: Revision);
}

impl Document for Object {
    type Part = Arc<Item>;

    fn part(self) -> Option<(Arc<Item>, Revision)> {
        let item = render::item(self)?;
        let revision = item.revision;
        Some((item, revision))
    }

    fn set(index: &mut Index, _source: Source, item: Arc<Item>, _revision: Revision) {
        index.set_namespace(item);
    }

    fn remove(index: &mut Index, _source: Source, item: Arc<Item>, _revision: Revision) {
        index.remove_namespace(&item);
    }

    fn reset(index: &mut Index, _source: Source, items: Vec<Arc<Item>>, revision: Revision) {
        index.reset_namespaces(items, revision, |old, new| {
            old.revision != new.revision && uid(old) != uid(new)
        });
    }
}

fn uid(item: &Item) -> Option<String> {
    item.object().ok().map(|object| object.uid().to_owned())
}

/// Metadata of an RBAC object, as far as it matters.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    resource_version: String,
}

impl Meta {
    fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    fn revision(&self) -> Option<Revision> {
        self.resource_version.parse().ok()
    }
}

/// A Role or ClusterRole.
#[derive(Clone, Deserialize)]
pub(super) struct RoleDoc {
    metadata: Meta,
    #[serde(default)]
    rules: Option<Vec<RuleDoc>>,
}

impl Document for RoleDoc {
    type Part = (Key, Access);

    fn part(self) -> Option<(Self::Part, Revision)> {
        let access = Access::of(self.rules.as_deref().unwrap_or_default());
        Some(((self.metadata.key(), access), self.metadata.revision()?))
    }

    fn set(index: &mut Index, source: Source, (key, access): Self::Part, revision: Revision) {
        index.set_role(source, key, access, revision);
    }

    fn remove(index: &mut Index, source: Source, (key, _): Self::Part, revision: Revision) {
        index.set_role(source, key, Access::default(), revision);
    }

    fn reset(index: &mut Index, source: Source, parts: Vec<Self::Part>, revision: Revision) {
        index.reset_roles(source, parts, revision);
    }
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BindingDoc {
    metadata: Meta,
    role_ref: RoleRef,
    #[serde(default)]
    subjects: Option<Vec<SubjectDoc>>,
}

#[derive(Clone, Deserialize)]
struct RoleRef {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
}

impl Document for BindingDoc {
    type Part = (Key, Binding);

    fn part(self) -> Option<(Self::Part, Revision)> {
        let namespace = &self.metadata.namespace;
        let subjects = self.subjects.iter().flatten().filter_map(|s| s.subject(namespace)).collect();
        let role = match self.role_ref.kind.as_str() {
            "ClusterRole" => Key::new("", &self.role_ref.name),
            // A ClusterRoleBinding to a Role is refused by kube-apiserver; here it finds no role.
            _ => Key::new(if namespace.is_empty() { "." } else { namespace }, &self.role_ref.name),
        };
        Some(((self.metadata.key(), Binding { role, subjects }), self.metadata.revision()?))
    }

    fn set(index: &mut Index, source: Source, (key, binding): Self::Part, revision: Revision) {
        index.set_binding(source, &key, Some(binding), revision);
    }

    fn remove(index: &mut Index, source: Source, (key, _): Self::Part, revision: Revision) {
        index.set_binding(source, &key, None, revision);
    }

    fn reset(index: &mut Index, source: Source, parts: Vec<Self::Part>, revision: Revision) {
        index.reset_bindings(source, parts, revision);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn part<D: Document>(value: Value) -> Option<(D::Part, Revision)> {
        serde_json::from_value::<D>(value).unwrap().part()
    }

    #[test]
    fn a_binding_finds_its_role() {
        let of = |namespace: &str, kind: &str| {
            let doc = json!({
                "metadata": {"name": "b", "namespace": namespace, "resourceVersion": "7", "labels": {"x": "y"}},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"},
                "subjects": [{"kind": "ServiceAccount", "name": "s"}, {"kind": "Group", "name": "g", "apiGroup": "x"}]
            });
            let ((key, binding), revision) = part::<BindingDoc>(doc).unwrap();
            assert_eq!((key, revision), (Key::new(namespace, "b"), 7));
            (binding.role, binding.subjects.len())
        };
        assert_eq!(of("a", "Role"), (Key::new("a", "r"), 2));
        assert_eq!(of("a", "ClusterRole"), (Key::new("", "r"), 2));
        assert_eq!(of("", "ClusterRole"), (Key::new("", "r"), 1));
        assert_ne!(of("", "Role").0, Key::new("", "r"));
    }

    #[test]
    fn nothing_is_needed_that_may_be_missing() {
        let meta = json!({"name": "x", "resourceVersion": "7"});
        let role = part::<RoleDoc>(json!({"metadata": meta, "rules": null})).unwrap();
        assert!(role.0.1.is_empty());
        let bare = part::<BindingDoc>(json!({"metadata": meta, "roleRef": {}})).unwrap();
        assert!(bare.0.1.subjects.is_empty());
        assert!(part::<RoleDoc>(json!({"metadata": {"name": "x"}})).is_none());
    }
}
