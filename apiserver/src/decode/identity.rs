//! Which kind a document says it is.

use picoshift_machinery::field_error::quote;
use picoshift_machinery::{GroupVersionKind, Status};

use super::node::Node;
use crate::schema::{Schemas, cannot_be_handled};

/// The name that the real server's registry of types has in its errors.
const SCHEME: &str = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30";

/// The groups whose server is not the one of the other groups.
const OF_USERS: [&str; 3] = ["user.openshift.io", "oauth.openshift.io", "authentication.k8s.io"];

/// Group, version and kind of a document, empty where it says none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

/// How Go prints the struct that it reads `apiVersion` and `kind` into.
const GO_STRUCT: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

impl Identity {
    /// Reads `apiVersion` and `kind`, whose names may be in any case here, as in Go's `encoding/json`.
    pub(super) fn of(document: &Node) -> Result<Self, String> {
        let unreadable = |why: String| format!("couldn't get version/kind; json parse error: {why}");
        let members = match document {
            Node::Map(members) => members.as_slice(),
            Node::Null => &[],
            other => {
                let kind = other.kind();
                return Err(unreadable(format!(
                    "json: cannot unmarshal {kind} into Go value of type {GO_STRUCT}"
                )));
            }
        };
        let mut api_version = "";
        let mut kind = "";
        for (name, value) in members {
            let (slot, field) = if name.eq_ignore_ascii_case("apiVersion") {
                (&mut api_version, "apiVersion")
            } else if name.eq_ignore_ascii_case("kind") {
                (&mut kind, "kind")
            } else {
                continue;
            };
            match value {
                Node::Text(text) => *slot = text,
                Node::Null => {}
                other => {
                    let found = other.kind();
                    return Err(unreadable(format!(
                        "json: cannot unmarshal {found} into Go struct field .{field} of type string"
                    )));
                }
            }
        }
        let (group, version) = match api_version.split('/').collect::<Vec<_>>().as_slice() {
            [""] | ["", ""] => ("", ""),
            [version] => ("", *version),
            [group, version] => (*group, *version),
            _ => return Err(format!("unexpected GroupVersion string: {api_version}")),
        };
        Ok(Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() })
    }

    /// Fills in what the document leaves out.
    pub(super) fn or(mut self, default: GroupVersionKind) -> Self {
        if self.kind.is_empty() {
            default.kind.clone_into(&mut self.kind);
        }
        if self.version.is_empty() && (self.group.is_empty() || self.group == default.group) {
            default.group.clone_into(&mut self.group);
            default.version.clone_into(&mut self.version);
        }
        self
    }

    /// Whether it is `gvk`.
    pub(super) fn is(&self, gvk: GroupVersionKind) -> bool {
        self.group == gvk.group && self.version == gvk.version && self.kind == gvk.kind
    }

    /// `group/version`.
    pub(super) fn api_version(&self) -> String {
        picoshift_machinery::group_version::api_version(&self.group, &self.version)
    }

    /// Why an object of this kind is none of the kind `wanted`: the real servers know all kinds of their own groups, under
    /// the old name without a group too, and others not at all.
    pub(super) fn mismatch(&self, schemas: &Schemas, wanted: GroupVersionKind) -> String {
        let own = wanted.group;
        let group = if self.group.is_empty() { own } else { self.group.as_str() };
        // Users are served by a program of their own.
        let together = OF_USERS.contains(&group) == OF_USERS.contains(&own);
        let package = |group: &str| group.strip_suffix(".openshift.io").unwrap_or_default().to_owned();
        if together && schemas.has_kind(&package(group), &self.version, &self.kind) {
            let (found, version, package) = (&self.kind, &self.version, package(own));
            return format!(
                "converting ({version}.{found}) to ({package}.{}): unknown conversion",
                wanted.kind
            );
        }
        self.not_registered(SCHEME)
    }

    /// # Errors
    /// 400 unless a body of this kind can be taken for one of the kind `wanted`.
    pub(super) fn expect(&self, schemas: &Schemas, wanted: GroupVersionKind) -> Result<(), Status> {
        if self.is_legacy(wanted) {
            let (found, expected) = (self.api_version(), wanted.api_version());
            let why = format!(
                "the API version in the data ({found}) does not match the expected API version ({expected})"
            );
            return Err(Status::bad_request(why));
        }
        if self.is(wanted) {
            return Ok(());
        }
        let why = self.mismatch(schemas, wanted);
        Err(cannot_be_handled(&self.kind, &self.version, wanted.kind, &why))
    }

    /// Whether it is `gvk` under its old name, without a group.
    fn is_legacy(&self, gvk: GroupVersionKind) -> bool {
        self.group.is_empty() && self.version == "v1" && self.kind == gvk.kind
    }

    /// The text about a kind that is not known.
    pub(super) fn not_registered(&self, scheme: &str) -> String {
        let (kind, version) = (quote(&self.kind), quote(&self.api_version()));
        format!("no kind {kind} is registered for version {version} in scheme {}", quote(scheme))
    }
}
