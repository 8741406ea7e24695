//! [`RouteStrategy`]: what routes decide for themselves, put together.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::RwLock;
use picoshift_machinery::{FieldError, Object, Status};
use serde_json::{Value, json};

use super::claims::Claims;
use super::columns::{self, ROUTES};
use super::status::{self, Facts, Request};
use super::tls::Sources;
use super::view::View;
use super::{defaults, host, permission, validation};
use crate::authz::Authorizer;
use crate::registry::strategy::{Computed, Plan, Planned, Stored, Strategy};
use crate::resource::Resource;
use crate::rest::RequestContext;
use crate::secrets::SecretTypes;
use crate::store::Revision;

/// The strategy of `routes`.
pub struct RouteStrategy {
    authorizer: Arc<dyn Authorizer>,
    secrets: Arc<dyn SecretTypes>,
    domain: String,
    claims: RwLock<Claims>,
}

impl RouteStrategy {
    /// A strategy without any route yet. `ingress_domain` is the suffix of generated hosts (`apps.<cluster>`) and the
    /// domain of the `default` router; the authorizer answers who may choose hosts and certificates, `secrets` of which type a
    /// certificate's secret is.
    #[must_use]
    pub fn new(authorizer: Arc<dyn Authorizer>, secrets: Arc<dyn SecretTypes>, ingress_domain: &str) -> Self {
        Self { authorizer, secrets, domain: ingress_domain.to_owned(), claims: RwLock::default() }
    }

    fn sources(&self) -> Sources<'_> {
        Sources { authorizer: &*self.authorizer, secrets: &*self.secrets }
    }

    fn request(&self, write: Planned<'_>, object: &Object) -> Request {
        // A route that is being created is younger than all of its second.
        let created = write.create_revision.unwrap_or(Revision::MAX);
        status::request(object, write.key, created, &self.domain)
    }
}

#[async_trait]
impl Strategy for RouteStrategy {
    fn resource(&self) -> &'static Resource {
        &ROUTES
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        columns::row(View(object))
    }

    fn set_defaults(&self, object: &mut Object) {
        defaults::apply(object);
    }

    fn prepare_create(&self, _cx: &RequestContext, object: &mut Object) {
        object.0.insert("status".to_owned(), json!({}));
        defaults::strip_empty_destination_ca(object);
    }

    fn prepare_update(&self, _cx: &RequestContext, subresource: &str, object: &mut Object, old: &Object) {
        if subresource == "status" {
            restore(object, old, "spec");
            return;
        }
        restore(object, old, "status");
        defaults::strip_empty_destination_ca(object);
        let kept = View(old).host();
        if View(object).host().is_empty() && !kept.is_empty() {
            object.object_mut("spec").insert("host".to_owned(), kept.into());
        }
    }

    async fn validate_create(
        &self,
        cx: &RequestContext,
        object: &mut Object,
    ) -> Result<Vec<FieldError>, Status> {
        let mut errors = permission::create(&*self.authorizer, cx, object).await;
        if errors.is_empty() {
            host::allocate(object, &self.domain);
        }
        errors.extend(validation::create(self.sources(), object).await);
        Ok(errors)
    }

    async fn validate_update(
        &self,
        cx: &RequestContext,
        subresource: &str,
        object: &mut Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, Status> {
        if subresource == "status" {
            return Ok(validation::update_status(object));
        }
        let mut errors = permission::update(&*self.authorizer, cx, object, old).await;
        errors.extend(validation::update(self.sources(), object, old).await);
        Ok(errors)
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let view = View(object);
        if view.host().is_empty() || view.subdomain().is_empty() {
            return Vec::new();
        }
        vec!["spec.host is set; spec.subdomain may be ignored".to_owned()]
    }

    fn strip(&self, object: &mut Object) {
        status::strip(object);
    }

    fn plan(&self, write: Planned<'_>, now: &str) -> Plan {
        let claims = self.claims.read();
        let old = write.old.map(|stored| self.request(write, &stored.object));
        let new = write.new.map(|object| (object, self.request(write, object)));
        let claim = new.as_ref().and_then(|(_, request)| request.claim.as_ref().ok());
        let new_host = claim.and(new.as_ref()).map(|(_, request)| request.host.as_str());
        let mut affected = Vec::new();
        if let Some(old) = &old
            && Some(old.host.as_str()) != new_host
        {
            affected.extend(claims.affected(&old.host, write.key, None));
        }
        let Some((object, request)) = new else { return Plan { affected, ..Plan::default() } };
        let rejection = match &request.claim {
            Ok(claim) => {
                affected.extend(claims.affected(&request.host, write.key, Some(claim)));
                status::rejection(&claims.verdict(&request.host, claim), &request.host, object.name())
            }
            Err(rejection) => Some(rejection.clone()),
        };
        let facts = json!(Facts { domain: self.domain.clone(), host: request.host, rejection });
        let since = match write.old {
            Some(old) if old.computed.facts == facts && !old.computed.since.is_empty() => {
                old.computed.since.clone()
            }
            _ => now.to_owned(),
        };
        Plan { computed: Computed { facts, since }, affected }
    }

    fn committed(&self, write: Planned<'_>, revision: Revision) {
        let write = Planned { create_revision: write.create_revision.or(Some(revision)), ..write };
        let mut claims = self.claims.write();
        if let Some(old) = write.old {
            claims.remove(&self.request(write, &old.object).host, write.key);
        }
        if let Some(object) = write.new {
            let Request { host, claim } = self.request(write, object);
            if let Ok(claim) = claim {
                claims.set(&host, claim);
            }
        }
    }

    fn present(&self, stored: &Stored) -> Object {
        status::present(stored)
    }
}

/// Puts a field back to what it was.
fn restore(object: &mut Object, old: &Object, field: &str) {
    match old.0.get(field) {
        Some(value) => object.0.insert(field.to_owned(), value.clone()),
        None => object.0.remove(field),
    };
}
