//! What strangers send, one function for each kind of it: the targets in `fuzz/` and the property tests below call the
//! same. In: anything. Out: nothing; a panic, endless work or a broken promise is the finding.

use std::sync::{Arc, LazyLock};

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use picoshift_machinery::media_type::{self, Answer};
use picoshift_machinery::peer::Subject;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::selector::{FieldSelector, LabelSelector};
use picoshift_machinery::{Object, protobuf};
use picoshift_structured_merge::{FieldManager, FieldSet, Request};

use crate::authn::request_header::named_user;
use crate::decode;
use crate::groups::image::reference::Reference;
use crate::groups::image::{docker_image, manifest, names};
use crate::groups::{image, route, user};
use crate::oci;
use crate::registry::page::Continue;
use crate::rest::patch::{self, ParsedPatch};
use crate::rest::query::{self, Listing, Query, WriteKind};
use crate::rest::strategic_patch;
use crate::schema::{self, FieldValidation, Schemas};
use crate::server::query::Query as ServerQuery;

static SCHEMAS: LazyLock<Option<Schemas>> = LazyLock::new(|| Schemas::load().ok());
static FIELDS: LazyLock<Option<FieldManager>> = LazyLock::new(|| {
    let types = Arc::new(schema::merge_types().ok()?);
    let kind = types.named(route::ROUTES.schema)?;
    Some(FieldManager::new(types, kind, SCHEMAS.as_ref()?.empty(&route::ROUTES), ""))
});

/// Label and field selectors.
pub fn selectors(text: &str) {
    if let Ok(selector) = LabelSelector::parse(text) {
        let _ = selector.matches(|key| (key.len() % 2 == 0).then_some("1"));
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        let _ = selector.matches(|_| Some("1"));
    }
}

/// A request path: what names a resource has no empty segment, and a `watch` comes by GET only.
pub fn request_path(path: &str) {
    for method in [Method::GET, Method::POST, Method::DELETE] {
        let Ok(info) = RequestInfo::parse(&method, path, false, None) else { continue };
        assert!(!info.is_resource || !path.trim_end_matches('/').contains("//"), "{path:?} is ambiguous");
        assert!(info.verb != "watch" || method == Method::GET, "{path:?} is a watch by {method}");
    }
}

/// An `Accept` header.
pub fn accept(text: &str) {
    for answer in [Answer::One, Answer::List, Answer::Watch] {
        if let Err(status) = media_type::negotiate(Some(text), answer, true) {
            assert_eq!(status.code, 406);
        }
    }
}

/// A query string, for the server and for every kind of options.
pub fn query_string(text: &str) {
    let _ = ServerQuery::read(Some(text)).time();
    let query = Query::parse(Some(text));
    let _ = query::get_options(&query);
    let _ = query::delete_options(&query);
    let _ = query::table_options(&query);
    for listing in [Listing::ByQuery { name: None }, Listing::Watch { name: Some("n") }] {
        let _ = query::list_options(&query, &route::ROUTES, listing);
    }
    for kind in [WriteKind::Apply, WriteKind::Create, WriteKind::Patch, WriteKind::Update] {
        let _ = query::write_options(&query, kind);
    }
}

/// A body against the schema of Routes, as JSON and as YAML.
pub fn body(bytes: &[u8]) {
    let Some(schemas) = &*SCHEMAS else { return };
    for content_type in ["application/json", "application/yaml"] {
        for validation in [FieldValidation::Ignore, FieldValidation::Strict] {
            let _ = decode::decode_object(schemas, &route::ROUTES, Some(content_type), bytes, validation);
        }
        let _ = decode::decode_delete_options(schemas, Some(content_type), bytes);
    }
}

