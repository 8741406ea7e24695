//! Owner references that are there twice: one is kept, and the client is told (`dedupOwnerReferencesAndAddWarning` of
//! `k8s.io/apiserver/pkg/endpoints/handlers`).

use std::collections::HashSet;

use picoshift_machinery::Object;
use serde_json::Value;

use crate::rest::RequestContext;

/// Where in the course of a write the references are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// An object as a client sent it.
    Sent,
    /// An object that admission has changed, or a patch.
    Admitted,
}

/// Takes out what is there twice, with a warning.
pub(crate) fn dedup(cx: &RequestContext, object: &mut Object, stage: Stage) {
    let repeated = repeated(object);
    if repeated.is_empty() {
        return;
    }
    let when = match stage {
        Stage::Sent => "",
        Stage::Admitted => " after mutating admission happens",
    };
    cx.warn(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and \
         may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        repeated.join(", ")
    ));
}

/// Takes out what is there twice; answers the uids.
fn repeated(object: &mut Object) -> Vec<String> {
    let metadata = object.0.get_mut("metadata").and_then(Value::as_object_mut);
    let references = metadata.and_then(|metadata| metadata.get_mut("ownerReferences"));
    let Some(Value::Array(references)) = references else { return Vec::new() };
    let mut seen = HashSet::new();
    let mut repeated = Vec::new();
    references.retain(|reference| {
        let new = seen.insert(reference.to_string());
        if !new {
            repeated.push(reference["uid"].as_str().unwrap_or_default().to_owned());
        }
        new
    });
    repeated
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use picoshift_machinery::UserInfo;
    use picoshift_machinery::request_info::RequestInfo;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_there_twice_is_told_and_taken_out() {
        let a = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "a"});
        let controller =
            json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "a", "controller": false});
        let b = json!({"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "b"});
        let with = |references: &[&Value]| {
            Object::from_value(json!({"metadata": {"ownerReferences": references}})).unwrap()
        };
        let cx = RequestContext::new(Arc::new(UserInfo::default()), RequestInfo::default());
        let mut object = with(&[&a, &b, &a, &controller, &b, &a]);
        dedup(&cx, &mut object, Stage::Sent);
        assert_eq!(object, with(&[&a, &b, &controller]));
        dedup(&cx, &mut object, Stage::Sent);
        dedup(&cx, &mut with(&[&b, &b]), Stage::Admitted);
        let rest = "; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; \
                    please fix your requests; duplicate UID(s) observed: ";
        let entries = ".metadata.ownerReferences contains duplicate entries";
        assert_eq!(
            cx.take_warnings(),
            [format!("{entries}{rest}a, b, a"), format!("{entries} after mutating admission happens{rest}b")]
        );
    }
}
