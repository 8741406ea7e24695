//! One request for a resource, from its verb to its answer.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use picoshift_machinery::body::Body;
use picoshift_machinery::media_type::{self, Format, Target};
use picoshift_machinery::{Object, Status};
use tokio_util::sync::CancellationToken;

use super::patch::{self, PatchUpdater, Replacement};
use super::respond::{self, Form};
use super::storage::{Deleted, RequestContext, Storage, Updater};
use super::table::IncludeObject;
use super::{query, stream};
use crate::decode::{self, BODY_MAX};
use crate::resource::Verb;
use crate::schema::{Schemas, Validation};

/// Serves all resources.
pub struct Handler {
    storages: HashMap<(&'static str, &'static str, &'static str), Arc<dyn Storage>>,
    schemas: Arc<Schemas>,
    drain: CancellationToken,
}

/// A request's parts that the verbs read.
struct Call<'a> {
    storage: &'a Arc<dyn Storage>,
    cx: &'a RequestContext,
    headers: &'a HeaderMap,
    query: &'a str,
    form: Form,
}

impl Handler {
    /// A handler of these resources; `drain` ends watches.
    #[must_use]
    pub fn new(storages: Vec<Arc<dyn Storage>>, schemas: Arc<Schemas>, drain: CancellationToken) -> Self {
        let storages = storages
            .into_iter()
            .map(|storage| {
                let resource = storage.resource();
                ((resource.gvk.group, resource.gvk.version, resource.plural), storage)
            })
            .collect();
        Self { storages, schemas, drain }
    }

    /// Answers a request whose user may make it.
    pub async fn handle(&self, cx: &RequestContext, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let (answer, format) = match self.form(cx, &parts.headers, parts.uri.query().unwrap_or("")) {
            Ok((storage, form)) => {
                let call = Call {
                    storage,
                    cx,
                    headers: &parts.headers,
                    query: parts.uri.query().unwrap_or(""),
                    form,
                };
                (self.call(&call, body).await, form.output.format)
            }
            Err(status) => (Err(status), Format::Json),
        };
        let mut response = answer.unwrap_or_else(|status| {
            let code = status.http_code();
            respond::status(&status, code, format)
        });
        add_warnings(cx, response.headers_mut());
        response
    }

    fn form(&self, cx: &RequestContext, headers: &HeaderMap, query: &str) -> Result<(&Arc<dyn Storage>, Form), Status> {
        let info = &cx.info;
        let found = self.storages.get(&(info.group.as_str(), info.version.as_str(), info.resource.as_str()));
        let storage = found.ok_or_else(Status::no_such_path)?;
        let resource = storage.resource();
        // A selector by name puts the name into the request of a collection too.
        let collection = matches!(info.verb.as_str(), "list" | "watch" | "deletecollection");
        let across_namespaces = resource.namespaced && (collection || info.name.is_empty());
        if resource.namespaced == info.namespace.is_empty() && !across_namespaces {
            return Err(Status::no_such_path());
        }
        let output = media_type::negotiate(headers, query, collection, info.verb == "watch")?;
        let include = match output.target {
            Target::Table { .. } => IncludeObject::parse(&query::first(query, "includeObject").unwrap_or_default())?,
            Target::Object | Target::Partial { .. } => IncludeObject::default(),
        };
        Ok((storage, Form { output, include, gzip: Form::reads_gzip(headers) }))
    }

    async fn call(&self, call: &Call<'_>, body: Incoming) -> Result<Response<Body>, Status> {
        let info = &call.cx.info;
        let resource = call.storage.resource();
        let verb = verb(&info.verb).ok_or_else(Status::no_such_method)?;
        let served = match info.subresource.as_str() {
            "" => resource.has(verb),
            name => resource.subresource(name).ok_or_else(Status::no_such_path)?.verbs.contains(&verb),
        };
        if !info.rest.is_empty() {
            return Err(Status::no_such_path());
        }
        // Across namespaces there are only list and watch.
        let nowhere = resource.namespaced && info.namespace.is_empty();
        if !served || (nowhere && !matches!(verb, Verb::List | Verb::Watch)) {
            return Err(Status::no_such_method());
        }
        call.storage.ready()?;
        match verb {
            Verb::Get => self.get(call).await,
            Verb::List => self.list(call).await,
            Verb::Watch => self.watch(call).await,
            Verb::Create => self.create(call, body).await,
            Verb::Update => self.update(call, body).await,
            Verb::Patch => self.patch(call, body).await,
            Verb::Delete => self.delete(call, body).await,
            Verb::DeleteCollection => self.delete_collection(call, body).await,
        }
    }

    async fn get(&self, call: &Call<'_>) -> Result<Response<Body>, Status> {
        let options = query::get_options(call.query)?;
        let item = call.storage.get(call.cx, &call.cx.info.name, &options).await?;
        respond::item(&**call.storage, &item, StatusCode::OK, call.form)
    }

    async fn list(&self, call: &Call<'_>) -> Result<Response<Body>, Status> {
        let options = query::list_options(call.storage.resource(), call.query, false)?;
        let list = call.storage.list(call.cx, &options).await?;
        respond::list(&**call.storage, list, call.form)
    }

