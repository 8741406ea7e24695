//! A failure that a person can act on: what went wrong, and what to do about it.

use std::fmt;

/// What went wrong and its remedy; `main` prints the two apart.
#[derive(Debug)]
pub(crate) struct Failure {
    reason: String,
    remedy: String,
}

impl Failure {
    /// A failure with its remedy.
    pub(crate) fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: remedy.into() }
    }

    /// What to do about it.
    pub(crate) fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Failure {}
