//! Documents and the headers around them.

use std::collections::BTreeSet;

use http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH,
    LOCATION,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;

use super::OpenApi;
use crate::groups::project::PROJECT_REQUESTS;
use crate::groups::route::ROUTES;

async fn get(path: &str, headers: &[(HeaderName, &str)]) -> (Response<()>, Vec<u8>) {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let headers: HeaderMap =
        headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect();
    let openapi = OpenApi::new(vec![&ROUTES, &PROJECT_REQUESTS]);
    openapi.check().unwrap();
    let (parts, body) = openapi.respond(path, query, &headers).unwrap().into_parts();
    (Response::from_parts(parts, ()), body.collect().await.unwrap().to_bytes().to_vec())
}

async fn document(path: &str) -> Value {
    serde_json::from_slice(&get(path, &[]).await.1).unwrap()
}

/// Every `$ref` of a document, resolved.
fn check_references(document: &Value, at: &Value) {
    match at {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
            map.values().for_each(|v| check_references(document, v));
        }
        Value::Array(list) => list.iter().for_each(|v| check_references(document, v)),
        _ => {}
    }
}

#[tokio::test]
async fn v3_says_what_kubectl_needs() {
    let found = document("/openapi/v3/apis/route.openshift.io/v1").await;
    check_references(&found, &found);
    let patch = &found["paths"]["/apis/route.openshift.io/v1/namespaces/{namespace}/routes/{name}"]["patch"];
    assert_eq!(patch["operationId"], "patchRouteOpenshiftIoV1NamespacedRoute");
    assert_eq!(patch["x-kubernetes-action"], "patch");
    assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Route");
    assert_eq!(patch["tags"][0], "routeOpenshiftIo_v1");
    let names: Vec<&str> =
        patch["parameters"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    let schema = &found["components"]["schemas"]["com.github.openshift.api.route.v1.Route"];
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["group"], "route.openshift.io");
    assert!(
        schema["properties"]["spec"]["allOf"][0]["$ref"].as_str().unwrap().ends_with("route.v1.RouteSpec")
    );
    assert!(
        found["paths"]["/apis/route.openshift.io/v1/routes"]["get"]["operationId"]
            == "listRouteOpenshiftIoV1RouteForAllNamespaces"
    );
    assert!(
        found["paths"]
            .get("/apis/route.openshift.io/v1/namespaces/{namespace}/routes/{name}/status")
            .is_some()
    );
}

#[tokio::test]
async fn v2_holds_all_groups() {
    let found = document("/openapi/v2").await;
    check_references(&found, &found);
    let paths = &found["paths"];
    assert!(paths.get("/apis/project.openshift.io/v1/projectrequests").is_some());
    assert!(paths.get("/apis/project.openshift.io/v1/projectrequests/{name}").is_none());
    let answer =
        &paths["/apis/project.openshift.io/v1/projectrequests"]["get"]["responses"]["200"]["schema"]["$ref"];
    assert_eq!(answer, "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Status");
    let kinds = &found["definitions"]["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"];
    assert!(kinds["x-kubernetes-group-version-kind"].as_array().unwrap().len() > 2);
    let meta = &found["definitions"]["com.github.openshift.api.route.v1.Route"]["properties"]["metadata"];
    assert!(meta.get("default").is_none() && meta.get("description").is_some());
    let ids = paths.as_object().unwrap().values().flat_map(|p| p.as_object().unwrap().values());
    let ids: Vec<&str> = ids.filter_map(|o| o["operationId"].as_str()).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len());
}

#[tokio::test]
async fn the_index_leads_to_documents_that_never_change() {
    let index = document("/openapi/v3").await;
    let keys: Vec<&str> = index["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "apis",
            "apis/project.openshift.io",
            "apis/project.openshift.io/v1",
            "apis/route.openshift.io",
            "apis/route.openshift.io/v1"
        ]
    );
    let url = index["paths"]["apis/route.openshift.io/v1"]["serverRelativeURL"].as_str().unwrap();
    let (response, _) = get(url, &[]).await;
    assert_eq!(response.headers()[CACHE_CONTROL], "public, immutable");
    assert!(response.headers()[EXPIRES].to_str().unwrap().ends_with(" GMT"));
    let tag = response.headers()[ETAG].to_str().unwrap().to_owned();
    assert_eq!(url, format!("/openapi/v3/apis/route.openshift.io/v1?hash={}", tag.trim_matches('"')));
    let (response, body) = get(url, &[(IF_NONE_MATCH, &tag)]).await;
    assert_eq!((response.status(), body.len()), (StatusCode::NOT_MODIFIED, 0));
    let (response, _) = get("/openapi/v3/apis/route.openshift.io/v1?hash=OLD", &[]).await;
    assert_eq!(
        (response.status(), &response.headers()[LOCATION]),
        (StatusCode::MOVED_PERMANENTLY, &HeaderValue::from_str(url).unwrap())
    );
}

