//! Headers that real clients send, and the order of clauses.

use proptest::prelude::*;

use super::{Answer, Encoding, MediaType, MetaVersion, Shape, negotiate, of_errors, parse};

fn accepted(header: &str, answer: Answer) -> (Encoding, Shape) {
    let found = negotiate(Some(header), answer, true).unwrap();
    (found.encoding, found.shape)
}

const PARTIAL: &str = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

#[test]
fn plain_headers() {
    for header in [None, Some(""), Some("*/*"), Some("application/json"), Some("application/json, */*")] {
        assert_eq!(negotiate(header, Answer::One, true).unwrap(), MediaType::default());
    }
    assert_eq!(accepted("application/yaml", Answer::One), (Encoding::Yaml, Shape::Whole));
    // What library-go's clients send.
    let header = "application/vnd.kubernetes.protobuf,application/json";
    assert_eq!(accepted(header, Answer::List), (Encoding::Protobuf, Shape::Whole));
    assert!(negotiate(Some("application/json;pretty=1"), Answer::One, true).unwrap().pretty);
    assert_eq!(accepted("application/json;stream=watch", Answer::Watch), (Encoding::Json, Shape::Whole));
}

#[test]
fn metadata_clients_get_protobuf() {
    let header =
        format!("application/vnd.kubernetes.protobuf;{PARTIAL},application/json;{PARTIAL},application/json");
    let shape = Shape::Metadata(MetaVersion::V1);
    assert_eq!(accepted(&header, Answer::Watch), (Encoding::Protobuf, shape));
    let found = negotiate(Some(&header), Answer::Watch, true).unwrap();
    assert_eq!(found.content_type(Answer::Watch), "application/vnd.kubernetes.protobuf;stream=watch");
    let header = "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io";
    assert_eq!(accepted(header, Answer::List), (Encoding::Json, Shape::MetadataList(MetaVersion::V1beta1)));
}

#[test]
fn kubectl_gets_tables() {
    let header = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,\
                  application/json";
    assert_eq!(accepted(header, Answer::List), (Encoding::Json, Shape::Table(MetaVersion::V1)));
    // A table has no protobuf form, and an unknown shape is passed over.
    let header = "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json;as=Nope;v=v1;g=x,*/*";
    assert_eq!(accepted(header, Answer::List), (Encoding::Json, Shape::Whole));
}

#[test]
fn errors_are_told_in_what_is_taken_as_it_is() {
    let (protobuf, partial) =
        ("application/vnd.kubernetes.protobuf", "as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    for (header, encoding) in [
        (format!("{protobuf};{partial},application/json;{partial},application/json"), Encoding::Json),
        (format!("{protobuf};{partial},{protobuf}"), Encoding::Protobuf),
        (format!("{protobuf};{partial}"), Encoding::Json),
        (format!("{protobuf};sv=v1,application/yaml"), Encoding::Yaml),
        (format!("{protobuf};stream=watch"), Encoding::Protobuf),
        ("text/html".to_owned(), Encoding::Json),
    ] {
        let found = of_errors(Some(&header));
        assert_eq!((found.encoding, found.shape), (encoding, Shape::Whole), "{header}");
    }
}

#[test]
fn a_header_of_many_clauses_is_read_in_part() {
    let header = format!("{}{}", "*/*,".repeat(30_000), "a/b,".repeat(30_000));
    assert_eq!(parse(&header).len(), 100);
    assert_eq!(negotiate(Some(&header), Answer::One, true), Ok(MediaType::default()));
}

#[test]
fn quality_and_precision_order_the_clauses() {
    assert_eq!(accepted("application/json;q=0.5,application/yaml", Answer::One).0, Encoding::Yaml);
    assert_eq!(accepted("*/*,application/yaml", Answer::One).0, Encoding::Yaml);
    assert_eq!(accepted("text/html,application/xhtml+xml,*/*;q=0.8", Answer::One).0, Encoding::Json);
    assert_eq!(accepted("application/*, application/yaml;q=0.1", Answer::One).0, Encoding::Yaml);
}

#[test]
fn what_cannot_be_served_is_refused_in_the_servers_words() {
    let status = negotiate(Some("text/html"), Answer::One, true).unwrap_err();
    assert_eq!(
        status.message,
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf"
    );
    assert!(status.details.is_some());
    let status = negotiate(Some("application/json;as=Nope;g=x;v=v1"), Answer::One, true).unwrap_err();
    assert_eq!((status.code, status.reason.as_str()), (406, "NotAcceptable"));
    assert_eq!(
        status.message,
        "only the following media types are accepted: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf"
    );
    let status = negotiate(Some("application/yaml"), Answer::Watch, true).unwrap_err();
    assert!(
        status
            .message
            .ends_with("application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch")
    );
}

proptest! {
    #[test]
    fn json_is_never_refused_where_it_is_acceptable(mut clauses in proptest::collection::vec(
        "(application|text|\\*)/(json|yaml|\\*|vnd.kubernetes.protobuf|html)(;(q=0\\.[0-9]|as=[A-Za-z]{1,5}|v=v1|g=x))?", 0..6),
        at in 0usize..6, answer in prop_oneof![Just(Answer::One), Just(Answer::List), Just(Answer::Watch)]) {
        clauses.insert(at.min(clauses.len()), "*/*".to_owned());
        prop_assert!(negotiate(Some(&clauses.join(",")), answer, true).is_ok());
    }

    #[test]
    fn no_header_panics(header in "\\PC{0,60}") {
        let _ = negotiate(Some(&header), Answer::List, true);
    }
}
