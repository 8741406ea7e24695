//! An event as it is written: `Event` of `audit.k8s.io/v1`, with its fields in upstream's order.

use std::collections::BTreeMap;

use jiff::Timestamp;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::{Status, UserInfo};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::policy::{Level, Stage};
use crate::authz::Attributes;

/// What is known about a request at a stage.
#[derive(Clone, Debug, Default)]
pub struct Event {
    pub(super) level: Level,
    pub(super) audit_id: String,
    pub(super) request_uri: String,
    pub(super) verb: String,
    pub(super) user: Person,
    pub(super) impersonated: Option<Person>,
    pub(super) source_ips: Vec<String>,
    pub(super) user_agent: String,
    pub(super) object: Option<ObjectReference>,
    pub(super) status: Option<Status>,
    pub(super) request_object: Option<Value>,
    pub(super) response_object: Option<Value>,
    pub(super) received: Timestamp,
    pub(super) annotations: BTreeMap<&'static str, String>,
}

/// A user, as events name one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Person {
    #[serde(skip_serializing_if = "String::is_empty")]
    username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, Vec<String>>,
}

/// What a request is about.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) api_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) subresource: String,
}

impl From<&UserInfo> for Person {
    fn from(user: &UserInfo) -> Self {
        Self {
            username: user.name.clone(),
            uid: user.uid.clone(),
            groups: user.groups.clone(),
            extra: user.extra.clone(),
        }
    }
}

impl From<&RequestInfo> for ObjectReference {
    fn from(info: &RequestInfo) -> Self {
        // As authorization sees the request: a project is in the namespace of its own name.
        let attributes = Attributes::from(info);
        Self {
            resource: attributes.resource,
            namespace: attributes.namespace,
            name: attributes.name,
            api_group: attributes.group,
            api_version: attributes.version,
            subresource: attributes.subresource,
            ..Self::default()
        }
    }
}

/// The fields in the order in which upstream writes them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: Level,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: &'a str,
    verb: &'a str,
    user: &'a Person,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<&'a Person>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "<[_]>::is_empty")]
    source_ips: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<&'a ObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<ResponseStatus<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_object: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_object: Option<&'a Value>,
    #[serde(serialize_with = "micros")]
    request_received_timestamp: Timestamp,
    #[serde(serialize_with = "micros")]
    stage_timestamp: Timestamp,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<&'static str, String>,
}

/// A status without kind and version, and with no word where it has none.
#[derive(Serialize)]
struct ResponseStatus<'a> {
    metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    status: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a picoshift_machinery::status::Details>,
    code: u16,
}

impl<'a> From<&'a Status> for ResponseStatus<'a> {
    fn from(status: &'a Status) -> Self {
        Self {
            metadata: BTreeMap::new(),
            status: &status.status,
            message: &status.message,
            reason: &status.reason,
            details: status.details.as_deref(),
            code: status.code,
        }
    }
}

fn micros<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{time:.6}"))
}

impl Event {
    /// The event of a stage, as a line with its end.
    pub(super) fn line(&self, stage: Stage, at: Timestamp) -> Vec<u8> {
        let line = Line {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: self.level,
            audit_id: &self.audit_id,
            stage,
            request_uri: &self.request_uri,
            verb: &self.verb,
            user: &self.user,
            impersonated_user: self.impersonated.as_ref(),
            source_ips: &self.source_ips,
            user_agent: &self.user_agent,
            object_ref: self.object.as_ref(),
            response_status: self.status.as_ref().map(ResponseStatus::from),
            request_object: self.request_object.as_ref(),
            response_object: self.response_object.as_ref(),
            request_received_timestamp: self.received,
            stage_timestamp: at,
            annotations: &self.annotations,
        };
        // Text keys and finite numbers only: there is nothing in it that JSON cannot say.
        let mut line = serde_json::to_vec(&line).unwrap_or_default();
        line.push(b'\n');
        line
    }
}
