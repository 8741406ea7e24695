//! `podsecuritypolicyreviews`, `…selfsubjectreviews` and `…subjectreviews`: which SCC would admit a pod of service accounts, of
//! the caller, of a user or groups? Nothing is stored.

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::{FieldError, Object, Status, UserInfo};
use serde_json::{Value, json};

use super::bodies;
use super::reviewer::{Reviewer, judge, providers, service_account, undecided};
use crate::resource::Resource;
use crate::rest::{Item, RequestContext, Storage, WriteOptions};

/// Whom a resource's reviews are about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// Service accounts that the review names, or else the template's.
    ServiceAccounts,
    /// Who asks.
    Caller,
    /// A user or groups.
    Subject,
}

/// Storage of one of the resources.
pub(super) struct Reviews {
    pub(super) resource: &'static Resource,
    pub(super) asks: Asks,
    pub(super) reviewer: Arc<Reviewer>,
}

#[async_trait]
impl Storage for Reviews {
    fn resource(&self) -> &'static Resource {
        self.resource
    }

    async fn create(
        &self,
        cx: &RequestContext,
        mut review: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        bodies::complete(&mut review);
        options.track(None, &mut review);
        self.check(&review)?;
        let namespace = &cx.info.namespace;
        let template = review.at(&["spec", "template", "spec"]).cloned().unwrap_or_default();
        let status = match self.asks {
            Asks::ServiceAccounts => self.of_accounts(namespace, &review, &template).await?,
            Asks::Caller => self.of_users(namespace, vec![(*cx.user).clone()], &template).await?,
            Asks::Subject => {
                let (name, groups) = (review.str_at(&["spec", "user"]).to_owned(), texts(&review, "groups"));
                let some = !name.is_empty() || !groups.is_empty();
                let named = some.then(|| UserInfo { name, groups, ..UserInfo::default() });
                self.of_users(namespace, named.into_iter().collect(), &template).await?
            }
        };
        review.0.insert("status".to_owned(), status);
        Ok(Arc::new(Item::new(self.resource, review, 0)))
    }
}

impl Reviews {
    /// # Errors
    /// 422; upstream names the core group.
    fn check(&self, review: &Object) -> Result<(), Status> {
        let mut errors = bodies::check(review);
        match self.asks {
            Asks::ServiceAccounts => {
                errors.extend(bodies::check_accounts(&texts(review, "serviceAccountNames")));
            }
            Asks::Subject => {
                let nobody = review.str_at(&["spec", "user"]).is_empty()
                    && texts(review, "groups").is_empty()
                    && account(review.at(&["spec", "template", "spec"]).unwrap_or(&Value::Null)).is_empty();
                if nobody {
                    let why = "at least one of user, groups or serviceAccountName must be specified";
                    errors.push(FieldError::required("spec.user", why));
                }
            }
            Asks::Caller => {}
        }
        errors.extend(bodies::check_metadata(review));
        if errors.is_empty() { Ok(()) } else { Err(Status::invalid("", self.resource.gvk.kind, "", &errors)) }
    }

    /// The first SCC that admits the template, of those that the users or its service account may use.
    async fn of_users(
        &self,
        namespace: &str,
        mut users: Vec<UserInfo>,
        template: &Value,
    ) -> Result<Value, Status> {
        if !account(template).is_empty() {
            users.push(service_account(namespace, account(template)));
        }
        let sccs = self.reviewer.applicable(namespace, &users).await;
        let namespace = self.reviewer.namespace(namespace).await?;
        let mut status = undecided();
        for provider in providers(&sccs, &namespace)? {
            if judge(&mut status, &provider, template) {
                break;
            }
        }
        Ok(status.into())
    }

    /// Every SCC that admits the template, for each service account.
    async fn of_accounts(&self, namespace: &str, review: &Object, template: &Value) -> Result<Value, Status> {
        let mut accounts = texts(review, "serviceAccountNames");
        if accounts.is_empty() {
            let named = account(template);
            accounts.push(if named.is_empty() { "default" } else { named }.to_owned());
        }
        let mut missing = Vec::new();
        for account in &accounts {
            if !self.reviewer.facts.has_service_account(namespace, account).await? {
                missing.push(format!(
                    "unable to retrieve ServiceAccount {account}: serviceaccount \"{account}\" not found"
                ));
            }
        }
        if !missing.is_empty() {
            return Err(Status::bad_request(picoshift_scc_engine::provider::aggregate(&missing)));
        }
        let mut allowed = Vec::new();
        // As upstream: what fails here is not told, and allows nothing.
        let Ok(ready) = self.reviewer.namespace(namespace).await else {
            return Ok(json!({"allowedServiceAccounts": null}));
        };
        for account in &accounts {
            let sccs = self.reviewer.applicable(namespace, &[service_account(namespace, account)]).await;
            for provider in providers(&sccs, &ready).unwrap_or_default() {
                let mut status = undecided();
                if judge(&mut status, &provider, template) {
                    status.insert("name".to_owned(), account.as_str().into());
                    allowed.push(Value::Object(status));
                }
            }
        }
        Ok(json!({"allowedServiceAccounts": if allowed.is_empty() { Value::Null } else { allowed.into() }}))
    }
}

/// The template's service account.
fn account(template: &Value) -> &str {
    template["serviceAccountName"].as_str().unwrap_or_default()
}

/// The texts of a list of the spec.
fn texts(review: &Object, field: &str) -> Vec<String> {
    let list = review.at(&["spec", field]).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}
