//! Whether a controller is ready, and if not, why not.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// What one controller waits for. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    /// What is missing → why.
    missing: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

impl Readiness {
    /// Nothing is missing: so it is for a controller that is not to run here.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on `part` is missing; `why` is for the operator.
    pub fn missing(&self, part: &'static str, why: impl Into<String>) {
        self.missing.lock().insert(part, why.into());
    }

    /// `part` is there.
    pub fn found(&self, part: &'static str) {
        self.missing.lock().remove(part);
    }

    /// Forgets everything that was missing.
    pub fn clear(&self) {
        self.missing.lock().clear();
    }

    /// Answers a probe.
    ///
    /// # Errors
    /// What is missing, and why.
    pub fn check(&self) -> Result<(), String> {
        let missing = self.missing.lock();
        if missing.is_empty() {
            return Ok(());
        }
        Err(missing.iter().map(|(part, why)| format!("{part}: {why}")).collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_missing() {
        let ready = Readiness::new();
        assert_eq!(ready.check(), Ok(()));
        ready.missing("namespaces", "not read yet");
        ready.missing("rolebindings", "forbidden");
        assert_eq!(ready.check(), Err("namespaces: not read yet; rolebindings: forbidden".to_owned()));
        ready.found("namespaces");
        assert_eq!(ready.check(), Err("rolebindings: forbidden".to_owned()));
        ready.clear();
        assert_eq!(ready.check(), Ok(()));
    }
}
