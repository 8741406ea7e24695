//! Answers: an item, a list, a table, metadata or a status, in the form that was negotiated.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use picoshift_machinery::body::{self, Body};
use picoshift_machinery::media_type::{Answer, Encoding, MediaType, Shape};
use picoshift_machinery::protobuf::{self, ListMeta};
use picoshift_machinery::{Object, Status};
use serde_json::{Map, Value};

use super::item::Item;
use super::message::{self, ListMessage};
use super::partial;
use super::query::IncludeObject;
use super::storage::{Items, List, Storage};
use super::table::{self, TableOptions};
use crate::gzip::{self, Piece};
use crate::registry::chunk::Chunk;
use crate::resource::Resource;
use crate::schema::Schemas;

/// Answers larger than this are compressed for clients that can read it, to whatever verb, as kube-apiserver does.
const PLAIN_UP_TO: usize = 128 << 10;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/vnd.kubernetes.protobuf");

/// How an answer is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    /// Encoding and shape, as the Accept header asks.
    pub media_type: MediaType,
    /// What rows of a table carry.
    pub include: IncludeObject,
    /// Whether the client reads gzip.
    pub gzip: bool,
    /// Whether the answer is indented.
    pub pretty: bool,
}

impl Form {
    /// Whether bytes that were encoded before are the answer.
    fn is_plain(&self) -> bool {
        self.media_type.encoding == Encoding::Json && self.media_type.shape == Shape::Whole && !self.pretty
    }

    /// Whether whole objects in protobuf are the answer.
    #[must_use]
    pub fn is_message(&self) -> bool {
        self.media_type.encoding == Encoding::Protobuf && self.media_type.shape == Shape::Whole
    }

    /// Reads what the Accept-Encoding header says about gzip.
    #[must_use]
    pub fn reads_gzip(headers: &HeaderMap) -> bool {
        headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|v| v.to_str().ok()).any(|list| {
            list.split(',').any(|coding| {
                let mut parts = coding.split(';').map(str::trim);
                parts.next() == Some("gzip") && !parts.any(|p| p == "q=0" || p == "q=0.0")
            })
        })
    }
}

/// One object.
///
/// # Errors
/// 500 when our own bytes cannot be read.
pub fn item(
    storage: &dyn Storage,
    schemas: &Schemas,
    item: &Item,
    code: StatusCode,
    form: Form,
) -> Result<Response<Body>, Status> {
    if form.is_plain() {
        return Ok(bytes(code, JSON, with_newline(&item.bytes), form.gzip));
    }
    if form.is_message() {
        return Ok(protobuf_answer(code, item.message(schemas)?.enveloped().clone(), form));
    }
    if let Shape::Metadata(version) = form.media_type.shape {
        let metadata = item.metadata().map_err(Status::internal)?;
        return Ok(match form.media_type.encoding {
            Encoding::Protobuf => protobuf_answer(code, message::metadata(&metadata, schemas, version), form),
            _ => encoded(code, &partial::metadata_only(metadata, version), form),
        });
    }
    let object = item.object().map_err(Status::internal)?;
    let value = match form.media_type.shape {
        Shape::Whole | Shape::Metadata(_) => object,
        Shape::MetadataList(_) => {
            return Err(partial::mismatch(storage.resource().gvk.group, object.kind(), false));
        }
        Shape::Table(version) => {
            let options = TableOptions { version, include: form.include };
            let metadata = list_metadata(object.resource_version(), "", None);
            wrap(table::table(storage, &[object], &metadata, options, true))
        }
    };
    Ok(encoded(code, &value, form))
}

/// A list.
///
/// # Errors
/// 500 when our own bytes cannot be read.
pub fn list(
    storage: &dyn Storage,
    schemas: &Schemas,
    list: List,
    form: Form,
) -> Result<Response<Body>, Status> {
    if form.is_plain() {
        return Ok(plain_list(storage, list, form.gzip));
    }
    if form.is_message() {
        return message_list(storage.resource(), schemas, list, form.gzip);
    }
    let version = list.revision.to_string();
    let metadata = list_metadata(&version, &list.continue_token, list.remaining);
    let value = match form.media_type.shape {
        Shape::MetadataList(meta) => {
            let items = list.items.iter().map(|item| item.metadata());
            let items = items.collect::<Result<Vec<_>, _>>().map_err(Status::internal)?;
            if form.media_type.encoding == Encoding::Protobuf {
                let list_meta = ListMeta {
                    resource_version: &version,
                    continue_token: &list.continue_token,
                    remaining: list.remaining,
                };
                let content = message::metadata_list(&items, list_meta, schemas, meta);
                return Ok(protobuf_answer(StatusCode::OK, content, form));
            }
            partial::metadata_list(items, metadata, meta)
        }
        Shape::Whole => {
            let resource = storage.resource();
            let mut value = Object::new(&resource.gvk.api_version(), &resource.list_kind());
            value.0.insert("metadata".to_owned(), metadata.into());
            let items: Vec<Value> = objects(&list.items)?.into_iter().map(untyped).collect();
            value.0.insert("items".to_owned(), items.into());
            value
        }
        Shape::Metadata(_) => {
            let resource = storage.resource();
            return Err(partial::mismatch(resource.gvk.group, &resource.list_kind(), true));
        }
        Shape::Table(version) => {
            let options = TableOptions { version, include: form.include };
            wrap(table::table(storage, &objects(&list.items)?, &metadata, options, true))
        }
    };
    Ok(encoded(StatusCode::OK, &value, form))
}

