//! Host claims through the strategy, against a model that looks at all routes at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use picoshift_machinery::Object;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::strategy::RouteStrategy;
use super::tests::strategy_at;
use crate::registry::strategy::{Computed, Planned, Stored, Strategy as _};
use crate::store::{Key, Revision};

const DOMAIN: &str = "apps.lab.example";

/// What is stored, and the index that must agree with it.
struct World {
    strategy: RouteStrategy,
    routes: BTreeMap<Key, (Stored, Revision)>,
    revision: Revision,
    clock: i64,
}

#[derive(Clone, Debug)]
struct Shape {
    host: &'static str,
    subdomain: &'static str,
    path: &'static str,
    termination: &'static str,
    wildcard: bool,
}

#[derive(Clone, Debug)]
enum Op {
    Write(&'static str, &'static str, Shape),
    Delete(&'static str, &'static str),
    /// Time passes, or the clock is set back.
    Tick(i64),
}

fn new_strategy() -> RouteStrategy {
    strategy_at(DOMAIN, &[])
}

fn key(namespace: &str, name: &str) -> Key {
    Key::from(format!("routes.route.openshift.io/{namespace}/{name}"))
}

impl World {
    fn new() -> Self {
        Self { strategy: new_strategy(), routes: BTreeMap::new(), revision: 0, clock: 1_700_000_000 }
    }

    fn object(&self, namespace: &str, name: &str, shape: &Shape) -> Object {
        let mut spec =
            json!({"to": {"name": "s"}, "wildcardPolicy": if shape.wildcard { "Subdomain" } else { "None" }});
        for (field, value) in [("host", shape.host), ("subdomain", shape.subdomain), ("path", shape.path)] {
            spec[field] = value.into();
        }
        if !shape.termination.is_empty() {
            spec["tls"] = json!({"termination": shape.termination});
        }
        let mut object = Object::new("route.openshift.io/v1", "Route");
        let created = jiff::Timestamp::from_second(self.clock).unwrap().to_string();
        let created = match self.routes.get(&key(namespace, name)) {
            Some((stored, _)) => stored.object.creation_timestamp().to_owned(),
            None => created,
        };
        object.0.insert(
            "metadata".to_owned(),
            json!({"namespace": namespace, "name": name, "creationTimestamp": created}),
        );
        object.0.insert("spec".to_owned(), spec);
        self.strategy.set_defaults(&mut object);
        object
    }

    /// One write without its touches; answers who is said to be affected.
    fn write(&mut self, key: &Key, object: Option<Object>) -> Vec<Key> {
        let old = self.routes.get(key).cloned();
        let write = Planned {
            key,
            old: old.as_ref().map(|(stored, _)| stored),
            new: object.as_ref(),
            computed: None,
            create_revision: old.as_ref().map(|(_, created)| *created),
            touch: false,
        };
        let plan = self.strategy.plan(write, &self.revision.to_string());
        self.revision += 1;
        self.strategy.committed(write, self.revision);
        match object {
            Some(object) => {
                let created = old.map_or(self.revision, |(_, created)| created);
                self.routes.insert(Arc::clone(key), (Stored { object, computed: plan.computed }, created));
            }
            None => {
                self.routes.remove(key);
            }
        }
        plan.affected
    }

    fn planned(strategy: &RouteStrategy, key: &Key, stored: &Stored, created: Revision) -> Computed {
        let write = Planned {
            key,
            old: Some(stored),
            new: Some(&stored.object),
            computed: None,
            create_revision: Some(created),
            touch: false,
        };
        let plan = strategy.plan(write, "later");
        assert!(plan.affected.is_empty(), "a write that changes nothing affects nobody");
        plan.computed
    }

    /// The routes whose stored facts are not what they would be now.
    fn stale(&self, strategy: &RouteStrategy) -> Vec<Key> {
        self.routes
            .iter()
            .filter(|(key, (stored, created))| {
                Self::planned(strategy, key, stored, *created) != stored.computed
            })
            .map(|(key, _)| Arc::clone(key))
            .collect()
    }

    fn apply(&mut self, op: &Op) {
        let (key, object) = match op {
            Op::Tick(by) => {
                self.clock += by;
                return;
            }
            Op::Delete(namespace, name) => {
                let key = key(namespace, name);
                if !self.routes.contains_key(&key) {
                    return;
                }
                (key, None)
            }
            Op::Write(namespace, name, shape) => {
                (key(namespace, name), Some(self.object(namespace, name, shape)))
            }
        };
        let mut affected = self.write(&key, object);
        affected.sort();
        assert_eq!(self.stale(&self.strategy), affected, "affected is complete and precise");
        for key in affected {
            let object = self.routes[&key].0.object.clone();
            assert!(self.write(&key, Some(object)).is_empty(), "touches affect nobody");
        }
    }

    /// Routes that ask for a host, oldest first.
    fn by_age(&self) -> Vec<(&Key, &Stored)> {
        let mut all: Vec<_> = self.routes.iter().collect();
        all.sort_by_key(|(_, (stored, created))| {
            (stored.object.creation_timestamp().parse::<jiff::Timestamp>().unwrap(), *created)
        });
        all.into_iter().map(|(key, (stored, _))| (key, stored)).collect()
    }

