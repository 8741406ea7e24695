//! The bytes of a connection: what the listener reads in them, and what of it is sent on.

use std::io::Cursor;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock};

use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, TE, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use picoshift_machinery::body::{Body, full};
use picoshift_machinery::listener::{self, Service};
use picoshift_machinery::peer::Peer;
use picoshift_machinery::request_info::RequestInfo;
use tokio::runtime::{Builder, Runtime};

use crate::args::{DirectGroups, ServiceName};
use crate::claims::{Claims, User};
use crate::credentials;
use crate::direct::{ApiService, Direct};
use crate::documents::Documents;
use crate::headers;
use crate::refusal::{self, Form};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const GROUP: &str = "route.openshift.io";
/// Headers of which a proxy sends on one at most.
const ONCE: [HeaderName; 5] = [AUTHORIZATION, CONTENT_LENGTH, COOKIE, HOST, TE];
/// Headers of one connection. `Connection` and `Upgrade` are sent where a tunnel is asked for.
const HOP_BY_HOP: [&str; 5] =
    ["keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "transfer-encoding"];

static RUNTIME: LazyLock<Option<Runtime>> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().ok());

/// Looks at every request that the listener hands over.
struct Door {
    documents: Documents,
    direct: Direct,
}

/// The bytes of a connection, answered as they are read.
pub(super) fn request_heads(bytes: &[u8]) {
    let Some(runtime) = &*RUNTIME else { return };
    let documents = Documents::new(true);
    documents.set_oauth_metadata(Some("{}".to_owned()));
    documents.set_console(Some("https://console.example".to_owned()));
    let service = ServiceName { namespace: "ns".to_owned(), name: "ours".to_owned() };
    let direct = Direct::new(DirectGroups::All, service);
    direct.apply(ApiService {
        name: format!("v1.{GROUP}"),
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        service: Some(("ns".to_owned(), "ours".to_owned())),
    });
    let stream = tokio::io::join(Cursor::new(bytes.to_vec()), tokio::io::sink());
    let door = Arc::new(Door { documents, direct });
    // How a connection ends is the listener's business: what counts is what comes through.
    let _ = runtime.block_on(listener::serve_stream(stream, SocketAddr::new(CLIENT, 1), door));
}

impl Service for Door {
    type Connection = ();

    fn connected(&self, _peer: Peer) {}

    async fn call(self: Arc<Self>, _connection: Arc<()>, request: Request<Incoming>) -> Response<Body> {
        let (mut head, body) = request.into_parts();
        for version in [head.version, Version::HTTP_2] {
            head.version = version;
            let unauthorized = refusal::unauthorized(&Form::of(&head));
            assert!(unauthorized.headers().get_all("audit-id").iter().count() == 1);
            match refusal::check(&head, body.is_end_stream()) {
                Ok(()) => self.admitted(&head),
                Err(refusal) => {
                    let code = refusal::refused(refusal, version).status();
                    assert!(code.is_client_error(), "{refusal:?} is answered with {code}");
                }
            }
        }
        let _ = body.collect().await;
        Response::new(full(""))
    }
}

impl Door {
    fn admitted(&self, head: &Parts) {
        let _ = self.documents.answer(&head.method, head.uri.path());
        let path = head.uri.path();
        if self.direct.takes(path)
            && let Ok(info) = RequestInfo::parse(&head.method, path, false, None)
        {
            assert!(!info.is_resource || info.group == GROUP, "{path:?} is of {:?}", info.group);
            assert!(!path.contains("//") && !path.contains("/../"), "{path:?} is ambiguous");
        }
        let mut forwarded = head.headers.clone();
        let upgrades = head.headers.contains_key(UPGRADE) && credentials::asks_for_upgrade(&head.headers);
        headers::forward(&mut forwarded, &head.uri, CLIENT, upgrades);
        assert_harmless(&forwarded);
        assert_same_caller(&head.headers, &forwarded);
    }
}

/// Nothing of it can be read as an identity, as another request, or as another length.
fn assert_harmless(headers: &HeaderMap) {
    for (name, value) in headers {
        let name = name.as_str();
        assert!(!name.replace('_', "-").starts_with("x-remote-"), "{name} is sent on");
        assert!(!HOP_BY_HOP.contains(&name), "{name} is sent on");
        assert!(!value.as_bytes().iter().any(|byte| b"\0\r\n".contains(byte)), "{name}: {value:?}");
    }
    for name in ONCE {
        assert!(headers.get_all(&name).iter().count() <= 1, "{name} is sent twice: {headers:?}");
    }
    assert!(headers.get(TE).is_none_or(|value| value == "trailers"));
    let length = headers.get(CONTENT_LENGTH).map(HeaderValue::as_bytes).unwrap_or_default();
    assert!(length.iter().all(u8::is_ascii_digit), "{length:?} is a length");
    assert_eq!(headers.contains_key(CONNECTION), headers.contains_key(UPGRADE));
    assert!(headers.contains_key(HOST));
    let said: Vec<_> = headers.get_all("x-forwarded-for").iter().collect();
    assert!(said.len() == 1 && said[0].as_bytes().ends_with(b"127.0.0.1"), "{said:?}");
}

/// Whoever calls says to the next server what was said here, and is named once where we vouch for it.
fn assert_same_caller(came: &HeaderMap, sent: &HeaderMap) {
    let says_who = |name: &HeaderName| *name == AUTHORIZATION || headers::is_impersonation(name);
    for name in came.keys().filter(|name| says_who(name)) {
        let mut kept = sent.get_all(name).iter();
        let same = came.get_all(name).iter().all(|value| kept.next() == Some(value));
        assert!(same, "{name} is not what it was");
    }
    assert_eq!(credentials::bearer(came), credentials::bearer(sent));
    assert_eq!(credentials::websocket(came), credentials::websocket(sent));
    let alice = User { username: "alice".to_owned(), ..User::default() };
    let mut vouched = sent.clone();
    if let Ok(claims) = Claims::new(&alice) {
        claims.add_to(&mut vouched);
    }
    let names: Vec<_> = vouched.iter().filter(|(name, _)| headers::is_claim(name)).collect();
    assert!(names.len() == 1 && names[0].1 == "alice", "{names:?}");
}