/// An object as lists show it: apiVersion and kind are the list's.
fn untyped(mut object: Object) -> Value {
    object.0.remove("apiVersion");
    object.0.remove("kind");
    object.0.into()
}

fn objects(list: &Items) -> Result<Vec<Object>, Status> {
    list.iter().map(|item| item.object().map_err(Status::internal)).collect()
}

fn wrap(value: Value) -> Object {
    Object::from_value(value).unwrap_or_default()
}

/// A list's metadata, or what a table of one object has of it; some lists have no `version`.
#[must_use]
pub fn list_metadata(version: &str, continue_token: &str, remaining: Option<u64>) -> Map<String, Value> {
    let mut metadata = Map::new();
    if !version.is_empty() {
        metadata.insert("resourceVersion".to_owned(), version.into());
    }
    if !continue_token.is_empty() {
        metadata.insert("continue".to_owned(), continue_token.into());
    }
    if let Some(remaining) = remaining {
        metadata.insert("remainingItemCount".to_owned(), remaining.into());
    }
    metadata
}

/// The list in JSON, put together from bytes that were encoded before.
fn plain_list(storage: &dyn Storage, list: List, gzip: bool) -> Response<Body> {
    let resource = storage.resource();
    let metadata = list_metadata(&list.revision.to_string(), &list.continue_token, list.remaining);
    let head = format!(
        r#"{{"kind":"{}","apiVersion":"{}","metadata":{},"items":["#,
        resource.list_kind(),
        resource.gvk.api_version(),
        Value::Object(metadata),
    );
    let chunks = list.items.into_chunks();
    let length = head.len() + chunks.iter().map(|chunk| chunk.joined_len() + 1).sum::<usize>() + 2;
    if gzip && length > PLAIN_UP_TO {
        return compressed_list(&head, &chunks);
    }
    let length = length + usize::from(chunks.is_empty());
    let response = with_type(StatusCode::OK, JSON).header(header::CONTENT_LENGTH, length);
    finish(response, body::stream(stream::iter(joined(head, chunks))))
}

/// The list in protobuf, put together from items that were encoded before.
fn message_list(
    resource: &Resource,
    schemas: &Schemas,
    list: List,
    gzip: bool,
) -> Result<Response<Body>, Status> {
    let version = list.revision.to_string();
    let kind = (&*resource.gvk.api_version(), &*resource.list_kind());
    let meta = ListMeta {
        resource_version: &version,
        continue_token: &list.continue_token,
        remaining: list.remaining,
    };
    let message = ListMessage::new(kind, meta, list.items.into_chunks(), schemas)?;
    if gzip && message.length() > PLAIN_UP_TO {
        let pieces: Vec<Piece> = message.parts().map(|part| Piece::deflate(&part)).collect();
        return Ok(compressed(StatusCode::OK, PROTOBUF, &pieces));
    }
    let response = with_type(StatusCode::OK, PROTOBUF).header(header::CONTENT_LENGTH, message.length());
    Ok(finish(response, body::stream(stream::iter(message.parts()))))
}

/// A list's bytes, a chunk at a time, each when the client has room for it.
fn joined(head: String, chunks: Vec<Arc<Chunk>>) -> impl Iterator<Item = Bytes> + Send {
    const TAIL: &[u8] = b"]}\n";
    let last = chunks.len().saturating_sub(1);
    (0..=last).map(move |at| {
        let start = if at == 0 { head.as_bytes() } else { b"," };
        let length = chunks.get(at).map_or(0, |chunk| chunk.joined_len());
        let mut out = BytesMut::with_capacity(start.len() + length + TAIL.len());
        out.put_slice(start);
        if let Some(chunk) = chunks.get(at) {
            chunk.join(&mut out);
        }
        if at == last {
            out.put_slice(TAIL);
        }
        out.freeze()
    })
}

