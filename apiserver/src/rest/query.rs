//! Query parameters → options, with kube-apiserver's errors.

pub mod delete;
pub mod list;
pub mod write;

use std::borrow::Cow;

use http::StatusCode;
use picoshift_machinery::field_error::{FieldError, FieldErrorKind, quote};
use picoshift_machinery::query::pairs;
use picoshift_machinery::{Object, Status};

use super::options::GetOptions;
use crate::store::Revision;

pub use delete::delete_options;
pub use list::{Listing, list_options};
pub(crate) use write::{MAX_MANAGER, check_manager, is_printable};
pub use write::{WriteKind, WriteParameters, write_options};

/// The parameters of a URL, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    /// Reads the part of a URL behind `?`. What cannot be decoded is left out, as in Go.
    #[must_use]
    pub fn parse(text: Option<&'a str>) -> Self {
        Self(pairs(text).collect())
    }

    /// The first value of a parameter.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_ref())
    }

    /// All values of a parameter.
    pub fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_ref())
    }

    /// Whether there are no parameters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A text, empty where there is none.
    fn text(&self, name: &str) -> String {
        self.first(name).unwrap_or_default().to_owned()
    }

    /// A switch: only `0` and `false` are false.
    fn switch(&self, name: &str) -> Option<bool> {
        self.first(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A number.
    fn integer(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(text) = self.first(name) else { return Ok(None) };
        match parse_integer(text) {
            Ok(number) => Ok(Some(number)),
            Err(why) => Err(Status::bad_request(format!("strconv.ParseInt: parsing {}: {why}", quote(text)))),
        }
    }
}

fn parse_integer(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|error: std::num::ParseIntError| reason(&error))
}

fn reason(error: &std::num::ParseIntError) -> &'static str {
    match error.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    }
}

/// A `resourceVersion` of a query: `None` for an empty one. The error is the text of the real server's storage.
pub(super) fn revision(text: &str) -> Result<Option<Revision>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    parse_revision(text)
        .map(Some)
        .map_err(|why| FieldError::invalid_str("resourceVersion", text, why).to_string())
}

/// A `resourceVersion`. The error is Go's text.
pub(crate) fn parse_revision(text: &str) -> Result<Revision, String> {
    // Go's ParseUint takes no sign.
    let parsed =
        if text.starts_with('+') { Err("invalid syntax") } else { text.parse().map_err(|e| reason(&e)) };
    parsed.map_err(|why| format!("strconv.ParseUint: parsing {}: {why}", quote(text)))
}

/// An error to which the real server gives no reason, and so the code 500.
pub(crate) fn without_reason(message: String) -> Status {
    Status::failure(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}

/// Options of a get.
///
/// # Errors
/// When `resourceVersion` is no number.
pub fn get_options(query: &Query<'_>) -> Result<GetOptions, Status> {
    if query.switch("export") == Some(true) {
        let why = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(Status::bad_request(why));
    }
    let resource_version = revision(&query.text("resourceVersion")).map_err(without_reason)?;
    Ok(GetOptions { resource_version })
}

/// `includeObject` of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Rows carry the object's metadata.
    #[default]
    Metadata,
    /// Rows carry no object.
    None,
    /// Rows carry the whole object.
    Object,
}

/// Options of a table.
///
/// # Errors
/// 400 for an unknown `includeObject`.
pub fn table_options(query: &Query<'_>) -> Result<IncludeObject, Status> {
    match query.first("includeObject").unwrap_or_default() {
        "" | "Metadata" => Ok(IncludeObject::Metadata),
        "None" => Ok(IncludeObject::None),
        "Object" => Ok(IncludeObject::Object),
        other => {
            let detail = "must be 'Metadata', 'Object', 'None', or empty";
            let error = FieldError::invalid_str("includeObject", other, detail);
            Err(Status::bad_request(format!("Unable to convert to Table as requested: {error}")))
        }
    }
}

/// Whether an answer is indented: by `pretty`, else for clients that people use.
#[must_use]
pub fn pretty(query: &Query<'_>, user_agent: Option<&str>) -> bool {
    match query.first("pretty").filter(|value| !value.is_empty()) {
        Some(value) => matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        None => user_agent
            .is_some_and(|agent| ["curl", "Wget", "Mozilla/5.0"].iter().any(|p| agent.starts_with(p))),
    }
}

/// A value out of a closed set, in the order that is given.
fn not_supported(field: &str, shown: String, supported: &[&str]) -> FieldError {
    let list = supported.iter().map(|s| quote(s)).collect::<Vec<_>>().join(", ");
    FieldError::new(FieldErrorKind::NotSupported, field, Some(shown), format!("supported values: {list}"))
}

/// `dryRun`: `All` or nothing.
fn dry_run(values: &[String], errors: &mut Vec<FieldError>) -> bool {
    if values.iter().any(|value| value != "All") {
        let shown = serde_json::Value::from(values).to_string();
        errors.push(not_supported("dryRun", shown, &["All"]));
    }
    !values.is_empty()
}

/// The name that an object must have, from a URL: checks a body against it.
///
/// # Errors
/// 400 when name or namespace differ.
pub fn check_name(object: &Object, name: &str, namespace: &str) -> Result<(), Status> {
    let found = object.name();
    if found.is_empty() {
        let why = "name must be provided";
        return Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: {why}"
        )));
    }
    if found != name {
        let why = format!("the name of the object ({found}) does not match the name on the URL ({name})");
        return Err(Status::bad_request(why));
    }
    let found = object.namespace();
    if !namespace.is_empty() && !found.is_empty() && found != namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(why));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
