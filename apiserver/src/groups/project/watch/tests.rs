//! Watches over an index that changes while they run.

use std::collections::BTreeMap;

use futures::FutureExt;
use picoshift_machinery::UserInfo;

use super::super::PROJECTS;
use super::super::render;
use super::super::visibility::Source;
use super::super::visibility::index::Binding;
use super::super::visibility::index::Key;
use super::super::visibility::rules::Access;
use super::super::visibility::subjects::Subject;
use super::*;
use crate::authn::memberships::{Memberships, OAUTH};
use crate::authz::rbac::Rule;
use crate::rest::{Item, collector};

const HOUR: Duration = Duration::from_secs(3600);

fn item(name: &str, revision: Revision) -> Arc<Item> {
    let value = serde_json::json!({"metadata": {"name": name, "resourceVersion": revision.to_string()}});
    render::item(serde_json::from_value(value).unwrap()).unwrap()
}

/// Namespaces `a` and `b`, synced at 10.
fn synced() -> Arc<Visibility> {
    synced_with(Duration::from_millis(1))
}

fn synced_with(patience: Duration) -> Arc<Visibility> {
    let visibility = Visibility::new(4, patience);
    assert!(visibility.ready().is_err_and(|s| s.code == 503));
    visibility.change(|index| {
        index.reset_namespaces(vec![item("a", 1), item("b", 2)], 10, |_, _| false);
        index.reset_roles(Source::Roles, vec![], 10);
        index.reset_roles(Source::ClusterRoles, vec![], 10);
        index.reset_bindings(Source::RoleBindings, vec![], 10);
        index.reset_bindings(Source::ClusterRoleBindings, vec![], 10);
    });
    assert_eq!(visibility.ready(), Ok(()));
    Arc::new(visibility)
}

fn user(name: &str) -> UserInfo {
    UserInfo {
        name: name.into(),
        groups: vec!["system:masters".into()],
        extra: BTreeMap::new(),
        ..UserInfo::default()
    }
}

fn open(visibility: &Arc<Visibility>, name: &str, options: &ListOptions) -> Watch {
    start(visibility.clone(), visibility.viewer(&user(name)), options, HOUR)
}

fn at(revision: Option<Revision>) -> ListOptions {
    ListOptions { resource_version: revision, bookmarks: true, ..ListOptions::default() }
}

/// What is ready now, in short; `None` where the watch waits.
fn ready(watch: &mut Watch) -> Option<Vec<String>> {
    let events = watch.next().now_or_never()??;
    Some(events.iter().map(short).collect())
}

fn short(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Added(item) => format!("+{}", item.name),
        WatchEvent::Modified(item) => format!("~{}", item.name),
        WatchEvent::Deleted(item) => format!("-{}", item.name),
        WatchEvent::Bookmark { revision, initial_events_end } => {
            format!("={revision}{}", if *initial_events_end { "!" } else { "" })
        }
        WatchEvent::Error(status) => format!("{} {} {}", status.code, status.reason, status.message),
    }
}

fn words(list: &[&str]) -> Option<Vec<String>> {
    Some(list.iter().map(|s| (*s).to_owned()).collect())
}

#[tokio::test]
async fn the_revision_says_where_a_watch_begins() {
    let visibility = synced();
    let mut unset = open(&visibility, "root", &at(None));
    let mut zero = open(&visibility, "root", &at(Some(0)));
    let mut ten = open(&visibility, "root", &at(Some(10)));
    let mut streaming =
        open(&visibility, "root", &ListOptions { send_initial_events: Some(true), ..at(None) });
    let mut quiet =
        open(&visibility, "root", &ListOptions { send_initial_events: Some(false), ..at(Some(0)) });
    assert_eq!(ready(&mut unset), None);
    assert_eq!(ready(&mut quiet), None);
    assert_eq!(ready(&mut zero), words(&["+a", "+b"]));
    assert_eq!(ready(&mut streaming), words(&["+a", "+b", "=10!"]));
    visibility.change(|index| index.set_namespace(item("a", 11)));
    for watch in [&mut unset, &mut zero, &mut ten, &mut streaming, &mut quiet] {
        assert_eq!(ready(watch), words(&["~a"]));
        assert_eq!(ready(watch), None);
    }
    assert_eq!(ready(&mut open(&visibility, "root", &at(Some(10)))), words(&["~a"]));
}

#[tokio::test]
async fn what_the_log_does_not_reach_is_expired() {
    let visibility = synced();
    let mut slow = open(&visibility, "root", &at(None));
    let mut old = open(&visibility, "root", &at(Some(9)));
    assert_eq!(ready(&mut old), words(&["410 Expired too old resource version: 9 (10)"]));
    assert_eq!(old.next().await.map(|e| e.len()), None);
    for revision in 11..=30 {
        visibility.change(|index| index.set_namespace(item("a", revision)));
    }
    assert!(ready(&mut slow).is_some_and(|e| e[0].starts_with("410 Expired")));
    assert_eq!(slow.next().await.map(|e| e.len()), None);
}

