//! One request for a resource, from its verb to its answer. The user may make it: that was asked before.

mod write;

use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use picoshift_machinery::Status;
use picoshift_machinery::body::Body;
use picoshift_machinery::media_type::{self, Answer};
use picoshift_machinery::request_info::RequestInfo;

use super::collector;
use super::fields::FieldManagers;
use super::item::Item;
use super::query::{self, Listing, Query};
use super::respond::{self, Form};
use super::storage::{List, RequestContext, Storage};
use super::stream;
use super::warning;
use crate::authz::Authorizer;
use crate::resource::Verb;
use crate::schema::Schemas;
use crate::server::Endpoint;

/// Serves one resource.
pub struct Handler {
    storage: Arc<dyn Storage>,
    schemas: Arc<Schemas>,
    fields: FieldManagers,
    authorizer: Arc<dyn Authorizer>,
}

/// A request's parts that the verbs read.
struct Call<'a> {
    storage: &'a Arc<dyn Storage>,
    cx: &'a RequestContext,
    headers: &'a HeaderMap,
    query: Query<'a>,
    form: Form,
}

impl Call<'_> {
    /// The name that the path or a selector gives, which is what was authorized.
    fn name(&self) -> Option<&str> {
        Some(self.cx.info.name.as_str()).filter(|name| !name.is_empty())
    }
}

#[async_trait]
impl Endpoint for Handler {
    async fn call(&self, cx: Arc<RequestContext>, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query());
        // As upstream's router: HEAD is not a way to ask for a resource.
        let form = if parts.method == Method::HEAD {
            Err(Status::no_such_method())
        } else {
            self.form(&cx, &parts.headers, &query)
        };
        let pretty = query::pretty(&query, user_agent(&parts.headers));
        let answer = match form {
            Ok(form) => {
                let call = Call { storage: &self.storage, cx: &cx, headers: &parts.headers, query, form };
                self.answer(&call, body).await.map_err(|status| (status, Some(form)))
            }
            Err(status) => Err((status, None)),
        };
        let mut response = answer.unwrap_or_else(|(status, form)| {
            // What some resources answer in place of an object is no error.
            let form = form.filter(|_| status.status == "Success").unwrap_or_else(|| {
                let media_type = media_type::of_errors(text(&parts.headers, &header::ACCEPT));
                let gzip = form.is_some_and(|form| form.gzip);
                Form { pretty: media_type.pretty || pretty, media_type, gzip, ..Form::default() }
            });
            respond::status(&status, status.http_code(), form)
        });
        warning::add(&cx.take_warnings(), response.headers_mut());
        response
    }
}

impl Handler {
    /// A handler of a resource.
    #[must_use]
    pub fn new(
        storage: Arc<dyn Storage>,
        schemas: Arc<Schemas>,
        fields: FieldManagers,
        authorizer: Arc<dyn Authorizer>,
    ) -> Self {
        Self { storage, schemas, fields, authorizer }
    }

    fn form(&self, cx: &RequestContext, headers: &HeaderMap, query: &Query<'_>) -> Result<Form, Status> {
        let info = &cx.info;
        let resource = self.storage.resource();
        // A selector by name puts the name into the request of a collection too.
        let collection = matches!(info.verb.as_str(), "list" | "watch" | "deletecollection");
        let across_namespaces = resource.namespaced && (collection || info.name.is_empty());
        if resource.namespaced == info.namespace.is_empty() && !across_namespaces {
            return Err(Status::no_such_path());
        }
        let answer = match info.verb.as_str() {
            "list" => Answer::List,
            "watch" => Answer::Watch,
            _ => Answer::One,
        };
        let tables = resource.has_tables(&info.subresource);
        let accept = text(headers, &header::ACCEPT);
        let media_type = media_type::negotiate(accept, answer, tables).or_else(|status| {
            // What a list could be encoded in is refused for a watch only after its options were read.
            if answer == Answer::Watch && media_type::negotiate(accept, Answer::List, tables).is_ok() {
                let name = Some(info.name.as_str()).filter(|name| !name.is_empty());
                query::list_options(query, resource, Listing::Watch { name })?;
            }
            Err(status)
        })?;
        Ok(Form {
            media_type,
            include: query::table_options(query)?,
            gzip: Form::reads_gzip(headers),
            pretty: media_type.pretty || query::pretty(query, user_agent(headers)),
        })
    }

