//! `roles`, `rolebindings`, `clusterroles`, `clusterrolebindings`: RBAC's objects, read and written in the caller's own name.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use picoshift_machinery::selector::{FieldSelector, LabelSelector, Operator};
use picoshift_machinery::{Object, Status};
use serde_json::Value;

use super::rbac_api::{Place, RbacApi};
use super::{GROUP, convert, printing, resources};
use crate::kube_api::{FIELD_MANAGER, delete_body, write_query};
use crate::resource::Resource;
use crate::rest::options::VersionMatch;
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, Items, List, ListOptions, RequestContext, Storage, Updated,
    Updater, WriteOptions,
};

/// How often a patch that lost against another write is made again.
const ATTEMPTS: usize = 5;

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewedKind {
    Role,
    RoleBinding,
    ClusterRole,
    ClusterRoleBinding,
}

impl ViewedKind {
    fn resource(self) -> &'static Resource {
        match self {
            Self::Role => &resources::ROLES,
            Self::RoleBinding => &resources::ROLE_BINDINGS,
            Self::ClusterRole => &resources::CLUSTER_ROLES,
            Self::ClusterRoleBinding => &resources::CLUSTER_ROLE_BINDINGS,
        }
    }

    fn is_role(self) -> bool {
        matches!(self, Self::Role | Self::ClusterRole)
    }

    fn shown(self, object: Object) -> Result<Object, Status> {
        let mut object = if self.is_role() {
            convert::role_from_rbac(object)
        } else {
            convert::binding_from_rbac(object)?
        };
        // Items of a list do not say what they are.
        object.0.insert("kind".to_owned(), self.resource().gvk.kind.into());
        Ok(object)
    }

    fn stored(self, object: Object) -> Result<Object, Status> {
        if self.is_role() {
            return Ok(convert::role_to_rbac(object));
        }
        convert::binding_to_rbac(object, self == Self::ClusterRoleBinding)
    }
}

/// Storage of one of the resources.
pub(super) struct View {
    pub(super) kind: ViewedKind,
    pub(super) api: RbacApi,
}

impl View {
    /// A request in the caller's name; errors are about our resource.
    async fn send(
        &self,
        cx: &RequestContext,
        method: Method,
        (name, query): (&str, &str),
        body: Vec<u8>,
    ) -> Result<Object, Status> {
        let resource = self.kind.resource().plural;
        let place = Place { resource, namespace: &cx.info.namespace, name, query };
        self.api.send(&cx.user, method, &place, body).await.map_err(|status| self.about_ours(status))
    }

    /// The first mention of the other group becomes ours, and so do the details.
    fn about_ours(&self, mut status: Status) -> Status {
        let Some(details) = &mut status.details else { return status };
        let plural = self.kind.resource().plural;
        let whole = |kind: &str, group: &str| {
            if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
        };
        let theirs = whole(&details.kind, &details.group);
        if !theirs.is_empty() {
            status.message = status.message.replacen(&theirs, &whole(plural, GROUP), 1);
        }
        GROUP.clone_into(&mut details.group);
        plural.clone_into(&mut details.kind);
        status
    }

    fn item(&self, object: Object) -> Result<Arc<Item>, Status> {
        let object = self.kind.shown(object)?;
        // A dry run has none.
        let revision = object.resource_version().parse().unwrap_or_default();
        Ok(Arc::new(Item::new(self.kind.resource(), object, revision)))
    }
}

