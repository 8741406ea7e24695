//! What happens to a request, in its order: it is looked at, its claims of identity are dropped, who sends it is found out,
//! and it goes to kube-apiserver or to our API server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{AUTHORIZATION, CONTENT_LENGTH};
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use picoshift_machinery::drain::Drain;
use picoshift_machinery::followed::Followed;
use picoshift_machinery::listener::Service;
use picoshift_machinery::peer::Peer;
use picoshift_machinery::tls::{TrustBundle, TrustError};
use tokio_util::sync::CancellationToken;

use crate::access_log::{self, Line};
use crate::caller::{Caller, Connection};
use crate::credentials::{self, Carried};
use crate::direct::Direct;
use crate::documents::Documents;
use crate::effective::{Identities, Learnt};
use crate::headers;
use crate::metrics::{Kind, Metrics};
use crate::refusal::{self, Form, Refusal, refused, unauthorized};
use crate::relay::{AnswerBody, Counted, Relayed};
use crate::revocation::{Revocations, Use};
use crate::tunnel::{Held, Tunnels};
use crate::understood::{Understood, prepare};
use crate::upstream::{Pool, Pools, SendError};

/// Everything that answering takes.
pub struct Front {
    /// Connections to the servers behind us.
    pub pools: Pools,
    /// Authorities of client certificates.
    pub authorities: Arc<Followed<TrustBundle, TrustError>>,
    /// What goes to our API server.
    pub direct: Arc<Direct>,
    /// Who callers are.
    pub identities: Identities,
    /// Which tokens have ended.
    pub revocations: Revocations,
    /// What we answer ourselves.
    pub documents: Arc<Documents>,
    /// Open tunnels.
    pub tunnels: Tunnels,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Time until an answer must begin.
    pub answer_timeout: Duration,
    /// Whether each request is logged.
    pub access_log: bool,
    /// Cuts the streams that would last: they are taken up again elsewhere.
    pub streams_end: CancellationToken,
}

/// What became of a request.
struct Outcome {
    kind: Kind,
    response: Response<AnswerBody>,
    /// Time that others took.
    elsewhere: Option<Duration>,
    user: Option<String>,
}

/// Why a request goes no further for what it says of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotAdmitted {
    /// A certificate that is not good, and no token.
    Certificate,
    /// A token that has ended.
    Revoked,
}

impl Outcome {
    fn own(kind: Kind, response: Response<picoshift_machinery::body::Body>) -> Self {
        Self { kind, response: response.map(AnswerBody::Own), elsewhere: None, user: None }
    }
}

impl Service<AnswerBody> for Front {
    type Connection = Connection;

    fn connected(&self, peer: Peer) -> Connection {
        Connection::new(peer)
    }

    async fn call(
        self: Arc<Self>,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> Response<AnswerBody> {
        let started = Instant::now();
        let (method, uri) = (request.method().clone(), request.uri().clone());
        // HTTP/1 connections keep the room of this future while the answer flows: it shall be small.
        let outcome = Box::pin(self.answer(&connection, request)).await;
        let took = started.elapsed();
        let added = outcome.elsewhere.map(|elsewhere| took.saturating_sub(elsewhere).as_secs_f64());
        let code = outcome.response.status().as_u16();
        self.metrics.answered(outcome.kind, code, added);
        if self.access_log {
            let client = connection.peer.address.ip();
            let (kind, user, path) = (outcome.kind, outcome.user, uri.path());
            access_log::log(&Line { client, method: &method, path, code, kind, user, took });
        }
        outcome.response
    }
}

impl Front {
    async fn answer(&self, connection: &Connection, request: Request<Incoming>) -> Outcome {
        let (head, body) = request.into_parts();
        if let Err(refusal) = refusal::check(&head, body.is_end_stream()) {
            return Outcome::own(Kind::Refused, refused(refusal, head.version));
        }
        if let Some(response) = self.documents.answer(&head.method, head.uri.path()) {
            return Outcome::own(Kind::Document, response);
        }
        let form = Form::of(&head);
        let understood = match self.admit(connection, &head.headers) {
            Ok((caller, using)) => prepare(connection, head, body, caller, using, self.answer_timeout),
            Err(refused) => return self.not_admitted(refused, &form),
        };
        let user = match (&understood.caller, self.access_log) {
            (Caller::Vouched(vouched), true) => Some(vouched.claims.name()),
            _ => None,
        };
        // What began before its token ended is answered, and be it the request that ends it. Only what lasts is cut.
        let ends = understood.using.as_ref().filter(|_| understood.lasting).map(Use::revoked);
        let mut outcome = match ends {
            None => self.forward(understood, &form).await,
            Some(revoked) => tokio::select! {
                biased;
                () = revoked => self.not_admitted(NotAdmitted::Revoked, &form),
                outcome = self.forward(understood, &form) => outcome,
            },
        };
        outcome.user = user;
        outcome
    }

