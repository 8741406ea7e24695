//! The record of one request, from its coming to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use picoshift_machinery::{Object, Status, UserInfo};
use prometheus_client::metrics::counter::Counter;
use serde_json::Value;

use super::event::{Event, ObjectReference, Person};
use super::log::Log;
use super::policy::{Decision, Level, Stage};
use crate::resource::Resource;
use crate::rest::storage::List;

/// What is known about a request so far. When the last who holds it lets go, the request is over: that is the last
/// event, also when the client went away or the time was over.
pub struct Record {
    event: Mutex<Event>,
    rule: Decision,
    long: bool,
    over: AtomicBool,
    log: Arc<Log>,
    events: Counter,
}

impl Record {
    pub(super) fn new(event: Event, rule: Decision, long: bool, log: Arc<Log>, events: Counter) -> Self {
        Self { event: Mutex::new(event), rule, long, over: AtomicBool::new(false), log, events }
    }

    /// The request came, and who sent it is known.
    pub fn received(&self) {
        let at = self.event.lock().received;
        self.stage(Stage::RequestReceived, at);
    }

    /// The request runs as somebody else.
    pub fn impersonated(&self, user: &UserInfo) {
        self.event.lock().impersonated = Some(Person::from(user));
    }

    /// Adds an annotation; one that is there stays.
    pub fn annotate(&self, key: &'static str, value: impl Into<String>) {
        self.event.lock().annotations.entry(key).or_insert_with(|| value.into());
    }

    /// The object that was sent. Its name is recorded at every level, its contents from [`Level::Request`] on.
    pub fn request_object(&self, object: &Object) {
        let contents = (self.rule.level >= Level::Request).then(|| self.contents(object));
        let mut event = self.event.lock();
        let reference = event.object.get_or_insert_with(ObjectReference::default);
        for (slot, value) in [
            (&mut reference.namespace, object.namespace()),
            (&mut reference.name, object.name()),
            (&mut reference.uid, object.uid()),
            (&mut reference.resource_version, object.resource_version()),
        ] {
            if slot.is_empty() {
                value.clone_into(slot);
            }
        }
        event.request_object = contents;
    }

    /// The patch that was sent. What is no JSON is recorded as a text.
    pub fn request_patch(&self, patch: &[u8]) {
        if self.rule.level >= Level::Request {
            let value = serde_json::from_slice(patch)
                .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(patch).into_owned()));
            self.event.lock().request_object = Some(value);
        }
    }

    /// Options that were sent with a deletion, where they are JSON.
    pub fn request_options(&self, options: &[u8]) {
        if self.rule.level >= Level::Request {
            self.event.lock().request_object = serde_json::from_slice(options).ok();
        }
    }

    /// Whether the answer's object is recorded.
    #[must_use]
    pub fn wants_response(&self) -> bool {
        self.rule.level >= Level::RequestResponse
    }

    /// The object that is answered.
    pub fn response_object(&self, object: &Object) {
        if self.wants_response() {
            let contents = self.contents(object);
            self.event.lock().response_object = Some(contents);
        }
    }

    /// The list that is answered. It is recorded whole, also when the client gets it as a table.
    ///
    /// # Errors
    /// 500 when our own bytes cannot be read.
    pub fn response_list(&self, resource: &Resource, list: &List) -> Result<(), Status> {
        let items = list.items.iter().map(|item| item.object().map(|object| self.contents(&object)));
        let items: Vec<Value> = items.collect::<Result<_, _>>().map_err(Status::internal)?;
        let list = serde_json::json!({
            "kind": resource.list_kind(),
            "apiVersion": resource.gvk.api_version(),
            "metadata": { "resourceVersion": list.revision.to_string() },
            "items": items,
        });
        self.event.lock().response_object = Some(list);
        Ok(())
    }

    /// The answer begins; `status` is what it says, if it is one.
    pub fn responded(&self, code: u16, status: Option<&Status>) {
        {
            let mut event = self.event.lock();
            if let Some(status) = status.filter(|_| self.wants_response()) {
                event.response_object = Some(status.to_value());
            }
            event.status = Some(Status { code, ..status.cloned().unwrap_or_else(bare) });
        }
        if self.long {
            self.stage(Stage::ResponseStarted, Timestamp::now());
        }
    }

    /// The request is refused before its sender is known: one event, and no more.
    pub(super) fn refused(&self, code: u16, message: &str) {
        self.over.store(true, Ordering::Release);
        self.event.lock().status = Some(Status { code, message: message.to_owned(), ..bare() });
        self.stage(Stage::ResponseStarted, Timestamp::now());
    }

    /// The handler panicked: this is the last event.
    pub fn panicked(&self, message: &str) {
        self.over.store(true, Ordering::Release);
        let message = format!("APIServer panic'd: {message}");
        let code = http::StatusCode::INTERNAL_SERVER_ERROR;
        self.event.lock().status = Some(Status::failure(code, "InternalError", message));
        self.stage(Stage::Panic, Timestamp::now());
    }

    fn contents(&self, object: &Object) -> Value {
        let mut value = Value::Object(object.0.clone());
        if self.rule.omit_managed_fields
            && let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("managedFields");
        }
        value
    }

    fn stage(&self, stage: Stage, at: Timestamp) {
        if self.rule.omit.contains(&stage) {
            return;
        }
        self.events.inc();
        let line = self.event.lock().line(stage, at);
        self.log.write(&line);
    }
}

/// A status in which nothing is said.
fn bare() -> Status {
    Status { status: String::new(), ..Status::failure(http::StatusCode::OK, "", "") }
}

impl Drop for Record {
    fn drop(&mut self) {
        if *self.over.get_mut() {
            return;
        }
        let unanswered = self.event.get_mut().status.is_none();
        if unanswered {
            let status = Status { status: "Success".to_owned(), ..bare() };
            self.event.get_mut().status =
                Some(Status { message: "Connection closed early".to_owned(), ..status });
            if self.long {
                self.stage(Stage::ResponseStarted, Timestamp::now());
            }
        }
        self.stage(Stage::ResponseComplete, Timestamp::now());
    }
}
