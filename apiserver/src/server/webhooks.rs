//! The authorization webhooks that kube-apiserver asks. They answer before a request of this server's own is authorized:
//! who may ask is fixed, and who waits for them is kube-apiserver, on behalf of everybody.

use http::header::ACCEPT;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use picoshift_machinery::Status;
use picoshift_machinery::body::Body;
use picoshift_machinery::request_info::RequestInfo;

use super::{Parts, respond};
use crate::authn::Identity;
use crate::authz::{projects_webhook, scopes, webhook};

/// Their paths.
pub(super) const PATHS: [&str; 2] = [projects_webhook::PATH, scopes::webhook::PATH];

/// Whether a request is for a webhook.
pub(super) fn is_for(info: &RequestInfo) -> bool {
    !info.is_resource && PATHS.contains(&info.path.as_str())
}

/// Answers a question of kube-apiserver.
pub(super) async fn answer(
    parts: &Parts,
    identity: &Identity,
    info: &RequestInfo,
    request: Request<Incoming>,
) -> Response<Body> {
    if let Err(status) = webhook::admit(identity, &info.verb, &info.path) {
        return respond::forbidden(&status, request.headers().get(ACCEPT));
    }
    if request.method() != Method::POST {
        return respond::plain_error(StatusCode::METHOD_NOT_ALLOWED, "only POST is answered here");
    }
    let body = match Limited::new(request.into_body(), webhook::MAX_BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return respond::status(&Status::bad_request(error.to_string())),
    };
    if info.path == scopes::webhook::PATH {
        return scopes::webhook::answer(parts.authorizer.scopes(), &body);
    }
    projects_webhook::answer(&parts.authorizer, &parts.memberships, &body).await
}