#[tokio::test]
async fn encodings_are_negotiated() {
    for (path, [protobuf, older]) in
        [("/openapi/v2", super::V2_PROTOBUF), ("/openapi/v3/apis/route.openshift.io/v1", super::V3_PROTOBUF)]
    {
        for (accept, content_type) in [
            ("application/json", "application/json"),
            ("*/*", "application/json"),
            (protobuf, protobuf),
            (older, protobuf),
            (&format!("text/html,{older}"), protobuf),
            (&format!("application/json;q=0.5,{protobuf}"), protobuf),
        ] {
            let (response, body) = get(path, &[(ACCEPT, accept)]).await;
            assert_eq!(response.headers()[CONTENT_TYPE], content_type, "{accept}");
            assert_eq!(body.starts_with(b"{"), content_type == "application/json");
        }
        let tag = |response: &Response<()>| response.headers()[ETAG].clone();
        let (json, _) = get(path, &[]).await;
        assert_eq!(tag(&get(path, &[(ACCEPT, older)]).await.0), tag(&json));
        assert_eq!(get(path, &[(ACCEPT, "text/html")]).await.0.status(), StatusCode::NOT_ACCEPTABLE);
    }
    let (response, body) = get("/openapi/v2", &[(ACCEPT_ENCODING, "br, gzip")]).await;
    assert_eq!(response.headers()[CONTENT_ENCODING], "gzip");
    assert!(body.starts_with(&[0x1f, 0x8b]));
    assert!(get("/openapi/v2", &[(ACCEPT_ENCODING, "gzip;q=0")]).await.1.starts_with(b"{"));
    assert!(
        OpenApi::new(vec![&ROUTES]).respond("/openapi/v3/apis/nope/v1", None, &HeaderMap::new()).is_none()
    );
    assert!(OpenApi::new(vec![&ROUTES]).respond("/apis", None, &HeaderMap::new()).is_none());
}

/// `hack/fixtures/openapi` made the files of gnostic's.
#[test]
fn protobuf_is_what_gnostic_writes() {
    type Write = fn(&Value) -> Vec<u8>;
    let (v2, v3): (Write, Write) = (super::gnostic::v2::document, super::gnostic::v3::document);
    for (write, json, expected) in [
        (v2, include_str!("testdata/v2.json"), &include_bytes!("testdata/v2.bin")[..]),
        (v3, include_str!("testdata/v3.json"), &include_bytes!("testdata/v3.bin")[..]),
    ] {
        let written = write(&serde_json::from_str(json).unwrap());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(written == expected, "{:?}\n{:?}", text(&written), text(expected));
    }
}

/// What the documents have, the messages have too: whoever adds a field to the one thinks of the other.
#[tokio::test]
async fn no_field_is_missing_in_protobuf() {
    fn fields(value: &Value, named: bool, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                if !named && !key.starts_with("x-") {
                    found.insert(key.clone());
                }
                let names = [
                    "content",
                    "definitions",
                    "paths",
                    "properties",
                    "responses",
                    "schemas",
                    "security",
                    "securityDefinitions",
                    "securitySchemes",
                ];
                if !key.starts_with("x-") {
                    fields(value, !named && names.contains(&key.as_str()), found);
                }
            }),
            Value::Array(list) => list.iter().for_each(|value| fields(value, named, found)),
            _ => {}
        }
    }
    for (path, tried) in [
        ("/openapi/v2", include_str!("testdata/v2.json")),
        ("/openapi/v3/apis/route.openshift.io/v1", include_str!("testdata/v3.json")),
    ] {
        let (mut served, mut known) = Default::default();
        fields(&document(path).await, false, &mut served);
        fields(&serde_json::from_str(tried).unwrap(), false, &mut known);
        assert_eq!(served.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new(), "{path}");
    }
}
