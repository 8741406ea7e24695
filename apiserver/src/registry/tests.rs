//! A stored resource over the embedded engine: what clients are promised, watches and touches above all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use parking_lot::Mutex;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::selector::LabelSelector;
use picoshift_machinery::{GroupVersionKind, Object, Status, UserInfo};
use serde_json::{Value, json};

use super::{Computed, Plan, Planned, Registry, Stored, Strategy};
use crate::admission::Admission;
use crate::resource::{Resource, Verb};
use crate::rest::options::{Propagation, VersionMatch};
use crate::rest::patch::Replacement;
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, Items, List, ListOptions, Preconditions, RequestContext,
    Storage, Updater, Watch, WatchEvent, WriteOptions,
};
use crate::store::embedded::{Embedded, Options};
use crate::store::{Engine, Expect, Key, Revision, Write};

/// Seats: the oldest object that asks for a seat has it, which is computed on read.
static SEATS: Resource = Resource {
    gvk: GroupVersionKind { group: "example.io", version: "v1", kind: "Guest" },
    plural: "guests",
    singular: "guest",
    namespaced: true,
    verbs: &[Verb::Create, Verb::Get],
    short_names: &[],
    categories: &[],
    subresources: &[],
    columns: &[],
    field_labels: &["spec.seat"],
    garbage_collected: true,
    bare: false,
    schema: "",
};

#[derive(Default)]
struct Seats {
    /// Seat → (create revision, key) of who asks for it.
    asking: Mutex<BTreeMap<String, BTreeMap<Revision, Key>>>,
}

impl Seats {
    fn facts(holder: Option<&Key>, key: &Key) -> Value {
        json!({ "holder": holder.map_or(&**key, |k| k) })
    }
}

fn seat(object: &Object) -> &str {
    object.str_at(&["spec", "seat"])
}

impl Strategy for Seats {
    fn resource(&self) -> &'static Resource {
        &SEATS
    }

    fn row(&self, _object: &Object) -> Vec<Value> {
        Vec::new()
    }

    fn plan(&self, write: Planned<'_>, now: &str) -> Plan {
        let asking = self.asking.lock();
        let old = write.old.map(|stored| seat(&stored.object));
        let new = write.new.map(seat);
        let mut affected = Vec::new();
        if old != new || write.new.is_none() {
            for one in [old, new].into_iter().flatten() {
                affected.extend(asking.get(one).into_iter().flat_map(|a| a.values().cloned()));
            }
            affected.retain(|key| key != write.key);
        }
        let Some(new) = new else { return Plan { affected, ..Plan::default() } };
        let order = write.create_revision.unwrap_or(Revision::MAX);
        let holder = asking.get(new).and_then(|a| a.first_key_value()).filter(|(first, _)| **first < order);
        let facts = Self::facts(holder.map(|(_, key)| key), write.key);
        let since = match write.old {
            Some(stored) if stored.computed.facts == facts => stored.computed.since.clone(),
            _ => now.to_owned(),
        };
        Plan { computed: Computed { facts, since }, affected }
    }

    fn committed(&self, write: Planned<'_>, revision: Revision) {
        let mut asking = self.asking.lock();
        let order = write.create_revision.unwrap_or(revision);
        for holders in asking.values_mut() {
            holders.retain(|_, key| key != write.key);
        }
        if let Some(new) = write.new {
            asking.entry(seat(new).to_owned()).or_default().insert(order, Arc::clone(write.key));
        }
    }

    fn present(&self, stored: &Stored) -> Object {
        let mut object = stored.object.clone();
        object.object_mut("status").insert("holder".to_owned(), stored.computed.facts["holder"].clone());
        object
    }

    fn strip(&self, object: &mut Object) {
        object.0.remove("status");
    }
}

mod pressure;
mod upstream;

struct Fixture {
    dir: tempfile::TempDir,
    engine: Arc<Embedded>,
    guests: Arc<Registry>,
}

