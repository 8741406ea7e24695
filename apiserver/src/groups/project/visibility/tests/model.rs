//! A naive model: what kube-apiserver holds, per source, and how far the index has been told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use proptest::prelude::*;

use super::super::index::{Binding, Index, Key, Source};
use super::super::log::Position;
use super::super::rules::Access;
use super::super::selection::Selection;
use super::super::subjects::{Limit, Subject, Viewer};
use super::{apply, binding, item, rule, state, subject, user};
use crate::authn::memberships::{MembersChange, OAUTH};
use crate::authz::rbac::{Rule, SubjectDoc};
use crate::rest::ListOptions;
use crate::store::Revision;

const NAMESPACES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum Thing {
    Namespace(&'static str, Option<bool>),
    Role(&'static str, usize, Option<usize>),
    Binding(&'static str, usize, Option<(usize, bool, usize)>),
}

#[derive(Clone, Debug)]
enum Step {
    Write(Thing),
    Deliver(usize),
    Relist(usize),
    Bookmark(usize),
    /// Alice joins or leaves a group by its Group object.
    Member(&'static str, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let place = prop::sample::select(vec!["", "a", "b", "c", "d"]);
    let thing = prop_oneof![
        (prop::sample::select(NAMESPACES.to_vec()), prop::option::weighted(0.7, any::<bool>()))
            .prop_map(|(n, v)| Thing::Namespace(n, v)),
        (place.clone(), 0..2usize, prop::option::weighted(0.8, 0..5usize))
            .prop_map(|(p, n, v)| Thing::Role(p, n, v)),
        (place, 0..2usize, prop::option::weighted(0.8, (0..2usize, any::<bool>(), 0..5usize)))
            .prop_map(|(p, n, v)| Thing::Binding(p, n, v)),
    ];
    prop_oneof![
        5 => thing.prop_map(Step::Write),
        5 => (0..5usize).prop_map(Step::Deliver),
        1 => (0..5usize).prop_map(Step::Relist),
        1 => (0..5usize).prop_map(Step::Bookmark),
        2 => (prop::sample::select(vec!["team", "crew"]), any::<bool>()).prop_map(|(g, on)| Step::Member(g, on)),
    ]
}

fn rules(choice: usize) -> Vec<Rule> {
    match choice {
        0 => vec![],
        1 => vec![rule(&["get"], &[""], &["namespaces"], &[])],
        2 => vec![rule(&["*"], &["*"], &["*"], &["a", "b"])],
        3 => vec![rule(&["get"], &[""], &["namespaces"], &["b"]), rule(&["get"], &["apps"], &["*"], &[])],
        _ => vec![rule(&["list"], &[""], &["namespaces"], &[])],
    }
}

fn subjects(choice: usize) -> Vec<SubjectDoc> {
    match choice {
        0 => vec![subject("User", "alice", "")],
        1 => vec![subject("Group", "team", "")],
        2 => vec![subject("User", "alice", ""), subject("Group", "team", ""), subject("User", "bob", "")],
        3 => vec![subject("ServiceAccount", "robot", ""), subject("Group", "crew", "")],
        _ => vec![],
    }
}

fn source(place: &str, role: bool) -> Source {
    match (role, place.is_empty()) {
        (true, true) => Source::ClusterRoles,
        (true, false) => Source::Roles,
        (false, true) => Source::ClusterRoleBindings,
        (false, false) => Source::RoleBindings,
    }
}

const SOURCES: [Source; 5] = [
    Source::Namespaces,
    Source::Roles,
    Source::RoleBindings,
    Source::ClusterRoles,
    Source::ClusterRoleBindings,
];

/// Objects of one moment: what kube-apiserver has, or what the index was told.
#[derive(Clone, Debug, Default)]
struct World {
    namespaces: BTreeMap<&'static str, (Revision, bool)>,
    roles: BTreeMap<Key, Vec<Rule>>,
    bindings: BTreeMap<Key, Binding>,
    /// Groups that Group objects give to alice.
    members: BTreeSet<&'static str>,
}

impl World {
    fn put(&mut self, thing: &Thing, revision: Revision) {
        match thing {
            Thing::Namespace(name, value) => set(&mut self.namespaces, name, value.map(|v| (revision, v))),
            Thing::Role(place, name, value) => {
                set(&mut self.roles, &Key::new(place, &format!("r{name}")), value.map(rules));
            }
            Thing::Binding(place, name, value) => {
                let made = value.map(|(role, cluster, who)| {
                    let home = if cluster {
                        ""
                    } else if place.is_empty() {
                        "."
                    } else {
                        place
                    };
                    binding(place, Key::new(home, &format!("r{role}")), &subjects(who))
                });
                set(&mut self.bindings, &Key::new(place, &format!("b{name}")), made);
            }
        }
    }

    /// What a viewer sees, computed from scratch as RBAC decides.
    fn visible(&self, name: &str, groups: &[&str], limit: &Limit) -> BTreeMap<String, Revision> {
        let mine = |s: &Subject| match s {
            Subject::User(n) => &**n == name,
            Subject::Group(n) => {
                let given = name == "alice" && groups.contains(&OAUTH) && self.members.contains(&**n);
                groups.contains(&&**n) || given
            }
        };
        let allowed = |namespace: &str| {
            groups.contains(&"system:masters")
                || self.bindings.iter().any(|(key, binding)| {
                    (key.namespace.is_empty() || &*key.namespace == namespace)
                        && binding.subjects.iter().any(mine)
                        && self.roles.get(&binding.role).into_iter().flatten().any(|r| allows(r, namespace))
                })
        };
        self.namespaces
            .iter()
            .filter(|(n, _)| allowed(n) && limit.allows(n))
            .map(|(n, (revision, _))| ((*n).to_owned(), *revision))
            .collect()
    }
}

fn set<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, key: &K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key.clone(), value),
        None => map.remove(key),
    };
}

fn allows(rule: &Rule, namespace: &str) -> bool {
    let has = |list: &[String], word: &str| list.iter().any(|w| w == word || w == "*");
    let names = &rule.resource_names;
    has(&rule.verbs, "get")
        && has(&rule.api_groups, "")
        && has(&rule.resources, "namespaces")
        && (names.is_empty() || names.iter().any(|n| n == namespace))
}

/// The index with what it was not told yet.
struct Bench {
    index: Index,
    truth: World,
    told: World,
    queues: Vec<VecDeque<(Thing, Revision)>>,
    revision: Revision,
}

impl Bench {
    fn new(capacity: usize) -> Self {
        let mut bench = Self {
            index: Index::new(capacity),
            truth: World::default(),
            told: World::default(),
            queues: vec![VecDeque::new(); 5],
            revision: 10,
        };
        (0..5).for_each(|s| bench.relist(s));
        bench
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Write(thing) => {
                self.revision += 1;
                let exists = |t: &Thing, w: &World| match t {
                    Thing::Namespace(n, None) => w.namespaces.contains_key(n),
                    _ => true,
                };
                if !exists(thing, &self.truth) {
                    return;
                }
                self.truth.put(thing, self.revision);
                let source = match thing {
                    Thing::Namespace(..) => Source::Namespaces,
                    Thing::Role(place, ..) => source(place, true),
                    Thing::Binding(place, ..) => source(place, false),
                };
                self.queues[source as usize].push_back((thing.clone(), self.revision));
            }
            Step::Deliver(source) => self.deliver(*source),
            Step::Relist(source) => self.relist(*source),
            Step::Bookmark(source) if self.queues[*source].is_empty() => {
                self.index.progress(SOURCES[*source], self.revision);
            }
            Step::Bookmark(_) => {}
            Step::Member(group, on) => {
                let changed =
                    if *on { self.told.members.insert(group) } else { self.told.members.remove(group) };
                let alice = |there: bool| there.then(|| Arc::from("alice")).into_iter().collect();
                let change = MembersChange { group: (*group).into(), joined: alice(*on), left: alice(!*on) };
                if changed {
                    self.index.change_members(&Arc::new(change));
                }
            }
        }
    }

    fn deliver(&mut self, at: usize) {
        let Some((thing, revision)) = self.queues[at].pop_front() else { return };
        let source = SOURCES[at];
        match &thing {
            Thing::Namespace(name, Some(on)) => self.index.set_namespace(item(name, revision, team(*on))),
            Thing::Namespace(name, None) => {
                let on = self.told.namespaces.get(name).is_some_and(|(_, on)| *on);
                self.index.remove_namespace(&item(name, revision, team(on)));
            }
            Thing::Role(place, name, value) => {
                let access = value.map(|v| Access::of(&rules(v))).unwrap_or_default();
                self.index.set_role(source, Key::new(place, &format!("r{name}")), access, revision);
            }
            Thing::Binding(place, name, _) => {
                let key = Key::new(place, &format!("b{name}"));
                let mut now = World::default();
                now.put(&thing, revision);
                self.index.set_binding(source, &key, now.bindings.remove(&key), revision);
            }
        }
        self.told.put(&thing, revision);
    }

    fn relist(&mut self, at: usize) {
        self.queues[at].clear();
        let source = SOURCES[at];
        let here = |key: &Key| {
            key.namespace.is_empty() == matches!(source, Source::ClusterRoles | Source::ClusterRoleBindings)
        };
        match source {
            Source::Namespaces => {
                let items = self.truth.namespaces.iter().map(|(n, (r, on))| item(n, *r, team(*on))).collect();
                self.told.namespaces = self.truth.namespaces.clone();
                self.index.reset_namespaces(items, self.revision, |_, _| false);
            }
            Source::Roles | Source::ClusterRoles => {
                let now: BTreeMap<_, _> = self
                    .truth
                    .roles
                    .iter()
                    .filter(|(k, _)| here(k))
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect();
                let parts = now.iter().map(|(k, v)| (k.clone(), Access::of(v))).collect();
                self.told.roles.retain(|k, _| !here(k));
                self.told.roles.extend(now);
                self.index.reset_roles(source, parts, self.revision);
            }
            Source::RoleBindings | Source::ClusterRoleBindings => {
                let now: BTreeMap<_, _> = self
                    .truth
                    .bindings
                    .iter()
                    .filter(|(k, _)| here(k))
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect();
                self.told.bindings.retain(|k, _| !here(k));
                self.told.bindings.extend(now.clone());
                self.index.reset_bindings(source, now.into_iter().collect(), self.revision);
            }
        }
    }
}

