//! Equality with the Go library and the steps of kube-apiserver's handler (`hack/fixtures/strategic` recorded them), and
//! patches by strangers.

use std::io::Read;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderValue, header};
use picoshift_machinery::{FieldError, Object, Status};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::apply;
use crate::groups::{image, project, route, user};
use crate::resource::Resource;
use crate::rest::patch::{ParsedPatch, parse};
use crate::schema::{FieldValidation, Schemas};

/// One patch, and what it makes.
#[derive(Deserialize)]
struct Recorded {
    kind: String,
    original: Object,
    patch: String,
    result: Option<Value>,
    #[serde(default)]
    unknown: Vec<String>,
    #[serde(default)]
    error: String,
    #[serde(default)]
    code: u16,
    #[serde(default)]
    printed: String,
}

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas::load().unwrap());

static RECORDED: LazyLock<Vec<Recorded>> = LazyLock::new(|| {
    let mut text = String::new();
    GzDecoder::new(&include_bytes!("testdata/patches.jsonl.gz")[..]).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
});

fn resource(kind: &str) -> &'static Resource {
    let all: [&'static Resource; 6] = [
        &route::ROUTES,
        &image::IMAGE_STREAMS,
        &image::IMAGES,
        &project::PROJECTS,
        &user::GROUPS,
        &user::USERS,
    ];
    all.into_iter().find(|resource| resource.gvk.kind == kind).unwrap()
}

fn run(
    kind: &str,
    original: &Object,
    patch: &[u8],
    validation: FieldValidation,
) -> Result<(Object, Vec<String>), Status> {
    let content_type = HeaderValue::from_static("application/strategic-merge-patch+json");
    let ParsedPatch::Strategic(patch) =
        parse(&HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]), patch)?
    else {
        panic!("another patch");
    };
    apply(&SCHEMAS, resource(kind), original, &patch, Vec::new(), validation)
}

/// The recorded objects do not say what they are.
fn untyped(mut object: Object) -> Value {
    object.0.remove("apiVersion");
    object.0.remove("kind");
    object.0.into()
}

/// The status of a recorded error.
fn status(recorded: &Recorded) -> Status {
    let text = recorded.error.clone();
    match recorded.code {
        400 => Status::bad_request(text),
        422 if recorded.printed.is_empty() => Status::router(
            http::StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            "the server rejected our request due to an error in our request",
        ),
        422 => Status::invalid("", "", "", &[FieldError::invalid_str("patch", &recorded.printed, text)]),
        _ => crate::rest::query::without_reason(text),
    }
}

#[test]
fn patches_make_what_the_go_library_makes() {
    let mut wrong = Vec::new();
    for one in &*RECORDED {
        let found = run(&one.kind, &one.original, one.patch.as_bytes(), FieldValidation::Warn);
        let expected = match &one.result {
            Some(result) => Ok((result.clone(), one.unknown.clone())),
            None => Err(status(one)),
        };
        let found = found.map(|(object, unknown)| (untyped(object), unknown));
        if found != expected {
            let (kind, original, patch) = (&one.kind, Value::Object(one.original.0.clone()), &one.patch);
            wrong.push(format!(
                "{kind}\n  {original}\n  {patch}\n  found    {found:?}\n  expected {expected:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn enough_was_recorded() {
    let all = &*RECORDED;
    let errors = all.iter().filter(|one| one.code != 0).count();
    let unknown = all.iter().filter(|one| !one.unknown.is_empty()).count();
    assert!(all.len() >= 400 && errors >= 80 && unknown >= 20, "{} {errors} {unknown}", all.len());
}

fn route_object() -> Object {
    Object::from_value(
        json!({"metadata": {"name": "r"}, "spec": {"host": "h", "to": {"kind": "Service", "name": "s"}}}),
    )
    .unwrap()
}

#[test]
fn a_patch_does_not_change_the_kind() {
    let patch = br#"{"apiVersion":"v1","kind":"Pod"}"#;
    let (object, _) = run("Route", &route_object(), patch, FieldValidation::Strict).unwrap();
    assert_eq!((object.api_version(), object.kind()), ("route.openshift.io/v1", "Route"));
}

#[test]
fn unknown_fields_are_told_as_the_client_wants() {
    let patch = br#"{"spec":{"b":1,"a":{}}}"#;
    let run = |validation| run("Route", &route_object(), patch, validation);
    assert_eq!(run(FieldValidation::Ignore).unwrap().1, Vec::<String>::new());
    assert_eq!(
        run(FieldValidation::Warn).unwrap().1,
        [r#"unknown field "spec.a""#, r#"unknown field "spec.b""#]
    );
    let status = run(FieldValidation::Strict).unwrap_err();
    assert_eq!(
        (status.code, status.message.as_str()),
        (
            422,
            " \"\" is invalid: patch: Invalid value: \"map[spec:map[a:map[] b:1]]\": strict decoding error: unknown field \
             \"spec.a\", unknown field \"spec.b\""
        )
    );
}

#[test]
fn a_small_patch_does_not_keep_the_server_busy() {
    let names: Vec<String> = (0..30_000).map(|n| format!("x/{n}")).collect();
    let original = Object::from_value(json!({"metadata": {"finalizers": names}})).unwrap();
    let patch = br#"{"metadata":{"finalizers":["y"]}}"#;
    let status = run("Route", &original, patch, FieldValidation::Warn).unwrap_err();
    assert_eq!((status.code, status.reason.as_str()), (413, "RequestEntityTooLarge"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever a patch says, it is applied or refused, and what it makes is what the schema says: another merge with
    /// nothing changes nothing.
    #[test]
    fn any_patch_is_applied_or_refused(
        which in any::<prop::sample::Index>(),
        key in prop_oneof![Just("$patch"), Just("$retainKeys"), Just("$setElementOrder/tags"), Just("$deleteFromPrimitiveList/tags"), Just("tags"), Just("name")],
        value in prop_oneof![Just(json!("replace")), Just(json!("delete")), Just(json!(["a"])), Just(json!([{"name": "a"}, {"name": "b", "$patch": "delete"}])), Just(json!(null)), Just(json!(1.5))],
        inside in any::<bool>(),
    ) {
        let one = &RECORDED[which.index(RECORDED.len())];
        let mut patch: Value = serde_json::from_str(&one.patch).unwrap_or_default();
        let at = if inside { patch.get_mut("spec") } else { Some(&mut patch) };
        if let Some(map) = at.and_then(Value::as_object_mut) {
            map.insert(key.to_owned(), value);
        }
        let patch = patch.to_string();
        if let Ok((object, _)) = run(&one.kind, &one.original, patch.as_bytes(), FieldValidation::Warn) {
            let again = run(&one.kind, &object, b"{}", FieldValidation::Strict).unwrap();
            prop_assert_eq!(again.0, object);
        }
    }
}
