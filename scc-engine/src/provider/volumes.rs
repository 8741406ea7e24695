//! Kinds of volumes.

use picoshift_machinery::FieldError;
use serde_json::{Map, Value};

use super::Errors;
use crate::constraints::Scc;

/// The field of a volume's source beside the name that SCCs have for it, in the order in which they are looked for.
pub(crate) const KINDS: [(&str, &str); 30] = [
    ("hostPath", "hostPath"),
    ("emptyDir", "emptyDir"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("gitRepo", "gitRepo"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("flexVolume", "flexVolume"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("flocker", "flocker"),
    ("downwardAPI", "downwardAPI"),
    ("fc", "fc"),
    ("azureFile", "azureFile"),
    ("configMap", "configMap"),
    ("vsphereVolume", "vsphere"),
    ("quobyte", "quobyte"),
    ("azureDisk", "azureDisk"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("projected", "projected"),
    ("portworxVolume", "portworxVolume"),
    ("scaleIO", "scaleIO"),
    ("storageos", "storageOS"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

type Volume = Map<String, Value>;

pub(super) fn check(scc: &Scc, volumes: &[Volume], path: &str, errors: &mut Errors) {
    if !scc.allows_volume("*") {
        for (index, volume) in volumes.iter().enumerate() {
            let kind = kind(volume);
            if kind.is_some_and(|kind| allows(scc, kind, volume)) {
                continue;
            }
            let detail = match kind {
                Some(kind) => format!("{kind} volumes are not allowed to be used"),
                // Upstream prints its struct here. No pod comes so far: a volume without a source is an emptyDir.
                None => "unknown volume type for volume".to_owned(),
            };
            let field = format!("spec.volumes[{index}]");
            errors.push(FieldError::invalid_str(field, kind.unwrap_or_default(), detail));
        }
    }
    if !scc.allowed_flex_volumes.is_empty() && scc.allows_volume("flexVolume") {
        check_drivers(scc, volumes, path, errors);
    }
}

fn check_drivers(scc: &Scc, volumes: &[Volume], path: &str, errors: &mut Errors) {
    for (index, volume) in volumes.iter().enumerate() {
        let Some(flex) = source(volume, "flexVolume") else { continue };
        let driver = flex["driver"].as_str().unwrap_or_default();
        if !scc.allowed_flex_volumes.iter().any(|allowed| allowed.driver == driver) {
            let field = format!("{path}.volumes[{index}].driver");
            errors.push(FieldError::invalid_str(
                field,
                driver,
                "Flexvolume driver is not allowed to be used",
            ));
        }
    }
}

fn source<'a>(volume: &'a Volume, field: &str) -> Option<&'a Value> {
    volume.get(field).filter(|source| !source.is_null())
}

/// A volume's kind. One with no source at all is an `emptyDir`: kube-apiserver's defaults make it one.
fn kind(volume: &Volume) -> Option<&'static str> {
    let found = KINDS.iter().find(|(field, _)| source(volume, field).is_some()).map(|(_, kind)| *kind);
    let bare = volume.iter().all(|(field, value)| field == "name" || value.is_null());
    found.or(bare.then_some("emptyDir"))
}

fn allows(scc: &Scc, kind: &str, volume: &Volume) -> bool {
    // Who may use Secrets may use the token that every pod gets.
    scc.allows_volume(kind)
        || (kind == "projected"
            && scc.allows_volume("secret")
            && volume.get("projected").is_some_and(is_service_account_token))
}

/// Whether a projected volume is what the service account admission adds to each pod, and no more.
fn is_service_account_token(projected: &Value) -> bool {
    projected["sources"].as_array().into_iter().flatten().all(|source| {
        let [token, map, downward] =
            ["serviceAccountToken", "configMap", "downwardAPI"].map(|field| &source[field]);
        if token.is_null() && map.is_null() && downward.is_null() {
            return false;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let token_fits = token.is_null() || (token["path"] == "token" && text(&token["audience"]).is_empty());
        let field_fits = |item: &Value| {
            let field = &item["fieldRef"];
            item["path"] == "namespace"
                && field["apiVersion"] == "v1"
                && field["fieldPath"] == "metadata.namespace"
        };
        let downward_fits = downward["items"].as_array().into_iter().flatten().all(field_fits);
        token_fits && (map.is_null() || is_authority(map)) && downward_fits
    })
}

/// Whether it is one of the two ConfigMaps with the cluster's authorities.
fn is_authority(map: &Value) -> bool {
    let key = match map["name"].as_str() {
        Some("kube-root-ca.crt") => "ca.crt",
        Some("openshift-service-ca.crt") => "service-ca.crt",
        _ => return false,
    };
    match map["items"].as_array().map(Vec::as_slice) {
        Some([item]) => item["key"] == key && item["path"] == key,
        _ => false,
    }
}
