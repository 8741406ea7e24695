//! Options of a list, a watch and a deletecollection.

use picoshift_machinery::Status;
use picoshift_machinery::field_error::{FieldError, quote};
use picoshift_machinery::selector::{FieldRequirement, FieldSelector, LabelSelector, SelectorError};

use super::{Query, not_supported, revision, without_reason};
use crate::resource::Resource;
use crate::rest::options::{ListOptions, VersionMatch};

/// What the options are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing<'a> {
    /// A list or a deletecollection; a watch when the query says so.
    ByQuery {
        /// The name for which the request was authorized: that of a selector, and nothing else may be listed.
        name: Option<&'a str>,
    },
    /// A watch, whatever the query says, as a path with `/watch/` asks for it.
    Watch {
        /// The only object to watch, where the path or a selector names it.
        name: Option<&'a str>,
    },
}

/// Options of a list, a watch or a deletecollection.
///
/// # Errors
/// 400 for what cannot be read, 422 for combinations that are not allowed.
pub fn list_options(
    query: &Query<'_>,
    resource: &Resource,
    listing: Listing<'_>,
) -> Result<ListOptions, Status> {
    let (watch, name) = match listing {
        Listing::ByQuery { name: None } if query.is_empty() => return Ok(ListOptions::default()),
        Listing::ByQuery { name } => (query.switch("watch").unwrap_or_default(), name),
        Listing::Watch { name } => (true, name),
    };
    let timeout = query.integer("timeoutSeconds")?;
    let limit = query.integer("limit")?.unwrap_or_default();
    let refused = |error: SelectorError| Status::bad_request(error.0);
    let labels = LabelSelector::parse(query.first("labelSelector").unwrap_or_default()).map_err(refused)?;
    let fields = FieldSelector::parse(query.first("fieldSelector").unwrap_or_default()).map_err(refused)?;
    let send_initial_events = query.switch("sendInitialEvents");
    let version = query.text("resourceVersion");
    let version_match = query.text("resourceVersionMatch");
    let continue_token = query.text("continue");
    let sent = Sent {
        version: &version,
        version_match: &version_match,
        continue_token: &continue_token,
        send_initial_events,
    };
    let errors = if watch { sent.check_watch() } else { sent.check_list() };
    if !errors.is_empty() {
        return Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors));
    }
    check_labels(&fields, resource)?;
    let fields = with_name(fields, name)?;
    if !continue_token.is_empty() && !matches!(version.as_str(), "" | "0") && !watch {
        return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
    }
    let resource_version = revision(&version).map_err(|why| {
        // Only a list gives this error a reason.
        if watch {
            without_reason(why)
        } else {
            Status::bad_request(format!("invalid resource version: {why}"))
        }
    })?;
    Ok(ListOptions {
        labels,
        fields,
        resource_version,
        version_match: match version_match.as_str() {
            "Exact" => Some(VersionMatch::Exact),
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            _ => None,
        },
        limit: u64::try_from(limit).unwrap_or_default(),
        continue_token,
        bookmarks: query.switch("allowWatchBookmarks").unwrap_or_default(),
        send_initial_events,
        // Nothing and 0 stand for the server's own limit; less than that ends at once.
        timeout_seconds: timeout.filter(|t| *t != 0).map(|t| u64::try_from(t).unwrap_or_default()),
    })
}

/// What is checked together.
struct Sent<'a> {
    version: &'a str,
    version_match: &'a str,
    continue_token: &'a str,
    send_initial_events: Option<bool>,
}

const MATCH: &str = "resourceVersionMatch";

impl Sent<'_> {
    fn check_list(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if !self.version_match.is_empty() {
            if self.version.is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(FieldError::forbidden(MATCH, why));
            }
            self.check_continue(&mut errors);
            if !["Exact", "NotOlderThan"].contains(&self.version_match) {
                errors.push(not_supported(MATCH, quote(self.version_match), &["Exact", "NotOlderThan", ""]));
            }
            if self.version_match == "Exact" && self.version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(MATCH, why));
            }
        }
        if self.send_initial_events.is_some() {
            let why = "sendInitialEvents is forbidden for list";
            errors.push(FieldError::forbidden("sendInitialEvents", why));
        }
        errors
    }

    fn check_watch(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let initial = self.send_initial_events.is_some();
        let not_older = self.version_match == "NotOlderThan";
        if initial && !not_older {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(MATCH, why));
        }
        if !self.version_match.is_empty() {
            if !initial {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(FieldError::forbidden(MATCH, why));
            }
            if !not_older {
                errors.push(not_supported(MATCH, quote(self.version_match), &["NotOlderThan"]));
            }
        }
        // A watch from nowhere is taken to ask for the state, not older than that.
        let from_nowhere = matches!(self.version, "" | "0") && !initial;
        if !self.version_match.is_empty() || from_nowhere {
            self.check_continue(&mut errors);
        }
        errors
    }

    fn check_continue(&self, errors: &mut Vec<FieldError>) {
        if !self.continue_token.is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(MATCH, why));
        }
    }
}

/// Only some fields can be selected by.
fn check_labels(fields: &FieldSelector, resource: &Resource) -> Result<(), Status> {
    for requirement in &fields.requirements {
        let field = requirement.field.as_str();
        let known = field == "metadata.name"
            || (resource.namespaced && field == "metadata.namespace")
            || resource.field_labels.contains(&field);
        if !known {
            let known = "only \"metadata.name\", \"metadata.namespace\"";
            let why = format!("{} is not a known field selector: {known}", quote(field));
            return Err(Status::bad_request(why));
        }
    }
    Ok(())
}

/// A name in the path is the same as a field selector for it.
fn with_name(mut fields: FieldSelector, name: Option<&str>) -> Result<FieldSelector, Status> {
    let Some(name) = name else { return Ok(fields) };
    if fields.is_empty() {
        fields.requirements.push(FieldRequirement {
            field: "metadata.name".to_owned(),
            value: name.to_owned(),
            negated: false,
        });
    } else if fields.exact("metadata.name") != Some(name) {
        return Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name"));
    }
    Ok(fields)
}
