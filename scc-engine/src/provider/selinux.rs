//! SELinux labels.

use picoshift_machinery::FieldError;

use super::Errors;
use crate::constraints::{SeLinuxOptions, SeLinuxStrategy};

/// How labels are chosen: the one that must be, or any.
#[derive(Debug)]
pub(super) struct SeLinux(Option<SeLinuxOptions>);

/// Whether the namespace has to say the level.
pub(super) fn needs_level(strategy: &SeLinuxStrategy) -> bool {
    strategy.r#type == "MustRunAs"
        && strategy.se_linux_options.as_ref().is_none_or(|options| options.level.is_empty())
}

impl SeLinux {
    pub(super) fn new(strategy: &SeLinuxStrategy, level: Option<&str>) -> Result<Self, String> {
        match strategy.r#type.as_str() {
            "MustRunAs" => {
                let mut options = strategy.se_linux_options.clone().unwrap_or_default();
                if let Some(level) = level {
                    level.clone_into(&mut options.level);
                }
                Ok(Self(Some(options)))
            }
            "RunAsAny" => Ok(Self(None)),
            unknown => Err(format!("Unrecognized SELinuxContext strategy type {unknown}")),
        }
    }

    /// The label for a pod that names none.
    pub(super) fn default(&self) -> Option<SeLinuxOptions> {
        self.0.clone()
    }

    /// Checks the label that holds. `path` is that of the label.
    pub(super) fn check(&self, path: &str, options: Option<&SeLinuxOptions>, errors: &mut Errors) {
        let Some(expected) = &self.0 else { return };
        let Some(options) = options else {
            errors.push(FieldError::required(path, ""));
            return;
        };
        if !same_level(&expected.level, &options.level) {
            errors.push(differs(path, "level", &options.level, &expected.level));
        }
        for (field, actual, expected) in [
            ("role", &options.role, &expected.role),
            ("type", &options.r#type, &expected.r#type),
            ("user", &options.user, &expected.user),
        ] {
            if actual != expected {
                errors.push(differs(path, field, actual, expected));
            }
        }
    }
}

fn differs(path: &str, field: &str, actual: &str, expected: &str) -> FieldError {
    FieldError::invalid_str(format!("{path}.{field}"), actual, format!("must be {expected}"))
}

/// Whether two levels are one: `s0:c6,c0` is `s0:c0,c6`.
fn same_level(one: &str, other: &str) -> bool {
    let sorted = |level: &str| {
        let (sensitivity, categories) = level.split_once(':')?;
        let mut categories: Vec<String> = categories.split(',').map(str::to_owned).collect();
        categories.sort_unstable();
        Some((sensitivity.to_owned(), categories))
    };
    one == other || sorted(one).is_some_and(|sorted_one| sorted(other) == Some(sorted_one))
}
