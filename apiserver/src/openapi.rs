//! OpenAPI documents: `/openapi/v2` for all groups together, `/openapi/v3` one by one.
//!
//! In: resource descriptions and the definitions that the build embedded. Out: answers with entity tags. The documents
//! are made at the first request and kept compressed.

mod gnostic;
mod operations;
mod parameters;
mod v2;
mod v3;

use std::io::{Read, Write};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH,
    LOCATION, VARY,
};
use http::{HeaderMap, Response, StatusCode};
use picoshift_machinery::body::{self, Body};
use picoshift_machinery::media_type;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use crate::discovery::{hexadecimal, set};
use crate::resource::Resource;
use crate::rest::query::Query;
use crate::schema;

/// The title that the real server's documents have.
const TITLE: &str = "OpenShift API (with Kubernetes)";
/// The version in the documents.
const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// The media types of protobuf: the one that is answered, and the older one by which it is asked for too.
type Names = [&'static str; 2];
const V2_PROTOBUF: Names = [
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];
const V3_PROTOBUF: Names = [
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
];

/// A document could not be made.
#[derive(Debug, thiserror::Error)]
pub enum OpenApiError {
    /// The definitions cannot be read, or a document cannot be written.
    #[error("OpenAPI document: {0}")]
    Json(#[from] serde_json::Error),
    /// A document cannot be compressed.
    #[error("OpenAPI document: {0}")]
    Compression(#[from] std::io::Error),
}

/// Definitions by name.
type Definitions = Map<String, Value>;

/// The documents of all groups.
#[derive(Debug)]
pub struct OpenApi {
    resources: Vec<&'static Resource>,
    documents: OnceLock<Option<Documents>>,
}

#[derive(Debug)]
struct Documents {
    v2: Encodings,
    index: Document,
    /// By key: `apis`, `apis/GROUP`, `apis/GROUP/VERSION`.
    v3: Vec<(String, Encodings)>,
}

/// A document in both encodings, with one entity tag.
#[derive(Debug)]
struct Encodings {
    json: Document,
    protobuf: Document,
    names: Names,
}

impl Encodings {
    fn new(value: &Value, protobuf: &[u8], names: Names) -> Result<Self, OpenApiError> {
        let json = Document::new(value)?;
        let protobuf = Document::of(protobuf, json.digest.clone(), names[0])?;
        Ok(Self { json, protobuf, names })
    }

    /// The first type of the sorted Accept header that there is.
    fn negotiate(&self, headers: &HeaderMap) -> Option<&Document> {
        let [name, older] = self.names;
        let types = [("application/json", &self.json), (older, &self.protobuf), (name, &self.protobuf)];
        media_type::parse(accept(headers)).into_iter().find_map(|clause| {
            let matches = |name: &&(&str, _)| {
                let (main, sub) = name.0.split_once('/').unwrap_or_default();
                [main, "*"].contains(&clause.main) && [sub, "*"].contains(&clause.sub)
            };
            types.iter().find(matches).map(|(_, document)| *document)
        })
    }
}

/// One document, compressed.
#[derive(Debug)]
struct Document {
    compressed: Bytes,
    length: usize,
    /// SHA-512 in upper-case hexadecimal digits.
    digest: String,
    content_type: &'static str,
}

impl Document {
    fn new(value: &Value) -> Result<Self, OpenApiError> {
        let json = serde_json::to_vec(value)?;
        Self::of(&json, hexadecimal(&Sha512::digest(&json)), "application/json")
    }

    fn of(content: &[u8], digest: String, content_type: &'static str) -> Result<Self, OpenApiError> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content)?;
        Ok(Self { compressed: encoder.finish()?.into(), length: content.len(), digest, content_type })
    }

    fn plain(&self) -> Result<Vec<u8>, std::io::Error> {
        let mut out = Vec::with_capacity(self.length);
        GzDecoder::new(&*self.compressed).read_to_end(&mut out)?;
        Ok(out)
    }
}

impl OpenApi {
    /// The documents of `resources`, which are made when they are first asked for.
    #[must_use]
    pub fn new(resources: Vec<&'static Resource>) -> Self {
        Self { resources, documents: OnceLock::new() }
    }

    /// Makes the documents now. For a server that wants to know before it is ready.
    ///
    /// # Errors
    /// [`OpenApiError`]; only a broken build has one.
    pub fn check(&self) -> Result<(), OpenApiError> {
        self.build().map(|_| ())
    }

    /// Answers a GET of `/openapi/v2`, `/openapi/v3` or below; `None` for any other path.
    #[must_use]
    pub fn respond(&self, path: &str, query: Option<&str>, headers: &HeaderMap) -> Option<Response<Body>> {
        let rest = path.strip_prefix("/openapi/")?;
        let Some(documents) = self.documents.get_or_init(|| self.build_logged()) else {
            return Some(empty(StatusCode::SERVICE_UNAVAILABLE));
        };
        match rest {
            "v2" => Some(negotiated(&documents.v2, headers)),
            "v3" | "v3/" => Some(serve(&documents.index, headers)),
            _ => {
                let key = rest.strip_prefix("v3/")?;
                let (key, document) = documents.v3.iter().find(|(known, _)| known == key)?;
                Some(versioned(key, document, query, headers))
            }
        }
    }

    fn build_logged(&self) -> Option<Documents> {
        self.build().inspect_err(|error| tracing::error!(%error, "no OpenAPI documents")).ok()
    }

    fn build(&self) -> Result<Documents, OpenApiError> {
        let definitions: Definitions = serde_json::from_str(schema::definitions()?)?;
        let v3 = v3::documents(&self.resources, &definitions)
            .into_iter()
            .map(|(key, value)| {
                let protobuf = gnostic::v3::document(&value);
                Ok((key, Encodings::new(&value, &protobuf, V3_PROTOBUF)?))
            })
            .collect::<Result<Vec<_>, OpenApiError>>()?;
        let paths: Map<String, Value> = v3
            .iter()
            .map(|(key, d)| (key.clone(), json!({ "serverRelativeURL": relative_url(key, &d.json) })))
            .collect();
        let v2 = v2::document(&self.resources, &definitions);
        Ok(Documents {
            v2: Encodings::new(&v2, &gnostic::v2::document(&v2), V2_PROTOBUF)?,
            index: Document::new(&json!({ "paths": paths }))?,
            v3,
        })
    }
}

fn relative_url(key: &str, document: &Document) -> String {
    format!("/openapi/v3/{key}?hash={}", document.digest)
}

/// One group version of v3; with its hash in the query it may be kept for good.
fn versioned(key: &str, encodings: &Encodings, query: Option<&str>, headers: &HeaderMap) -> Response<Body> {
    let query = Query::parse(query);
    let hash = query.first("hash").filter(|hash| !hash.is_empty());
    if hash.is_some_and(|hash| hash != encodings.json.digest) {
        let mut response = empty(StatusCode::MOVED_PERMANENTLY);
        set(&mut response, LOCATION, &relative_url(key, &encodings.json));
        set(&mut response, VARY, "Accept");
        return response;
    }
    let mut response = negotiated(encodings, headers);
    if hash.is_some() && response.status() != StatusCode::NOT_ACCEPTABLE {
        set(&mut response, CACHE_CONTROL, "public, immutable");
        set(&mut response, EXPIRES, &in_a_year());
    }
    response
}

fn in_a_year() -> String {
    let time = SystemTime::now() + Duration::from_secs(365 * 24 * 60 * 60);
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let stamp = jiff::Timestamp::from_second(i64::try_from(seconds).unwrap_or_default()).unwrap_or_default();
    stamp.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn negotiated(encodings: &Encodings, headers: &HeaderMap) -> Response<Body> {
    encodings.negotiate(headers).map_or_else(not_acceptable, |document| serve(document, headers))
}

fn accept(headers: &HeaderMap) -> &str {
    headers.get(ACCEPT).and_then(|a| a.to_str().ok()).filter(|a| !a.is_empty()).unwrap_or("*/*")
}

fn not_acceptable() -> Response<Body> {
    let mut response = empty(StatusCode::NOT_ACCEPTABLE);
    set(&mut response, VARY, "Accept");
    response
}

fn serve(document: &Document, headers: &HeaderMap) -> Response<Body> {
    let tag = format!("\"{}\"", document.digest);
    let known = headers.get(IF_NONE_MATCH).and_then(|v| v.to_str().ok()).is_some_and(|sent| {
        sent.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
    });
    let mut response = if known { empty(StatusCode::NOT_MODIFIED) } else { content(document, headers) };
    set(&mut response, ETAG, &tag);
    set(&mut response, VARY, "Accept, Accept-Encoding");
    response
}

fn content(document: &Document, headers: &HeaderMap) -> Response<Body> {
    let gzip = headers.get(ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).is_some_and(takes_gzip);
    let mut response = if gzip {
        let mut response = Response::new(body::full(document.compressed.clone()));
        set(&mut response, CONTENT_ENCODING, "gzip");
        response
    } else {
        match document.plain() {
            Ok(bytes) => Response::new(body::full(bytes)),
            Err(_) => return empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    };
    set(&mut response, CONTENT_TYPE, document.content_type);
    set(&mut response, CACHE_CONTROL, "no-cache, private");
    response
}

fn takes_gzip(header: &str) -> bool {
    header.split(',').any(|part| {
        let mut words = part.split(';').map(str::trim);
        let gzip = words.next() == Some("gzip");
        gzip && !words.any(|w| w.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)))
    })
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(body::empty());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests;
