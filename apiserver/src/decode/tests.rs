//! Bodies and the errors about them; the texts are the real server's.

use bytes::Bytes;
use http_body_util::Full;
use picoshift_machinery::Status;
use proptest::prelude::*;

use super::{decode_delete_options, decode_object, decode_patch, read_body};
use crate::groups::route::ROUTES;
use crate::rest::options::Propagation;
use crate::schema::{FieldValidation, Schemas};

fn error(content_type: &str, body: &str) -> Status {
    let schemas = Schemas::load().unwrap();
    decode_object(&schemas, &ROUTES, Some(content_type), body.as_bytes(), FieldValidation::Strict)
        .unwrap_err()
}

#[test]
fn wrong_bodies_are_refused_in_the_servers_words() {
    for (body, message) in [
        (
            "{nojson",
            "the object provided is unrecognized (must be of type Route): couldn't get version/kind; json parse error: \
             invalid character 'n' looking for beginning of object key string ({nojson)",
        ),
        (
            "",
            "the object provided is unrecognized (must be of type Route): couldn't get version/kind; json parse error: \
             unexpected end of JSON input (<empty>)",
        ),
        (
            "[1]",
            "the object provided is unrecognized (must be of type Route): couldn't get version/kind; json parse error: \
             json: cannot unmarshal array into Go value of type struct { APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" } (5b315d)",
        ),
        (
            r#"{"kind":1}"#,
            "the object provided is unrecognized (must be of type Route): couldn't get version/kind; json parse error: \
             json: cannot unmarshal number into Go struct field .kind of type string ({\"kind\":1})",
        ),
        (
            r#"{"apiVersion":"route.openshift.io/v2","kind":"Route"}"#,
            "Route in version \"v2\" cannot be handled as a Route: no kind \"Route\" is registered for version \
             \"route.openshift.io/v2\" in scheme \"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\"",
        ),
        (
            r#"{"apiVersion":"route.openshift.io/v1","kind":"Root"}"#,
            "Root in version \"v1\" cannot be handled as a Route: no kind \"Root\" is registered for version \
             \"route.openshift.io/v1\" in scheme \"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\"",
        ),
        (
            r#"{"spec":{"to":"x"}}"#,
            "Route in version \"v1\" cannot be handled as a Route: json: cannot unmarshal string into Go struct field \
             RouteSpec.spec.to of type v1.RouteTargetReference",
        ),
        (
            r#"{"spec":{"nosuchfield":1,"nosuchfield2":{}}}"#,
            "Route in version \"v1\" cannot be handled as a Route: strict decoding error: unknown field \
             \"spec.nosuchfield\", unknown field \"spec.nosuchfield2\"",
        ),
    ] {
        let status = error("application/json", body);
        assert_eq!(
            (status.code, status.reason.as_str(), status.message.as_str()),
            (400, "BadRequest", message)
        );
    }
    for content_type in ["text/plain", "application/cbor", ";"] {
        let status = error(content_type, "{}");
        assert_eq!((status.code, status.reason.as_str()), (415, "UnsupportedMediaType"));
    }
}

#[test]
fn the_kind_is_filled_in() {
    let schemas = Schemas::load().unwrap();
    for content_type in [None, Some("application/json; charset=utf-8")] {
        let body = br#"{"spec":{"x":1}}"#;
        let found = decode_object(&schemas, &ROUTES, content_type, body, FieldValidation::Warn).unwrap();
        assert_eq!((found.object.kind(), found.object.api_version()), ("Route", "route.openshift.io/v1"));
        assert_eq!(found.warnings, ["unknown field \"spec.x\""]);
    }
}

#[test]
fn yaml_is_read() {
    let schemas = Schemas::load().unwrap();
    let body = b"apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: &m\n  name: a\n  labels:\n    n: \"1\"\nspec:\n  host: a\n  host: b\n  port:\n    targetPort: 8080\n  x: ~\n";
    let found =
        decode_object(&schemas, &ROUTES, Some("application/yaml"), body, FieldValidation::Warn).unwrap();
    assert_eq!(found.object.str_at(&["spec", "host"]), "b");
    assert_eq!(found.object.at(&["spec", "port", "targetPort"]).unwrap(), 8080);
    assert_eq!(found.warnings, ["line 9: key \"host\" already set in map", "unknown field \"spec.x\""]);
    let status = decode_object(&schemas, &ROUTES, Some("application/yaml"), body, FieldValidation::Strict)
        .unwrap_err();
    assert!(
        status
            .message
            .contains("yaml: unmarshal errors:\n  line 9: key \"host\" already set in map, unknown")
    );
}

#[test]
fn yaml_scalars_are_those_of_yaml_1_1() {
    // As sigs.k8s.io/yaml reads them.
    for (text, expected) in [
        ("yes", "true"),
        ("Off", "false"),
        ("y", "true"),
        ("010", "8"),
        ("0o10", "8"),
        ("0x1F", "31"),
        ("1_000", "1000"),
        ("1e3", "1000"),
        ("1.50", "1.5"),
        ("~", "null"),
        ("", "null"),
        ("2026-01-01", "\"2026-01-01\""),
        ("!!str 1", "\"1\""),
        ("12345678901234567890123", "1.2345678901234568e+22"),
    ] {
        let parsed = super::yaml::parse(format!("a: {text}\n").as_bytes()).ok().unwrap();
        assert_eq!(parsed.node.into_value()["a"].to_string(), expected, "{text}");
    }
    let error = super::yaml::parse(b"a: 1\nb: c: d\n").err().unwrap();
    assert_eq!(error, "yaml: line 2: mapping values are not allowed in this context");
    let error = super::yaml::parse(b"b: c: d\n").err().unwrap();
    assert_eq!(error, "yaml: mapping values are not allowed in this context");
}

