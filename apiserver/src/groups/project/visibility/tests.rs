//! Examples, and the index against a model that computes everything from scratch.

mod model;

use std::collections::BTreeMap;
use std::sync::Arc;

use picoshift_machinery::UserInfo;
use picoshift_machinery::selector::{FieldSelector, LabelSelector};
use serde_json::json;

use super::index::{Binding, Index, Key, Source};
use super::log::TooOld;
use super::rules::Access;
use super::selection::Selection;
use super::subjects::{Limit, Viewer};
use crate::authz::rbac::{Rule, SubjectDoc};
use crate::groups::project::render;
use crate::rest::{Item, ListOptions, WatchEvent};
use crate::store::Revision;

/// A project as the index holds it.
pub(super) fn item(name: &str, revision: Revision, team: &str) -> Arc<Item> {
    let object = json!({
        "metadata": {"name": name, "resourceVersion": revision.to_string(), "labels": {"team": team}, "uid": name},
        "status": {"phase": "Active"},
    });
    render::item(serde_json::from_value(object).unwrap()).unwrap()
}

pub(super) fn user(name: &str, groups: &[&str]) -> UserInfo {
    UserInfo {
        name: name.into(),
        groups: groups.iter().map(|g| (*g).into()).collect(),
        ..UserInfo::default()
    }
}

pub(super) fn viewer(name: &str, groups: &[&str]) -> Viewer {
    Viewer::new(&user(name, groups), None, Limit::None)
}

pub(super) fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> Rule {
    Rule::of_resources(verbs, groups, resources, names)
}

pub(super) fn binding(namespace: &str, role: Key, subjects: &[SubjectDoc]) -> Binding {
    Binding { role, subjects: subjects.iter().filter_map(|s| s.subject(namespace)).collect() }
}

pub(super) fn subject(kind: &str, name: &str, namespace: &str) -> SubjectDoc {
    SubjectDoc { kind: kind.into(), name: name.into(), namespace: namespace.into() }
}

/// What a client that applies events to a list ends with. With `strict`, every event must fit what it has.
pub(super) fn apply(state: &mut BTreeMap<String, Revision>, events: &[WatchEvent], strict: bool) {
    for event in events {
        match event {
            WatchEvent::Added(item) => {
                let had = state.insert(item.name.to_string(), item.revision);
                assert!(!strict || had.is_none(), "added twice: {}", item.name);
            }
            WatchEvent::Modified(item) => {
                let had = state.insert(item.name.to_string(), item.revision);
                assert!(!strict || had.is_some_and(|r| r < item.revision), "modified: {}", item.name);
            }
            WatchEvent::Deleted(item) => {
                let had = state.remove(&*item.name);
                assert!(!strict || had.is_some(), "deleted twice: {}", item.name);
            }
            WatchEvent::Bookmark { .. } => {}
            WatchEvent::Error(status) => panic!("{status:?}"),
        }
    }
}

pub(super) fn state(items: &[Arc<Item>]) -> BTreeMap<String, Revision> {
    items.iter().map(|i| (i.name.to_string(), i.revision)).collect()
}

/// Three namespaces; ClusterRole `view`; synced at revision 10.
fn synced() -> Index {
    let mut index = Index::new(100);
    index.reset_namespaces(vec![item("a", 1, "x"), item("b", 2, "y"), item("c", 3, "x")], 10, |_, _| false);
    let view = Access::of(&[rule(&["get"], &[""], &["namespaces"], &[])]);
    index.reset_roles(Source::ClusterRoles, vec![(Key::new("", "view"), view)], 10);
    index.reset_roles(Source::Roles, vec![], 10);
    index.reset_bindings(Source::RoleBindings, vec![], 10);
    assert!(!index.is_synced());
    index.reset_bindings(Source::ClusterRoleBindings, vec![], 10);
    assert!(index.is_synced());
    index
}

fn bind(index: &mut Index, namespace: &str, subjects: &[SubjectDoc], revision: Revision) {
    let source = if namespace.is_empty() { Source::ClusterRoleBindings } else { Source::RoleBindings };
    let binding = binding(namespace, Key::new("", "view"), subjects);
    index.set_binding(source, &Key::new(namespace, "it"), Some(binding), revision);
}

fn unbind(index: &mut Index, namespace: &str, revision: Revision) {
    let source = if namespace.is_empty() { Source::ClusterRoleBindings } else { Source::RoleBindings };
    index.set_binding(source, &Key::new(namespace, "it"), None, revision);
}

fn names(items: &[Arc<Item>]) -> Vec<&str> {
    items.iter().map(|i| &*i.name).collect()
}

/// Events in short: `+name@revision`, `~`, `-`, `=revision`.
fn short(events: &[WatchEvent]) -> Vec<String> {
    let one = |sign: &str, item: &Item| format!("{sign}{}@{}", item.name, item.revision);
    events
        .iter()
        .map(|event| match event {
            WatchEvent::Added(item) => one("+", item),
            WatchEvent::Modified(item) => one("~", item),
            WatchEvent::Deleted(item) => one("-", item),
            WatchEvent::Bookmark { revision, .. } => format!("={revision}"),
            WatchEvent::Error(status) => status.message.clone(),
        })
        .collect()
}