    fn check(&self) {
        let mut holders: Vec<(String, &Object)> = Vec::new();
        for (key, stored) in self.by_age() {
            let shown = self.strategy.present(stored);
            let entry = &shown.at(&["status", "ingress"]).unwrap()[0];
            let condition = &entry["conditions"][0];
            let wanted = expected(&holders, &stored.object);
            assert_eq!(condition.get("message").and_then(Value::as_str), wanted.as_deref(), "{key}");
            assert_eq!(condition["status"] == "True", wanted.is_none());
            if wanted.is_none() {
                holders.push((host(&stored.object), &stored.object));
            }
        }
        let rebuilt = new_strategy();
        let mut all: Vec<_> = self.routes.iter().collect();
        all.sort_by_key(|(_, (_, created))| *created);
        for (key, (stored, created)) in &all {
            let write = Planned {
                key,
                old: None,
                new: Some(&stored.object),
                computed: None,
                create_revision: Some(*created),
                touch: false,
            };
            rebuilt.committed(write, self.revision);
        }
        assert!(self.stale(&rebuilt).is_empty(), "a restart changes nothing");
    }
}

fn host(object: &Object) -> String {
    match (object.str_at(&["spec", "host"]), object.str_at(&["spec", "subdomain"])) {
        ("", "") => String::new(),
        ("", subdomain) => format!("{subdomain}.{DOMAIN}"),
        (host, _) => host.to_owned(),
    }
}

/// The message that a route must have, when `older` routes hold what they hold, oldest first.
fn expected(older: &[(String, &Object)], object: &Object) -> Option<String> {
    if object.str_at(&["spec", "wildcardPolicy"]) == "Subdomain" {
        return Some("wildcard routes are not allowed".to_owned());
    }
    let host = host(object);
    if host.is_empty() {
        return Some("no host value was defined for the route".to_owned());
    }
    let holders: Vec<&Object> = older.iter().filter(|(h, _)| *h == host).map(|(_, o)| *o).collect();
    let first = holders.first()?;
    if first.namespace() != object.namespace() {
        return Some(format!(
            "a route in another namespace holds {host} and is older than {}",
            object.name()
        ));
    }
    let termination = |o: &Object| o.str_at(&["spec", "tls", "termination"]).to_owned();
    let mine = termination(object);
    let same = holders.iter().find(|o| o.str_at(&["spec", "path"]) == object.str_at(&["spec", "path"]));
    let clash = holders.iter().any(|o| {
        let theirs = termination(o);
        !theirs.is_empty() && !mine.is_empty() && (theirs == "passthrough" || mine == "passthrough")
    });
    let holder = match same {
        Some(holder) => holder,
        None if clash => holders.last()?,
        None => return None,
    };
    Some(format!("route {} already exposes {host} and is older", holder.name()))
}

fn shape() -> impl Strategy<Value = Shape> {
    (
        prop_oneof![Just("a.example"), Just("b.example"), Just("x.apps.lab.example"), Just("")],
        prop_oneof![Just(""), Just("x")],
        prop_oneof![Just(""), Just("/p"), Just("/q")],
        prop_oneof![3 => Just(""), 2 => Just("edge"), 2 => Just("passthrough")],
        prop::bool::weighted(0.1),
    )
        .prop_map(|(host, subdomain, path, termination, wildcard)| Shape {
            host,
            subdomain,
            path,
            termination,
            wildcard,
        })
}

fn op() -> impl Strategy<Value = Op> {
    let namespace = || prop_oneof![Just("n"), Just("m")];
    let name = || prop_oneof![Just("r1"), Just("r2"), Just("r3"), Just("r4")];
    prop_oneof![
        5 => (namespace(), name(), shape()).prop_map(|(namespace, name, shape)| Op::Write(namespace, name, shape)),
        2 => (namespace(), name()).prop_map(|(namespace, name)| Op::Delete(namespace, name)),
        1 => (-2_i64..5).prop_map(Op::Tick),
    ]
}

proptest! {
    #[test]
    fn the_oldest_holds_whatever_happens(ops in prop::collection::vec(op(), 1..40)) {
        let mut world = World::new();
        for op in &ops {
            world.apply(op);
            world.check();
        }
    }
}

#[test]
fn ten_thousand_routes_are_claimed_and_planned() {
    let mut world = World::new();
    for i in 0..10_000 {
        let shape = Shape { host: "", subdomain: "", path: "", termination: "", wildcard: false };
        let name = format!("r{i}");
        let mut object = world.object("n", &name, &shape);
        object.object_mut("spec").insert("host".to_owned(), format!("h{}.example", i / 2).into());
        assert!(world.write(&key("n", &name), Some(object)).is_empty());
    }
    let first = key("n", "r0");
    assert_eq!(world.write(&first, None), [key("n", "r1")]);
    let message = |key: &Key| world.routes[key].0.computed.facts["rejection"]["message"].clone();
    assert_eq!(message(&key("n", "r9999")), "route r9998 already exposes h4999.example and is older");
}