impl Fixture {
    async fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap()).await
    }

    async fn open(dir: tempfile::TempDir) -> Self {
        let engine = Embedded::open(&dir.path().join("store.redb"), Options::default()).unwrap();
        let strategy: Arc<dyn Strategy> = Arc::new(Seats::default());
        let shared = Arc::clone(&engine) as Arc<dyn Engine>;
        let guests = Registry::start(shared, strategy, Arc::new(Admission::default())).await.unwrap();
        Self { dir, engine, guests }
    }

    async fn restart(self) -> Self {
        drop(self.guests);
        self.engine.shutdown().unwrap();
        drop(self.engine);
        Self::open(self.dir).await
    }

    async fn create(&self, name: &str, seat: &str) -> Arc<Item> {
        self.try_create(name, seat).await.unwrap()
    }

    async fn try_create(&self, name: &str, seat: &str) -> Result<Arc<Item>, Status> {
        let object = guest(name, seat);
        self.guests.create(&cx("a"), object, &WriteOptions::default()).await
    }

    async fn get(&self, name: &str) -> Object {
        self.guests.get(&cx("a"), name, &GetOptions::default()).await.unwrap().object().unwrap()
    }

    async fn delete(&self, name: &str) -> Deleted {
        self.guests.delete(&cx("a"), name, &DeleteOptions::default()).await.unwrap()
    }

    async fn list(&self, options: &ListOptions) -> Result<List, Status> {
        self.guests.list(&cx(""), options).await
    }

    async fn watch(&self, options: &ListOptions) -> Watch {
        self.guests.watch(&cx("a"), options).await.unwrap()
    }
}

fn cx(namespace: &str) -> RequestContext {
    let info = RequestInfo { namespace: namespace.to_owned(), ..RequestInfo::default() };
    RequestContext::new(Arc::new(UserInfo::anonymous()), info)
}

fn guest(name: &str, seat: &str) -> Object {
    Object::from_value(json!({
        "apiVersion": "example.io/v1", "kind": "Guest",
        "metadata": {"name": name, "labels": {"seat": seat}}, "spec": {"seat": seat},
    }))
    .unwrap()
}

/// Changes one object; `resourceVersion` comes from the current one.
struct Edit(fn(&mut Object));

impl Updater for Edit {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        let mut object = current.clone();
        (self.0)(&mut object);
        Ok(object)
    }

    fn retries(&self) -> bool {
        true
    }
}

fn items(list: &List) -> Vec<Arc<Item>> {
    match &list.items {
        Items::Picked(items) => items.clone(),
        Items::Whole(chunks) => chunks.iter().flat_map(|chunk| chunk.items().to_vec()).collect(),
    }
}

fn names(list: &List) -> Vec<String> {
    items(list).iter().map(|item| item.name.to_string()).collect()
}

/// The next events, as words; waits for each.
async fn events(watch: &mut Watch, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let next = tokio::time::timeout(Duration::from_secs(10), watch.next()).await;
        let Some(batch) = next.expect("an event") else { break };
        seen.extend(batch.into_iter().map(|event| match event {
            WatchEvent::Added(item) => format!("ADDED {}", item.name),
            WatchEvent::Modified(item) => format!("MODIFIED {}", item.name),
            WatchEvent::Deleted(item) => format!("DELETED {}", item.name),
            WatchEvent::Bookmark { initial_events_end, .. } => format!("BOOKMARK {initial_events_end}"),
            WatchEvent::Error(status) => format!("ERROR {}", status.code),
        }));
    }
    seen
}