fn since(index: &Index, viewer: &Viewer, selection: &Selection, revision: Revision) -> Vec<String> {
    let position = index.log().position(revision).unwrap();
    short(&index.pull(viewer, selection, position, true).unwrap().events)
}

#[test]
fn every_kind_of_subject_sees_what_is_bound_to_it() {
    let mut index = synced();
    let robot = [subject("ServiceAccount", "robot", ""), subject("Group", "team", "")];
    bind(&mut index, "b", &robot, 11);
    bind(&mut index, "a", &[subject("User", "alice", ""), subject("ServiceAccount", "robot", "b")], 12);
    assert_eq!(names(&index.visible(&viewer("alice", &[]))), ["a"]);
    assert_eq!(names(&index.visible(&viewer("alice", &["team", "team"]))), ["a", "b"]);
    assert_eq!(names(&index.visible(&viewer("system:serviceaccount:b:robot", &[]))), ["a", "b"]);
    assert_eq!(names(&index.visible(&viewer("bob", &[]))), [] as [&str; 0]);
    assert_eq!(names(&index.visible(&viewer("bob", &["system:masters"]))), ["a", "b", "c"]);
    // A service account without a namespace in a ClusterRoleBinding is nobody.
    bind(&mut index, "", &[subject("ServiceAccount", "robot", ""), subject("Group", "all", "")], 13);
    assert_eq!(names(&index.visible(&viewer("system:serviceaccount::robot", &["all"]))), ["a", "b", "c"]);
    assert_eq!(names(&index.visible(&viewer("system:serviceaccount::robot", &[]))), [] as [&str; 0]);
}

#[test]
fn rules_count_as_rbac_counts_them() {
    let of = |rule: Rule| Access::of(&[rule]);
    for (verbs, groups, resources, all, scoped) in [
        (["get", "x"], ["", "y"], ["namespaces", "z"], true, true),
        (["*", "x"], ["", "y"], ["namespaces", "z"], true, false),
        (["get", "x"], ["*", "y"], ["namespaces", "z"], true, false),
        (["get", "x"], ["", "y"], ["*", "z"], true, false),
        (["list", "x"], ["", "y"], ["namespaces", "z"], false, false),
        (["get", "x"], ["apps", "y"], ["namespaces", "z"], false, false),
        (["get", "x"], ["", "y"], ["*/*", "namespaces/status"], false, false),
    ] {
        let access = of(rule(&verbs, &groups, &resources, &[]));
        assert_eq!(
            (access.names.covers("any"), access.scoped),
            (all, scoped),
            "{verbs:?} {groups:?} {resources:?}"
        );
    }
    let named = of(rule(&["get"], &[""], &["namespaces"], &["a", "b"]));
    assert!(named.names.covers("a") && !named.names.covers("c") && !named.scoped);
    assert!(of(Rule::default()).is_empty());
}

#[test]
fn scopes_limit_what_is_seen() {
    let mut index = synced();
    let wild = Access::of(&[rule(&["*"], &["*"], &["*"], &[])]);
    index.set_role(Source::ClusterRoles, Key::new("", "wild:er"), wild, 11);
    bind(&mut index, "", &[subject("User", "alice", "")], 12);
    let seen = |scopes: &[&str]| {
        let scopes: Vec<String> = scopes.iter().map(|s| (*s).to_owned()).collect();
        let items = index.visible(&Viewer::new(&user("alice", &[]), None, index.limit(&scopes)));
        names(&items).join(",")
    };
    assert_eq!(seen(&[]), "a,b,c");
    assert_eq!(seen(&["user:info", "user:list-projects"]), "a,b,c");
    assert_eq!(seen(&["user:full"]), "a,b,c");
    assert_eq!(seen(&["user:info", "user:list-scoped-projects"]), "");
    assert_eq!(seen(&["role:view:b", "role:view:nosuch"]), "b");
    assert_eq!(seen(&["role:view:*"]), "a,b,c");
    assert_eq!(seen(&["role:wild:er:a"]), "");
    assert_eq!(seen(&["role:wild:er:a:!"]), "a");
    assert_eq!(seen(&["role:nosuch:a", "role:view:", "role::a", "role:", "else"]), "");
}

#[test]
fn gaining_and_losing_sight_is_followed_by_a_bookmark() {
    let mut index = synced();
    let (alice, all) = (viewer("alice", &[]), Selection::default());
    bind(&mut index, "a", &[subject("User", "alice", "")], 11);
    index.set_namespace(item("a", 12, "x"));
    index.set_namespace(item("b", 13, "x"));
    unbind(&mut index, "a", 14);
    assert_eq!(since(&index, &alice, &all, 10), ["+a@1", "=11", "~a@12", "-a@12", "=14"]);
    assert_eq!(since(&index, &alice, &all, 11), ["~a@12", "-a@12", "=14"]);
    assert_eq!(since(&index, &alice, &all, 13), ["-a@12", "=14"]);
    assert_eq!(since(&index, &alice, &all, 14), [] as [&str; 0]);
    assert_eq!(since(&index, &viewer("bob", &[]), &all, 10), [] as [&str; 0]);
}