#[async_trait]
impl Storage for View {
    fn resource(&self) -> &'static Resource {
        self.kind.resource()
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        if self.kind.is_role() { printing::role_row(object) } else { printing::binding_row(object) }
    }

    async fn get(&self, cx: &RequestContext, name: &str, options: &GetOptions) -> Result<Arc<Item>, Status> {
        let query = options.resource_version.map(|v| format!("resourceVersion={v}")).unwrap_or_default();
        self.item(self.send(cx, Method::GET, (name, &query), Vec::new()).await?)
    }

    async fn list(&self, cx: &RequestContext, options: &ListOptions) -> Result<List, Status> {
        let mut list = self.send(cx, Method::GET, ("", &list_query(options)), Vec::new()).await?;
        let items = match list.0.remove("items") {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let items = items.into_iter().filter_map(Object::from_value).map(|object| self.item(object));
        let items = items.collect::<Result<Vec<_>, _>>()?;
        let metadata = |field: &str| list.at(&["metadata", field]);
        Ok(List {
            revision: list.resource_version().parse().unwrap_or_default(),
            continue_token: list.str_at(&["metadata", "continue"]).to_owned(),
            remaining: metadata("remainingItemCount").and_then(Value::as_u64),
            items: Items::Picked(items),
        })
    }

    async fn create(
        &self,
        cx: &RequestContext,
        mut object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        if self.kind.resource().namespaced {
            object.set_metadata("namespace", cx.info.namespace.as_str());
        }
        // Who owns what of RBAC's objects is kube-apiserver's to note, and so the writer of them is this server.
        object.set_metadata("managedFields", Value::Null);
        let body = self.kind.stored(object)?.to_bytes().into();
        let query = write_query(FIELD_MANAGER, options.dry_run);
        self.item(self.send(cx, Method::POST, ("", &query), body).await?)
    }

    async fn update(
        &self,
        cx: &RequestContext,
        name: &str,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Updated, Status> {
        let query = write_query(FIELD_MANAGER, options.dry_run);
        let mut attempt = 1;
        loop {
            let current = self.send(cx, Method::GET, (name, ""), Vec::new()).await?;
            let owners = current.at(&["metadata", "managedFields"]).cloned().unwrap_or_default();
            let old = self.kind.shown(current)?;
            let mut new = match updater.apply(Some(&old), &|_| ()) {
                Some(applied) => applied?,
                None => updater.update(&old)?,
            };
            if self.kind.resource().namespaced {
                new.set_metadata("namespace", cx.info.namespace.as_str());
            }
            new.set_metadata("managedFields", owners);
            let body = self.kind.stored(new)?.to_bytes().into();
            match self.send(cx, Method::PUT, (name, &query), body).await {
                Err(status) if status.is("Conflict") && updater.retries() && attempt < ATTEMPTS => {
                    attempt += 1;
                }
                written => return self.item(written?).map(Updated::Changed),
            }
        }
    }

    async fn delete(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let body = delete_body(options).to_string().into_bytes();
        self.send(cx, Method::DELETE, (name, ""), body).await?;
        Ok(Deleted::Gone(None))
    }
}

/// The options of a list as a query.
fn list_query(options: &ListOptions) -> String {
    let mut query = String::new();
    let mut add = |field: &str, value: &str| {
        if !value.is_empty() {
            let separator = if query.is_empty() { "" } else { "&" };
            let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
            // Writing to a String does not fail.
            let _ = write!(query, "{separator}{field}={value}");
        }
    };
    add("labelSelector", &labels(&options.labels));
    add("fieldSelector", &fields(&options.fields));
    add("resourceVersion", &options.resource_version.map(|v| v.to_string()).unwrap_or_default());
    add(
        "resourceVersionMatch",
        match options.version_match {
            Some(VersionMatch::Exact) => "Exact",
            Some(VersionMatch::NotOlderThan) => "NotOlderThan",
            None => "",
        },
    );
    add("limit", &if options.limit == 0 { String::new() } else { options.limit.to_string() });
    add("continue", &options.continue_token);
    query
}

fn labels(selector: &LabelSelector) -> String {
    let term = |key: &str, operator: Operator, values: &[String]| match operator {
        Operator::Exists => key.to_owned(),
        Operator::DoesNotExist => format!("!{key}"),
        Operator::In => format!("{key} in ({})", values.join(",")),
        Operator::NotIn => format!("{key} notin ({})", values.join(",")),
        Operator::GreaterThan => format!("{key}>{}", values.join(",")),
        Operator::LessThan => format!("{key}<{}", values.join(",")),
    };
    let terms = selector.requirements.iter().map(|r| term(&r.key, r.operator, &r.values));
    terms.collect::<Vec<_>>().join(",")
}

fn fields(selector: &FieldSelector) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
    let terms = selector
        .requirements
        .iter()
        .map(|r| format!("{}{}{}", r.field, if r.negated { "!=" } else { "=" }, escaped(&r.value)));
    terms.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A selector is asked for as it was read.
        #[test]
        fn selectors_survive(
            label in "(a=b|a!=b|a in \\(b,c\\)|a notin \\(b\\)|a|!a|a>1|a<2|a=)(,x/y=z)?",
            field in "metadata\\.name(=|!=)[a-z]{0,3}",
        ) {
            let label = LabelSelector::parse(&label).unwrap();
            prop_assert_eq!(LabelSelector::parse(&labels(&label)).unwrap(), label);
            let field = FieldSelector::parse(&field).unwrap();
            prop_assert_eq!(FieldSelector::parse(&fields(&field)).unwrap(), field);
        }
    }

    #[test]
    fn options_become_a_query() {
        let options = ListOptions {
            labels: LabelSelector::parse("a=b").unwrap(),
            resource_version: Some(0),
            limit: 5,
            continue_token: "t&k".to_owned(),
            ..ListOptions::default()
        };
        assert_eq!(
            list_query(&options),
            "labelSelector=a%20in%20%28b%29&resourceVersion=0&limit=5&continue=t%26k"
        );
        assert_eq!(list_query(&ListOptions::default()), "");
    }
}
