//! Options of a delete, from the query or from a body.

use picoshift_machinery::Status;
use picoshift_machinery::field_error::{FieldError, quote};

use super::{Query, dry_run, not_supported};
use crate::rest::options::{DeleteOptions, Preconditions, Propagation};

/// Options as they were sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RawDeleteOptions {
    pub(crate) dry_run: Vec<String>,
    pub(crate) preconditions: Preconditions,
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) propagation_policy: Option<String>,
}

/// Options of a delete without a body.
///
/// # Errors
/// 400 for a number that is none; 422 for a value that is not allowed.
pub fn delete_options(query: &Query<'_>) -> Result<DeleteOptions, Status> {
    validate(RawDeleteOptions {
        dry_run: query.all("dryRun").map(str::to_owned).collect(),
        preconditions: Preconditions {
            uid: query.first("uid").filter(|uid| !uid.is_empty()).map(str::to_owned),
            resource_version: query
                .first("resourceVersion")
                .filter(|version| !version.is_empty())
                .map(str::to_owned),
        },
        grace_period_seconds: query.integer("gracePeriodSeconds")?,
        orphan_dependents: query.switch("orphanDependents"),
        propagation_policy: query.first("propagationPolicy").map(str::to_owned),
    })
}

/// Checks options.
///
/// # Errors
/// 422.
pub(crate) fn validate(raw: RawDeleteOptions) -> Result<DeleteOptions, Status> {
    let mut errors = Vec::new();
    if let (Some(_), Some(policy)) = (raw.orphan_dependents, &raw.propagation_policy) {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid_str("propagationPolicy", policy, detail));
    }
    let policy = raw.propagation_policy.as_deref().and_then(|policy| match policy {
        "Background" => Some(Propagation::Background),
        "Foreground" => Some(Propagation::Foreground),
        "Orphan" => Some(Propagation::Orphan),
        other => {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(not_supported("propagationPolicy", quote(other), &supported));
            None
        }
    });
    let dry_run = dry_run(&raw.dry_run, &mut errors);
    if !errors.is_empty() {
        return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &errors));
    }
    let orphan = raw.orphan_dependents.map(|orphan| match orphan {
        true => Propagation::Orphan,
        false => Propagation::Background,
    });
    Ok(DeleteOptions {
        dry_run,
        preconditions: raw.preconditions,
        grace_period_seconds: raw.grace_period_seconds,
        propagation: policy.or(orphan),
    })
}
