//! Which endpoint answers what: resources by group, version and plural name; other paths as a whole or by prefix.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use http::{Request, Response};
use hyper::body::Incoming;
use picoshift_machinery::body::Body;
use picoshift_machinery::request_info::RequestInfo;

use crate::resource::Resource;
use crate::rest::RequestContext;

/// Answers requests that have been authenticated and authorized. The headers carry no credentials any more.
#[async_trait]
pub trait Endpoint: Send + Sync {
    /// Answers one request. Errors are answers too.
    async fn call(&self, cx: Arc<RequestContext>, request: Request<Incoming>) -> Response<Body>;
}

type Served = (&'static Resource, Arc<dyn Endpoint>);

/// All endpoints of a server.
#[derive(Default)]
pub struct Endpoints {
    resources: HashMap<&'static str, Vec<Served>>,
    paths: BTreeMap<String, Arc<dyn Endpoint>>,
    prefixes: Vec<(String, Arc<dyn Endpoint>)>,
}

impl Endpoints {
    /// No endpoints.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `endpoint` answers for a resource and its subresources.
    #[must_use]
    pub fn resource(mut self, resource: &'static Resource, endpoint: Arc<dyn Endpoint>) -> Self {
        self.resources.entry(resource.plural).or_default().push((resource, endpoint));
        self
    }

    /// `endpoint` answers for exactly this path, for example `/apis`; the index at `/` lists it.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>, endpoint: Arc<dyn Endpoint>) -> Self {
        self.paths.insert(path.into(), endpoint);
        self
    }

    /// `endpoint` answers for all paths that start like this, for example `/openapi/v3/`; the longest prefix wins.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>, endpoint: Arc<dyn Endpoint>) -> Self {
        self.prefixes.push((prefix.into(), endpoint));
        self.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        self
    }

    /// The resource of a request and what answers for it.
    pub(super) fn find_resource(&self, info: &RequestInfo) -> Option<&Served> {
        let named = self.resources.get(info.resource.as_str())?;
        named.iter().find(|(r, _)| r.gvk.group == info.group && r.gvk.version == info.version)
    }

    /// Whether there is anything in the group and version of a request.
    pub(super) fn serves(&self, info: &RequestInfo) -> bool {
        let mut all = self.resources.values().flatten();
        all.any(|(r, _)| r.gvk.group == info.group && r.gvk.version == info.version)
    }

    /// What answers for a path that is no resource.
    pub(super) fn find_path(&self, path: &str) -> Option<&Arc<dyn Endpoint>> {
        self.paths.get(path).or_else(|| {
            self.prefixes.iter().find(|(prefix, _)| path.starts_with(prefix.as_str())).map(|(_, e)| e)
        })
    }

    /// The paths for the index; it is silent about `/debug/`, as upstream's.
    pub(super) fn listed(&self) -> impl Iterator<Item = &str> {
        let all = self.paths.keys().chain(self.prefixes.iter().map(|(prefix, _)| prefix));
        all.map(String::as_str).filter(|path| !path.starts_with("/debug/"))
    }
}
