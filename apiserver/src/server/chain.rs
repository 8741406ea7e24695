//! What happens to every request, in order: panics are caught; an audit id is kept or made; the time is limited; the
//! caller is authenticated and may impersonate; it finds a place among the running requests; it is authorized; then
//! its endpoint answers. Plain calls, no layers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use http::header::ACCEPT;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use picoshift_machinery::Status;
use picoshift_machinery::body::Body;
use picoshift_machinery::drain::Drain;
use picoshift_machinery::listener::Service;
use picoshift_machinery::peer::Peer;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::user_info::MASTERS;
use tokio::time::timeout;

use super::in_flight::{InFlight, Kind, Place, Refused as NoPlace};
use super::long_running::{Held, IMPORT_TIME, is_import, until_drained};
use super::query::Query;
use super::seen::{Seen, request_line};
use super::{Parts, own_paths, respond, response_headers, webhooks};
use crate::authn::Method::Impersonation as Impersonated;
use crate::authn::attempted;
use crate::authn::impersonation::{Refused, impersonate};
use crate::authn::{Connection, Identity};
use crate::authz::{
    Attributes, Authorizer as _, Decision, forbidden, is_token_review, personal_reviews, webhook,
};
use crate::rest::RequestContext;

/// The part of a request's time for which it may wait for its turn, as upstream's.
const WAITING_PART: u32 = 4;

/// The way of a request.
pub struct Chain {
    parts: Parts,
    in_flight: InFlight,
    request_time: Duration,
    drain: Drain,
}

impl Chain {
    /// A chain of `parts`.
    #[must_use]
    pub fn new(parts: Parts, in_flight: InFlight, request_time: Duration, drain: Drain) -> Self {
        Self { parts, in_flight, request_time, drain }
    }

    async fn answer(
        &self,
        connection: &Connection,
        request: Request<Incoming>,
        seen: &mut Seen,
    ) -> Response<Body> {
        let query = Query::read(request.uri().query());
        let info = RequestInfo::parse(
            request.method(),
            request.uri().path(),
            query.watch,
            query.field_name.as_deref(),
        );
        let info = match info {
            Ok(info) => info,
            Err(error) => return respond::status(&Status::bad_request(error.to_string())),
        };
        seen.target = own_paths::target(&self.parts.endpoints, &info, request.method());
        seen.watch = info.is_resource && info.verb == "watch";
        seen.long = seen.watch || is_import(&info);
        if seen.watch {
            return self.admitted(connection, request, info, seen).await;
        }
        let time = match query.time() {
            Ok(_) if seen.long => IMPORT_TIME,
            Ok(asked) => asked.map_or(self.request_time, |asked| asked.min(self.request_time)),
            Err(why) => {
                let headers = request.headers();
                let (audit, head) = (self.parts.audit.as_deref(), (headers, request.uri()));
                seen.refused(audit, head, &connection.peer, &info, (400, &why));
                return respond::negotiated(&Status::bad_request(why), headers.get(ACCEPT));
            }
        };
        seen.patience = time / WAITING_PART;
        let answer = timeout(time, self.admitted(connection, request, info, seen)).await;
        answer.unwrap_or_else(|_| respond::timed_out())
    }

