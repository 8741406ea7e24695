//! Discovery: which groups, versions and resources there are, in the legacy form and in the aggregated form.
//!
//! In: resource descriptions. Out: ready answers for `/apis` and below. They are made once, at start.

mod documents;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use picoshift_machinery::body::{self, Body};
use picoshift_machinery::media_type::{self, Encoding};
use serde::Serialize;
use sha2::{Digest, Sha512};

use crate::resource::Resource;
use documents::{Group, GroupDiscoveryList, GroupList, ResourceList};

/// Why discovery could not be made.
#[derive(Debug, thiserror::Error)]
#[error("discovery documents cannot be encoded: {0}")]
pub struct DiscoveryError(#[from] serde_json::Error);

/// Ready discovery documents.
#[derive(Debug)]
pub struct Discovery {
    /// Documents by path, without a slash at the end.
    plain: Vec<(String, Document)>,
    v2: Document,
    v2beta1: Document,
    /// The quoted entity tag of the aggregated documents.
    etag: HeaderValue,
}

/// A form of `/apis` that an `Accept` header can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain(Encoding),
    V2,
    V2beta1,
}

impl Discovery {
    /// Makes the documents of all groups of `resources`.
    ///
    /// # Errors
    /// When a document cannot be encoded, which would be a mistake in this program.
    pub fn new(resources: &[&'static Resource]) -> Result<Self, DiscoveryError> {
        let groups = Group::of(resources);
        let mut plain = Vec::new();
        for group in &groups {
            plain.push((format!("/apis/{}", group.name), Document::new(group)?));
            for version in &group.versions {
                let list = ResourceList::new(version.group, version.version, resources);
                plain.push((format!("/apis/{}", version.group_version), Document::new(&list)?));
            }
        }
        plain.push(("/apis".to_owned(), Document::new(&GroupList::new(&groups))?));
        let list = |api_version| GroupDiscoveryList::new(api_version, &groups, resources);
        let digest = Sha512::digest(serde_json::to_vec(&list(""))?);
        Ok(Self {
            plain,
            v2: Document::new(&list("apidiscovery.k8s.io/v2"))?,
            v2beta1: Document::new(&list("apidiscovery.k8s.io/v2beta1"))?,
            etag: quoted_tag(&digest),
        })
    }

    /// Answers a GET of `/apis`, `/apis/GROUP` or `/apis/GROUP/VERSION`; `None` for any other path. `pretty` asks for
    /// indented JSON.
    #[must_use]
    pub fn respond(&self, path: &str, headers: &HeaderMap, pretty: bool) -> Option<Response<Body>> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let (_, document) = self.plain.iter().find(|(known, _)| known == path)?;
        let accept = headers.get(http::header::ACCEPT).and_then(|a| a.to_str().ok());
        Some(match form(accept, path == "/apis") {
            None => not_acceptable(),
            Some(Form::Plain(encoding)) => plain(document, encoding, pretty),
            Some(Form::V2) => self.aggregated(&self.v2, "v2", headers, pretty),
            Some(Form::V2beta1) => self.aggregated(&self.v2beta1, "v2beta1", headers, pretty),
        })
    }

    fn aggregated(
        &self,
        document: &Document,
        version: &str,
        headers: &HeaderMap,
        pretty: bool,
    ) -> Response<Body> {
        let unchanged = headers.get(IF_NONE_MATCH) == Some(&self.etag);
        let content_type =
            format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
        let mut response =
            if unchanged { answer("", body::empty()) } else { answer("", document.body(pretty)) };
        if unchanged {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response.headers_mut().remove(CONTENT_TYPE);
        } else {
            set(&mut response, CONTENT_TYPE, &content_type);
        }
        response.headers_mut().insert(ETAG, self.etag.clone());
        set(&mut response, VARY, "Accept");
        set(&mut response, CACHE_CONTROL, "public");
        response
    }
}

/// The first clause that can be served. Only `/apis` has an aggregated form; elsewhere such a clause is passed over.
fn form(accept: Option<&str>, aggregates: bool) -> Option<Form> {
    let Some(accept) = accept.filter(|a| !a.is_empty()) else { return Some(Form::Plain(Encoding::Json)) };
    media_type::parse(accept).iter().find_map(|clause| {
        let encoding = match (clause.main, clause.sub) {
            ("application", "json" | "*") | ("*", "*") => Encoding::Json,
            ("application", "yaml") => Encoding::Yaml,
            _ => return None,
        };
        match (clause.parameter("as"), clause.parameter("g"), clause.parameter("v")) {
            (None, None, None) => Some(Form::Plain(encoding)),
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some(version))
                if aggregates && encoding == Encoding::Json =>
            {
                match version {
                    "v2" => Some(Form::V2),
                    "v2beta1" => Some(Form::V2beta1),
                    _ => None,
                }
            }
            _ => None,
        }
    })
}

fn plain(document: &Document, encoding: Encoding, pretty: bool) -> Response<Body> {
    if encoding == Encoding::Yaml {
        let value = serde_json::from_slice::<serde_json::Value>(&document.compact).unwrap_or_default();
        if let Ok(text) = serde_saphyr::to_string(&value) {
            return answer("application/yaml", body::full(text));
        }
    }
    answer("application/json", document.body(pretty))
}

fn not_acceptable() -> Response<Body> {
    let Err(status) = media_type::negotiate(Some("none/none"), media_type::Answer::One, false) else {
        return answer("", body::empty());
    };
    let mut response = answer("application/json", body::full(status.to_value().to_string()));
    *response.status_mut() = status.http_code();
    response
}

fn answer(content_type: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    if !content_type.is_empty() {
        set(&mut response, CONTENT_TYPE, content_type);
    }
    set(&mut response, CACHE_CONTROL, "no-cache, private");
    response
}

/// Sets a header whose value is made of harmless characters.
pub(crate) fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// A digest as a quoted entity tag in upper-case hexadecimal digits.
pub(crate) fn quoted_tag(digest: &[u8]) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{}\"", hexadecimal(digest))).unwrap_or(HeaderValue::from_static("\"\""))
}

pub(crate) fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// A document in both forms of JSON.
#[derive(Debug)]
struct Document {
    /// With the newline at the end that Go's encoder writes.
    compact: Bytes,
    indented: Bytes,
}

impl Document {
    fn new(document: &impl Serialize) -> Result<Self, serde_json::Error> {
        let mut compact = serde_json::to_vec(document)?;
        compact.push(b'\n');
        Ok(Self { compact: compact.into(), indented: serde_json::to_vec_pretty(document)?.into() })
    }

    fn body(&self, pretty: bool) -> Body {
        body::full(if pretty { self.indented.clone() } else { self.compact.clone() })
    }
}

#[cfg(test)]
mod tests;
