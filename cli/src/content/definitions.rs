//! The CustomResourceDefinitions that the build put together.

use std::io::Read as _;

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Value, json};

use super::version::OpenShiftVersion;

/// What cli/build wrote: two lines for each, what is to be known of it and itself.
static ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/crds.gz"));

/// A definition.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Definition {
    pub(crate) name: String,
    from: Option<String>,
    until: Option<String>,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) versions: Vec<String>,
    /// Whether its objects have a status of their own.
    pub(crate) has_status: bool,
    /// Whether kube-apiserver serves it.
    #[serde(skip, default = "served")]
    pub(crate) served: bool,
    #[serde(skip)]
    json: String,
}

fn served() -> bool {
    true
}

impl Definition {
    /// Its group and kind.
    pub(crate) fn key(&self) -> (&str, &str) {
        (&self.group, &self.kind)
    }

    /// The object.
    pub(crate) fn object(&self) -> Result<Value> {
        let mut object: Value =
            serde_json::from_str(&self.json).context("the build's definitions are damaged")?;
        if !self.served {
            for version in object["spec"]["versions"].as_array_mut().into_iter().flatten() {
                version["served"] = json!(false);
            }
        }
        Ok(object)
    }
}

/// The definitions that a version of OpenShift has.
pub(crate) fn of(version: OpenShiftVersion) -> Result<Vec<Definition>> {
    let mut text = String::new();
    GzDecoder::new(ARCHIVE).read_to_string(&mut text).context("the build's definitions are damaged")?;
    let mut lines = text.lines();
    let mut definitions = Vec::new();
    while let (Some(about), Some(json)) = (lines.next(), lines.next()) {
        let mut definition: Definition = serde_json::from_str(about)?;
        if version.is_within(definition.from.as_deref(), definition.until.as_deref()) {
            json.clone_into(&mut definition.json);
            definitions.push(definition);
        }
    }
    Ok(definitions)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(version: &str) -> BTreeSet<String> {
        of(version.parse().unwrap()).unwrap().into_iter().map(|definition| definition.name).collect()
    }

    #[test]
    fn every_definition_is_whole_and_ours() {
        for definition in of(OpenShiftVersion::newest()).unwrap() {
            let object = definition.object().unwrap();
            assert_eq!(object["metadata"]["name"], definition.name);
            assert_eq!(definition.name, format!("{}.{}", definition.plural, definition.group));
            assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/managed-by"], "picoshift");
            assert!(object["status"].is_null() && object["metadata"]["creationTimestamp"].is_null());
            let versions = object["spec"]["versions"].as_array().unwrap();
            assert!(versions.iter().any(|version| version["served"] == true), "{}", definition.name);
            // Kubernetes' own groups take nothing that nobody approved.
            let group = &definition.group;
            if group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io") {
                let approved = &object["metadata"]["annotations"]["api-approved.kubernetes.io"];
                assert!(approved.is_string(), "{}", definition.name);
            }
        }
    }

    #[test]
    fn versions_have_what_they_had() {
        let [oldest, older, newer, newest] = ["4.16", "4.18", "4.19", "4.21"].map(names);
        assert!(
            oldest.len() > 80
                && oldest.is_subset(&older)
                && older.is_subset(&newer)
                && newer.is_subset(&newest)
        );
        let gateways = "gateways.gateway.networking.k8s.io".to_owned();
        assert!(!older.contains(&gateways) && newer.contains(&gateways));
        assert!(
            older.contains("olms.operator.openshift.io") && !oldest.contains("olms.operator.openshift.io")
        );
        assert!(newest.contains("imagepolicies.config.openshift.io"));
    }

    #[test]
    fn one_that_our_server_answers_for_is_not_served() {
        let mut definitions = of(OpenShiftVersion::newest()).unwrap();
        let one = definitions.iter_mut().find(|one| one.group == "security.openshift.io").unwrap();
        one.served = false;
        let versions = one.object().unwrap()["spec"]["versions"].clone();
        assert!(versions.as_array().unwrap().iter().all(|version| version["served"] == false));
    }

    /// The group's Go types, which our API server is built from, and its definitions belong together.
    #[test]
    fn one_version_of_the_api_is_pinned() {
        let modules = include_str!("../../../hack/schemas/go.mod");
        let definitions = of(OpenShiftVersion::newest()).unwrap();
        let oauths = definitions.iter().find(|one| one.name == "oauths.config.openshift.io").unwrap();
        let source = oauths.object().unwrap()["metadata"]["annotations"]["picoshift.io/source"].clone();
        assert!(modules.contains(&source.as_str().unwrap().replace('@', " ")), "{source}");
    }
}