/// The message in the envelope of a protobuf body, as every kind that can be created: what is read is written and read as
/// itself.
pub fn message(bytes: &[u8]) {
    let Some(schemas) = &*SCHEMAS else { return };
    let content_type = Some("application/vnd.kubernetes.protobuf");
    for resource in [&route::ROUTES, &image::IMAGE_STREAM_IMPORTS, &user::GROUPS] {
        for body in [bytes, &protobuf::envelope("", "", bytes)] {
            let decoded =
                decode::decode_object(schemas, resource, content_type, body, FieldValidation::Strict);
            let Ok(object) = decoded.map(|decoded| decoded.object) else { continue };
            let written = schemas.to_protobuf(&object).unwrap_or_default();
            let again = schemas.from_protobuf(resource.schema, &written).is_ok_and(|mut again| {
                again
                    .0
                    .extend(object.0.into_iter().filter(|(name, _)| name == "apiVersion" || name == "kind"));
                schemas.to_protobuf(&again).is_some_and(|again| again == written)
            });
            assert!(again, "{bytes:x?} is not written as it was read");
        }
    }
    let _ = decode::decode_delete_options(schemas, content_type, bytes);
}

/// JSON, merge and strategic merge patches, applied to a Route.
pub fn patches(bytes: &[u8]) {
    let route = br#"{"kind":"Route","metadata":{"name":"r","labels":{"a":"b"},"finalizers":["x/y"],
        "ownerReferences":[{"uid":"1"},{"uid":"2"}]},"spec":{"host":"h","l":[1,2]}}"#;
    let Ok(route) = Object::from_slice(route) else { return };
    for kind in [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ] {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
        match (patch::parse(&headers, bytes), &*SCHEMAS) {
            (Ok(ParsedPatch::Strategic(patch)), Some(schemas)) => {
                let strict = FieldValidation::Strict;
                let _ = strategic_patch::apply(schemas, &route::ROUTES, &route, &patch, Vec::new(), strict);
            }
            (Ok(patch), _) => drop(patch.apply(&route)),
            (Err(_), _) => {}
        }
    }
    let _ = decode::decode_patch(bytes);
}

/// A configuration that is applied to a Route, and FieldsV1 that a client sends: whatever they are, the Route's managed
/// fields read back as themselves, and who applied once can apply again.
pub fn applies(bytes: &[u8]) {
    let Some(fields) = &*FIELDS else { return };
    let live = br#"{"apiVersion":"route.openshift.io/v1","kind":"Route","metadata":{"name":"r","uid":"u","labels":{"a":"b"},
        "managedFields":[{"manager":"a","operation":"Apply","apiVersion":"route.openshift.io/v1","fieldsType":"FieldsV1",
        "fieldsV1":{"f:spec":{"f:host":{},"f:alternateBackends":{".":{},"k:{\"kind\":\"Service\",\"name\":\"b\"}":{".":{}}}}}}]},
        "spec":{"host":"h","to":{"kind":"Service","name":"x","weight":1},
        "alternateBackends":[{"kind":"Service","name":"b","weight":2}]}}"#;
    let Ok(live) = Object::from_slice(live) else { return };
    let request = Request { manager: "a", now: "2026-01-01T00:00:00Z" };
    if let Ok(config) = decode::decode_configuration(bytes) {
        for force in [false, true] {
            if let Ok(applied) = fields.apply(Some(&live), &config.value, request, force) {
                let again = fields.apply(Some(&applied.object), &config.value, request, force);
                assert!(again.is_ok(), "what was applied can be applied again: {again:?}");
            }
        }
        let mut new = live.clone();
        let entry = serde_json::json!({"manager": "b", "operation": "Update", "apiVersion": "route.openshift.io/v1",
            "fieldsType": "FieldsV1", "fieldsV1": config.value});
        new.set_metadata("managedFields", vec![entry]);
        let _ = fields.update(Some(&live), &mut new, request);
    }
    if let Ok(value) = serde_json::from_slice(bytes)
        && let Ok(set) = FieldSet::from_json(&value)
    {
        assert!(FieldSet::from_json(&set.to_json()).is_ok_and(|again| again == set));
    }
}

/// A continue token: refused with 400, or one that reads back as itself.
pub fn continue_token(text: &str) {
    match Continue::decode(text) {
        Ok(token) => assert!(Continue::decode(&token.encode()).is_ok_and(|again| again == token)),
        Err(status) => assert_eq!(status.code, 400),
    }
}