fn compressed_list(head: &str, chunks: &[Arc<Chunk>]) -> Response<Body> {
    let (head, comma, tail) = (Piece::stored(head.as_bytes()), Piece::stored(b","), Piece::stored(b"]}\n"));
    let mut pieces = vec![&head];
    for (at, chunk) in chunks.iter().enumerate() {
        if at > 0 {
            pieces.push(&comma);
        }
        pieces.push(chunk.deflated());
    }
    pieces.push(&tail);
    compressed(StatusCode::OK, JSON, pieces)
}

/// An answer of compressed pieces.
fn compressed<'a>(
    code: StatusCode,
    content_type: HeaderValue,
    pieces: impl IntoIterator<Item = &'a Piece>,
) -> Response<Body> {
    let parts = gzip::member(pieces);
    let length: usize = parts.iter().map(Bytes::len).sum();
    let response = with_type(code, content_type)
        .header(header::CONTENT_ENCODING, "gzip")
        .header(header::VARY, "Accept-Encoding")
        .header(header::CONTENT_LENGTH, length);
    finish(response, body::stream(stream::iter(coalesce(parts))))
}

/// Joins small neighbours, so that neither a comma nor a small piece costs a frame and a system call.
fn coalesce(parts: Vec<Bytes>) -> Vec<Bytes> {
    // HTTP/2 clients take frames of this size unless they say otherwise.
    const SMALL: usize = 16 << 10;
    let mut out: Vec<Bytes> = Vec::with_capacity(parts.len());
    let mut parts = parts.into_iter().peekable();
    while let Some(part) = parts.next() {
        let is_small = |part: &Bytes| part.len() < SMALL;
        if !is_small(&part) || !parts.peek().is_some_and(is_small) {
            out.push(part);
            continue;
        }
        let mut run = BytesMut::from(part);
        while let Some(next) = parts.next_if(is_small) {
            run.put_slice(&next);
        }
        out.push(run.freeze());
    }
    out
}

/// A status, successful or not, in the negotiated encoding. The answer carries it along, for the audit.
#[must_use]
pub fn status(status: &Status, code: StatusCode, form: Form) -> Response<Body> {
    let mut response = match form.media_type.encoding {
        Encoding::Protobuf => protobuf_answer(code, protobuf::status(status), form),
        Encoding::Json | Encoding::Yaml => encoded(code, &wrap(status.to_value()), form),
    };
    response.extensions_mut().insert(Arc::new(status.clone()));
    let retry = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry));
    }
    response
}

fn encoded(code: StatusCode, value: &Object, form: Form) -> Response<Body> {
    let (encoding, content) = match form.media_type.encoding {
        Encoding::Yaml => (Encoding::Yaml, serde_saphyr::to_string(&value.0).unwrap_or_default().into()),
        // Tables are not negotiated in protobuf, and all else is not encoded here.
        Encoding::Json | Encoding::Protobuf => (Encoding::Json, json(value, form.pretty)),
    };
    typed(code, encoding, content, form)
}

fn protobuf_answer(code: StatusCode, content: Bytes, form: Form) -> Response<Body> {
    typed(code, Encoding::Protobuf, content, form)
}

fn typed(code: StatusCode, encoding: Encoding, content: Bytes, form: Form) -> Response<Body> {
    let content_type = MediaType { encoding, ..form.media_type }.content_type(Answer::One);
    bytes(code, HeaderValue::from_static(content_type), content, form.gzip)
}

fn json(value: &Object, pretty: bool) -> Bytes {
    let text = if pretty { serde_json::to_vec_pretty(&value.0) } else { serde_json::to_vec(&value.0) };
    newline_after(text.unwrap_or_default())
}

fn with_newline(bytes: &Bytes) -> Bytes {
    newline_after(Vec::from(&bytes[..]))
}

fn newline_after(mut bytes: Vec<u8>) -> Bytes {
    bytes.push(b'\n');
    bytes.into()
}

fn bytes(code: StatusCode, content_type: HeaderValue, content: Bytes, gzip: bool) -> Response<Body> {
    if gzip && content.len() > PLAIN_UP_TO {
        return compressed(code, content_type, [&Piece::deflate(&content)]);
    }
    let response = with_type(code, content_type).header(header::CONTENT_LENGTH, content.len());
    finish(response, body::full(content))
}

fn with_type(code: StatusCode, content_type: HeaderValue) -> http::response::Builder {
    Response::builder().status(code).header(header::CONTENT_TYPE, content_type)
}

fn finish(response: http::response::Builder, body: Body) -> Response<Body> {
    // Only constant headers were added, so the builder cannot have failed.
    response.body(body).unwrap_or_else(|_| Response::new(body::empty()))
}
