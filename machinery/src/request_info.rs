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
        // Segments are decoded one by one: an escaped slash stays inside its segment. A slash at the end means nothing.
        let inner = path.strip_prefix('/').unwrap_or(path);
        let segments = inner
            .strip_suffix('/')
            .unwrap_or(inner)
            .split('/')
            .map(|s| percent_decode_str(s).decode_utf8())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| BadPath)?;
        let path = percent_decode_str(path).decode_utf8().map_err(|_| BadPath)?.into_owned();
        let mut info = Self { path, ..Self::default() };
        let parts: Vec<&str> = segments.iter().map(|segment| &**segment).collect();
        // What has an empty segment names no resource: nobody may read `//` in two ways.
        if parts.contains(&"") {
            info.verb = method.as_str().to_ascii_lowercase();
            return Ok(info);
        }
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
            _ => {
                info.verb = method.as_str().to_ascii_lowercase();
                return Ok(info);
            }
        };
        info.is_resource = true;
        // The old form of a watch, `/watch/` before namespace and resource, still answers.
        let (rest, old_watch) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (rest, true),
            rest => (rest, false),
        };
        info.resource_path(rest);
        info.verb = match (old_watch, method) {
            (false, _) => info.resource_verb(method, watch).to_owned(),
            (true, &Method::GET) => "watch".to_owned(),
            (true, _) => String::new(),
        };
        let collection = matches!(info.verb.as_str(), "list" | "watch" | "deletecollection");
        if let Some(name) = field_name.filter(|_| collection && info.name.is_empty()) {
            name.clone_into(&mut info.name);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn info(method: &Method, path: &str, watch: bool) -> RequestInfo {
        RequestInfo::parse(method, path, watch, None).unwrap()
    }

    #[test]
    fn reads_resource_paths() {
        let cases = [
            (Method::GET, "/apis/g.io/v1/namespaces/ns/routes/r", "get", "ns", "routes", "r", ""),
            (Method::GET, "/apis/g.io/v1/namespaces/ns/routes", "list", "ns", "routes", "", ""),
            (Method::GET, "/apis/g.io/v1/routes", "list", "", "routes", "", ""),
            (Method::POST, "/apis/g.io/v1/namespaces/ns/routes", "create", "ns", "routes", "", ""),
            (
                Method::PUT,
                "/apis/g.io/v1/namespaces/ns/routes/r/status",
                "update",
                "ns",
                "routes",
                "r",
                "status",
            ),
            (
                Method::DELETE,
                "/apis/g.io/v1/namespaces/ns/routes",
                "deletecollection",
                "ns",
                "routes",
                "",
                "",
            ),
            (Method::PATCH, "/apis/g.io/v1/projects/p", "patch", "", "projects", "p", ""),
            (Method::GET, "/apis/g.io/v1/users/%7E", "get", "", "users", "~", ""),
            (Method::GET, "/apis/g.io/v1/users/a%2Fb", "get", "", "users", "a/b", ""),
        ];
        for (method, path, verb, namespace, resource, name, subresource) in cases {
            let info = info(&method, path, false);
            let seen = (info.verb.as_str(), info.namespace.as_str(), info.resource.as_str());
            assert_eq!(seen, (verb, namespace, resource), "{path}");
            assert_eq!((info.name.as_str(), info.subresource.as_str()), (name, subresource), "{path}");
            assert!(info.is_resource);
        }
    }

    #[test]
    fn watches_and_names_in_selectors() {
        assert_eq!(info(&Method::GET, "/apis/g.io/v1/routes", true).verb, "watch");
        let named = RequestInfo::parse(&Method::GET, "/apis/g.io/v1/projects", true, Some("p")).unwrap();
        assert_eq!(named.name, "p");
        let old = info(&Method::GET, "/apis/g.io/v1/watch/namespaces/ns/routes/r", false);
        let seen = (old.verb.as_str(), old.namespace.as_str(), old.resource.as_str(), old.name.as_str());
        assert_eq!(seen, ("watch", "ns", "routes", "r"));
        assert_eq!(info(&Method::POST, "/apis/g.io/v1/watch/routes", false).verb, "");
    }

    #[test]
    fn empty_segments_name_nothing() {
        for path in [
            "//apis/g.io/v1/routes",
            "/apis//g.io/v1/routes",
            "/apis/g.io/v1/namespaces//routes",
            "/apis/g.io/v1/namespaces/ns/routes//status",
            "/apis/g.io/v1/routes//",
        ] {
            let info = info(&Method::GET, path, false);
            assert!(!info.is_resource && info.path == path, "{path}");
        }
        assert_eq!(info(&Method::GET, "/apis/g.io/v1/namespaces/ns/routes/", false).verb, "list");
    }

    #[test]
    fn other_paths_are_no_resources() {
        for path in ["/", "/healthz", "/apis", "/apis/g.io", "/apis/g.io/v1", "/openapi/v3/apis/g.io/v1"] {
            let info = info(&Method::GET, path, false);
            assert_eq!((info.is_resource, info.verb.as_str()), (false, "get"), "{path}");
        }
        assert_eq!(RequestInfo::parse(&Method::GET, "/apis/%ff/v1/x", false, None), Err(BadPath));
    }

    proptest! {
        #[test]
        fn any_path_is_read_or_refused(path in "(/[a-z%~.2F]{0,6}){0,9}", watch in any::<bool>()) {
            let _ = RequestInfo::parse(&Method::GET, &path, watch, None);
        }
    }
}
