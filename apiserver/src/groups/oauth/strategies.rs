//! What clients, tokens and authorizations decide for themselves as stored resources
//! (`oauth-apiserver/pkg/oauth/apiserver/registry`).

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use picoshift_machinery::{FieldError, FieldErrorKind, Object, Status};
use serde_json::Value;

use super::clients::Clients;
use super::expiry::Expiry;
use super::lifetime;
use super::printing;
use super::resources::{CLIENT_AUTHORIZATIONS, CLIENTS, strings};
use super::validation::{self, authorization_name, token_name};
use crate::object_meta::{self, NameRule};
use crate::registry::strategy::{Planned, Strategy};
use crate::resource::Resource;
use crate::rest::RequestContext;
use crate::store::Revision;

/// The strategy of `oauthclients`.
pub(super) struct OAuthClients;

/// The strategy of `oauthaccesstokens` and `oauthauthorizetokens`.
pub(super) struct StoredTokens {
    pub(super) resource: &'static Resource,
    pub(super) rules: TokenRules,
    pub(super) clients: Arc<Clients>,
    pub(super) expiry: Arc<Expiry>,
}

/// What tokens of one kind do otherwise than those of the other.
pub(super) struct TokenRules {
    /// Errors of a token, its metadata apart.
    create: fn(&Object) -> Vec<FieldError>,
    /// Errors of a change.
    update: fn(&Object, &Object) -> Vec<FieldError>,
}

pub(super) const ACCESS: TokenRules =
    TokenRules { create: validation::access_token, update: validation::access_token_changed };
pub(super) const AUTHORIZE: TokenRules =
    TokenRules { create: validation::authorize_token, update: validation::authorize_token_changed };

/// The strategy of `oauthclientauthorizations`.
pub(super) struct ClientAuthorizations(pub(super) Arc<Clients>);

impl Clients {
    /// The error of a token or an authorization that its client may not have.
    async fn refusal(&self, object: &Object) -> Option<FieldError> {
        let refused = self.check(object.str_at(&["clientName"]), &strings(object, "scopes")).await;
        refused.err().map(|why| FieldError::new(FieldErrorKind::Internal, "clientName", None, why))
    }
}

#[async_trait]
impl Strategy for OAuthClients {
    fn resource(&self) -> &'static Resource {
        &CLIENTS
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        printing::client_row(object)
    }

    async fn validate_create(
        &self,
        _cx: &RequestContext,
        object: &mut Object,
    ) -> Result<Vec<FieldError>, Status> {
        Ok(validation::client(object))
    }

    async fn validate_update(
        &self,
        _cx: &RequestContext,
        _subresource: &str,
        object: &mut Object,
        _old: &Object,
    ) -> Result<Vec<FieldError>, Status> {
        let mut errors = object_meta::create(object, false, self.name_rule());
        errors.extend(validation::client(object));
        Ok(errors)
    }
}

#[async_trait]
impl Strategy for StoredTokens {
    fn resource(&self) -> &'static Resource {
        self.resource
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        printing::token_row(object, Timestamp::now())
    }

    fn name_rule(&self) -> NameRule {
        token_name
    }

    /// RFC 7636: a challenge without a method is plain. Access tokens have no challenge.
    fn set_defaults(&self, object: &mut Object) {
        if !object.str_at(&["codeChallenge"]).is_empty() && object.str_at(&["codeChallengeMethod"]).is_empty()
        {
            object.0.insert("codeChallengeMethod".to_owned(), "plain".into());
        }
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    async fn validate_create(
        &self,
        _cx: &RequestContext,
        object: &mut Object,
    ) -> Result<Vec<FieldError>, Status> {
        let mut errors = (self.rules.create)(object);
        errors.extend(self.clients.refusal(object).await);
        Ok(errors)
    }

    async fn validate_update(
        &self,
        _cx: &RequestContext,
        _subresource: &str,
        object: &mut Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, Status> {
        Ok((self.rules.update)(object, old))
    }

    fn committed(&self, write: Planned<'_>, _revision: Revision) {
        follow(&self.expiry, write);
    }
}

/// Tells when a token that was written ends, or that it is gone.
fn follow(expiry: &Expiry, write: Planned<'_>) {
    match (write.new, write.old) {
        (Some(token), _) => expiry.set(token.name(), lifetime::end_of(token)),
        (None, Some(old)) => expiry.set(old.object.name(), None),
        (None, None) => {}
    }
}

#[async_trait]
impl Strategy for ClientAuthorizations {
    fn resource(&self) -> &'static Resource {
        &CLIENT_AUTHORIZATIONS
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        printing::authorization_row(object)
    }

    fn name_rule(&self) -> NameRule {
        authorization_name
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    /// Whatever name a client gives: user and client make the name.
    fn prepare_create(&self, _cx: &RequestContext, object: &mut Object) {
        object.set_metadata("name", validation::authorization_of(object));
    }

    fn prepare_update(&self, _cx: &RequestContext, _subresource: &str, object: &mut Object, _old: &Object) {
        object.set_metadata("name", validation::authorization_of(object));
    }

    async fn validate_create(
        &self,
        _cx: &RequestContext,
        object: &mut Object,
    ) -> Result<Vec<FieldError>, Status> {
        let metadata = object_meta::create(object, false, authorization_name);
        let mut errors = validation::authorization(object, &metadata);
        errors.extend(self.0.refusal(object).await);
        Ok(errors)
    }

    async fn validate_update(
        &self,
        _cx: &RequestContext,
        _subresource: &str,
        object: &mut Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, Status> {
        let mut errors = object_meta::create(object, false, authorization_name);
        errors.extend(validation::authorization(object, &errors));
        errors.extend(validation::authorization_changed(object, old));
        // Only more than was granted is asked about.
        let granted: BTreeSet<&str> = strings(old, "scopes").into_iter().collect();
        let scopes = strings(object, "scopes");
        if scopes.iter().any(|scope| !granted.contains(scope)) || (scopes.is_empty() && !granted.is_empty()) {
            errors.extend(self.0.refusal(object).await);
        }
        Ok(errors)
    }
}