/// A raw manifest and configuration of an image: what is filled in is complete metadata.
pub fn image_manifest(manifest: &str, config: &str) {
    let raw = serde_json::json!({
        "metadata": {"name": "sha256:0"}, "dockerImageManifest": manifest, "dockerImageConfig": config,
    });
    let Some(mut image) = Object::from_value(raw) else { return };
    if manifest::fill(&mut image).is_ok() && image.at(&["dockerImageMetadata"]).is_some() {
        let once = docker_image::complete(&mut image).map(|()| image.clone());
        assert!(once.is_ok_and(|once| docker_image::complete(&mut image).is_ok() && image == once));
    }
    let _ = manifest::is_manifest_of(&image, manifest) || manifest::is_config_of(&image, config);
}

/// A docker image reference, or a name of a tag or image of a stream: the reference's text parses again.
pub fn image_reference(text: &str) {
    if let Ok(reference) = Reference::parse(text) {
        let exact = reference.exact();
        assert!(exact.is_empty() || Reference::parse(&exact).is_ok_and(|again| again.exact() == exact));
        let _ = reference.clone().most_specific().minimal().as_v2().to_string();
        let _ = reference.with_client_defaults().repository_name();
    }
    let _ = names::stream_name(text, false);
    if let Ok((stream, tag)) = names::parse_stream_tag(text) {
        assert_eq!(names::join_stream_tag(stream, tag), text);
    }
    if let Ok((stream, id)) = names::parse_stream_image(text) {
        assert_eq!(names::join_stream_image(stream, id), text);
    }
}

/// Names of users, groups and identities: what is accepted stays in its place in a path.
pub fn user_names(text: &str) {
    user::names_are_harmless(text);
}

/// What a registry answers: a manifest and, after a NUL byte, a configuration.
pub fn registry_documents(bytes: &[u8]) {
    let (manifest, config) = match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, bytes),
    };
    for content_type in [
        "",
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
    ] {
        image::import::read_untrusted(content_type, manifest, config);
    }
}

/// Headers of a registry: a challenge, and the address of a redirect, which has a scheme and a host.
pub fn registry_headers(text: &str) {
    for challenge in oci::Challenge::parse(text) {
        assert!(!challenge.scheme.bytes().any(|byte| byte.is_ascii_uppercase()));
        let _ = challenge.parameter("realm");
    }
    let base = http::Uri::from_static("https://registry.example:5000/v2/a/manifests/1?x=1");
    if let Some(url) = oci::resolve(&base, text) {
        assert!(url.scheme().is_some() && url.authority().is_some(), "{text:?} leads to {url}");
    }
}

/// A docker configuration out of a pull secret.
pub fn docker_config(bytes: &[u8]) {
    let mut keyring = oci::Keyring::default();
    let _ = keyring.add_config_json(bytes);
    let _ = keyring.add_config(bytes);
    for image in ["docker.io/library/a", "quay.io:443/a/b:1", &String::from_utf8_lossy(bytes)] {
        let _ = keyring.find(image);
    }
}

/// A client's certificate.
pub fn certificate(der: &[u8]) {
    let _ = Subject::of(der);
}

