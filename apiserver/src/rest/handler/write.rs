//! The verbs that change something, from the body to the answer.

use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, Response, StatusCode, header};
use hyper::body::Incoming;
use picoshift_machinery::body::Body;
use picoshift_machinery::{Object, Status};

use super::{Call, Handler, text, user_agent};
use crate::authz::Authorizer;
use crate::decode::{self, MAX_BODY};
use crate::owner_references::{self, Stage};
use crate::rest::apply::{self, Application};
use crate::rest::fields::{Tracker, manager_of};
use crate::rest::patch::{self, ParsedPatch, PatchUpdater, Replacement};
use crate::rest::query::{self, Listing, WriteKind};
use crate::rest::respond;
use crate::rest::storage::{Deleted, Updated, Updater};
use crate::rest::strategic_patch;
use crate::rest::{DeleteOptions, GetOptions, RequestContext, WriteOptions};
use crate::schema::FieldValidation;

impl Handler {
    pub(super) async fn create(&self, call: &Call<'_>, body: Incoming) -> Result<Response<Body>, Status> {
        let parameters = query::write_options(&call.query, WriteKind::Create)?;
        let mut object = self.object(call, body, parameters.field_validation).await?;
        check_namespace(call, &object)?;
        owner_references::dedup(call.cx, &mut object, Stage::Sent);
        let tracker = self.tracker(call, parameters.field_manager);
        let options = WriteOptions { tracker, ..parameters.options };
        let item = call.storage.create(call.cx, object, &options).await?;
        self.item(call, &item, StatusCode::CREATED)
    }

    pub(super) async fn update(&self, call: &Call<'_>, body: Incoming) -> Result<Response<Body>, Status> {
        let info = &call.cx.info;
        let parameters = query::write_options(&call.query, WriteKind::Update)?;
        let mut object = self.object(call, body, parameters.field_validation).await?;
        query::check_name(&object, &info.name, &info.namespace)?;
        owner_references::dedup(call.cx, &mut object, Stage::Sent);
        let tracker = self.tracker(call, parameters.field_manager);
        let options = WriteOptions { tracker, ..parameters.options };
        let put = Put { object: Replacement(object), cx: call.cx, authorizer: &*self.authorizer };
        self.write(call, &put, options).await
    }

    async fn apply(&self, call: &Call<'_>, body: Incoming) -> Result<Response<Body>, Status> {
        let parameters = query::write_options(&call.query, WriteKind::Apply)?;
        let bytes = decode::read_body(body, MAX_BODY).await?;
        if let Some(audit) = &call.cx.audit {
            audit.request_patch(&bytes);
        }
        let fields = self.fields.of(&call.cx.info.subresource).ok_or_else(Status::no_such_method)?;
        let application = Application {
            fields,
            schemas: &self.schemas,
            resource: call.storage.resource(),
            cx: call.cx,
            authorizer: &*self.authorizer,
            config: decode::decode_configuration(&bytes)?,
            manager: &parameters.field_manager,
            force: parameters.force,
            validation: parameters.field_validation,
        };
        self.write(call, &application, parameters.options).await
    }

    pub(super) async fn patch(&self, call: &Call<'_>, body: Incoming) -> Result<Response<Body>, Status> {
        if apply::is_apply(call.headers) {
            return self.apply(call, body).await;
        }
        let parameters = query::write_options(&call.query, WriteKind::Patch)?;
        let bytes = decode::read_body(body, MAX_BODY).await?;
        let patch = match patch::parse(call.headers, &bytes) {
            Err(status) if status.code == 400 => {
                // What is not there is told before what is wrong with the patch.
                call.storage.get(call.cx, &call.cx.info.name, &GetOptions::default()).await?;
                return Err(status);
            }
            parsed => parsed?,
        };
        if let Some(audit) = &call.cx.audit {
            audit.request_patch(&bytes);
        }
        let strict = decode::decode_patch(&bytes)?.strict;
        let resource = call.storage.resource();
        let validation = parameters.field_validation;
        let apply = |patch: &ParsedPatch, current: &Object| {
            let strict = strict.clone();
            let (object, warnings) = match patch {
                ParsedPatch::Strategic(patch) => {
                    strategic_patch::apply(&self.schemas, resource, current, patch, strict, validation)?
                }
                other => {
                    let patched = other.apply(current)?;
                    decode::decode_patched(&self.schemas, resource, &patched, strict, validation)?
                }
            };
            for warning in warnings {
                call.cx.warn(warning);
            }
            query::check_name(&object, &call.cx.info.name, &call.cx.info.namespace)?;
            Ok(object)
        };
        let tracker = self.tracker(call, parameters.field_manager);
        let options = WriteOptions { tracker, ..parameters.options };
        self.write(call, &PatchUpdater::new(patch, apply), options).await
    }

