//! What is read of namespaces and RBAC objects, and what it means for the index.

use std::sync::Arc;

use picoshift_machinery::Object;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::authz::rbac::{Rbac, RoleBinding, RoleRef, Rule, SubjectDoc};
use crate::groups::project::render;
use crate::groups::project::visibility::index::{Binding, Index, Key, Source};
use crate::groups::project::visibility::rules::Access;
use crate::rest::Item;
use crate::store::Revision;

/// What a collection's objects mean for the index.
pub(super) trait Document: DeserializeOwned + Clone + Send + 'static {
    /// What is kept of an object, made outside the index' lock; `None` for an object that cannot be.
    type Part: Send;
    /// Takes that part, with the object's revision.
    fn part(self) -> Option<(Self::Part, Revision)>;
    /// The object is there, for who keeps RBAC whole.
    fn note(rbac: &Rbac, part: &Self::Part) {
        let _ = (rbac, part);
    }
    /// The object is gone, for the same.
    fn note_gone(rbac: &Rbac, part: &Self::Part) {
        let _ = (rbac, part);
    }
    /// These are all objects, for the same.
    fn note_all(rbac: &Rbac, source: Source, parts: &[Self::Part]) {
        let _ = (rbac, source, parts);
    }
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
    rules: Option<Vec<Rule>>,
}

/// What is kept of a role.
pub(super) struct Role {
    key: Key,
    access: Access,
    rules: Arc<[Rule]>,
}

impl Document for RoleDoc {
    type Part = Role;

    fn part(self) -> Option<(Role, Revision)> {
        let rules: Arc<[Rule]> = self.rules.unwrap_or_default().into();
        let role = Role { key: self.metadata.key(), access: Access::of(&rules), rules };
        Some((role, self.metadata.revision()?))
    }

    fn note(rbac: &Rbac, Role { key, rules, .. }: &Role) {
        rbac.set_role(&key.namespace, &key.name, Some(Arc::clone(rules)));
    }

    fn note_gone(rbac: &Rbac, Role { key, .. }: &Role) {
        rbac.set_role(&key.namespace, &key.name, None);
    }

    fn note_all(rbac: &Rbac, source: Source, roles: &[Role]) {
        let all = roles.iter().map(|Role { key, rules, .. }| (&key.namespace, &key.name, rules));
        let all = all.map(|(namespace, name, rules)| (namespace.clone(), name.clone(), Arc::clone(rules)));
        rbac.reset_roles(source == Source::ClusterRoles, all);
    }

    fn set(index: &mut Index, source: Source, role: Role, revision: Revision) {
        index.set_role(source, role.key, role.access, revision);
    }

    fn remove(index: &mut Index, source: Source, role: Role, revision: Revision) {
        index.set_role(source, role.key, Access::default(), revision);
    }

    fn reset(index: &mut Index, source: Source, roles: Vec<Role>, revision: Revision) {
        let roles = roles.into_iter().map(|role| (role.key, role.access)).collect();
        index.reset_roles(source, roles, revision);
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

/// What is kept of a binding.
pub(super) struct Bound {
    key: Key,
    binding: Binding,
    whole: Arc<RoleBinding>,
}

impl Document for BindingDoc {
    type Part = Bound;

    fn part(self) -> Option<(Bound, Revision)> {
        let revision = self.metadata.revision()?;
        let namespace = &self.metadata.namespace;
        let subjects = self.subjects.unwrap_or_default();
        let role = match self.role_ref.kind.as_str() {
            "ClusterRole" => Key::new("", &self.role_ref.name),
            // A ClusterRoleBinding to a Role is refused by kube-apiserver; here it finds no role.
            _ => Key::new(if namespace.is_empty() { "." } else { namespace }, &self.role_ref.name),
        };
        let seen = subjects.iter().filter_map(|s| s.subject(namespace)).collect();
        let bound = Bound {
            key: self.metadata.key(),
            binding: Binding { role, subjects: seen },
            whole: Arc::new(RoleBinding { role: self.role_ref, subjects }),
        };
        Some((bound, revision))
    }

    fn note(rbac: &Rbac, Bound { key, whole, .. }: &Bound) {
        rbac.set_binding(&key.namespace, &key.name, Some(Arc::clone(whole)));
    }

    fn note_gone(rbac: &Rbac, Bound { key, .. }: &Bound) {
        rbac.set_binding(&key.namespace, &key.name, None);
    }

    fn note_all(rbac: &Rbac, source: Source, bindings: &[Bound]) {
        let all = bindings.iter().map(|Bound { key, whole, .. }| (&key.namespace, &key.name, whole));
        let all = all.map(|(namespace, name, whole)| (namespace.clone(), name.clone(), Arc::clone(whole)));
        rbac.reset_bindings(source == Source::ClusterRoleBindings, all);
    }

    fn set(index: &mut Index, source: Source, bound: Bound, revision: Revision) {
        index.set_binding(source, &bound.key, Some(bound.binding), revision);
    }

    fn remove(index: &mut Index, source: Source, bound: Bound, revision: Revision) {
        index.set_binding(source, &bound.key, None, revision);
    }

    fn reset(index: &mut Index, source: Source, bindings: Vec<Bound>, revision: Revision) {
        let bindings = bindings.into_iter().map(|bound| (bound.key, bound.binding)).collect();
        index.reset_bindings(source, bindings, revision);
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
            let (bound, revision) = part::<BindingDoc>(doc).unwrap();
            assert_eq!((bound.key, revision), (Key::new(namespace, "b"), 7));
            assert_eq!(bound.whole.subjects.len(), 2);
            (bound.binding.role, bound.binding.subjects.len())
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
        assert!(role.0.access.is_empty() && role.0.rules.is_empty());
        let bare = part::<BindingDoc>(json!({"metadata": meta, "roleRef": {}})).unwrap();
        assert!(bare.0.binding.subjects.is_empty());
        assert!(part::<RoleDoc>(json!({"metadata": {"name": "x"}})).is_none());
    }
}
