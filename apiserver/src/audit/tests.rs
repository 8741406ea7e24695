//! Tests of records: whatever clients send, an event is one line of JSON.

use std::path::Path;

use http::{HeaderName, HeaderValue, Method};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn written(policy: &str, act: impl FnOnce(&Audit)) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let log = Log::open(&path).unwrap();
    let policy = format!("{{apiVersion: audit.k8s.io/v1, kind: Policy, {policy}}}");
    let audit = Audit::new(Policy::parse(&policy).unwrap(), Arc::clone(&log), &mut Registry::default());
    act(&audit);
    log.close();
    let text = std::fs::read_to_string(&path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn begin(audit: &Audit, headers: &HeaderMap, uri: &str) -> Option<Arc<Record>> {
    let peer = Peer { address: "10.1.2.3:4".parse().unwrap(), certificate: None };
    let path = uri.split('?').next().unwrap();
    let info = RequestInfo::parse(&Method::PUT, path, false, None).unwrap();
    let user = UserInfo { name: "jane".to_owned(), groups: vec!["team".to_owned()], ..UserInfo::default() };
    audit.begin(Subject {
        id: "the-id",
        received: "2026-01-02T03:04:05.678901Z".parse().unwrap(),
        uri,
        headers,
        peer: &peer,
        info: &info,
        user: Some(&user),
        long: false,
    })
}

const URI: &str = "/apis/route.openshift.io/v1/namespaces/ns/routes/a/status?dryRun=All";

#[test]
fn an_event_is_upstream_s() {
    let events = written("rules: [{level: RequestResponse}], omitManagedFields: true", |audit| {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static("oc/4"));
        let record = begin(audit, &headers, URI).unwrap();
        record.received();
        let object = json!({"kind": "Route", "metadata": {
            "name": "other", "uid": "u", "resourceVersion": "7", "managedFields": [{"manager": "m"}]}});
        record.request_object(&picoshift_machinery::Object::from_value(object).unwrap());
        record.annotate("authorization.k8s.io/decision", "allow");
        record.annotate("authorization.k8s.io/decision", "forbid");
        record.responded(200, None);
    });
    let mut expected = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": "the-id",
        "stage": "RequestReceived", "requestURI": URI, "verb": "update",
        "user": {"username": "jane", "groups": ["team"]}, "sourceIPs": ["10.1.2.3"], "userAgent": "oc/4",
        "objectRef": {"resource": "routes", "namespace": "ns", "name": "a", "apiGroup": "route.openshift.io",
            "apiVersion": "v1", "subresource": "status"},
        "requestReceivedTimestamp": "2026-01-02T03:04:05.678901Z",
        "stageTimestamp": "2026-01-02T03:04:05.678901Z",
    });
    assert_eq!(events.len(), 2);
    assert_eq!(events[0], expected);
    expected["stage"] = json!("ResponseComplete");
    expected["stageTimestamp"] = events[1]["stageTimestamp"].clone();
    expected["objectRef"]["uid"] = json!("u");
    expected["objectRef"]["resourceVersion"] = json!("7");
    expected["responseStatus"] = json!({"metadata": {}, "code": 200});
    expected["requestObject"] =
        json!({"kind": "Route", "metadata": {"name": "other", "uid": "u", "resourceVersion": "7"}});
    expected["annotations"] = json!({"authorization.k8s.io/decision": "allow"});
    assert_eq!(events[1], expected);
}

#[test]
fn metadata_holds_no_contents_and_a_request_that_is_given_up_still_ends() {
    let events = written("rules: [{level: Metadata}], omitStages: [RequestReceived]", |audit| {
        let record = begin(audit, &HeaderMap::new(), URI).unwrap();
        record.received();
        let object = json!({"metadata": {"name": "a"}, "spec": {"tls": {"key": "hush"}}});
        record.request_object(&picoshift_machinery::Object::from_value(object.clone()).unwrap());
        record.request_patch(object.to_string().as_bytes());
        record.request_options(object.to_string().as_bytes());
        record.response_object(&picoshift_machinery::Object::from_value(object).unwrap());
    });
    assert_eq!(events.len(), 1);
    assert!(!events[0].to_string().contains("hush"));
    assert_eq!(
        events[0]["responseStatus"],
        json!({"metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200})
    );
    let none = written("rules: [{level: Metadata, users: [john]}]", |audit| {
        assert!(begin(audit, &HeaderMap::new(), URI).is_none());
    });
    assert!(none.is_empty());
    assert!(Log::open(Path::new("/")).is_err());
}

proptest! {
    #[test]
    fn whatever_is_sent_is_one_line(
        agent in prop::collection::vec(32_u8..=255, 0..1100),
        forwarded in "[0-9a-f.:, ]{0,40}",
        patch in prop_oneof![prop::collection::vec(any::<u8>(), 0..60), Just(b"{\n\"a\":\n\"b\"}".to_vec())],
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in [("user-agent", agent.as_slice()), ("x-forwarded-for", forwarded.as_bytes())] {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let events = written("rules: [{level: Request}], omitStages: [RequestReceived]", |audit| {
            let record = begin(audit, &headers, URI).unwrap();
            record.request_patch(&patch);
        });
        prop_assert_eq!(events.len(), 1);
        let agent = events[0]["userAgent"].as_str().unwrap_or_default();
        prop_assert!(agent.len() <= MAX_USER_AGENT + "...TRUNCATED".len());
        prop_assert_eq!(events[0]["sourceIPs"].as_array().unwrap().last().unwrap(), "10.1.2.3");
    }
}
