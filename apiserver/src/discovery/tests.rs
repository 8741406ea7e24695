//! The recorded documents of the real server, for the groups that are served here.

use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use picoshift_machinery::Object;
use picoshift_machinery::body::Body;
use picoshift_machinery::protobuf::Envelope;

use super::Discovery;
use crate::groups::oauth;
use crate::groups::project::{PROJECT_REQUESTS, PROJECTS};
use crate::groups::route::ROUTES;
use crate::schema::Schemas;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn discovery() -> Discovery {
    Discovery::new(&[&ROUTES, &PROJECTS, &PROJECT_REQUESTS], &Schemas::load().unwrap()).unwrap()
}

async fn get(path: &str, accept: &'static str) -> (Response<()>, String) {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
    split(discovery().respond(path, &headers, false).unwrap()).await
}

async fn split(response: Response<Body>) -> (Response<()>, String) {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (Response::from_parts(parts, ()), String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn resource_lists_are_the_recorded_ones() {
    let (_, text) = get("/apis/project.openshift.io/v1", "").await;
    assert_eq!(
        text.trim_end(),
        r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"project.openshift.io/v1","resources":[{"name":"projectrequests","singularName":"projectrequest","namespaced":false,"kind":"ProjectRequest","verbs":["create","list"]},{"name":"projects","singularName":"project","namespaced":false,"kind":"Project","verbs":["create","delete","get","list","patch","update","watch"]}]}"#
    );
    let (_, text) = get("/apis/route.openshift.io/v1/", "application/json").await;
    assert_eq!(
        text.trim_end(),
        r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"route.openshift.io/v1","resources":[{"name":"routes","singularName":"route","namespaced":true,"kind":"Route","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"categories":["all"],"storageVersionHash":"jo1F7GfnXH4="},{"name":"routes/status","singularName":"","namespaced":true,"kind":"Route","verbs":["get","patch","update"]}]}"#
    );
}

#[tokio::test]
async fn a_resource_may_take_a_kind_of_another_group() {
    let resources = [
        &oauth::CLIENTS,
        &oauth::ACCESS_TOKENS,
        &oauth::AUTHORIZE_TOKENS,
        &oauth::CLIENT_AUTHORIZATIONS,
        &oauth::USER_TOKENS,
        &oauth::TOKEN_REVIEWS,
    ];
    let discovery = Discovery::new(&resources, &Schemas::load().unwrap()).unwrap();
    let (_, text) =
        split(discovery.respond("/apis/oauth.openshift.io/v1", &HeaderMap::new(), false).unwrap()).await;
    assert_eq!(
        text.trim_end(),
        r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"oauth.openshift.io/v1","resources":[{"name":"oauthaccesstokens","singularName":"oauthaccesstoken","namespaced":false,"kind":"OAuthAccessToken","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"storageVersionHash":"Hss+eIbWaq4="},{"name":"oauthauthorizetokens","singularName":"oauthauthorizetoken","namespaced":false,"kind":"OAuthAuthorizeToken","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"storageVersionHash":"boIUgj6jo8I="},{"name":"oauthclientauthorizations","singularName":"oauthclientauthorization","namespaced":false,"kind":"OAuthClientAuthorization","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"storageVersionHash":"Q0jsEj2AFkk="},{"name":"oauthclients","singularName":"oauthclient","namespaced":false,"kind":"OAuthClient","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"storageVersionHash":"8NZGiGeCmFo="},{"name":"tokenreviews","singularName":"tokenreview","namespaced":false,"group":"authentication.k8s.io","version":"v1","kind":"TokenReview","verbs":["create"]},{"name":"useroauthaccesstokens","singularName":"useroauthaccesstoken","namespaced":false,"kind":"UserOAuthAccessToken","verbs":["delete","get","list","watch"]}]}"#
    );
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(AGGREGATED))]);
    let (_, text) = split(discovery.respond("/apis", &headers, false).unwrap()).await;
    let kind = r#""responseKind":{"group":"authentication.k8s.io","version":"v1","kind":"TokenReview"}"#;
    assert!(text.contains(kind), "{text}");
}

