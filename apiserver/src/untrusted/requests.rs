//! Who asks for what: path, query, headers, certificate, selectors, names.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use picoshift_machinery::media_type::{self, Answer, Encoding, Shape};
use picoshift_machinery::peer::Subject;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::selector::{FieldSelector, LabelSelector, Operator};

use crate::authn::request_header::named_user;
use crate::groups::{route, user};
use crate::registry::page::Continue;
use crate::rest::query::{self, Listing, Query, WriteKind};
use crate::server::query::Query as ServerQuery;

/// Label and field selectors: what is read can be written, and is read the same.
pub(super) fn selectors(text: &str) {
    if let Ok(selector) = LabelSelector::parse(text) {
        let _ = selector.matches(|key| (key.len() % 2 == 0).then_some("1"));
        assert_eq!(LabelSelector::parse(&labels_text(&selector)), Ok(selector), "{text:?}");
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        let _ = selector.matches(|_| Some("1"));
        assert_eq!(FieldSelector::parse(&fields_text(&selector)), Ok(selector), "{text:?}");
    }
}

fn labels_text(selector: &LabelSelector) -> String {
    let terms = selector.requirements.iter().map(|term| {
        let (key, values) = (&term.key, term.values.join(","));
        match term.operator {
            Operator::DoesNotExist => format!("!{key}"),
            Operator::Exists => key.clone(),
            Operator::GreaterThan => format!("{key}>{values}"),
            Operator::In => format!("{key} in ({values})"),
            Operator::LessThan => format!("{key}<{values}"),
            Operator::NotIn => format!("{key} notin ({values})"),
        }
    });
    terms.collect::<Vec<_>>().join(",")
}

fn fields_text(selector: &FieldSelector) -> String {
    let terms = selector.requirements.iter().map(|term| {
        let operator = if term.negated { "!=" } else { "=" };
        let value = term.value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
        format!("{}{operator}{value}", term.field)
    });
    terms.collect::<Vec<_>>().join(",")
}

/// A request path: what names a resource has no empty segment, a `watch` comes by GET only, and the path that is put together
/// again from what was read means the same.
pub(super) fn request_path(path: &str) {
    for method in [Method::GET, Method::POST, Method::DELETE] {
        let Ok(info) = RequestInfo::parse(&method, path, false, None) else { continue };
        if !info.is_resource {
            continue;
        }
        assert!(!path.trim_end_matches('/').contains("//"), "{path:?} is ambiguous");
        assert!(info.verb != "watch" || method == Method::GET, "{path:?} is a watch by {method}");
        let again = RequestInfo::parse(&method, &path_of(&info), false, None);
        assert_eq!(again.map(|again| RequestInfo { path: info.path.clone(), ..again }), Ok(info));
    }
}

fn path_of(info: &RequestInfo) -> String {
    let mut parts = match info.group.as_str() {
        "" => vec!["api", &info.version],
        group => vec!["apis", group, &info.version],
    };
    // Of GET, POST and DELETE, only one behind `/watch/` has no verb.
    if matches!(info.verb.as_str(), "watch" | "") {
        parts.push("watch");
    }
    if !info.namespace.is_empty() {
        parts.extend(["namespaces", &info.namespace]);
    }
    let rest = info.rest.iter().map(String::as_str);
    let named = [info.resource.as_str(), &info.name, &info.subresource];
    parts.extend(named.into_iter().filter(|part| !part.is_empty()).chain(rest));
    parts.iter().map(|part| format!("/{}", utf8_percent_encode(part, NON_ALPHANUMERIC))).collect()
}

/// An `Accept` header: refused only where JSON is not allowed, and what is answered exists.
pub(super) fn accept(text: &str) {
    // Not all clauses of a very long header are read.
    let json = text.split(',').take(100).any(|c| matches!(c.trim_matches(' '), "application/json" | "*/*"));
    for answer in [Answer::One, Answer::List, Answer::Watch] {
        for tables in [false, true] {
            match media_type::negotiate(Some(text), answer, tables) {
                Ok(found) => {
                    let table = matches!(found.shape, Shape::Table(_));
                    assert!(!table || (tables && found.encoding != Encoding::Protobuf), "{found:?}");
                    assert!(found.encoding != Encoding::Yaml || answer != Answer::Watch, "{found:?}");
                }
                Err(status) => assert!(status.code == 406 && !json, "{text:?}: {status:?}"),
            }
        }
    }
    assert_eq!(media_type::of_errors(Some(text)).shape, Shape::Whole);
}

/// A query string, for the server and for every kind of options: who authorizes a request and who answers it read the same.
pub(super) fn query_string(text: &str) {
    let server = ServerQuery::read(Some(text));
    if let Ok(Some(time)) = server.time() {
        assert!(!time.is_zero() && time.as_secs() < 10_000_000_000, "{text:?} asks for {time:?}");
    }
    let query = Query::parse(Some(text));
    let _ = query::get_options(&query);
    let _ = query::delete_options(&query);
    let _ = query::table_options(&query);
    for listing in [Listing::ByQuery { name: None }, Listing::Watch { name: Some("n") }] {
        let Ok(options) = query::list_options(&query, &route::ROUTES, listing) else { continue };
        match listing {
            Listing::Watch { .. } => assert_eq!(options.fields.exact("metadata.name"), Some("n"), "{text:?}"),
            Listing::ByQuery { .. } => {
                let name = server.field_name.as_deref();
                assert!(name.is_none() || options.fields.exact("metadata.name") == name, "{text:?}");
            }
        }
    }
    let watch = query.first("watch").is_some_and(|set| set != "0" && !set.eq_ignore_ascii_case("false"));
    assert_eq!(server.watch, watch, "{text:?}");
    for kind in [WriteKind::Apply, WriteKind::Create, WriteKind::Patch, WriteKind::Update] {
        let _ = query::write_options(&query, kind);
    }
}

/// A continue token: refused with 400, or one that reads back as itself and stays within what is listed.
pub(super) fn continue_token(text: &str) {
    match Continue::decode(text) {
        Ok(token) => {
            for within in ["", "ns"] {
                for part in [token.last(within).0, token.last(within).1] {
                    assert!(!matches!(part, "." | ".."), "{text:?} leads out");
                }
            }
            assert!(Continue::decode(&token.encode()).is_ok_and(|again| again == token));
        }
        Err(status) => assert_eq!(status.code, 400),
    }
}

/// Names of users, groups and identities: what is accepted stays in its place in a path.
pub(super) fn user_names(text: &str) {
    user::names_are_harmless(text);
}

/// A client's certificate.
pub(super) fn certificate(der: &[u8]) {
    let _ = Subject::of(der);
}

/// Header lines (`name:value`, ended by line feeds) on a front proxy's connection: whoever they name has a name.
pub(super) fn front_proxy_headers(lines: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (Some(name), Some(value)) = (parts.next(), parts.next()) else { continue };
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    let names = |name: &'static str| [HeaderName::from_static(name)];
    let user = named_user(
        &headers,
        &names("x-remote-user"),
        &names("x-remote-group"),
        &names("x-remote-uid"),
        &["x-remote-extra-".to_owned()],
    );
    assert!(user.is_none_or(|user| !user.name.is_empty() && !user.groups.contains(&String::new())));
}