/// Header lines (`name:value`, ended by line feeds) on a front proxy's connection: whoever they name has a name.
pub fn front_proxy_headers(lines: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (Some(name), Some(value)) = (parts.next(), parts.next()) else { continue };
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    let names = |name: &'static str| [HeaderName::from_static(name)];
    let user = named_user(
        &headers,
        &names("x-remote-user"),
        &names("x-remote-group"),
        &names("x-remote-uid"),
        &["x-remote-extra-".to_owned()],
    );
    assert!(user.is_none_or(|user| !user.name.is_empty() && !user.groups.contains(&String::new())));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_schemas_are_there() {
        assert!(SCHEMAS.is_some() && FIELDS.is_some(), "else bodies would not be tried at all");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn texts(text in "\\PC{0,60}", path in "(/|//|[a-z%.~2F]{1,6}|watch|apis/g.io/v1|namespaces){0,9}") {
            selectors(&text);
            request_path(&path);
            accept(&text);
            query_string(&text);
            continue_token(&text);
            image_reference(&text);
            image_reference(&path);
            user_names(&text);
            registry_headers(&text);
        }

        #[test]
        fn registries(
            manifest in "\\{(\"(mediaType|config|layers|manifests|platform|digest|size|schemaVersion)\":(null|1|\"a\"|\\[\\{\\}\\]|\\{\\}),?){0,4}\\}?",
            header in "((Bearer|Basic|,) ?(realm|service)=(\"[^\"]{0,4}\"?|a)[, ]?|https?://|[a-z@:/?#.]{1,3}){0,5}",
            config in "\\{\"(auths\":\\{\")?[a-z.*/:?]{0,6}\":\\{\"auth\":\"[A-Za-z=]{0,8}\"\\}\\}?\\}?",
        ) {
            registry_documents(manifest.as_bytes());
            registry_headers(&header);
            docker_config(config.as_bytes());
        }

        #[test]
        fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            body(&bytes);
            message(&bytes);
            patches(&bytes);
            applies(&bytes);
            certificate(&bytes);
            front_proxy_headers(&bytes);
            registry_documents(&bytes);
            docker_config(&bytes);
        }

        #[test]
        fn configurations(
            spec in "(\"(host|path|to|port|tls|alternateBackends|nosuch)\":(null|1|\"a\"|\\[\\]|\\{\\}|\\[\\{\"name\":\"[ab]\",\"kind\":\"Service\"\\}\\]),){0,4}",
            metadata in "(,\"(labels|finalizers|annotations|uid|managedFields)\":(null|\"a\"|\\[\"a/[ab]\"\\]|\\{\"a\":\"[bc]\"\\})){0,3}",
            fields in "\\{(\"(f:[a-z]|v:1|v:\\\\\"a\\\\\"|k:[{}]|i:[0-9x]|\\.|[a-z]:)\":(\\{\\}|null|1|\\{\"f:a\":\\{\\}\\}),?){0,4}\\}",
        ) {
            let text = format!(
                "{{\"apiVersion\":\"route.openshift.io/v1\",\"kind\":\"Route\",\"metadata\":{{\"name\":\"r\"{metadata}}},\"spec\":{{{spec}\"wildcardPolicy\":\"None\"}}}}"
            );
            applies(text.as_bytes());
            applies(fields.as_bytes());
        }

        #[test]
        fn manifests(
            version in 0_i64..4,
            digest in "[a-f0-9:]{0,8}",
            size in any::<i64>(),
            created in "[0-9TZ:+.-]{0,25}",
            text in "\\PC{0,40}",
        ) {
            let manifest = serde_json::json!({
                "schemaVersion": version, "layers": [{"digest": digest, "size": size}, {"size": size}],
                "fsLayers": [{"blobSum": digest}], "history": [{"v1Compatibility": text}],
                "signatures": [{"protected": text}],
            });
            let config = serde_json::json!({"created": created, "config": {"Env": [text]}, "size": size});
            image_manifest(&manifest.to_string(), &config.to_string());
            image_manifest(&text, &text);
        }

        #[test]
        fn patched(
            patch in "\\{(\"(metadata|finalizers|ownerReferences|spec|\\$patch|\\$retainKeys|\\$setElementOrder/(finalizers|ownerReferences)|\\$deleteFromPrimitiveList/finalizers)\":(null|1|\"(delete|replace|a)\"|\\[(\"x/y\"|\\{\"uid\":\"1\"\\}|\\{\"uid\":\"2\",\"\\$patch\":\"delete\"\\})\\]|\\{\\}),?){0,3}\\}",
        ) {
            patches(patch.as_bytes());
            patches(format!("{{\"metadata\":{patch}}}").as_bytes());
        }

        #[test]
        fn header_lines(lines in "(X-Remote-(User|Group|Uid|Extra-[a-z%0-9]{0,5}): ?[a-z%]{0,4}\n){0,6}") {
            front_proxy_headers(lines.as_bytes());
        }
    }
}