#[tokio::test]
async fn the_answer_has_its_computed_part_and_others_are_touched() {
    let fixture = Fixture::new().await;
    let first = fixture.create("one", "s").await;
    assert_eq!(first.object().unwrap().str_at(&["status", "holder"]), "guests.example.io/a/one");
    let second = fixture.create("two", "s").await;
    assert_eq!(second.object().unwrap().str_at(&["status", "holder"]), "guests.example.io/a/one");
    let mut watch = fixture
        .watch(&ListOptions { resource_version: Some(second.revision), ..ListOptions::default() })
        .await;
    fixture.delete("one").await;
    let released = fixture.get("two").await;
    assert_eq!(released.str_at(&["status", "holder"]), "guests.example.io/a/two");
    assert!(released.resource_version().parse::<u64>().unwrap() > second.revision);
    assert_eq!(events(&mut watch, 2).await, ["DELETED one", "MODIFIED two"]);
}

#[tokio::test]
async fn what_a_start_touches_is_in_memory_once() {
    let fixture = Fixture::new().await;
    fixture.create("one", "s").await;
    assert_eq!(fixture.guests.cache.items_that_wait(), 0);
    let key = fixture.guests.key("a", "one");
    let record = fixture.engine.get(&key).unwrap().unwrap();
    let stale = String::from_utf8(record.value.to_vec())
        .unwrap()
        .replace(r#""holder":"guests"#, r#""holder":"ghosts"#);
    let write = Write { key, expect: Expect::At(record.revision), value: Some(stale.into()) };
    fixture.engine.submit(write).unwrap().done.await.unwrap();
    let fixture = fixture.restart().await;
    let touched = fixture.get("one").await;
    assert!(touched.resource_version().parse::<u64>().unwrap() > record.revision + 1, "{touched:?}");
    assert_eq!(fixture.guests.cache.items_that_wait(), 0);
}

#[tokio::test]
async fn equal_versions_are_equal_bytes_across_restarts() {
    let fixture = Fixture::new().await;
    for name in ["a", "b", "c"] {
        fixture.create(name, "s").await;
    }
    fixture
        .guests
        .update(&cx("a"), "b", &Edit(|o| o.set_annotation("x", "y")), &WriteOptions::default())
        .await
        .unwrap();
    let before = items(&fixture.list(&ListOptions::default()).await.unwrap());
    assert_eq!(fixture.guests.cache.items_of_the_log_alone(), 1, "the first state of b");
    let fixture = fixture.restart().await;
    let after = items(&fixture.list(&ListOptions::default()).await.unwrap());
    assert_eq!(before.len(), 3);
    assert_eq!(fixture.guests.cache.items_of_the_log_alone(), 1, "each state is in memory once");
    for (old, new) in before.iter().zip(&after) {
        assert_eq!((old.revision, &old.bytes), (new.revision, &new.bytes));
    }
}

#[tokio::test]
async fn a_watch_goes_on_across_a_restart() {
    let fixture = Fixture::new().await;
    let first = fixture.create("one", "s").await;
    fixture.create("two", "t").await;
    fixture.delete("one").await;
    let fixture = fixture.restart().await;
    let options = ListOptions { resource_version: Some(first.revision), ..ListOptions::default() };
    let mut watch = fixture.watch(&options).await;
    assert_eq!(events(&mut watch, 2).await, ["ADDED two", "DELETED one"]);
    fixture.create("three", "u").await;
    assert_eq!(events(&mut watch, 1).await, ["ADDED three"]);
}

#[tokio::test]
async fn selected_watches_see_objects_come_and_go() {
    let fixture = Fixture::new().await;
    let options = ListOptions {
        labels: LabelSelector::parse("seat=s").unwrap(),
        send_initial_events: Some(true),
        bookmarks: true,
        ..ListOptions::default()
    };
    fixture.create("one", "s").await;
    fixture.create("other", "t").await;
    let mut watch = fixture.watch(&options).await;
    assert_eq!(events(&mut watch, 2).await, ["ADDED one", "BOOKMARK true"]);
    let relabel = |seat: &'static str| match seat {
        "s" => Edit(|o| o.set_metadata("labels", json!({"seat": "s"}))),
        _ => Edit(|o| o.set_metadata("labels", json!({"seat": "t"}))),
    };
    for (name, seat) in [("one", "t"), ("other", "s")] {
        fixture.guests.update(&cx("a"), name, &relabel(seat), &WriteOptions::default()).await.unwrap();
    }
    assert_eq!(events(&mut watch, 2).await, ["DELETED one", "ADDED other"]);
}

