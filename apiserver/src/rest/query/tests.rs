//! Parameters and the errors about them; the texts are the real server's.

use picoshift_machinery::Status;
use proptest::prelude::*;

use super::list::Listing;
use super::{Query, delete_options, get_options, list_options, pretty, table_options, write_options};
use crate::groups::route::ROUTES;
use crate::rest::options::{Propagation, VersionMatch};
use crate::rest::query::WriteKind;
use crate::schema::FieldValidation;

fn list_error(text: &str) -> Status {
    list_options(&Query::parse(Some(text)), &ROUTES, Listing::ByQuery { name: None }).unwrap_err()
}

#[test]
fn a_query_is_decoded() {
    let query = Query::parse(Some("a=1&a=2&b=x%2Fy+z&c&%zz=1&d=%e9&e=a;b"));
    assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(query.first("b"), Some("x/y z"));
    assert_eq!(query.first("c"), Some(""));
    assert_eq!(query.first("d"), Some("\u{fffd}"));
    assert_eq!(query.first("e"), None);
}

#[test]
fn lists_are_read() {
    let text = "labelSelector=a%3Db&fieldSelector=spec.host%3Dx&resourceVersion=7&resourceVersionMatch=Exact&limit=5";
    let options = list_options(&Query::parse(Some(text)), &ROUTES, Listing::ByQuery { name: None }).unwrap();
    assert_eq!(options.labels.requirements[0].key, "a");
    assert_eq!(options.fields.exact("spec.host"), Some("x"));
    assert_eq!((options.resource_version, options.limit), (Some(7), 5));
    assert_eq!(options.version_match, Some(VersionMatch::Exact));
    let text = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=3";
    let options =
        list_options(&Query::parse(Some(text)), &ROUTES, Listing::Watch { name: Some("n") }).unwrap();
    assert!(options.bookmarks);
    assert_eq!((options.send_initial_events, options.timeout_seconds), (Some(true), Some(3)));
    assert_eq!(options.fields.exact("metadata.name"), Some("n"));
}

#[test]
fn a_list_that_was_authorized_for_a_name_has_that_name() {
    let listing = Listing::ByQuery { name: Some("n") };
    for text in ["", "limit=5", "fieldSelector=metadata.name%3Dn,spec.host%3Dx"] {
        let options = list_options(&Query::parse(Some(text)), &ROUTES, listing).unwrap();
        assert_eq!(options.fields.exact("metadata.name"), Some("n"), "{text}");
    }
    for text in ["fieldSelector=metadata.name%3Dm", "fieldSelector=spec.host%3Dx"] {
        let status = list_options(&Query::parse(Some(text)), &ROUTES, listing).unwrap_err();
        assert_eq!(
            (status.code, &*status.message),
            (400, "fieldSelector metadata.name doesn't match requested name")
        );
    }
}

#[test]
fn wrong_lists_are_refused_in_the_servers_words() {
    for (text, message) in [
        ("limit=x", "strconv.ParseInt: parsing \"x\": invalid syntax"),
        (
            "limit=99999999999999999999",
            "strconv.ParseInt: parsing \"99999999999999999999\": value out of range",
        ),
        (
            "resourceVersion=abc",
            "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": \
             invalid syntax",
        ),
        (
            "fieldSelector=spec.nope%3Dx",
            "\"spec.nope\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        ("labelSelector=a==b==c", "found '==', expected: ',' or 'end of string'"),
        ("continue=a&resourceVersion=5", "specifying resource version is not allowed when using continue"),
    ] {
        let status = list_error(text);
        assert_eq!(
            (status.code, status.reason.as_str(), status.message.as_str()),
            (400, "BadRequest", message)
        );
    }
    let status = list_error("labelSelector=a+b");
    assert!(status.message.starts_with("unable to parse requirement: "), "{}", status.message);
    let status = list_error("watch=true&resourceVersion=abc");
    assert_eq!((status.code, status.reason.as_str()), (500, ""));
}

#[test]
fn combinations_that_are_not_allowed_are_invalid() {
    for (text, message) in [
        (
            "resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersionMatch=X&resourceVersion=1",
            "resourceVersionMatch: Unsupported value: \"X\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        ("sendInitialEvents=true", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
        (
            "watch=true&sendInitialEvents=true",
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            "watch=true&resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
             provided",
        ),
    ] {
        let status = list_error(text);
        assert_eq!(status.code, 422);
        assert_eq!(status.message, format!("ListOptions.meta.k8s.io \"\" is invalid: {message}"));
    }
}

#[test]
fn writes_are_read_and_refused() {
    let query = Query::parse(Some("dryRun=All&fieldValidation=Strict&fieldManager=me"));
    let found = write_options(&query, WriteKind::Create).unwrap();
    assert!(found.options.dry_run);
    assert_eq!((found.field_validation, found.field_manager.as_str()), (FieldValidation::Strict, "me"));
    for (text, kind, message) in [
        (
            "fieldValidation=Bogus",
            WriteKind::Create,
            "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Bogus\": supported \
             values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
        ),
        (
            "dryRun=Some",
            WriteKind::Update,
            "UpdateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
        ),
        (
            "force=true",
            WriteKind::Patch,
            "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
        ),
        (
            "",
            WriteKind::Apply,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
        ),
        (
            "fieldManager=a%00",
            WriteKind::Create,
            "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\x00\": invalid character \
             U+0000 (at position 1)",
        ),
    ] {
        let status = write_options(&Query::parse(Some(text)), kind).unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (422, message));
    }
}

#[test]
fn deletes_are_read_and_refused() {
    let query = Query::parse(Some("propagationPolicy=Foreground&gracePeriodSeconds=3"));
    let found = delete_options(&query).unwrap();
    assert_eq!((found.propagation, found.grace_period_seconds), (Some(Propagation::Foreground), Some(3)));
    let found = delete_options(&Query::parse(Some("orphanDependents=true"))).unwrap();
    assert_eq!(found.propagation, Some(Propagation::Orphan));
    let status = delete_options(&Query::parse(Some("propagationPolicy=No&orphanDependents=0"))).unwrap_err();
    assert_eq!(
        status.message,
        "DeleteOptions.meta.k8s.io \"\" is invalid: [propagationPolicy: Invalid value: \"No\": orphanDependents and \
         deletionPropagation cannot be both set, propagationPolicy: Unsupported value: \"No\": supported values: \
         \"Foreground\", \"Background\", \"Orphan\", \"nil\"]"
    );
}

#[test]
fn small_options() {
    assert_eq!(get_options(&Query::parse(Some("resourceVersion=0"))).unwrap().resource_version, Some(0));
    assert_eq!(get_options(&Query::parse(Some("resourceVersion=x"))).unwrap_err().code, 500);
    assert!(table_options(&Query::parse(Some("includeObject=Nope"))).is_err());
    assert!(pretty(&Query::parse(None), Some("curl/8.1")));
    assert!(!pretty(&Query::parse(Some("pretty=false")), Some("curl/8.1")));
    assert!(!pretty(&Query::parse(None), Some("kubectl/v1.34")));
}

proptest! {
    #[test]
    fn no_query_panics(text in ".{0,60}") {
        let query = Query::parse(Some(&text));
        let _ = list_options(&query, &ROUTES, Listing::ByQuery { name: None });
        let _ = write_options(&query, WriteKind::Patch);
        let _ = delete_options(&query);
    }
}