#[test]
fn yaml_that_grows_is_refused() {
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (new, old) in "bcdefghi".chars().zip("abcdefgh".chars()) {
        bomb.push_str(&format!("{new}: &{new} [{}]\n", vec![format!("*{old}"); 10].join(",")));
    }
    for body in [bomb.as_str(), "a: 1\n---\nb: 2\n", "a: [", &"[".repeat(100_000), "*x"] {
        assert_eq!(error("application/yaml", body).code, 400, "{}", &body[..body.len().min(20)]);
    }
}

#[test]
fn delete_options_are_read() {
    let schemas = Schemas::load().unwrap();
    let read = |body: &str| decode_delete_options(&schemas, None, body.as_bytes());
    for api_version in ["v1", "meta.k8s.io/v1", "route.openshift.io/v1"] {
        let found = read(&format!(
            r#"{{"kind":"DeleteOptions","apiVersion":"{api_version}","propagationPolicy":"Background",
                "preconditions":{{"uid":"u"}},"dryRun":["All"],"unknown":1}}"#
        ))
        .unwrap();
        assert!(found.dry_run);
        assert_eq!(found.propagation, Some(Propagation::Background));
        assert_eq!(found.preconditions.uid.as_deref(), Some("u"));
    }
    assert_eq!(read(r#"{"propagationPolicy":"x"}"#).unwrap_err().code, 422);
    let status = read(r#"{"kind":"Foo","apiVersion":"v1"}"#).unwrap_err();
    assert_eq!(
        (status.code, status.message.as_str()),
        (500, "no kind \"Foo\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:110\"")
    );
    assert!(read(r#"{"dryRun":1}"#).unwrap_err().message.ends_with("DeleteOptions.dryRun of type []string"));
}

#[test]
fn patches_are_read() {
    let found = decode_patch(br#"{"a":{"b":1,"b":2}}"#).unwrap();
    assert_eq!(
        (found.value["a"]["b"].as_i64(), found.strict),
        (Some(2), vec!["duplicate field \"a.b\"".to_owned()])
    );
    let found = decode_patch(br#"[{"op":"add","op":"add"}]"#).unwrap();
    assert_eq!(found.strict, ["json patch duplicate field \"[0].op\""]);
    assert_eq!(decode_patch(b"{").unwrap_err().message, "error decoding patch: unexpected end of JSON input");
}

#[tokio::test]
async fn bodies_are_limited() {
    let body = |n: usize| Full::new(Bytes::from(vec![b'x'; n]));
    assert_eq!(read_body(body(10), 10).await.unwrap().len(), 10);
    let status = read_body(body(11), 10).await.unwrap_err();
    assert_eq!(
        (status.code, status.reason.as_str(), status.message.as_str()),
        (413, "RequestEntityTooLarge", "Request entity too large: limit is 10")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..60), yaml in any::<bool>()) {
        let schemas = Schemas::load().unwrap();
        let content_type = if yaml { "application/yaml" } else { "application/json" };
        let _ = decode_object(&schemas, &ROUTES, Some(content_type), &body, FieldValidation::Strict);
    }

    #[test]
    fn yaml_texts_do_not_panic(body in "[a-c:\\-&*{}\\[\\] \n\"'|>!?0-9.]{0,60}") {
        let schemas = Schemas::load().unwrap();
        let _ = decode_object(&schemas, &ROUTES, Some("application/yaml"), body.as_bytes(), FieldValidation::Warn);
    }
}

/// A body in pieces of 1,000 bytes that counts how many were taken.
struct Pieces {
    left: usize,
    taken: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl http_body::Body for Pieces {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        if self.left == 0 {
            return std::task::Poll::Ready(None);
        }
        self.left -= 1;
        self.taken.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        std::task::Poll::Ready(Some(Ok(http_body::Frame::data(vec![b' '; 1000].into()))))
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_heard_out_but_not_for_ever() {
    for (pieces, expected) in [(12, 12), (1_000_000, 41)] {
        let taken = std::sync::Arc::default();
        let body = Pieces { left: pieces, taken: std::sync::Arc::clone(&taken) };
        assert_eq!(read_body(body, 10_000).await.unwrap_err().code, 413);
        assert_eq!(taken.load(std::sync::atomic::Ordering::Relaxed), expected);
    }
}

/// Each takes three bytes in a body, and hundreds with its empty fields.
#[test]
fn a_small_body_makes_no_large_object() {
    let schemas = Schemas::load().unwrap();
    for (what, element) in [("alternateBackends", "{}"), ("alternateBackends", "null")] {
        let body = format!("{{\"spec\":{{\"{what}\":[{}]}}}}", vec![element; 60_000].join(","));
        for content_type in ["application/json", "application/yaml"] {
            let refused =
                decode_object(&schemas, &ROUTES, Some(content_type), body.as_bytes(), FieldValidation::Warn);
            let status = refused.unwrap_err();
            let message = "Route in version \"v1\" cannot be handled as a Route: json: more than 50000 objects in lists and maps";
            assert_eq!((status.code, status.message.as_str()), (400, message));
        }
    }
}
