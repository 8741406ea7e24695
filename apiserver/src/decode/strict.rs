//! [`StrictErrors`]: unknown and repeated fields of one document, with their paths, as `sigs.k8s.io/json` collects them.

use picoshift_machinery::field_error::quote;

/// Errors beyond these are not told.
const MOST: usize = 100;
/// Nor is any once so many bytes are told: one long name can be in the path of all of them.
const MOST_BYTES: usize = 1 << 20;

/// What was found, and where the search is.
#[derive(Debug, Default)]
pub(crate) struct StrictErrors {
    path: String,
    found: Vec<String>,
    /// How many were found, also those that were told already.
    count: usize,
    bytes: usize,
}

impl StrictErrors {
    /// What was found, each once.
    pub(crate) fn into_found(self) -> Vec<String> {
        self.found
    }

    /// Whether nothing more will be told.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= MOST || self.bytes >= MOST_BYTES
    }

    /// Adds `what "path.name"`.
    pub(crate) fn add(&mut self, what: &str, name: &str) {
        if self.is_full() {
            return;
        }
        let length = self.enter_name(name);
        let text = format!("{what} {}", quote(self.path.trim_start_matches('.')));
        self.leave(length);
        self.count += 1;
        self.bytes += text.len();
        if !self.found.contains(&text) {
            self.found.push(text);
        }
    }

    /// Lengthens the path by a member; answers the length to go back to.
    pub(crate) fn enter_name(&mut self, name: &str) -> usize {
        let length = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        length
    }

    /// As [`Self::enter_name`], for an item of a list.
    pub(crate) fn enter_item(&mut self, at: usize) -> usize {
        let length = self.path.len();
        self.path.push_str(&format!("[{at}]"));
        length
    }

    /// Shortens the path again.
    pub(crate) fn leave(&mut self, length: usize) {
        self.path.truncate(length);
    }
}
