//! Server-side apply: a configuration, read and checked, and what it makes of an object.

use async_trait::async_trait;
use http::{HeaderMap, StatusCode, header};
use picoshift_machinery::{Object, Status};
use picoshift_structured_merge::{ApplyError, FieldManager, Request};
use serde_json::{Map, Value};

use super::query::{check_name, without_reason};
use super::storage::{RequestContext, Updater};
use crate::authz::{Attributes, Authorizer, Decision, forbidden};
use crate::decode::Configuration;
use crate::registry::metadata::now;
use crate::resource::Resource;
use crate::schema::{FieldValidation, Schemas};

/// The content type of an apply.
const CONTENT_TYPE: &str = "application/apply-patch+yaml";

/// Whether a patch is an apply.
#[must_use]
pub fn is_apply(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|text| text.split(';').next().unwrap_or_default().trim() == CONTENT_TYPE)
}

/// One apply.
pub struct Application<'a> {
    /// Who owns which field, at this endpoint.
    pub fields: &'a FieldManager,
    /// The schemas of the decoder.
    pub schemas: &'a Schemas,
    /// What is applied.
    pub resource: &'static Resource,
    /// Whose request it is, and of which object.
    pub cx: &'a RequestContext,
    /// Says whether the caller may create, where the object is not there.
    pub authorizer: &'a dyn Authorizer,
    /// The configuration.
    pub config: Configuration,
    /// `fieldManager`.
    pub manager: &'a str,
    /// `force`.
    pub force: bool,
    /// `fieldValidation`.
    pub validation: FieldValidation,
}

#[async_trait]
impl Updater for Application<'_> {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        // An object without a uid is not there yet.
        self.make(Some(current).filter(|current| !current.uid().is_empty()), &|_| ())
    }

    fn apply(&self, stored: Option<&Object>, strip: &dyn Fn(&mut Object)) -> Option<Result<Object, Status>> {
        Some(self.make(stored, strip))
    }

    fn retries(&self) -> bool {
        self.config.value.pointer("/metadata/resourceVersion").is_none()
    }

    async fn permit_creation(&self) -> Result<(), Status> {
        permit_creation(self.cx, self.authorizer).await
    }
}

/// Whether the caller may create what an update finds missing.
///
/// # Errors
/// 403.
pub(super) async fn permit_creation(cx: &RequestContext, authorizer: &dyn Authorizer) -> Result<(), Status> {
    let create = Attributes { verb: "create".to_owned(), ..Attributes::from(&cx.info) };
    match authorizer.authorize(&cx.user, &create).await? {
        Decision::Allow => Ok(()),
        Decision::Deny { reason } => Err(forbidden(&cx.user, &create, &reason)),
    }
}

impl Application<'_> {
    fn make(&self, stored: Option<&Object>, strip: &dyn Fn(&mut Object)) -> Result<Object, Status> {
        let config = without_computed(&self.config.value, strip);
        let request = Request { manager: self.manager, now: &now() };
        let applied =
            self.fields.apply(stored, &config, request, self.force).map_err(|error| refused(&error))?;
        let object = if applied.changed { self.complete(applied.object)? } else { applied.object };
        self.check_repeated()?;
        let info = &self.cx.info;
        if stored.is_none() && !object.uid().is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                object.uid()
            );
            return Err(Status::conflict(self.resource.gvk.group, self.resource.plural, &info.name, &why));
        }
        check_name(&object, &info.name, &info.namespace)?;
        Ok(object)
    }

    /// Makes the merged object what the Go type would be.
    fn complete(&self, mut object: Object) -> Result<Object, Status> {
        let owners = object.metadata_mut().remove("managedFields").unwrap_or_default();
        let gvk = self.resource.gvk;
        let place = format!("{}/{}", object.namespace(), object.name());
        let checked = self.schemas.convert(self.resource.schema, object.0).map_err(|error| {
            let kind = format!("{}, Kind={}", gvk.api_version(), gvk.kind);
            without_reason(format!(
                "failed to convert new object ({place}; {kind}) to proper version: \
                 unable to convert unstructured object to {kind}: {}",
                error.0
            ))
        })?;
        let mut object = checked.object;
        object.0.insert("apiVersion".to_owned(), gvk.api_version().into());
        object.0.insert("kind".to_owned(), gvk.kind.into());
        object.set_metadata("managedFields", owners);
        Ok(object)
    }

    /// Keys that the configuration has twice: an error, or warnings. Told last, as upstream.
    fn check_repeated(&self) -> Result<(), Status> {
        let repeated = &self.config.repeated;
        if repeated.is_empty() || self.validation == FieldValidation::Ignore {
            return Ok(());
        }
        if self.validation == FieldValidation::Strict {
            return Err(Status::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
                repeated.join("\n  ")
            )));
        }
        repeated.iter().for_each(|text| self.cx.warn(text.as_str()));
        Ok(())
    }
}