#[tokio::test]
async fn pages_show_one_revision() {
    let fixture = Fixture::new().await;
    for n in 0..7 {
        fixture.create(&format!("g{n}"), "s").await;
    }
    let first = fixture.list(&ListOptions { limit: 3, ..ListOptions::default() }).await.unwrap();
    assert_eq!((names(&first), first.remaining), (vec!["g0".into(), "g1".into(), "g2".into()], Some(4)));
    fixture.delete("g4").await;
    fixture.create("g31", "s").await;
    let fixture = fixture.restart().await;
    let rest = fixture
        .list(&ListOptions { continue_token: first.continue_token.clone(), ..ListOptions::default() })
        .await
        .unwrap();
    assert_eq!(names(&rest), ["g3", "g4", "g5", "g6"]);
    assert_eq!(rest.revision, first.revision);
    let exact = ListOptions {
        resource_version: Some(first.revision),
        version_match: Some(VersionMatch::Exact),
        ..ListOptions::default()
    };
    assert_eq!(items(&fixture.list(&exact).await.unwrap()).len(), 7);
}

#[tokio::test]
async fn writes_check_versions_uids_and_names() {
    let fixture = Fixture::new().await;
    let one = fixture.create("one", "s").await;
    assert_eq!(fixture.try_create("one", "s").await.unwrap_err().reason, "AlreadyExists");
    assert_eq!(fixture.try_create("Bad_Name", "s").await.unwrap_err().reason, "Invalid");
    let mut stale = one.object().unwrap();
    fixture
        .guests
        .update(&cx("a"), "one", &Edit(|o| o.set_annotation("n", "1")), &WriteOptions::default())
        .await
        .unwrap();
    let update = |object: Object| {
        let guests = Arc::clone(&fixture.guests);
        async move { guests.update(&cx("a"), "one", &Replacement(object), &WriteOptions::default()).await }
    };
    assert_eq!(update(stale.clone()).await.unwrap_err().reason, "Conflict");
    stale.set_metadata("resourceVersion", Value::Null);
    let unconditional = update(stale.clone()).await.unwrap_err();
    assert_eq!((unconditional.code, unconditional.reason.as_str()), (422, "Invalid"));
    assert!(unconditional.message.starts_with(
        "guests.example.io \"one\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified"
    ));
    stale.set_metadata("uid", "other");
    assert_eq!(update(stale).await.unwrap_err().reason, "Conflict");
    let wrong = DeleteOptions {
        preconditions: Preconditions { uid: Some("other".into()), resource_version: None },
        ..DeleteOptions::default()
    };
    let refused = fixture.guests.delete(&cx("a"), "one", &wrong).await.err().unwrap();
    assert_eq!(refused.reason, "Conflict");
}

#[tokio::test]
async fn equal_updates_write_nothing() {
    let fixture = Fixture::new().await;
    let one = fixture.create("one", "s").await;
    let same = fixture.guests.update(&cx("a"), "one", &Edit(|_| ()), &WriteOptions::default()).await.unwrap();
    assert_eq!(same.into_item().revision, one.revision);
}

#[tokio::test]
async fn dry_runs_store_nothing() {
    let fixture = Fixture::new().await;
    let before = fixture.engine.revision();
    let dry = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let shown = fixture.guests.create(&cx("a"), guest("one", "s"), &dry).await.unwrap();
    assert_eq!(shown.object().unwrap().str_at(&["status", "holder"]), "guests.example.io/a/one");
    assert_eq!(shown.object().unwrap().resource_version(), "", "what is not stored has no version");
    assert_eq!(fixture.engine.revision(), before);
    let other = fixture.create("two", "s").await;
    assert_eq!(other.object().unwrap().str_at(&["status", "holder"]), "guests.example.io/a/two");
}