    /// Who sends a request, and which token of ours it uses.
    fn admit(
        &self,
        connection: &Connection,
        headers: &HeaderMap,
    ) -> Result<(Caller, Option<Use>), NotAdmitted> {
        let caller = connection.caller(&self.authorities.current());
        if matches!(caller, Caller::Vouched(_)) {
            return Ok((caller, None));
        }
        let carried = [credentials::bearer(headers), credentials::websocket(headers)];
        if matches!(caller, Caller::Doubtful) && carried.iter().all(|one| *one == Carried::Nothing) {
            return Err(NotAdmitted::Certificate);
        }
        let mut using = None;
        for one in &carried {
            let Carried::Token(token) = one else { continue };
            let entered = self.revocations.enter(token).map_err(|_| NotAdmitted::Revoked)?;
            using = entered.or(using);
        }
        Ok((caller, using))
    }

    fn not_admitted(&self, why: NotAdmitted, form: &Form) -> Outcome {
        if why == NotAdmitted::Revoked {
            self.metrics.revoked.inc();
        }
        Outcome::own(Kind::Refused, unauthorized(form))
    }

    async fn forward(&self, mut request: Understood, form: &Form) -> Outcome {
        let pool = match request.caller {
            Caller::Vouched(_) => &self.pools.fronted,
            Caller::Own | Caller::Doubtful => &self.pools.plain,
        };
        let asked = Instant::now();
        if let Some(ours) = self.pools.ours.as_ref().filter(|_| self.goes_direct(&request)) {
            match self.identities.learn(pool, &request.caller, &request.outgoing.headers).await {
                Learnt::User(claims) => {
                    let usual = request.outgoing.headers.clone();
                    let headers = &mut request.outgoing.headers;
                    headers.remove(AUTHORIZATION);
                    headers::drop_impersonation(headers);
                    headers::drop_claims(headers);
                    claims.add_to(headers);
                    let learnt = asked.elapsed();
                    let sent = self.send(ours, &mut request, Kind::Direct).await;
                    // It was not reached: kube-apiserver says so in its own words, or reaches it.
                    match sent {
                        Ok(outcome) => {
                            let elsewhere = outcome.elsewhere.map(|elsewhere| elsewhere + learnt);
                            return Outcome { elsewhere, ..outcome };
                        }
                        Err(SendError::Unreachable(_)) => request.outgoing.headers = usual,
                        Err(error) => return unanswered(form, &error, Kind::Direct),
                    }
                }
                Learnt::Answer(response) => {
                    let elsewhere = Some(asked.elapsed());
                    return Outcome { kind: Kind::Direct, response, elsewhere, user: None };
                }
                Learnt::Unknown => {}
            }
        }
        let kind = if request.tunnel.is_some() { Kind::Upgrade } else { Kind::Kubernetes };
        match self.send(pool, &mut request, kind).await {
            Ok(outcome) => outcome,
            Err(error) => unanswered(form, &error, kind),
        }
    }

    /// Whether a request is for our API server and somebody says who sends it.
    fn goes_direct(&self, request: &Understood) -> bool {
        let named = matches!(request.caller, Caller::Vouched(_))
            || request.outgoing.headers.contains_key(AUTHORIZATION);
        named && request.tunnel.is_none() && self.direct.takes(request.outgoing.target.path())
    }

    async fn send(&self, pool: &Pool, request: &mut Understood, kind: Kind) -> Result<Outcome, SendError> {
        let running = Counted::in_gauge(&pool.metrics.running);
        let asked = Instant::now();
        let mut answer = pool.send(&mut request.outgoing).await?;
        let elsewhere = Some(asked.elapsed());
        let using = request.using.take().filter(|_| request.lasting);
        if answer.response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let Some((client, place)) = request.tunnel.take() else {
                return Err(SendError::Broken("a tunnel that nobody asked for".to_owned()));
            };
            let held = Held { place, using, running };
            let response = self.tunnels.open(client, answer.response, held, &self.metrics.tunnels);
            return Ok(Outcome { kind, response, elsewhere, user: None });
        }
        headers::drop_hop_by_hop(answer.response.headers_mut());
        *answer.response.version_mut() = http::Version::HTTP_11;
        let endless = request.lasting && !answer.response.headers().contains_key(CONTENT_LENGTH);
        let cut = endless.then(|| Box::pin(self.streams_end.clone().cancelled_owned()));
        let response = Relayed::answer(answer, cut, using, running);
        Ok(Outcome { kind, response, elsewhere, user: None })
    }

    /// Ends streams that would last when `drain` starts.
    pub async fn end_streams(&self, drain: Drain) {
        drain.wait().await;
        self.streams_end.cancel();
    }
}

/// What the client is told when nobody answered.
fn unanswered(form: &Form, error: &SendError, kind: Kind) -> Outcome {
    let response = match error {
        SendError::Unreachable(why) => refusal::unreachable(form, why, true),
        SendError::Broken(why) => refusal::unreachable(form, why, false),
        SendError::ClientBody => refused(Refusal::Malformed("the body cannot be read"), form.version),
        SendError::TooSlow => refusal::too_slow(form),
    };
    Outcome::own(kind, response)
}
