//! Objects as the real server shows them in errors: the JSON that Go makes of its internal types, whose fields have no
//! other names and are in the order of their declaration.

use picoshift_machinery::Object;
use serde_json::Value;

/// An internal type: fields by JSON name, name in Go and what is shown where they are not set.
pub(super) struct GoStruct(&'static [(&'static str, &'static str, &'static str)]);

/// `OAuthAccessToken`.
pub(super) static ACCESS_TOKEN: GoStruct = GoStruct(&[
    ("clientName", "ClientName", "\"\""),
    ("expiresIn", "ExpiresIn", "0"),
    ("scopes", "Scopes", "null"),
    ("redirectURI", "RedirectURI", "\"\""),
    ("userName", "UserName", "\"\""),
    ("userUID", "UserUID", "\"\""),
    ("authorizeToken", "AuthorizeToken", "\"\""),
    ("refreshToken", "RefreshToken", "\"\""),
    ("inactivityTimeoutSeconds", "InactivityTimeoutSeconds", "0"),
]);

/// `OAuthAuthorizeToken`.
pub(super) static AUTHORIZE_TOKEN: GoStruct = GoStruct(&[
    ("clientName", "ClientName", "\"\""),
    ("expiresIn", "ExpiresIn", "0"),
    ("scopes", "Scopes", "null"),
    ("redirectURI", "RedirectURI", "\"\""),
    ("state", "State", "\"\""),
    ("userName", "UserName", "\"\""),
    ("userUID", "UserUID", "\"\""),
    ("codeChallenge", "CodeChallenge", "\"\""),
    ("codeChallengeMethod", "CodeChallengeMethod", "\"\""),
]);

static RESTRICTION: GoStruct =
    GoStruct(&[("literals", "ExactValues", "null"), ("clusterRole", "ClusterRole", "null")]);

static ROLE_RESTRICTION: GoStruct = GoStruct(&[
    ("roleNames", "RoleNames", "null"),
    ("namespaces", "Namespaces", "null"),
    ("allowEscalation", "AllowEscalation", "false"),
]);

/// Fields of metadata in the order of Go's struct.
const METADATA: [&str; 14] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];
const OWNER: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
const MANAGED: [&str; 7] =
    ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];

impl GoStruct {
    /// The JSON names of the fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(json, _, _)| *json)
    }

    /// An object, its metadata first.
    pub(super) fn show(&self, object: &Object) -> String {
        let metadata = object.0.get("metadata").unwrap_or(&Value::Null);
        let mut members = members(metadata, &METADATA);
        if let Some(entries) = metadata.get("managedFields").and_then(Value::as_array) {
            members.push(format!("\"managedFields\":{}", list(entries, &MANAGED)));
        }
        members.extend(self.members(|field| object.0.get(field)));
        encoded(&members)
    }

    fn members<'v>(&self, get: impl Fn(&str) -> Option<&'v Value>) -> Vec<String> {
        let member = |(json, go, unset): &(&str, &str, &str)| match get(json).filter(|v| !v.is_null()) {
            Some(value) => format!("\"{go}\":{value}"),
            None => format!("\"{go}\":{unset}"),
        };
        self.0.iter().map(member).collect()
    }
}

/// A scope restriction.
pub(super) fn restriction(restriction: &Value) -> String {
    let role = restriction.get("clusterRole").filter(|role| !role.is_null());
    let mut members = RESTRICTION.members(|field| restriction.get(field));
    if let (Some(role), Some(last)) = (role, members.last_mut()) {
        let role = ROLE_RESTRICTION.members(|field| role.get(field));
        *last = format!("\"ClusterRole\":{{{}}}", role.join(","));
    }
    encoded(&members)
}

fn members(value: &Value, order: &[&str]) -> Vec<String> {
    let set = order.iter().filter_map(|field| Some((field, value.get(field)?)));
    set.map(|(field, value)| match (*field, value) {
        ("ownerReferences", Value::Array(owners)) => format!("\"{field}\":{}", list(owners, &OWNER)),
        _ => format!("\"{field}\":{value}"),
    })
    .collect()
}

fn list(items: &[Value], order: &[&str]) -> String {
    let items: Vec<String> =
        items.iter().map(|item| format!("{{{}}}", members(item, order).join(","))).collect();
    format!("[{}]", items.join(","))
}

/// An object of these members; Go escapes what would be markup.
fn encoded(members: &[String]) -> String {
    let text = format!("{{{}}}", members.join(","));
    let escapes = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    escapes.iter().fold(text, |text, (plain, escaped)| text.replace(*plain, escaped))
}
