//! Groups: the one that owns volumes, and supplemental ones.

use picoshift_machinery::FieldError;
use serde_json::Value;

use super::Errors;
use crate::constraints::{GroupStrategy, IdRange};

/// How groups are chosen: from some ranges, or any.
#[derive(Debug)]
pub(super) struct Groups {
    field: &'static str,
    /// Never empty where there are any.
    ranges: Option<Vec<IdRange>>,
}

/// Whether the namespace has to say the ranges.
pub(super) fn needs_ranges(strategy: &GroupStrategy) -> bool {
    strategy.r#type == "MustRunAs" && strategy.ranges.is_empty()
}

impl Groups {
    pub(super) fn new(
        what: &str,
        field: &'static str,
        strategy: &str,
        ranges: Vec<IdRange>,
    ) -> Result<Self, String> {
        match strategy {
            "MustRunAs" if ranges.is_empty() => Err("ranges must be supplied for MustRunAs".to_owned()),
            "MustRunAs" => Ok(Self { field, ranges: Some(ranges) }),
            "RunAsAny" => Ok(Self { field, ranges: None }),
            unknown => Err(format!("Unrecognized {what} strategy type {unknown}")),
        }
    }

    /// The group for a pod that names none.
    pub(super) fn default(&self) -> Option<i64> {
        self.ranges.as_ref()?.first().map(|range| range.min)
    }

    /// Checks a pod's groups, which the message shows as `shown`.
    pub(super) fn check(&self, path: &str, groups: &[i64], shown: &Value, errors: &mut Errors) {
        let Some(ranges) = &self.ranges else { return };
        let field = format!("{path}.{}", self.field);
        if groups.is_empty() {
            let detail = "unable to validate empty groups against required ranges";
            errors.push(FieldError::invalid(field.as_str(), shown, detail));
        }
        for group in groups {
            if !ranges.iter().any(|range| range.contains(*group)) {
                let detail = format!("{group} is not an allowed group");
                errors.push(FieldError::invalid(field.as_str(), shown, detail));
            }
            if errors.are_full() {
                return;
            }
        }
    }
}