    /// From authentication on.
    async fn admitted(
        &self,
        connection: &Connection,
        mut request: Request<Incoming>,
        info: RequestInfo,
        seen: &mut Seen,
    ) -> Response<Body> {
        let accept = request.headers().get(ACCEPT).cloned();
        let identity = self.parts.authenticator.authenticate(connection, request.headers()).await;
        self.parts.metrics.authenticated(identity.is_ok());
        let audit = self.parts.audit.as_deref();
        let head = (request.headers(), request.uri());
        let Ok(identity) = identity else {
            let attempted = attempted(request.headers(), &connection.peer);
            seen.refused(audit, head, &connection.peer, &info, (401, &attempted));
            return respond::negotiated(&Status::unauthorized(), accept.as_ref());
        };
        seen.user = Some(Arc::clone(&identity.user));
        let authorizer = &self.parts.authorizer;
        let memberships = &self.parts.memberships;
        let caller = memberships.join(&identity);
        seen.begin(audit, head, &connection.peer, &info, &caller.user);
        let uri = request.uri().clone();
        let (identity, carried) =
            match impersonate(Arc::clone(&caller), request.headers_mut(), &**authorizer).await {
                Ok(same) if Arc::ptr_eq(&same, &caller) => (caller, Arc::clone(&identity.user)),
                Ok(other) => (memberships.join(&other), Arc::clone(&other.user)),
                Err(Refused::Forbidden(status)) => return respond::forbidden(&status, accept.as_ref()),
                Err(Refused::Malformed(why)) => return respond::internal_error(request_line(&uri), &why),
            };
        if identity.method == Impersonated
            && let Some(record) = &seen.record
        {
            record.impersonated(&identity.user);
        }
        let Ok(place) = self.place(&identity, &info, seen).await else {
            return respond::too_many_requests();
        };
        if webhooks::is_for(&info) {
            return webhooks::answer(&self.parts, &identity, &info, request).await;
        }
        let mut decision = if is_token_review(&identity.user, &info) {
            Ok(Decision::Allow)
        } else {
            authorizer.authorize_request(&identity, &info).await
        };
        if matches!(decision, Ok(Decision::Deny { .. }))
            && let Some(personal) = personal_reviews::at_the_front(&Attributes::from(&info))
            && authorizer.authorize(&identity.user, &personal).await == Ok(Decision::Allow)
        {
            // Whoever is behind it reads the body, and decides what it really is.
            decision = Ok(Decision::Allow);
        }
        seen.decided(&decision);
        match decision {
            Ok(Decision::Allow) => {}
            Ok(Decision::Deny { reason }) => {
                let attributes = Attributes::from(&info);
                let status = forbidden(&identity.user, &attributes, &reason);
                return respond::forbidden(&status, accept.as_ref());
            }
            Err(error) => return respond::internal_error(request_line(&uri), &error.message),
        }
        self.parts.authenticator.strip(request.headers_mut());
        let cx = RequestContext::new(Arc::clone(&identity.user), info).carrying(carried);
        let cx = cx.audited(seen.record.clone());
        let response = self.dispatch(cx, request).await;
        if seen.watch && response.status() == StatusCode::OK {
            let held = Held { _place: place, _record: seen.record.clone() };
            let panics = self.parts.metrics.panics.clone();
            return response.map(|body| until_drained(body, &self.drain, held, panics));
        }
        response
    }

    /// A place among the running requests, or 429. Members of `system:masters` are never turned away, and neither is
    /// who asks about permissions and tokens on behalf of kube-apiserver: others wait for that answer.
    async fn place(
        &self,
        identity: &Identity,
        info: &RequestInfo,
        seen: &Seen,
    ) -> Result<Option<Place>, NoPlace> {
        if !info.is_resource && own_paths::PROBES.iter().any(|probe| info.path.starts_with(probe)) {
            return Ok(None);
        }
        let kind = match info.verb.as_str() {
            _ if seen.long => Kind::LongRunning,
            "get" | "list" | "head" | "options" => Kind::ReadOnly,
            _ => Kind::Mutating,
        };
        let user = &identity.user;
        let must = user.in_group(MASTERS)
            || is_token_review(user, info)
            || (webhooks::is_for(info) && user.name == webhook::CLIENT);
        let place = self.in_flight.enter(kind, &user.name, must, seen.patience).await;
        if place.is_err() {
            self.parts.metrics.dropped.inc();
        }
        place.map(Some)
    }

    async fn dispatch(&self, cx: RequestContext, request: Request<Incoming>) -> Response<Body> {
        let info = &cx.info;
        let endpoint = if info.is_resource {
            self.parts.endpoints.find_resource(info).map(|(_, endpoint)| endpoint)
        } else {
            self.parts.endpoints.find_path(&info.path)
        };
        match endpoint {
            Some(endpoint) => endpoint.call(Arc::new(cx), request).await,
            None if info.is_resource && self.parts.endpoints.serves(info) => {
                respond::status(&Status::no_such_path())
            }
            None if info.is_resource => respond::not_found(),
            None => own_paths::answer(&self.parts, info, request.uri().query()),
        }
    }
}

impl Service for Chain {
    type Connection = Connection;

    fn connected(&self, peer: Peer) -> Connection {
        Connection::new(peer)
    }

    async fn call(
        self: Arc<Self>,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let started = Instant::now();
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let mut seen = Seen::new(request.headers());
        let answer = AssertUnwindSafe(self.answer(&connection, request, &mut seen)).catch_unwind().await;
        let mut response = match answer {
            Ok(mut response) => {
                seen.responded(&mut response);
                response
            }
            Err(panic) => {
                self.parts.metrics.panics.inc();
                tracing::error!(%method, path = uri.path(), "a request made its handler panic");
                seen.panicked(&*panic);
                respond::panicked()
            }
        };
        response_headers::complete(response.headers_mut(), uri.path(), seen.audit_id.clone());
        if method == Method::HEAD {
            response = respond::head_only(response);
        }
        let (code, spent) = (response.status().as_u16(), started.elapsed());
        self.parts.metrics.answered(seen.target, code, (!seen.long).then_some(spent.as_secs_f64()));
        tracing::debug!(
            %method,
            path = uri.path(),
            user = seen.user.as_ref().map_or("", |user| &user.name),
            code,
            micros = spent.as_micros(),
            "request"
        );
        response
    }
}