#[tokio::test]
async fn the_garbage_collector_sees_nothing_and_is_told_when_that_was_all() {
    for name in
        ["system:kube-controller-manager", "system:serviceaccount:kube-system:generic-garbage-collector"]
    {
        let visibility = synced();
        let mut options = ListOptions { send_initial_events: Some(true), ..at(None) };
        collector::hide(&PROJECTS, &user(name), &mut options);
        // Whatever RBAC lets it see.
        let mut watch = open(&visibility, "root", &options);
        assert_eq!(ready(&mut watch), words(&["=10!"]));
        visibility.change(|index| index.set_namespace(item("a", 11)));
        assert_eq!(ready(&mut watch), None);
    }
}

#[tokio::test]
async fn an_open_watch_sees_its_user_join_and_leave_a_group() {
    let visibility = synced();
    let role = Key::new("", "view");
    let rule = r#"{"verbs": ["get"], "apiGroups": [""], "resources": ["namespaces"]}"#;
    let rule: Rule = serde_json::from_str(rule).unwrap();
    let subjects = [Subject::Group("devs".into())].into();
    visibility.change(|index| index.set_role(Source::ClusterRoles, role.clone(), Access::of(&[rule]), 11));
    let binding = Binding { role, subjects };
    visibility.change(|index| index.set_binding(Source::RoleBindings, &key(), Some(binding), 12));
    let memberships = Memberships::new();
    let told = visibility.clone();
    memberships.on_change(move |change| told.change(|index| index.change_members(change)));
    let carol = |groups: &[&str]| UserInfo {
        name: "carol".into(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..UserInfo::default()
    };
    let open =
        |groups: &[&str]| start(visibility.clone(), visibility.viewer(&carol(groups)), &at(Some(12)), HOUR);
    let (mut hers, mut another) = (open(&[OAUTH]), open(&[]));
    let (nobody, member) = ([].into(), ["carol".into()].into());
    memberships.change("devs", &nobody, &member);
    assert_eq!(ready(&mut hers), words(&["+a", "=12"]));
    // She comes back with a list from before, or carries the group now: it is no other group for that.
    assert_eq!(ready(&mut open(&[OAUTH])), words(&["+a", "=12"]));
    let mut carrying = open(&[OAUTH, "devs"]);
    assert_eq!(ready(&mut carrying), words(&["+a", "=12"]));
    memberships.change("devs", &member, &nobody);
    assert_eq!(ready(&mut hers), words(&["-a", "=12"]));
    assert_eq!(ready(&mut carrying), words(&["-a", "=12"]));
    assert_eq!(ready(&mut another), None);
    assert!(visibility.read().visible(&visibility.viewer(&carol(&[OAUTH]))).is_empty());
}

#[tokio::test]
async fn a_quiet_watch_sends_bookmarks_where_they_are_wanted() {
    let visibility = synced();
    let often = |bookmarks: bool| {
        let options = ListOptions { bookmarks, ..at(None) };
        start(visibility.clone(), visibility.viewer(&user("root")), &options, Duration::from_millis(1))
    };
    let (mut with, mut without) = (often(true), often(false));
    visibility.change(|index| index.progress(Source::Namespaces, 25));
    let events = with.next().await.unwrap();
    assert_eq!(events.iter().map(short).collect::<Vec<_>>(), ["=25"]);
    assert_eq!(ready(&mut without), None);
}

#[tokio::test]
async fn a_revision_of_the_future_is_waited_for() {
    let visibility = synced();
    let status = visibility.wait_clock(11).await.unwrap_err();
    assert_eq!(
        (status.code, status.reason.as_str(), status.message.as_str()),
        (504, "Timeout", "Timeout: Too large resource version: 11, current: 10")
    );
    assert_eq!(status.details.unwrap().causes[0].reason, "ResourceVersionTooLarge");
    assert!(!visibility.wait_seen(&[(Source::Namespaces, 12)]).await);

    let visibility = synced_with(HOUR);
    let wanted = [(Source::RoleBindings, 12)];
    let (seen, clock, ()) = tokio::join!(visibility.wait_seen(&wanted), visibility.wait_clock(12), async {
        visibility.change(|index| index.set_binding(Source::RoleBindings, &key(), None, 12));
    });
    assert!(seen);
    assert_eq!(clock, Ok(()));
}

fn key() -> Key {
    Key::new("a", "b")
}
