//! References: upstream's cases, and what holds for every text.

use proptest::prelude::*;

use super::*;

const DIGEST: &str = "sha256:3c87c572822935df60f0f5d3665bd376841a7fcfeb806b5f212de6a00e9a7b25";

fn parts(spec: &str) -> [String; 5] {
    let found = Reference::parse(spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
    [found.registry, found.namespace, found.name, found.tag, found.id]
}

fn error(spec: &str) -> String {
    Reference::parse(spec).map_or_else(|error| error.to_string(), |found| panic!("{spec}: {found:?}"))
}

#[test]
fn parts_are_upstreams() {
    let hex = &DIGEST["sha256:".len()..];
    let with_digest = |text: &str| format!("{text}@{DIGEST}");
    let cases: &[(&str, [&str; 5])] = &[
        ("foo", ["", "", "foo", "", ""]),
        ("foo:tag", ["", "", "foo", "tag", ""]),
        (DIGEST, ["", "", "sha256", hex, ""]),
        (&with_digest("foo"), ["", "", "foo", "", DIGEST]),
        (&with_digest("foo:1"), ["", "", "foo", "1", DIGEST]),
        ("bar/foo", ["", "bar", "foo", "", ""]),
        ("bar/foo:tag", ["", "bar", "foo", "tag", ""]),
        (&with_digest("bar/foo"), ["", "bar", "foo", "", DIGEST]),
        ("bar/foo/baz", ["", "bar", "foo/baz", "", ""]),
        ("bar/foo/baz/biz", ["", "bar", "foo/baz/biz", "", ""]),
        ("bar/foo/baz:tag", ["", "bar", "foo/baz", "tag", ""]),
        ("bar:5000/foo/baz", ["bar:5000", "foo", "baz", "", ""]),
        ("bar:5000/baz", ["bar:5000", "", "baz", "", ""]),
        ("bar:5000/foo/baz:tag", ["bar:5000", "foo", "baz", "tag", ""]),
        (&with_digest("bar:5000/foo/baz"), ["bar:5000", "foo", "baz", "", DIGEST]),
        ("myregistry.io/foo", ["myregistry.io", "", "foo", "", ""]),
        ("localhost/bar", ["localhost", "", "bar", "", ""]),
        ("docker.io/library/myapp", ["docker.io", "library", "myapp", "", ""]),
        ("docker.io/myapp", ["docker.io", "", "myapp", "", ""]),
        ("docker.io/user/project/myapp", ["docker.io", "user", "project/myapp", "", ""]),
        ("index.docker.io/bar", ["index.docker.io", "", "bar", "", ""]),
        ("quay.io", ["quay.io", "", "", "", ""]),
        ("quay.io/org", ["quay.io", "", "org", "", ""]),
        ("localhost:5000", ["localhost:5000", "", "", "", ""]),
        ("localhost:5000/org", ["localhost:5000", "", "org", "", ""]),
        ("wildfly:15.0", ["", "", "wildfly", "15.0", ""]),
        ("Registry.Example.com/a", ["Registry.Example.com", "", "a", "", ""]),
        // The recorded server takes the first part for a registry because of its colon only.
        ("127.0.0.1:1/lab/local:1", ["127.0.0.1:1", "lab", "local", "1", ""]),
        // A dot makes a first part a registry, whatever else it has.
        ("a__b--c.d/e", ["a__b--c.d", "", "e", "", ""]),
    ];
    for (spec, expected) in cases {
        assert_eq!(parts(spec), *expected, "{spec}");
    }
}

#[test]
fn lengths_are_upstreams() {
    let long = |n: usize| format!("bar:5000/{}/{}:tag", "a".repeat(63), "b".repeat(n));
    assert_eq!(parts(&long(182))[1..3], ["a".repeat(63), "b".repeat(182)]);
    assert_eq!(error(&long(183)), "repository name must not be more than 255 characters");
    assert_eq!(parts(&format!("a:{}", "t".repeat(128)))[3].len(), 128);
    assert_eq!(error(&format!("a:{}", "t".repeat(129))), "invalid reference format");
}

#[test]
fn errors_are_upstreams() {
    let cases = [
        ("", "repository name must have at least one component"),
        ("::bad::", "invalid reference format"),
        ("x:y:z", "invalid reference format"),
        ("registry.io/foo/bar/:Tag", "invalid reference format"),
        ("https://bar:5000/foo/baz", "invalid reference format"),
        ("registry:3000/integration/imageStream:success", "repository name must be lowercase"),
        ("Foo", "repository name must be lowercase"),
        ("a/b@sha256:00000000000000000000000000000001", "invalid checksum digest length"),
        ("a/b@md5:00000000000000000000000000000001", "unsupported digest algorithm"),
        ("abc@badid", "invalid reference format"),
        ("index.docker.io/mysql@sha256:bad", "invalid reference format"),
        (":tag", "invalid reference format"),
        ("bar/foo/baz////biz", "invalid reference format"),
        ("//foo/baz/biz", "invalid reference format"),
        ("foo\n", "invalid reference format"),
        ("f\u{f6}\u{f6}", "invalid reference format"),
        ("foo:\u{661}", "invalid reference format"),
    ];
    for (spec, expected) in cases {
        assert_eq!(error(spec), expected, "{spec:?}");
    }
    assert_eq!(error(&format!("@{DIGEST}")), "invalid reference format");
}

#[test]
fn canonical_texts() {
    let text = |spec: &str| {
        let found = Reference::parse(spec).unwrap();
        (found.exact(), found.to_string())
    };
    for same in ["foo", "bar/foo:tag", "quay.io/a/b/c:1", "localhost:5000/x"] {
        assert_eq!(text(same), (same.to_owned(), same.to_owned()));
    }
    assert_eq!(text("docker.io/app:1"), ("docker.io/app:1".into(), "docker.io/library/app:1".into()));
    assert_eq!(text(&format!("a:1@{DIGEST}")).0, format!("a@{DIGEST}"), "the id wins");
    assert_eq!(text("quay.io"), (String::new(), String::new()));
    let completed = |spec: &str| Reference::parse(spec).unwrap().with_client_defaults().exact();
    assert_eq!(completed("foo"), "docker.io/library/foo:latest");
    assert_eq!(completed("quay.io/foo"), "quay.io/foo:latest");
    assert_eq!(completed("bar/foo:2"), "docker.io/bar/foo:2");
    let reference = Reference::parse(&format!("quay.io/ns/a/b:1@{DIGEST}")).unwrap();
    assert_eq!(reference.repository_name(), "ns/a/b");
    assert_eq!(reference.clone().as_repository().exact(), "quay.io/ns/a/b");
    assert_eq!(reference.most_specific().tag, "");
    let old = Reference { id: "0123abcd".to_owned(), name: "a".to_owned(), ..Reference::default() };
    assert_eq!(old.exact(), "a:0123abcd");
    assert_eq!(old.most_specific().tag, "0123abcd");
    assert_eq!(
        Reference::parse("docker.io/a:latest").unwrap().minimal().as_v2().exact(),
        "registry-1.docker.io/a"
    );
}

#[test]
fn images_match_with_and_without_the_algorithm() {
    assert!(image_matches(DIGEST, "3c87"));
    assert!(image_matches(DIGEST, "sha256:3c87"));
    assert!(image_matches(DIGEST, DIGEST));
    assert!(!image_matches(DIGEST, "dead"));
    assert!(!image_matches("sha256:short", "short"), "not a digest, so only whole prefixes");
    assert!(image_matches("img1", "im"));
}

proptest! {
    /// What parses prints as text that parses to the same again, but for a tag beside a digest.
    #[test]
    fn texts_read_back(spec in "([A-Za-z0-9.:-]{1,9}/){0,2}[a-z0-9._-]{1,9}(:[A-Za-z0-9_.-]{1,5})?(@sha256:[0-9a-f]{64})?") {
        let Ok(reference) = Reference::parse(&spec) else { return Ok(()) };
        let text = reference.exact();
        if reference.name.is_empty() {
            prop_assert_eq!(text, "");
            return Ok(());
        }
        let again = Reference::parse(&text).unwrap();
        prop_assert_eq!(&again.id, &reference.id);
        prop_assert_eq!(again.exact(), text);
        if reference.id.is_empty() {
            prop_assert_eq!(&again, &reference);
            prop_assert_eq!(reference.exact(), spec);
        }
    }

    /// Completing is done after once.
    #[test]
    fn defaults_are_a_fixed_point(spec in "(docker[.]io/|quay[.]io/)?([a-z]{1,3}/)?[a-z]{1,3}(:[a-z]{1,3})?") {
        let once = Reference::parse(&spec).unwrap().with_client_defaults();
        prop_assert_eq!(once.clone().with_client_defaults(), once);
    }
}
