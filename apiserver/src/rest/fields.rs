//! Managed fields at the endpoints of a resource: one [`FieldManager`] for the objects and one for each subresource that
//! is written, and who is noted for a write.

use std::fmt;
use std::sync::Arc;

use picoshift_machinery::Object;
use picoshift_structured_merge::{FieldManager, Request, Schema};

use super::query::{MAX_MANAGER, is_printable};
use crate::registry::metadata::now;
use crate::resource::{Resource, Verb};
use crate::schema::{Mismatch, Schemas};

/// The field managers of a resource, by subresource.
pub struct FieldManagers(Vec<(&'static str, Arc<FieldManager>)>);

impl FieldManagers {
    /// Those of `resource`, whose objects are of a type of `types`.
    ///
    /// # Errors
    /// When there is no schema of the resource.
    pub fn new(
        types: &Arc<Schema>,
        schemas: &Schemas,
        resource: &'static Resource,
    ) -> Result<Self, Mismatch> {
        let empty = schemas.empty(resource);
        let r#type =
            types.named(resource.schema).ok_or_else(|| Mismatch(format!("no type {}", resource.schema)))?;
        let writes = |verb: &Verb| matches!(verb, Verb::Create | Verb::Patch | Verb::Update);
        let written =
            resource.subresources.iter().filter(|s| s.answers.is_none() && s.verbs.iter().any(writes));
        let manager = |subresource: &'static str| {
            let manager = FieldManager::new(Arc::clone(types), r#type, empty.clone(), subresource);
            (subresource, Arc::new(manager))
        };
        Ok(Self([""].into_iter().chain(written.map(|s| s.name)).map(manager).collect()))
    }

    /// The one of a subresource; of the objects themselves, where it is empty.
    #[must_use]
    pub fn of(&self, subresource: &str) -> Option<&Arc<FieldManager>> {
        self.0.iter().find(|(name, _)| *name == subresource).map(|(_, manager)| manager)
    }
}

/// Notes one manager's writes.
#[derive(Clone)]
pub struct Tracker {
    fields: Arc<FieldManager>,
    manager: String,
}

impl Tracker {
    /// Notes the writes of `manager`.
    #[must_use]
    pub fn new(fields: Arc<FieldManager>, manager: String) -> Self {
        Self { fields, manager }
    }

    /// See [`super::WriteOptions::track`].
    pub fn track(&self, live: Option<&Object>, object: &mut Object) {
        let request = Request { manager: &self.manager, now: &now() };
        if let Err(error) = self.fields.update(live, object, request) {
            // As upstream: the write goes on, without managed fields.
            tracing::warn!(name = object.name(), error, "managed fields could not be kept");
        }
    }
}

impl fmt::Debug for Tracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker").field("manager", &self.manager).finish_non_exhaustive()
    }
}

/// The manager of a client that names none: what its `User-Agent` begins with.
#[must_use]
pub fn manager_of(user_agent: &str) -> String {
    let mut manager = String::new();
    for c in user_agent.split('/').next().unwrap_or_default().chars().filter(|c| is_printable(*c)) {
        if manager.len() + c.len_utf8() > MAX_MANAGER {
            break;
        }
        manager.push(c);
    }
    manager
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_agent_is_cut_to_a_manager() {
        assert_eq!(manager_of("kubectl/v1.34.4 (linux/amd64) kubernetes/abc"), "kubectl");
        assert_eq!(manager_of("Mozilla 5.0\u{7}\u{200b}é"), "Mozilla 5.0é");
        assert_eq!(manager_of(""), "");
        assert_eq!(manager_of(&"é".repeat(100)), "é".repeat(64));
        assert_eq!(manager_of(&format!("a{}", "é".repeat(100))), format!("a{}", "é".repeat(63)));
    }
}
