//! What SCCs and ranges decide for themselves as stored resources, and the SCCs as the reviews need them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::RwLock;
use picoshift_machinery::{FieldError, Object, Status};
use picoshift_scc_engine::{Scc, defaults, validation};
use serde_json::{Map, Value};

use super::columns::{self, RANGE_ALLOCATIONS, SECURITY_CONTEXT_CONSTRAINTS};
use crate::registry::strategy::{Planned, Strategy};
use crate::resource::Resource;
use crate::rest::RequestContext;
use crate::store::Revision;

/// A stored SCC, and what a reference to it says.
#[derive(Clone, Debug)]
pub(super) struct StoredScc {
    pub(super) scc: Scc,
    pub(super) uid: String,
    pub(super) revision: Revision,
}

/// The SCCs by name, as they are stored now.
#[derive(Debug, Default)]
pub(super) struct StoredSccs(RwLock<BTreeMap<String, Arc<StoredScc>>>);

impl StoredSccs {
    pub(super) fn all(&self) -> Vec<Arc<StoredScc>> {
        self.0.read().values().cloned().collect()
    }
}

/// The strategy of `securitycontextconstraints`.
pub(super) struct SecurityContextConstraints(pub(super) Arc<StoredSccs>);

#[async_trait]
impl Strategy for SecurityContextConstraints {
    fn resource(&self) -> &'static Resource {
        &SECURITY_CONTEXT_CONSTRAINTS
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        columns::scc_row(object)
    }

    fn set_defaults(&self, object: &mut Object) {
        defaults::complete(&mut object.0);
    }

    /// There is no `spec`: everything but the metadata counts.
    fn generation_changed(&self, object: &Object, old: &Object) -> bool {
        let content = |object: &Object| -> Map<String, Value> {
            object
                .0
                .iter()
                .filter(|(field, _)| *field != "metadata")
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect()
        };
        content(object) != content(old)
    }

    async fn validate_create(
        &self,
        _cx: &RequestContext,
        object: &mut Object,
    ) -> Result<Vec<FieldError>, Status> {
        validate(object)
    }

    async fn validate_update(
        &self,
        _cx: &RequestContext,
        _subresource: &str,
        object: &mut Object,
        _old: &Object,
    ) -> Result<Vec<FieldError>, Status> {
        validate(object)
    }

    fn committed(&self, write: Planned<'_>, revision: Revision) {
        let old = write.old.map(|stored| &stored.object);
        let Some(name) = write.new.or(old).map(Object::name) else { return };
        let mut all = self.0.0.write();
        match write.new.map(|object| (read(object), object)) {
            Some((Ok(scc), object)) => {
                let uid = object.uid().to_owned();
                all.insert(name.to_owned(), Arc::new(StoredScc { scc, uid, revision }));
            }
            Some((Err(error), _)) => {
                all.remove(name);
                tracing::error!(scc = name, %error, "a stored SCC cannot be read and admits nothing");
            }
            None => drop(all.remove(name)),
        }
    }
}

fn read(object: &Object) -> Result<Scc, serde_json::Error> {
    Scc::from_value(&Value::Object(object.0.clone()))
}

fn validate(object: &Object) -> Result<Vec<FieldError>, Status> {
    // The schema was held against it before: what it cannot be read for is ours.
    Ok(validation::validate(&read(object).map_err(Status::internal)?))
}

/// The strategy of `rangeallocations`.
pub(super) struct RangeAllocations;

#[async_trait]
impl Strategy for RangeAllocations {
    fn resource(&self) -> &'static Resource {
        &RANGE_ALLOCATIONS
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        columns::range_row(object)
    }

    fn generation_changed(&self, _object: &Object, _old: &Object) -> bool {
        false
    }
}
