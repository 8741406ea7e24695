//! What a request is: method and path → verb, group, version, namespace, resource, name, subresource
//! (`k8s.io/apiserver/pkg/endpoints/request.RequestInfo`).

use http::Method;
use percent_encoding::percent_decode_str;

/// A request as authorization and the verbs see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestInfo {
    /// Whether the path names a resource; else only `path` and `verb` count.
    pub is_resource: bool,
    /// The decoded path.
    pub path: String,
    /// `get`, `list`, `watch`, `create`, … for resources; the lower-case method for other paths.
    pub verb: String,
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace, empty for none.
    pub namespace: String,
    /// Plural resource name.
    pub resource: String,
    /// Subresource, empty for none.
    pub subresource: String,
    /// Object name, empty for collections.
    pub name: String,
    /// Path segments behind resource, name and subresource.
    pub rest: Vec<String>,
}

/// A path that cannot be decoded.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the request path is not valid UTF-8 after percent-decoding")]
pub struct BadPath;

impl RequestInfo {
    /// Reads a request line. `watch` and `field_name` come from the query: `watch=true`, and the value of
    /// `metadata.name` in the field selector (which makes list and watch carry the name).
    ///
    /// # Errors
    /// [`BadPath`].
    pub fn parse(
        method: &Method,
        path: &str,
        watch: bool,
        field_name: Option<&str>,
    ) -> Result<Self, BadPath> {
        // Segments are decoded one by one: an escaped slash stays inside its segment.
        let segments = path
            .split('/')
            .filter(|s| !s.is_empty())
            .map(|s| percent_decode_str(s).decode_utf8().map(std::borrow::Cow::into_owned))
            .collect::<Result<Vec<String>, _>>()
            .map_err(|_| BadPath)?;
        let mut info = Self {
            path: percent_decode_str(path).decode_utf8().map_err(|_| BadPath)?.into_owned(),
            verb: method.as_str().to_ascii_lowercase(),
            ..Self::default()
        };
        let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
        let rest: &[&str] = match parts.as_slice() {
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                (*group).clone_into(&mut info.group);
                (*version).clone_into(&mut info.version);
                rest
            }
            ["api", version, rest @ ..] if !rest.is_empty() => {
                (*version).clone_into(&mut info.version);
                rest
            }
            _ => return Ok(info),
        };
        info.is_resource = true;
        info.resource_path(rest);
        info.verb = info.resource_verb(method, watch).to_owned();
        if info.name.is_empty() && matches!(info.verb.as_str(), "list" | "watch" | "deletecollection") {
            if let Some(name) = field_name {
                name.clone_into(&mut info.name);
            }
        }
        Ok(info)
    }

    fn resource_path(&mut self, rest: &[&str]) {
        let set = |slot: &mut String, value: &str| value.clone_into(slot);
        let tail = match rest {
            ["namespaces", namespace, resource, tail @ ..] => {
                set(&mut self.namespace, namespace);
                set(&mut self.resource, resource);
                tail
            }
            [resource, tail @ ..] => {
                set(&mut self.resource, resource);
                tail
            }
            [] => return,
        };
        match tail {
            [] => {}
            [name] => set(&mut self.name, name),
            [name, subresource, more @ ..] => {
                set(&mut self.name, name);
                set(&mut self.subresource, subresource);
                self.rest = more.iter().map(|s| (*s).to_owned()).collect();
            }
        }
    }

    fn resource_verb(&self, method: &Method, watch: bool) -> &'static str {
        match (method.as_str(), self.name.is_empty()) {
            ("POST", _) => "create",
            ("GET" | "HEAD", true) if watch => "watch",
            ("GET" | "HEAD", true) => "list",
            ("GET" | "HEAD", false) => "get",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "deletecollection",
            ("DELETE", false) => "delete",
            _ => "",
        }
    }
}
