//! User ids.

use picoshift_machinery::FieldError;
use serde_json::json;

use super::Errors;
use crate::constraints::{IdRange, UserStrategy};

/// How user ids are chosen.
#[derive(Clone, Copy, Debug)]
pub(super) enum User {
    Exactly(i64),
    Within(IdRange),
    NotRoot,
    Any,
}

/// Whether the namespace has to say the range.
pub(super) fn needs_range(strategy: &UserStrategy) -> bool {
    strategy.r#type == "MustRunAsRange"
        && strategy.uid_range_min.is_none()
        && strategy.uid_range_max.is_none()
}

impl User {
    pub(super) fn new(strategy: &UserStrategy, of_namespace: Option<IdRange>) -> Result<Self, String> {
        match strategy.r#type.as_str() {
            "MustRunAs" => Ok(Self::Exactly(strategy.uid.ok_or("MustRunAs requires a UID")?)),
            "MustRunAsRange" => {
                let Some(range) = of_namespace else {
                    let min = strategy.uid_range_min.ok_or("MustRunAsRange requires a UIDRangeMin")?;
                    let max = strategy.uid_range_max.ok_or("MustRunAsRange requires a UIDRangeMax")?;
                    return Ok(Self::Within(IdRange { min, max }));
                };
                Ok(Self::Within(range))
            }
            "MustRunAsNonRoot" => Ok(Self::NotRoot),
            "RunAsAny" => Ok(Self::Any),
            unknown => Err(format!("Unrecognized RunAsUser strategy type {unknown}")),
        }
    }

    /// The id for a container that names none.
    pub(super) fn default(self) -> Option<i64> {
        match self {
            Self::Exactly(id) => Some(id),
            Self::Within(range) => Some(range.min),
            Self::NotRoot | Self::Any => None,
        }
    }

    /// Checks what holds for a container.
    pub(super) fn check(self, path: &str, non_root: Option<bool>, user: Option<i64>, errors: &mut Errors) {
        let field = format!("{path}.runAsUser");
        match (self, user) {
            (Self::Any, _) => {}
            (Self::Exactly(_) | Self::Within(_), None) => errors.push(FieldError::required(field, "")),
            (Self::Exactly(id), Some(user)) if id != user => {
                errors.push(FieldError::invalid(field, &json!(user), format!("must be: {id}")));
            }
            (Self::Within(range), Some(user)) if !range.contains(user) => {
                let detail = format!("must be in the ranges: [{}, {}]", range.min, range.max);
                errors.push(FieldError::invalid(field, &json!(user), detail));
            }
            (Self::NotRoot, _) => {
                let marker = format!("{path}.runAsNonRoot");
                match (non_root, user) {
                    (None, None) => errors.push(FieldError::required(marker, "must be true")),
                    (Some(false), _) => {
                        errors.push(FieldError::invalid(marker, &json!(false), "must be true"));
                    }
                    (_, Some(0)) => {
                        let detail = "running with the root UID is forbidden";
                        errors.push(FieldError::invalid(field, &json!(0), detail));
                    }
                    _ => {}
                }
            }
            (Self::Exactly(_) | Self::Within(_), Some(_)) => {}
        }
    }
}
