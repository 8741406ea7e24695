//! Bodies in `application/vnd.kubernetes.protobuf`: an envelope that says which kind is in it, and the message.

use picoshift_machinery::protobuf::Envelope;
use picoshift_machinery::{GroupVersionKind, Status};

use super::identity::Identity;
use super::{Decoded, unrecognized};
use crate::resource::Resource;
use crate::schema::{Schemas, cannot_be_handled};

/// Decodes the body of a create or an update. Unknown fields are no errors: a message has no names to tell.
pub(super) fn object(schemas: &Schemas, resource: &Resource, body: &[u8]) -> Result<Decoded, Status> {
    let wanted = resource.gvk.kind;
    let envelope = Envelope::open(body).map_err(|error| unrecognized(wanted, &error, body))?;
    let identity = identity(&envelope, resource.object_kind());
    let refused = |why: &str| cannot_be_handled(&identity.kind, &identity.version, wanted, why);
    identity.expect(schemas, resource.object_kind())?;
    let mut object =
        schemas.from_protobuf(resource.schema, envelope.raw).map_err(|error| refused(&error.to_string()))?;
    object.0.insert("apiVersion".to_owned(), resource.object_kind().api_version().into());
    object.0.insert("kind".to_owned(), wanted.into());
    Ok(Decoded { object, warnings: Vec::new() })
}

/// What the envelope says, filled in by what the path says.
pub(super) fn identity(envelope: &Envelope<'_>, default: GroupVersionKind) -> Identity {
    let kind = if envelope.kind.is_empty() { default.kind } else { envelope.kind.as_str() };
    let (group, version) = match envelope.api_version.split('/').collect::<Vec<_>>().as_slice() {
        [version] if !version.is_empty() => ("", *version),
        [group, version] if !version.is_empty() => (*group, *version),
        // One that cannot be read counts for nothing.
        _ => (default.group, default.version),
    };
    Identity { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
}

#[cfg(test)]
mod tests {
    use picoshift_machinery::Object;
    use picoshift_machinery::protobuf::envelope;
    use serde_json::json;

    use crate::decode::{decode_delete_options, decode_object};
    use crate::groups::route::ROUTES;
    use crate::schema::{FieldValidation, Schemas};

    const PROTOBUF: Option<&str> = Some("application/vnd.kubernetes.protobuf");

    fn route(schemas: &Schemas) -> Vec<u8> {
        let route = json!({"apiVersion": "route.openshift.io/v1", "kind": "Route", "spec": {"host": "h"}});
        schemas.to_protobuf(&Object::from_value(route).unwrap()).unwrap()
    }

    #[test]
    fn objects_are_read() {
        let schemas = Schemas::load().unwrap();
        let raw = route(&schemas);
        for (version, kind) in
            [("route.openshift.io/v1", "Route"), ("", ""), ("a/b/c", "Route"), ("", "Route")]
        {
            let body = envelope(version, kind, &raw);
            let found = decode_object(&schemas, &ROUTES, PROTOBUF, &body, FieldValidation::Strict).unwrap();
            let object = found.object;
            assert_eq!((object.api_version(), object.kind()), ("route.openshift.io/v1", "Route"));
            assert_eq!(object.str_at(&["spec", "host"]), "h");
        }
    }

    #[test]
    fn errors_are_those_of_the_real_server() {
        let schemas = Schemas::load().unwrap();
        let raw = route(&schemas);
        let damaged = [&raw[..], &[0x08, 0x00]].concat();
        for (body, message) in [
            (&b""[..], "the object provided is unrecognized (must be of type Route): empty data (<empty>)"),
            (
                b"{}",
                "the object provided is unrecognized (must be of type Route): provided data does not appear to be a \
                 protobuf message, expected prefix [107 56 115 0] ({})",
            ),
            (
                b"k8s\0\x12\x09",
                "the object provided is unrecognized (must be of type Route): unexpected EOF (6b3873001209)",
            ),
            (
                &envelope("v1", "Pod", &raw),
                "Pod in version \"v1\" cannot be handled as a Route: no kind \"Pod\" is registered for version \"v1\" in \
                 scheme \"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\"",
            ),
            (
                &envelope("", "", &damaged),
                "Route in version \"v1\" cannot be handled as a Route: proto: wrong wireType = 0 for field ObjectMeta",
            ),
        ] {
            let status = decode_object(&schemas, &ROUTES, PROTOBUF, body, FieldValidation::Warn).unwrap_err();
            assert_eq!((status.code, status.message.as_str()), (400, message));
        }
    }

    #[test]
    fn delete_options_are_read() {
        let schemas = Schemas::load().unwrap();
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"], "preconditions": {"uid": "u"}});
        let raw = schemas.to_protobuf(&Object::from_value(options).unwrap()).unwrap();
        let found =
            decode_delete_options(&schemas, PROTOBUF, &envelope("v1", "DeleteOptions", &raw)).unwrap();
        assert_eq!((found.dry_run, found.preconditions.uid.as_deref()), (true, Some("u")));
        for (body, message) in [
            (
                &envelope("v1", "Foo", &raw)[..],
                "no kind \"Foo\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:110\"",
            ),
            (b"k8s\0", "empty body"),
        ] {
            let status = decode_delete_options(&schemas, PROTOBUF, body).unwrap_err();
            assert_eq!((status.code, status.message.as_str()), (500, message));
        }
    }
}