#[tokio::test]
async fn groups_are_listed() {
    let (_, text) = get("/apis", "application/json").await;
    assert_eq!(
        text.trim_end(),
        r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"project.openshift.io","versions":[{"groupVersion":"project.openshift.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"project.openshift.io/v1","version":"v1"}},{"name":"route.openshift.io","versions":[{"groupVersion":"route.openshift.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"route.openshift.io/v1","version":"v1"}}]}"#
    );
    let (_, text) = get("/apis/route.openshift.io", "*/*").await;
    assert!(
        text.starts_with(r#"{"kind":"APIGroup","apiVersion":"v1","name":"route.openshift.io","versions":[{"#)
    );
}

#[tokio::test]
async fn aggregated_discovery_has_an_entity_tag() {
    let (response, text) = get("/apis", AGGREGATED).await;
    assert_eq!(response.headers()[CONTENT_TYPE], AGGREGATED);
    assert!(text.starts_with(
        r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"name":"project.openshift.io"},"versions":[{"version":"v1","resources":[{"resource":"projectrequests","responseKind":{"group":"","version":"","kind":"ProjectRequest"},"scope":"Cluster","singularResource":"projectrequest","verbs":["create","list"]}"#
    ), "{text}");
    assert!(text.contains(
        r#""categories":["all"],"subresources":[{"subresource":"status","responseKind":{"group":"","version":"","kind":"Route"},"verbs":["get","patch","update"]}]}],"freshness":"Current"}]}]}"#
    ), "{text}");
    let tag = response.headers()[ETAG].clone();
    assert_eq!(tag.len(), 130);
    let headers =
        HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(AGGREGATED)), (IF_NONE_MATCH, tag)]);
    let (response, text) = split(discovery().respond("/apis", &headers, false).unwrap()).await;
    assert_eq!((response.status(), text.as_str()), (StatusCode::NOT_MODIFIED, ""));
}

#[tokio::test]
async fn clauses_are_tried_in_order() {
    let both = "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,\
                application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
    let (_, text) = get("/apis", both).await;
    assert!(text.contains("\"apiVersion\":\"apidiscovery.k8s.io/v2beta1\""));
    let (response, text) = get("/apis/route.openshift.io", both).await;
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    assert!(text.contains("APIGroup"));
    let (_, text) = get("/apis", "application/cbor, application/yaml").await;
    assert!(text.contains("kind: APIGroupList"), "{text}");
    let (response, _) = get("/apis", "text/html").await;
    assert_eq!(response.status(), StatusCode::NOT_ACCEPTABLE);
    assert!(discovery().respond("/apis/nope.io", &HeaderMap::new(), false).is_none());
}

#[tokio::test]
async fn protobuf_is_served_where_go_has_messages() {
    let protobuf = "application/vnd.kubernetes.protobuf";
    for (path, kind) in [
        ("/apis", "APIGroupList"),
        ("/apis/route.openshift.io", "APIGroup"),
        ("/apis/route.openshift.io/v1", "APIResourceList"),
    ] {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(protobuf))]);
        let (parts, body) = discovery().respond(path, &headers, false).unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let envelope = Envelope::open(&body).unwrap();
        assert_eq!(
            (&parts.headers[CONTENT_TYPE], envelope.kind.as_str()),
            (&HeaderValue::from_static(protobuf), kind)
        );
        let name = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}");
        let read = Schemas::load().unwrap().from_protobuf(&name, envelope.raw).unwrap();
        let (_, text) = get(path, "").await;
        let mut written = Object::from_slice(text.as_bytes()).unwrap();
        // What is left out is empty.
        written.0.retain(|field, _| read.0.contains_key(field));
        let of =
            |object: &Object, field: &str| object.at(&[field]).and_then(|list| Some(list.as_array()?.len()));
        for field in ["groups", "versions", "resources"] {
            assert_eq!(of(&read, field), of(&written, field), "{path}");
        }
    }
    let aggregated =
        "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    assert_eq!(get("/apis", aggregated).await.0.status(), StatusCode::NOT_ACCEPTABLE);
}