fn team(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Who looks, and with which selectors.
fn watchers() -> Vec<(&'static str, Vec<&'static str>, Limit, Selection)> {
    let all = Selection::default();
    let labels = "team=on".parse_labels();
    let only = Limit::Only(["a", "c"].map(Box::from).into());
    vec![
        ("alice", vec![], Limit::None, all.clone()),
        ("alice", vec!["team"], Limit::None, all.clone()),
        ("alice", vec!["team"], only.clone(), all.clone()),
        ("alice", vec![OAUTH], Limit::None, all.clone()),
        ("alice", vec![OAUTH], only, all.clone()),
        ("alice", vec![OAUTH, "team"], Limit::None, all.clone()),
        ("alice", vec![OAUTH, "team"], Limit::None, labels.clone()),
        ("bob", vec![OAUTH], Limit::None, all.clone()),
        ("alice", vec!["team"], Limit::None, labels.clone()),
        ("system:serviceaccount:a:robot", vec!["system:serviceaccounts"], Limit::None, all.clone()),
        ("root", vec!["system:masters"], Limit::None, all),
        ("root", vec!["system:masters"], Limit::None, labels),
    ]
}

trait ParseLabels {
    fn parse_labels(&self) -> Selection;
}

impl ParseLabels for str {
    fn parse_labels(&self) -> Selection {
        let labels = picoshift_machinery::selector::LabelSelector::parse(self).unwrap();
        Selection::of(&ListOptions { labels, ..ListOptions::default() })
    }
}

/// What one watcher has seen so far, and what it could come back with.
struct Follower {
    viewer: Viewer,
    selection: Selection,
    position: Position,
    live: BTreeMap<String, Revision>,
    past: Vec<(Revision, Position, BTreeMap<String, Revision>)>,
}

fn seen(index: &Index, viewer: &Viewer, selection: &Selection) -> BTreeMap<String, Revision> {
    let items: Vec<_> = index.visible(viewer).into_iter().filter(|i| selection.matches(i)).collect();
    assert!(items.is_sorted_by_key(|i| i.name.clone()));
    state(&items)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The index equals the model at every step; a live watcher, strictly, and one that comes back with any revision
    /// or position that is kept end with what a list shows.
    #[test]
    fn equals_the_model(steps in prop::collection::vec(step(), 1..80), capacity in 0..40usize, lazy in 1..6usize) {
        let mut bench = Bench::new(capacity);
        let watchers = watchers();
        let mut followers: Vec<Follower> = watchers.iter().map(|(name, groups, limit, selection)| Follower {
            viewer: Viewer::new(&user(name, groups), None, limit.clone()),
            selection: selection.clone(),
            position: bench.index.log().end(),
            live: BTreeMap::new(),
            past: Vec::new(),
        }).collect();
        for (at, step) in steps.iter().enumerate() {
            bench.step(step);
            let index = &bench.index;
            for (follower, (name, groups, limit, _)) in followers.iter_mut().zip(&watchers) {
                let now = seen(index, &follower.viewer, &follower.selection);
                if follower.selection.is_empty() {
                    prop_assert_eq!(&now, &bench.told.visible(name, groups, limit));
                }
                follower.past.push((index.clock(), index.log().end(), now.clone()));
                if at % lazy == 0 {
                    match index.pull(&follower.viewer, &follower.selection, follower.position, true) {
                        Ok(pull) => {
                            apply(&mut follower.live, &pull.events, true);
                            prop_assert_eq!(&follower.live, &now);
                            follower.position = pull.position;
                        }
                        Err(_) => {
                            follower.live = now;
                            follower.position = index.log().end();
                        }
                    }
                }
            }
        }
        let index = &bench.index;
        for follower in &followers {
            let now = seen(index, &follower.viewer, &follower.selection);
            for (revision, position, then) in &follower.past {
                if let Ok(pull) = index.pull(&follower.viewer, &follower.selection, *position, true) {
                    let mut state = then.clone();
                    apply(&mut state, &pull.events, true);
                    prop_assert_eq!(&state, &now);
                }
                if let Ok(from) = index.log().position(*revision) {
                    let mut state = then.clone();
                    let pull = index.pull(&follower.viewer, &follower.selection, from, true).unwrap();
                    apply(&mut state, &pull.events, false);
                    prop_assert_eq!(&state, &now, "from revision {}", revision);
                    bookmarks_hold(index, follower, &pull.events, then, &now)?;
                }
            }
            prop_assert!(index.log().position(index.clock()).is_ok());
        }
    }
}

/// A watcher cut right after any bookmark can go on from it.
fn bookmarks_hold(
    index: &Index,
    follower: &Follower,
    events: &[crate::rest::WatchEvent],
    then: &BTreeMap<String, Revision>,
    now: &BTreeMap<String, Revision>,
) -> Result<(), TestCaseError> {
    for (at, event) in events.iter().enumerate() {
        let crate::rest::WatchEvent::Bookmark { revision, .. } = event else { continue };
        let Ok(from) = index.log().position(*revision) else { continue };
        let mut state = then.clone();
        apply(&mut state, &events[..at], false);
        let rest = index.pull(&follower.viewer, &follower.selection, from, false).unwrap();
        apply(&mut state, &rest.events, false);
        prop_assert_eq!(&state, now, "from bookmark {}", revision);
    }
    Ok(())
}