#[test]
fn a_deletion_shows_its_own_revision() {
    let mut index = synced();
    bind(&mut index, "", &[subject("User", "root", "")], 11);
    index.remove_namespace(&item("b", 12, "y"));
    index.set_namespace(item("b", 13, "y"));
    let root = viewer("root", &[]);
    assert_eq!(
        since(&index, &root, &Selection::default(), 10),
        ["+a@1", "+b@2", "+c@3", "=11", "-b@12", "+b@13"]
    );
    unbind(&mut index, "", 14);
    assert_eq!(since(&index, &root, &Selection::default(), 13), ["-a@1", "-b@13", "-c@3", "=14"]);
}

#[test]
fn a_moved_binding_does_not_flicker() {
    let mut index = synced();
    bind(&mut index, "a", &[subject("Group", "team", "")], 11);
    bind(&mut index, "a", &[subject("User", "alice", "")], 12);
    assert_eq!(since(&index, &viewer("alice", &["team"]), &Selection::default(), 11), [] as [&str; 0]);
    assert_eq!(since(&index, &viewer("bob", &["team"]), &Selection::default(), 11), ["-a@1", "=12"]);
}

#[test]
fn objects_enter_and_leave_a_selection() {
    let mut index = synced();
    bind(&mut index, "", &[subject("User", "root", "")], 11);
    index.set_namespace(item("a", 12, "y"));
    index.set_namespace(item("b", 13, "x"));
    index.set_namespace(item("c", 14, "x"));
    let options = ListOptions { labels: LabelSelector::parse("team=x").unwrap(), ..ListOptions::default() };
    let root = viewer("root", &[]);
    assert_eq!(since(&index, &root, &Selection::of(&options), 11), ["-a@12", "+b@13", "~c@14"]);
    let left = index.pull(&root, &Selection::of(&options), index.log().position(11).unwrap(), false).unwrap();
    match left.events.first() {
        Some(WatchEvent::Deleted(gone)) => {
            let object = gone.object().unwrap();
            assert_eq!((object.resource_version(), object.labels()["team"]), ("12", "x"));
        }
        other => panic!("{other:?}"),
    }
    let fields = FieldSelector::parse("metadata.name!=b,status.phase=Active").unwrap();
    let options = ListOptions { fields, ..ListOptions::default() };
    assert_eq!(since(&index, &root, &Selection::of(&options), 11), ["~a@12", "~c@14"]);
}

#[test]
fn what_came_late_is_replayed_to_who_read_before() {
    let mut index = synced();
    bind(&mut index, "", &[subject("User", "root", "")], 20);
    // The watch of namespaces lags: this happened before the binding and arrives after it.
    index.set_namespace(item("a", 15, "x"));
    assert_eq!(index.clock(), 20);
    assert_eq!(since(&index, &viewer("root", &[]), &Selection::default(), 20), ["~a@15"]);
    index.progress(Source::Namespaces, 21);
    assert_eq!(since(&index, &viewer("root", &[]), &Selection::default(), 21), [] as [&str; 0]);
}

#[test]
fn an_old_revision_is_too_old_and_the_newest_never_is() {
    let mut index = synced();
    assert_eq!(index.log().position(9).unwrap_err(), TooOld { oldest: 10 });
    assert!(index.log().position(10).is_ok());
    for revision in 11..=200 {
        index.set_namespace(item("a", revision, "x"));
        assert!(index.log().position(revision).is_ok());
        assert!(index.log().position(revision - 1).is_ok());
    }
    assert!(index.log().position(50).is_err());
    assert!(index.log().from(0).is_err());
    // Late changes do not push out what a reader of the newest state needs.
    let mut index = Index::new(2);
    index.reset_namespaces(vec![], 10, |_, _| false);
    for source in [Source::Roles, Source::ClusterRoles] {
        index.reset_roles(source, vec![], 100);
    }
    for source in [Source::RoleBindings, Source::ClusterRoleBindings] {
        index.reset_bindings(source, vec![], 100);
    }
    for revision in 11..=20 {
        index.set_namespace(item("a", revision, "x"));
    }
    assert_eq!(since(&index, &viewer("root", &["system:masters"]), &Selection::default(), 100).len(), 10);
}

#[test]
fn a_namespace_made_anew_between_two_lists_is_gone_and_new() {
    let mut index = synced();
    index.reset_namespaces(vec![item("a", 30, "x"), item("b", 2, "y")], 40, |_, new| &*new.name == "a");
    let root = viewer("root", &["system:masters"]);
    assert_eq!(since(&index, &root, &Selection::default(), 10), ["-c@3", "-a@1", "+a@30"]);
    assert_eq!(index.seen(Source::Namespaces), Some(40));
}