    async fn write(
        &self,
        call: &Call<'_>,
        updater: &dyn Updater,
        options: WriteOptions,
    ) -> Result<Response<Body>, Status> {
        let options = WriteOptions { subresource: call.cx.info.subresource.clone(), ..options };
        let (item, code) = match call.storage.update(call.cx, &call.cx.info.name, updater, &options).await? {
            Updated::Changed(item) => (item, StatusCode::OK),
            Updated::Created(item) => (item, StatusCode::CREATED),
        };
        self.item(call, &item, code)
    }

    async fn delete_options(&self, call: &Call<'_>, body: Incoming) -> Result<DeleteOptions, Status> {
        let bytes = decode::read_body(body, MAX_BODY).await?;
        if bytes.is_empty() {
            return query::delete_options(&call.query);
        }
        if let Some(audit) = &call.cx.audit {
            audit.request_options(&bytes);
        }
        decode::decode_delete_options(&self.schemas, content_type(call.headers), &bytes)
    }

    pub(super) async fn delete(&self, call: &Call<'_>, body: Incoming) -> Result<Response<Body>, Status> {
        let options = self.delete_options(call, body).await?;
        match call.storage.delete(call.cx, &call.cx.info.name, &options).await? {
            Deleted::Object(item) => self.item(call, &item, StatusCode::OK),
            Deleted::Gone(details) => {
                let status = Status::success(details);
                Ok(respond::status(&status, StatusCode::OK, call.form))
            }
        }
    }

    pub(super) async fn delete_collection(
        &self,
        call: &Call<'_>,
        body: Incoming,
    ) -> Result<Response<Body>, Status> {
        let options = self.delete_options(call, body).await?;
        let listing = Listing::ByQuery { name: call.name() };
        let list = query::list_options(&call.query, call.storage.resource(), listing)?;
        let deleted = call.storage.delete_collection(call.cx, &options, &list).await?;
        self.answer_list(call, deleted)
    }

    async fn object(
        &self,
        call: &Call<'_>,
        body: Incoming,
        validation: FieldValidation,
    ) -> Result<Object, Status> {
        let bytes = decode::read_body(body, MAX_BODY).await?;
        let resource = call.storage.resource();
        let content_type = content_type(call.headers);
        let decoded = decode::decode_object(&self.schemas, resource, content_type, &bytes, validation)?;
        for warning in decoded.warnings {
            call.cx.warn(warning);
        }
        if let Some(audit) = &call.cx.audit {
            audit.request_object(&decoded.object);
        }
        Ok(decoded.object)
    }

    /// Who is noted for a write: the manager that the client names, or the client.
    fn tracker(&self, call: &Call<'_>, manager: String) -> Option<Tracker> {
        let fields = self.fields.of(&call.cx.info.subresource)?;
        let manager = if manager.is_empty() {
            manager_of(user_agent(call.headers).unwrap_or_default())
        } else {
            manager
        };
        Some(Tracker::new(Arc::clone(fields), manager))
    }
}

/// A whole object, and who puts it there: some kinds are created by it.
struct Put<'a> {
    object: Replacement,
    cx: &'a RequestContext,
    authorizer: &'a dyn Authorizer,
}

#[async_trait]
impl Updater for Put<'_> {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        self.object.update(current)
    }

    async fn permit_creation(&self) -> Result<(), Status> {
        apply::permit_creation(self.cx, self.authorizer).await
    }

    fn retries(&self) -> bool {
        self.object.retries()
    }

    fn replaces(&self) -> bool {
        self.object.replaces()
    }
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    text(headers, &header::CONTENT_TYPE)
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
