//! `DeleteOptions` in the body of a delete.

use picoshift_machinery::protobuf::Envelope;
use picoshift_machinery::{GroupVersionKind, Object, Status};
use serde_json::Value;

use super::identity::Identity;
use super::{Encoding, encoding, parse, protobuf};
use crate::rest::options::{DeleteOptions, Preconditions};
use crate::rest::query::delete::{RawDeleteOptions, validate};
use crate::rest::query::without_reason;
use crate::schema::Schemas;

const SCHEMA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const GVK: GroupVersionKind = GroupVersionKind { group: "", version: "v1", kind: "DeleteOptions" };
/// The name that the registry of meta types has in errors.
const SCHEME: &str = "pkg/runtime/scheme.go:110";

/// Decodes the body of a delete or a deletecollection; an empty body is not for this function: then the query counts
/// (`rest::query::delete`).
///
/// # Errors
/// 415 for a content type that is not read; 422 for options that are not valid; the codec's error as 500, as
/// kube-apiserver, when the body is no `DeleteOptions`.
pub fn decode_delete_options(
    schemas: &Schemas,
    content_type: Option<&str>,
    body: &[u8],
) -> Result<DeleteOptions, Status> {
    let object = match encoding(content_type)? {
        Encoding::Protobuf => {
            let envelope = Envelope::open(body).map_err(|error| without_reason(error.to_string()))?;
            check(&protobuf::identity(&envelope, GVK))?;
            let decoded = schemas.from_protobuf(SCHEMA, envelope.raw);
            decoded.map_err(|error| without_reason(error.to_string()))?
        }
        encoding => {
            let parsed = parse(encoding, body).map_err(without_reason)?;
            check(&Identity::of(&parsed.node).map_err(without_reason)?.or(GVK))?;
            let decoded = schemas.decode_as(SCHEMA, parsed.node, false);
            decoded.map_err(|error| without_reason(error.0))?.object
        }
    };
    validate(from_object(&object))
}

/// The real decoder takes the options of every group.
fn check(identity: &Identity) -> Result<(), Status> {
    if identity.kind == GVK.kind { Ok(()) } else { Err(without_reason(identity.not_registered(SCHEME))) }
}

fn from_object(object: &Object) -> RawDeleteOptions {
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).map(str::to_owned);
    RawDeleteOptions {
        dry_run: object
            .at(&["dryRun"])
            .and_then(Value::as_array)
            .map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default(),
        preconditions: Preconditions {
            uid: text(&["preconditions", "uid"]),
            resource_version: text(&["preconditions", "resourceVersion"]),
        },
        grace_period_seconds: object.at(&["gracePeriodSeconds"]).and_then(Value::as_i64),
        orphan_dependents: object.at(&["orphanDependents"]).and_then(Value::as_bool),
        propagation_policy: text(&["propagationPolicy"]),
    }
}