/// What the client sees of an apply that was not done.
fn refused(error: &ApplyError) -> Status {
    match error {
        ApplyError::BadRequest(why) => Status::bad_request(why.as_str()),
        ApplyError::Conflict(conflicts) => {
            let status = Status::failure(StatusCode::CONFLICT, "Conflict", conflicts.message());
            conflicts.0.iter().fold(status, |status, conflict| {
                status.with_cause("FieldManagerConflict", &conflict.message(), &conflict.field())
            })
        }
        ApplyError::Failed(why) => without_reason(why.clone()),
    }
}

/// A configuration without what the server computes: whoever sends that back has not decided it, and owns none of it.
fn without_computed(config: &Value, strip: &dyn Fn(&mut Object)) -> Value {
    let Value::Object(given) = config else { return config.clone() };
    let mut stripped = Object(given.clone());
    strip(&mut stripped);
    Value::Object(common(given, &stripped.0))
}

/// What `stripped` still has of `given`; a map that has nothing left goes too.
fn common(given: &Map<String, Value>, stripped: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for (key, value) in given {
        let kept = match (value, stripped.get(key)) {
            (Value::Object(value), Some(Value::Object(left))) => {
                let kept = common(value, left);
                if kept.is_empty() && !value.is_empty() {
                    continue;
                }
                Value::Object(kept)
            }
            (Value::Array(_), Some(left @ Value::Array(_))) => left.clone(),
            (value, Some(left)) if value == left => value.clone(),
            _ => continue,
        };
        out.insert(key.clone(), kept);
    }
    out
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_apply_is_told_by_its_content_type() {
        let is = |text: &'static str| {
            is_apply(&HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(text))]))
        };
        assert!(is("application/apply-patch+yaml") && is("application/apply-patch+yaml; charset=utf-8"));
        assert!(!is("application/apply-patch+cbor") && !is("application/merge-patch+json"));
        assert!(!is_apply(&HeaderMap::new()));
    }

    #[test]
    fn what_is_computed_is_not_applied() {
        let strip = |object: &mut Object| {
            let status = object.object_mut("status");
            status.remove("all");
            status.insert("repository".to_owned(), "".into());
            if let Some(Value::Array(some)) = status.get_mut("some") {
                some.retain(|item| item != "ours");
            }
        };
        let stripped = |config: Value| without_computed(&config, &strip);
        assert_eq!(
            stripped(json!({"a": {}, "spec": {"x": null}, "status": {"all": 1, "some": ["ours", "theirs"]}})),
            json!({"a": {}, "spec": {"x": null}, "status": {"some": ["theirs"]}})
        );
        assert_eq!(stripped(json!({"status": {"all": [1]}})), json!({}));
        assert_eq!(stripped(json!({"status": {"repository": "r"}})), json!({}));
        assert_eq!(stripped(json!({"status": {}})), json!({"status": {}}));
        assert_eq!(stripped(json!(null)), json!(null));
    }
}