#[tokio::test]
async fn finalizers_hold_an_object_until_the_last_is_gone() {
    let fixture = Fixture::new().await;
    let mut object = guest("one", "s");
    object.set_metadata("finalizers", json!(["example.io/hold"]));
    fixture.guests.create(&cx("a"), object, &WriteOptions::default()).await.unwrap();
    let options = DeleteOptions { propagation: Some(Propagation::Foreground), ..DeleteOptions::default() };
    let Deleted::Object(held) = fixture.guests.delete(&cx("a"), "one", &options).await.unwrap() else {
        panic!("still held");
    };
    let held = held.object().unwrap();
    assert!(held.deletion_timestamp().is_some());
    assert_eq!(held.finalizers(), ["example.io/hold", "foregroundDeletion"]);
    assert_eq!(held.generation(), Some(2));
    let add = Edit(|o| o.set_metadata("finalizers", json!(["example.io/hold", "example.io/new"])));
    let refused = fixture.guests.update(&cx("a"), "one", &add, &WriteOptions::default()).await.unwrap_err();
    assert!(refused.message.contains("no new finalizers can be added"), "{}", refused.message);
    let release = Edit(|o| o.set_metadata("finalizers", json!([])));
    fixture.guests.update(&cx("a"), "one", &release, &WriteOptions::default()).await.unwrap();
    let gone = fixture.guests.get(&cx("a"), "one", &GetOptions::default()).await.unwrap_err();
    assert_eq!(gone.reason, "NotFound");
}

#[tokio::test]
async fn concurrent_patches_all_count() {
    let fixture = Fixture::new().await;
    fixture.create("one", "s").await;
    let tasks = (0..16).map(|_| {
        let guests = Arc::clone(&fixture.guests);
        tokio::spawn(async move {
            let add = Edit(|o| {
                let n = o.annotation("n").map_or(0, |n| n.parse::<u64>().unwrap());
                o.set_annotation("n", &(n + 1).to_string());
            });
            guests.update(&cx("a"), "one", &add, &WriteOptions::default()).await.unwrap();
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(fixture.get("one").await.annotation("n"), Some("16"));
}

#[tokio::test]
async fn generated_names_differ() {
    let fixture = Fixture::new().await;
    let mut names = Vec::new();
    for _ in 0..3 {
        let mut object = guest("", "s");
        object.set_metadata("name", Value::Null);
        object.set_metadata("generateName", "g-");
        let item = fixture.guests.create(&cx("a"), object, &WriteOptions::default()).await.unwrap();
        assert!(item.name.starts_with("g-") && item.name.len() == 7);
        names.push(item.name.clone());
    }
    names.dedup();
    assert_eq!(names.len(), 3);
}

#[tokio::test]
async fn collections_are_deleted_by_selector() {
    let fixture = Fixture::new().await;
    for (name, seat) in [("a", "s"), ("b", "t"), ("c", "s")] {
        fixture.create(name, seat).await;
    }
    let list = ListOptions { labels: LabelSelector::parse("seat=s").unwrap(), ..ListOptions::default() };
    let deleted = fixture.guests.delete_collection(&cx("a"), &DeleteOptions::default(), &list).await.unwrap();
    assert_eq!(names(&deleted), ["a", "c"]);
    assert_eq!(names(&fixture.list(&ListOptions::default()).await.unwrap()), ["b"]);
}

#[tokio::test]
async fn future_versions_are_refused_in_time() {
    let fixture = Fixture::new().await;
    let future = ListOptions { resource_version: Some(1 << 40), ..ListOptions::default() };
    let status = fixture.list(&future).await.err().unwrap();
    assert_eq!((status.code, status.reason.as_str()), (504, "Timeout"));
    assert!(status.message.starts_with("Timeout: Too large resource version: "));
}