    async fn answer(&self, call: &Call<'_>, body: Incoming) -> Result<Response<Body>, Status> {
        let info = &call.cx.info;
        let resource = call.storage.resource();
        let verb = verb(&info.verb).ok_or_else(Status::no_such_method)?;
        let served = match info.subresource.as_str() {
            "" => resource.has(verb),
            name => resource.subresource(name).ok_or_else(Status::no_such_path)?.verbs.contains(&verb),
        };
        let there = match info.subresource.as_str() {
            "" if named(verb, info) => resource.has_items(),
            "" => resource.verbs.iter().any(|verb| of_collections(*verb)),
            _ => true,
        };
        if !there || !info.rest.is_empty() {
            return Err(Status::no_such_path());
        }
        if verb == Verb::Watch && !served && resource.has(Verb::List) {
            // A watch is asked for as a list is, and that there is.
            return Err(call.storage.unsupported(call.cx, verb));
        }
        // Across namespaces there are only list and watch.
        let nowhere = resource.namespaced && info.namespace.is_empty();
        // A create has no name in its path (its permission would be for that name); a change needs one.
        let named = !info.name.is_empty();
        let misplaced = match verb {
            Verb::Create => named && info.subresource.is_empty(),
            Verb::Update | Verb::Patch => !named,
            _ => false,
        };
        if !served || misplaced || (nowhere && !matches!(verb, Verb::List | Verb::Watch)) {
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
        let options = query::get_options(&call.query)?;
        let item = call.storage.get(call.cx, &call.cx.info.name, &options).await?;
        self.item(call, &item, StatusCode::OK)
    }

    async fn list(&self, call: &Call<'_>) -> Result<Response<Body>, Status> {
        let resource = call.storage.resource();
        let mut options = query::list_options(&call.query, resource, Listing::ByQuery { name: call.name() })?;
        collector::hide(resource, &call.cx.user, &mut options);
        let list = call.storage.list(call.cx, &options).await?;
        self.answer_list(call, list)
    }

    async fn watch(&self, call: &Call<'_>) -> Result<Response<Body>, Status> {
        let resource = call.storage.resource();
        let mut options = query::list_options(&call.query, resource, Listing::Watch { name: call.name() })?;
        collector::hide(resource, &call.cx.user, &mut options);
        stream::with_timeout(&mut options);
        let watch = call.storage.watch(call.cx, &options).await?;
        let (storage, schemas) = (Arc::clone(call.storage), Arc::clone(&self.schemas));
        Ok(stream::respond(storage, schemas, watch, call.form, &options))
    }

    /// One object as the answer.
    fn item(&self, call: &Call<'_>, item: &Item, code: StatusCode) -> Result<Response<Body>, Status> {
        if let Some(audit) = call.cx.audit.as_ref().filter(|audit| audit.wants_response()) {
            audit.response_object(&item.object().map_err(Status::internal)?);
        }
        respond::item(&**call.storage, &self.schemas, item, code, call.form)
    }

    /// A list as the answer.
    fn answer_list(&self, call: &Call<'_>, list: List) -> Result<Response<Body>, Status> {
        if let Some(audit) = call.cx.audit.as_ref().filter(|audit| audit.wants_response()) {
            audit.response_list(call.storage.resource(), &list)?;
        }
        respond::list(&**call.storage, &self.schemas, list, call.form)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn user_agent(headers: &HeaderMap) -> Option<&str> {
    text(headers, &header::USER_AGENT)
}

/// Whether a request is for one object: a selector by name puts a name into requests of collections too.
fn named(verb: Verb, info: &RequestInfo) -> bool {
    !info.name.is_empty() && (verb == Verb::Create || !of_collections(verb))
}

/// Whether a verb is for collections.
fn of_collections(verb: Verb) -> bool {
    matches!(verb, Verb::Create | Verb::DeleteCollection | Verb::List | Verb::Watch)
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
