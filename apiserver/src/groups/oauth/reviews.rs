//! `tokenreviews`: kube-apiserver asks whose a bearer token is (`k8s.io/kubernetes/pkg/registry/authentication/tokenreview`
//! as `oauth-apiserver` wraps it). The kind is Kubernetes' own TokenReview; nothing is stored.

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::{Object, Status, UserInfo};
use serde_json::{Map, Value, json};

use super::resources::TOKEN_REVIEWS;
use super::tokens::{Owner, Tokens};
use crate::resource::Resource;
use crate::rest::{Item, RequestContext, Storage, WriteOptions};

/// The storage of `tokenreviews`.
pub(super) struct TokenReviews(pub(super) Arc<Tokens>);

#[async_trait]
impl Storage for TokenReviews {
    fn resource(&self) -> &'static Resource {
        &TOKEN_REVIEWS
    }

    async fn create(
        &self,
        _cx: &RequestContext,
        mut object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        let token = object.str_at(&["spec", "token"]).to_owned();
        if token.is_empty() {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        options.track(None, &mut object);
        let wanted = object.at(&["spec", "audiences"]).and_then(Value::as_array).into_iter().flatten();
        let wanted: Vec<String> = wanted.filter_map(|audience| Some(audience.as_str()?.to_owned())).collect();
        let mut status = Map::new();
        match bearer(&token) {
            None => drop(status.insert("user".to_owned(), json!({}))),
            Some(token) => match self.0.owner(token, &wanted).await {
                Ok(Owner { audiences, .. }) if !wanted.is_empty() && audiences.is_empty() => {
                    return Err(Status::internal("error validating audiences"));
                }
                Ok(owner) => {
                    status.insert("authenticated".to_owned(), true.into());
                    status.insert("user".to_owned(), shown(&owner.user));
                    if !owner.audiences.is_empty() {
                        status.insert("audiences".to_owned(), owner.audiences.into());
                    }
                }
                Err(why) => {
                    status.insert("user".to_owned(), json!({}));
                    status.insert("error".to_owned(), why.into());
                }
            },
        }
        object.0.insert("status".to_owned(), status.into());
        Ok(Arc::new(Item::new(&TOKEN_REVIEWS, object, 0)))
    }
}

/// The token as it would be read from a header: its first word.
fn bearer(token: &str) -> Option<&str> {
    let header = token.trim_end();
    header.split(' ').next().filter(|token| !token.is_empty())
}

/// A user as a review shows it: what is empty is left out.
fn shown(user: &UserInfo) -> Value {
    let mut shown = json!({"username": user.name, "groups": user.groups, "extra": user.extra});
    if !user.uid.is_empty() {
        shown["uid"] = user.uid.as_str().into();
    }
    shown
}