    async fn watch(&self, call: &Call<'_>) -> Result<Response<Body>, Status> {
        let mut options = query::list_options(call.storage.resource(), call.query, true)?;
        stream::with_timeout(&mut options);
        let watch = call.storage.watch(call.cx, &options).await?;
        Ok(stream::respond(Arc::clone(call.storage), watch, call.form, &options, self.drain.clone()))
    }

    async fn create(&self, call: &Call<'_>, body: Incoming) -> Result<Response<Body>, Status> {
        let (options, validation) = query::write_options(call.query, "")?;
        let object = self.object(call, body, validation).await?;
        check_namespace(call, &object)?;
        let item = call.storage.create(call.cx, object, &options).await?;
        respond::item(&**call.storage, &item, StatusCode::CREATED, call.form)
    }

    async fn update(&self, call: &Call<'_>, body: Incoming) -> Result<Response<Body>, Status> {
        let info = &call.cx.info;
        let (options, validation) = query::write_options(call.query, &info.subresource)?;
        let object = self.object(call, body, validation).await?;
        check_name(call, &object)?;
        self.write(call, &Replacement(object), &options).await
    }

    async fn patch(&self, call: &Call<'_>, body: Incoming) -> Result<Response<Body>, Status> {
        let (options, validation) = query::write_options(call.query, &call.cx.info.subresource)?;
        let bytes = read(body).await?;
        let patch = patch::parse(call.headers, &bytes)?;
        let resource = call.storage.resource();
        let check = |mut object: Object| {
            for warning in self.schemas.check(resource, &mut object, validation)? {
                call.cx.warn(warning);
            }
            Ok(object)
        };
        self.write(call, &PatchUpdater::new(patch, check), &options).await
    }

    async fn write(
        &self,
        call: &Call<'_>,
        updater: &dyn Updater,
        options: &super::WriteOptions,
    ) -> Result<Response<Body>, Status> {
        let item = call.storage.update(call.cx, &call.cx.info.name, updater, options).await?;
        respond::item(&**call.storage, &item, StatusCode::OK, call.form)
    }

    async fn delete(&self, call: &Call<'_>, body: Incoming) -> Result<Response<Body>, Status> {
        let bytes = read(body).await?;
        let options = decode::delete_options(call.headers, call.query, &bytes)?;
        match call.storage.delete(call.cx, &call.cx.info.name, &options).await? {
            Deleted::Object(item) => respond::item(&**call.storage, &item, StatusCode::OK, call.form),
            Deleted::Gone(details) => {
                let status = Status::success(Some(details));
                Ok(respond::status(&status, StatusCode::OK, call.form.output.format))
            }
        }
    }

    async fn delete_collection(&self, call: &Call<'_>, body: Incoming) -> Result<Response<Body>, Status> {
        let bytes = read(body).await?;
        let options = decode::delete_options(call.headers, call.query, &bytes)?;
        let list = query::list_options(call.storage.resource(), call.query, false)?;
        let deleted = call.storage.delete_collection(call.cx, &options, &list).await?;
        respond::list(&**call.storage, deleted, call.form)
    }

    async fn object(&self, call: &Call<'_>, body: Incoming, validation: Validation) -> Result<Object, Status> {
        let bytes = read(body).await?;
        let decoded = decode::object(&self.schemas, call.storage.resource(), call.headers, &bytes, validation)?;
        for warning in decoded.warnings {
            call.cx.warn(warning);
        }
        Ok(decoded.object)
    }
}

/// Reads a body up to the limit.
async fn read(body: Incoming) -> Result<Bytes, Status> {
    match Limited::new(body, BODY_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Status::failure(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {BODY_MAX}"),
        )),
        Err(error) => Err(Status::bad_request(format!("the body of the request could not be read: {error}"))),
    }
}

/// A created object goes where the path says.
fn check_namespace(call: &Call<'_>, object: &Object) -> Result<(), Status> {
    let (given, wanted) = (object.namespace(), call.cx.info.namespace.as_str());
    if !given.is_empty() && !wanted.is_empty() && given != wanted {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// An updated object is the one that the path names.
fn check_name(call: &Call<'_>, object: &Object) -> Result<(), Status> {
    let info = &call.cx.info;
    let (name, namespace) = (object.name(), object.namespace());
    let wrong = if name.is_empty() {
        format!("the name of the object ({} based on URL) was undeterminable: name must be provided", info.name)
    } else if name != info.name {
        format!("the name of the object ({name}) does not match the name on the URL ({})", info.name)
    } else if !info.namespace.is_empty() && !namespace.is_empty() && namespace != info.namespace {
        format!(
            "the namespace of the object ({namespace}) does not match the namespace on the request ({})",
            info.namespace
        )
    } else {
        return Ok(());
    };
    Err(Status::bad_request(wrong))
}

fn verb(word: &str) -> Option<Verb> {
    Some(match word {
        "create" => Verb::Create,
        "delete" => Verb::Delete,
        "deletecollection" => Verb::DeleteCollection,
        "get" => Verb::Get,
        "list" => Verb::List,
        "patch" => Verb::Patch,
        "update" => Verb::Update,
        "watch" => Verb::Watch,
        _ => return None,
    })
}

/// `Warning: 299 - "text"` headers, with what a header cannot hold escaped or dropped.
fn add_warnings(cx: &RequestContext, headers: &mut HeaderMap) {
    for warning in cx.take_warnings() {
        let text: String = warning.chars().filter(|c| !c.is_control()).collect();
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            headers.append(header::WARNING, value);
        }
    }
}
