//! What a namespace says about its ids and labels: annotations that the namespace controller sets.

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

use crate::constraints::IdRange;
use crate::scan::{self, Block, ScanError};

/// The namespace's user ids.
pub const UID_RANGE: &str = "openshift.io/sa.scc.uid-range";
/// The namespace's groups; without it, its user ids are.
pub const SUPPLEMENTAL_GROUPS: &str = "openshift.io/sa.scc.supplemental-groups";
/// The namespace's SELinux level.
pub const MCS: &str = "openshift.io/sa.scc.mcs";

/// A namespace, as far as SCCs look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// Why an annotation is of no use.
#[derive(Debug, Error)]
pub(crate) enum AnnotationError {
    #[error("unable to find annotation {0}")]
    Missing(&'static str),
    #[error("found annotation {0} but it was empty")]
    Empty(&'static str),
    #[error("unable to find supplemental group or uid annotation for namespace {0}")]
    NoGroups(String),
    #[error("unable to find groups using {SUPPLEMENTAL_GROUPS} and {UID_RANGE} annotations")]
    EmptyGroups,
    #[error(transparent)]
    Unreadable(#[from] ScanError),
}

impl Namespace {
    /// Reads an object.
    #[must_use]
    pub fn from_value(object: &Value) -> Self {
        let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
        Self {
            name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            annotations: annotations
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
        }
    }

    /// Which annotation is missing without which no pod is judged; the namespace controller will set it.
    #[must_use]
    pub fn missing_annotation(&self) -> Option<&'static str> {
        [UID_RANGE, MCS].into_iter().find(|key| !self.annotations.contains_key(*key))
    }

    pub(crate) fn uid_range(&self) -> Result<IdRange, AnnotationError> {
        Ok(whole(scan::block(self.annotation(UID_RANGE)?)?))
    }

    pub(crate) fn level(&self) -> Result<&str, AnnotationError> {
        self.annotation(MCS)
    }

    /// The first group of the first block alone.
    pub(crate) fn fs_group(&self) -> Result<Vec<IdRange>, AnnotationError> {
        let first = self.group_blocks()?.into_iter().next();
        Ok(first
            .map(|block| IdRange { min: block.start.into(), max: block.start.into() })
            .into_iter()
            .collect())
    }

    pub(crate) fn supplemental_groups(&self) -> Result<Vec<IdRange>, AnnotationError> {
        Ok(self.group_blocks()?.into_iter().map(whole).collect())
    }

    fn group_blocks(&self) -> Result<Vec<Block>, AnnotationError> {
        let groups = self.annotations.get(SUPPLEMENTAL_GROUPS).or_else(|| self.annotations.get(UID_RANGE));
        let groups = groups.ok_or_else(|| AnnotationError::NoGroups(self.name.clone()))?;
        if groups.is_empty() {
            return Err(AnnotationError::EmptyGroups);
        }
        Ok(groups.split(',').map(scan::block).collect::<Result<_, _>>()?)
    }

    fn annotation(&self, key: &'static str) -> Result<&str, AnnotationError> {
        match self.annotations.get(key).map(String::as_str) {
            None => Err(AnnotationError::Missing(key)),
            Some("") => Err(AnnotationError::Empty(key)),
            Some(value) => Ok(value),
        }
    }
}

fn whole(block: Block) -> IdRange {
    IdRange { min: block.start.into(), max: block.end.into() }
}
