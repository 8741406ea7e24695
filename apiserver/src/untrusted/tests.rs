//! Short runs of every target: on its corpus, and on inputs that look like what is expected.

use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;

use proptest::prelude::*;

use super::{SCHEMAS, TARGETS, Target, patches};

fn target(name: &str) -> Target {
    TARGETS.iter().find(|(own, _)| *own == name).unwrap().1
}

fn feed(targets: &[&str], text: &str) {
    for name in targets {
        target(name)(text.as_bytes());
    }
}

#[test]
fn the_schemas_are_there() {
    assert!(SCHEMAS.is_some() && patches::FIELDS.is_some(), "else bodies would not be tried at all");
}

fn corpora() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus")
}

/// Inputs that reach what was ever reached, those of former findings among them.
#[test]
fn no_corpus_has_a_finding() {
    let mut failed = Vec::new();
    for (name, target) in TARGETS {
        let files: Vec<_> =
            fs::read_dir(corpora().join(name)).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!files.is_empty(), "the corpus of {name} is empty");
        for file in files {
            let bytes = fs::read(&file).unwrap();
            if catch_unwind(|| target(&bytes)).is_err() {
                failed.push(file);
            }
        }
    }
    assert!(failed.is_empty(), "what fails is said above: {failed:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn texts(text in "\\PC{0,60}", path in "(/|//|[a-z%.~2F]{1,6}|watch|apis/g.io/v1|namespaces){0,9}") {
        let targets = ["accept", "continue_token", "image_reference", "query_string", "registry_headers", "selectors", "user_names"];
        feed(&targets, &text);
        feed(&["image_reference", "request_path"], &path);
    }

    #[test]
    fn registries(
        manifest in "\\{(\"(mediaType|config|layers|manifests|platform|digest|size|schemaVersion)\":(null|1|\"a\"|\\[\\{\\}\\]|\\{\\}),?){0,4}\\}?",
        header in "((Bearer|Basic|,) ?(realm|service)=(\"[^\"]{0,4}\"?|a)[, ]?|https?://|[a-z@:/?#.]{1,3}){0,5}",
        config in "\\{\"(auths\":\\{\")?[a-z.*/:?]{0,6}\":\\{\"auth\":\"[A-Za-z=]{0,8}\"\\}\\}?\\}?",
    ) {
        feed(&["registry_documents"], &manifest);
        feed(&["registry_headers"], &header);
        feed(&["docker_config"], &config);
    }

    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        for (_, target) in TARGETS {
            target(&bytes);
        }
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
        feed(&["applies", "body"], &text);
        feed(&["applies"], &fields);
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
        feed(&["image_manifest"], &format!("{manifest}\0{config}"));
        feed(&["image_manifest"], &text);
    }

    #[test]
    fn patched(
        patch in "\\{(\"(metadata|finalizers|ownerReferences|spec|\\$patch|\\$retainKeys|\\$setElementOrder/(finalizers|ownerReferences)|\\$deleteFromPrimitiveList/finalizers)\":(null|1|\"(delete|replace|a)\"|\\[(\"x/y\"|\\{\"uid\":\"1\"\\}|\\{\"uid\":\"2\",\"\\$patch\":\"delete\"\\})\\]|\\{\\}),?){0,3}\\}",
    ) {
        feed(&["patches"], &patch);
        feed(&["patches"], &format!("{{\"metadata\":{patch}}}"));
    }

    #[test]
    fn header_lines(lines in "(X-Remote-(User|Group|Uid|Extra-[a-z%0-9]{0,5}): ?[a-z%]{0,4}\n){0,6}") {
        feed(&["front_proxy_headers"], &lines);
    }
}
